//! The shape and the counts of one tool's answers.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use gatewright_core::rmcp::model::JsonObject;
use gatewright_shape::{Shape, Witness};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ResultShape, reading::Texts, text_kind::TextKinds};

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

/// A caller of a tool.
#[derive(Debug)]
struct OneCaller {
    witness: Witness,
    /// First answers that were looked at.
    seen: u8,
    /// Lone texts that the tool answered with: nobody decides for others how their answers are read.
    texts: Texts,
}

/// The shape and the counts of one tool.
#[derive(Debug, Default)]
pub(super) struct Slot {
    answers: AtomicU64,
    /// Inputs that could be looked at.
    inputs: AtomicU64,
    used: AtomicU64,
    /// Places of its shapes when they were last counted.
    nodes: AtomicUsize,
    callers: Mutex<Vec<OneCaller>>,
    learned: Mutex<Both>,
}

/// The shape learned here and at other instances.
#[derive(Debug, Default)]
pub(super) struct Both {
    /// All of it.
    all: Learned,
    /// The description made last, for the witness who asked; none since something was learned.
    described: Option<(Witness, ResultShape)>,
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
    /// Texts that scripts get as text.
    #[serde(rename = "k", default)]
    pub(super) kinds: TextKinds,
    /// Inputs that the tool accepted, where its schema leaves their types open.
    #[serde(rename = "i", default)]
    inputs: Shape,
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
        self.kinds.add(other.kinds);
        self.inputs.merge(other.inputs);
    }

    /// Returns `true` if nothing was learned.
    pub(super) fn is_empty(&self) -> bool {
        self.answers == 0 && self.inputs.is_empty()
    }
}

impl Both {
    /// Everything that was learned.
    pub(super) fn all(&self) -> &Learned {
        &self.all
    }

    /// The shape with the names that `witness` may see; `None` if nothing was learned.
    pub(super) fn result_shape(&mut self, witness: Witness) -> Option<ResultShape> {
        if self.all.shape.is_empty() {
            return None;
        }
        match &self.described {
            Some((of, shape)) if *of == witness => Some(shape.clone()),
            _ => {
                let shape = ResultShape {
                    schema: Arc::new(self.all.shape.schema(witness)),
                    observed: Some(self.all.answers),
                    text: self.all.kinds.common(),
                };
                self.described = Some((witness, shape.clone()));
                Some(shape)
            }
        }
    }

    fn all_mut(&mut self) -> &mut Learned {
        self.described = None;
        &mut self.all
    }

    /// Adds an answer that was read as `value`. `to_share` keeps it for other instances as well.
    pub(super) fn learn(&mut self, value: &Value, witness: Witness, work: usize, to_share: bool) {
        self.all_mut().learn(value, witness, work);
        if to_share {
            self.fresh.learn(value, witness, work);
        }
    }

    /// Counts the format of a text that scripts get as text.
    pub(super) fn count_kind(&mut self, text: &str, to_share: bool) {
        self.all_mut().kinds.count(text);
        if to_share {
            self.fresh.kinds.count(text);
        }
    }

    /// Adds the shape of an input that the tool accepted.
    pub(super) fn learn_input(&mut self, input: Shape, to_share: bool) {
        if to_share {
            self.fresh.inputs.merge(input.clone());
        }
        self.all.inputs.merge(input);
    }

    /// The schema of inputs that the tool accepted, with the names that `witness` may see; `None` if none was learned.
    pub(super) fn input_schema(&self, witness: Witness) -> Option<JsonObject> {
        (!self.all.inputs.is_empty()).then(|| self.all.inputs.schema(witness))
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
    pub(super) fn take_over(&mut self, mut shared: Learned) {
        shared.merge(self.fresh.clone());
        *self.all_mut() = shared;
    }

    /// Places of all shapes.
    fn nodes(&self) -> usize {
        [&self.all, &self.fresh].iter().map(|learned| learned.shape.nodes() + learned.inputs.nodes()).sum()
    }

    /// Returns `true` if something has not been shared yet.
    pub(super) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
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

    /// Returns `true` if the next input is to be looked at.
    pub(super) fn looks_at_next_input(&self) -> bool {
        let nth = self.inputs.fetch_add(1, Ordering::Relaxed);
        nth < FIRST || nth.is_multiple_of(SAMPLE)
    }

    /// Returns `true` for the first answers to a caller.
    fn is_early_for(&self, witness: Witness) -> bool {
        let mut callers = self.callers();
        let is_full = callers.len() == MOST_CALLERS;
        match callers.iter_mut().find(|caller| caller.witness == witness) {
            Some(caller) if caller.seen == FIRST_OF_CALLER => false,
            Some(caller) => {
                caller.seen += 1;
                true
            }
            None if is_full => false,
            None => {
                callers.push(OneCaller { witness, seen: 1, texts: Texts::default() });
                true
            }
        }
    }

    /// The lone texts that the tool answered `witness` with, as far as they were looked at.
    pub(super) fn texts_for(&self, witness: Witness) -> Texts {
        let callers = self.callers();
        callers.iter().find(|caller| caller.witness == witness).map(|caller| caller.texts).unwrap_or_default()
    }

    /// Counts a lone text for `witness`, that was read as `value`.
    pub(super) fn count_text(&self, witness: Witness, value: Option<&Value>) {
        if let Some(caller) = self.callers().iter_mut().find(|caller| caller.witness == witness) {
            caller.texts.count(value);
        }
    }

    fn callers(&self) -> MutexGuard<'_, Vec<OneCaller>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what all instances know together.
    pub(super) fn take_over(&self, shared: Learned) {
        self.answers.fetch_max(shared.answers, Ordering::Relaxed);
        self.lock().take_over(shared);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Both> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the places of its shapes again. Returns how many they are, and were.
    pub(super) fn count(&self) -> (usize, usize) {
        let now = self.lock().nodes();
        (now, self.nodes.swap(now, Ordering::Relaxed))
    }

    /// Places of its shapes when they were last counted.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.load(Ordering::Relaxed)
    }

    /// The time of the last use, by the clock of all slots.
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn use_at(&self, now: u64) {
        self.used.store(now, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shape_is_described_once_for_a_witness_and_anew_when_something_was_learned() {
        let (ada, bob) = (Witness::new(1), Witness::new(2));
        let mut both = Both::default();
        assert!(both.result_shape(ada).is_none());
        both.learn(&json!({"of_ada": 1}), ada, 100, false);
        let first = both.result_shape(ada).unwrap();
        assert!(Arc::ptr_eq(&first.schema, &both.result_shape(ada).unwrap().schema));
        let of_bob = both.result_shape(bob).unwrap();
        assert!(!json!(*of_bob.schema).to_string().contains("of_ada"), "he did not see that name");
        both.learn(&json!({"of_ada": 1, "more": 2}), ada, 100, false);
        let then = both.result_shape(ada).unwrap();
        assert_eq!(then.observed, Some(2));
        assert!(json!(*then.schema).to_string().contains("more"));
        both.take_over(Learned::default());
        assert!(both.result_shape(ada).is_none(), "nothing was learned anywhere");
    }
}
