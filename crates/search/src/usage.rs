//! Calls that followed searches: how often a tool was called after searches with a term.
//!
//! Terms and tools are hashes, so that no text is kept. A count halves every four weeks. What it changes in a search is in
//! `used`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Pairs of a term and a tool that are kept, at most. The least used ones give way.
pub const MOST_PAIRS: usize = 20_000;
/// Time after which a count is worth half as much.
const HALF_LIFE: Duration = Duration::from_secs(28 * 24 * 3_600);
/// Calls that one pair counts for, at most.
const MOST_CALLS: f64 = 1_000.0;
/// 2026-01-01, in seconds since 1970.
const EPOCH: Duration = Duration::from_secs(20_454 * 24 * 3_600);

/// Calls of tools after searches, counted for each term of the search. Default: none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Usage {
    /// For each term, the tools and their calls, in units of [`call_at`] the epoch.
    terms: FxHashMap<u64, FxHashMap<u64, f64>>,
}

/// The hash of a term of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UsageTerm(u64);

impl UsageTerm {
    pub(crate) fn of(term: &str) -> Self {
        Self(hash(term))
    }
}

/// The hash of the name of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UsedDocument(u64);

impl UsedDocument {
    /// Of the document `name`, whether or not there is one.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self(hash(name))
    }
}

impl Usage {
    /// Counts one call of `document` at `now`, after a search with `terms`.
    pub fn count(
        &mut self,
        terms: impl IntoIterator<Item = UsageTerm>,
        document: UsedDocument,
        now: SystemTime,
    ) {
        let call = call_at(now);
        for UsageTerm(term) in terms {
            let count = self.terms.entry(term).or_default().entry(document.0).or_default();
            *count = (*count + call).min(MOST_CALLS * call);
        }
        self.trim(MOST_PAIRS);
    }

    /// Adds the calls that `other` counted.
    pub fn add(&mut self, other: &Self, now: SystemTime) {
        let most = MOST_CALLS * call_at(now);
        for (term, documents) in &other.terms {
            let own = self.terms.entry(*term).or_default();
            for (document, calls) in documents.iter().filter(|(_, calls)| **calls > 0.0) {
                let count = own.entry(*document).or_default();
                *count = (*count + calls).min(most);
            }
        }
        self.trim(MOST_PAIRS);
    }

    /// The pairs of every `of`th term, and the others. They are other pairs for each `number` below `of`.
    #[must_use]
    pub fn split(self, number: u64, of: u64) -> (Self, Self) {
        let (part, rest) = self.terms.into_iter().partition(|(term, _)| term % of == number);
        (Self { terms: part }, Self { terms: rest })
    }

    /// Number of pairs of a term and a tool.
    #[must_use]
    pub fn len(&self) -> usize {
        self.terms.values().map(FxHashMap::len).sum()
    }

    /// Returns true if no call was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Leaves the `most` pairs with the most calls, or a few less.
    pub fn trim(&mut self, most: usize) {
        if self.len() <= most {
            return;
        }
        // Some more leave, so that not every count has to look for the least.
        let keep = most - most / 16;
        let mut calls: Vec<f64> = self.terms.values().flat_map(FxHashMap::values).copied().collect();
        let least = calls.len() - keep;
        let (_, bar, _) = calls.select_nth_unstable_by(least, f64::total_cmp);
        let (bar, mut equal) = (*bar, keep);
        equal -= calls[least + 1..].iter().filter(|calls| **calls > bar).count();
        self.terms.retain(|_, documents| {
            documents.retain(|_, calls| {
                let stays = *calls > bar || *calls == bar && equal > 0;
                equal -= usize::from(stays && *calls == bar);
                stays
            });
            !documents.is_empty()
        });
    }

    /// The hashes of the documents that were called after searches with a term, with the number of calls as of `now`.
    pub(crate) fn called(
        &self,
        term: UsageTerm,
        now: SystemTime,
    ) -> impl Iterator<Item = (UsedDocument, f32)> + '_ {
        let call = call_at(now);
        let documents = self.terms.get(&term.0).into_iter().flatten();
        documents.map(move |(document, calls)| {
            (UsedDocument(*document), (calls / call).clamp(0.0, MOST_CALLS) as f32)
        })
    }
}

/// Worth of a call at `now`: twice that of one a half-life before. Counts of all times add up, and none has to be aged.
fn call_at(now: SystemTime) -> f64 {
    let age = now.duration_since(UNIX_EPOCH + EPOCH).unwrap_or_default();
    (age.as_secs_f64() / HALF_LIFE.as_secs_f64()).min(1_000.0).exp2()
}

/// FNV-1a: the same on all machines and in all versions.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
