//! Calls that follow searches, counted for the ranking of later searches (docs/adr/0029).
//!
//! `callers` finds the searches that a call follows, and `sharing` adds the counts of instances up.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use gatewright_core::{Caller, ToolEntry};
use gatewright_search::{Usage, UsageTerm, UsedDocument};

use crate::{UsageRanking, live_index::document_name};
use callers::Callers;
pub(crate) use sharing::SharedUsage;

mod callers;
mod sharing;

/// Counts of calls after searches. It counts nothing if it is off.
#[derive(Debug)]
pub(crate) struct SearchUsage {
    is_on: bool,
    is_shared: AtomicBool,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// All that is known here.
    all: Arc<Usage>,
    /// The part of it that other instances do not know yet.
    fresh: Usage,
    callers: Callers,
}

impl SearchUsage {
    pub(crate) fn new(ranking: UsageRanking) -> Self {
        Self {
            is_on: ranking == UsageRanking::On,
            is_shared: AtomicBool::new(false),
            counts: Mutex::default(),
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// The counts, if it is on.
    pub(crate) fn counts(&self) -> Option<Arc<Usage>> {
        self.is_on.then(|| self.lock().all.clone())
    }

    /// Remembers a search of `caller` for `terms`, which found the documents `found`.
    pub(crate) fn searched<'d>(
        &self,
        caller: &Caller,
        terms: Vec<UsageTerm>,
        found: impl Iterator<Item = &'d str>,
        now: SystemTime,
    ) {
        if self.is_on && !terms.is_empty() {
            self.lock().callers.searched(caller, terms, found.map(UsedDocument::of), now);
        }
    }

    /// Counts a successful call of `tool` for the searches of `caller` that it follows.
    pub(crate) fn called(&self, caller: &Caller, tool: &ToolEntry) {
        if !self.is_on {
            return;
        }
        let (document, now) = (UsedDocument::of(&document_name(tool)), SystemTime::now());
        let counts = &mut *self.lock();
        let terms = counts.callers.called(caller, document, now);
        if terms.is_empty() {
            return;
        }
        // Copied only while a search reads it.
        Arc::make_mut(&mut counts.all).count(terms.iter().copied(), document, now);
        if self.is_shared.load(Ordering::Relaxed) {
            counts.fresh.count(terms, document, now);
        }
    }

    /// Keeps what is counted from now on for other instances.
    fn set_shared(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// Takes the counts of a part that other instances do not know yet.
    fn take_fresh(&self, number: u64, of: u64) -> Usage {
        let counts = &mut *self.lock();
        let (taken, rest) = std::mem::take(&mut counts.fresh).split(number, of);
        counts.fresh = rest;
        taken
    }

    /// Puts back counts that could not be shared.
    fn put_back(&self, fresh: &Usage) {
        self.lock().fresh.add(fresh, SystemTime::now());
    }

    /// Takes over what all instances counted.
    fn take_over(&self, mut together: Usage) {
        let mut counts = self.lock();
        together.add(&counts.fresh, SystemTime::now());
        counts.all = Arc::new(together);
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
