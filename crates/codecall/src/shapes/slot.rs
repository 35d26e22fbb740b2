//! The shape and the counts of one tool's answers.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use gatewright_shape::{Shape, Witness};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{reading::Texts, text_kind::TextKinds};

/// Answers of a tool of which each is looked at.
const FIRST: u64 = 32;
/// Of later answers one in so many is looked at.
const SAMPLE: u64 = 64;
/// Callers of a tool whose first answers are looked at, and how many of each: names are shown to those who saw them.
const MOST_CALLERS: usize = 64;
const FIRST_OF_CALLER: u8 = 4;
/// Bounds while a tool is new, and later.
const EARLY: Bounds = Bounds { work: 1_024, bytes: 64 * 1024 };
const LATER: Bounds = Bounds { work: 256, bytes: 16 * 1024 };

/// Bounds on the look at one answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Parts that are looked at.
    pub(super) work: usize,
    /// Bytes of a text that is parsed for it.
    pub(super) bytes: usize,
}

/// The shape and the counts of one tool.
#[derive(Debug, Default)]
pub(super) struct Slot {
    answers: AtomicU64,
    used: AtomicU64,
    callers: Mutex<Vec<(Witness, u8)>>,
    learned: Mutex<Both>,
}

/// The shape learned here and at other instances.
#[derive(Debug, Default)]
pub(super) struct Both {
    /// All of it.
    pub(super) all: Learned,
    /// The part that other instances do not know yet.
    fresh: Learned,
}

/// The shape of a tool's answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Learned {
    #[serde(rename = "s")]
    pub(super) shape: Shape,
    /// Answers it was learned from.
    #[serde(rename = "n")]
    pub(super) answers: u64,
    #[serde(rename = "t")]
    pub(super) texts: Texts,
    /// Texts that scripts get as text.
    #[serde(rename = "k", default)]
    pub(super) kinds: TextKinds,
}

impl Learned {
    fn learn(&mut self, value: &Value, witness: Witness, work: usize) {
        self.shape.learn(value, witness, work);
        self.answers += 1;
    }

    /// Adds what was learned elsewhere from other answers.
    pub(super) fn merge(&mut self, other: Self) {
        self.shape.merge(other.shape);
        self.answers = self.answers.saturating_add(other.answers);
        self.texts.add(other.texts);
        self.kinds.add(other.kinds);
    }
}

impl Both {
    /// Adds an answer that was read as `value`. `to_share` keeps it for other instances as well.
    pub(super) fn learn(&mut self, value: &Value, witness: Witness, work: usize, to_share: bool) {
        self.all.learn(value, witness, work);
        if to_share {
            self.fresh.learn(value, witness, work);
        }
    }

    /// Counts a lone text that was read as `value`.
    pub(super) fn count_text(&mut self, value: Option<&Value>, to_share: bool) {
        self.all.texts.count(value);
        if to_share {
            self.fresh.texts.count(value);
        }
    }

    /// Counts the format of a text that scripts get as text.
    pub(super) fn count_kind(&mut self, text: &str, to_share: bool) {
        self.all.kinds.count(text);
        if to_share {
            self.fresh.kinds.count(text);
        }
    }

    /// Takes what other instances do not know yet.
    pub(super) fn take_fresh(&mut self) -> Learned {
        std::mem::take(&mut self.fresh)
    }

    /// Puts back what could not be shared.
    pub(super) fn put_back(&mut self, fresh: Learned) {
        self.fresh.merge(fresh);
    }

    /// Takes over what all instances know together.
    pub(super) fn take_over(&mut self, shared: Learned) {
        self.all = shared;
        self.all.merge(self.fresh.clone());
    }

    /// Returns `true` if something has not been shared yet.
    pub(super) fn has_fresh(&self) -> bool {
        self.fresh.answers > 0
    }
}

impl Slot {
    /// The bounds of the look at the next answer, which goes to `witness`; `None` to leave it out.
    pub(super) fn next_look(&self, witness: Witness) -> Option<Bounds> {
        let nth = self.answers.fetch_add(1, Ordering::Relaxed);
        if self.is_early_for(witness) || nth < FIRST {
            return Some(EARLY);
        }
        nth.is_multiple_of(SAMPLE).then_some(LATER)
    }

    /// Returns `true` for the first answers to a caller.
    fn is_early_for(&self, witness: Witness) -> bool {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = callers.len() == MOST_CALLERS;
        match callers.iter_mut().find(|(known, _)| *known == witness) {
            Some((_, seen)) if *seen == FIRST_OF_CALLER => false,
            Some((_, seen)) => {
                *seen += 1;
                true
            }
            None if is_full => false,
            None => {
                callers.push((witness, 1));
                true
            }
        }
    }

    /// Takes over what all instances know together.
    pub(super) fn take_over(&self, shared: Learned) {
        self.answers.fetch_max(shared.answers, Ordering::Relaxed);
        self.lock().take_over(shared);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Both> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time of the last use, by the clock of all slots.
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn use_at(&self, now: u64) {
        self.used.store(now, Ordering::Relaxed);
    }
}
