//! Documents that were called after searches for a query's words, and what that is worth.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::{
    Index, Query,
    candidates::Candidate,
    parsed_query::{ParsedQuery, Slot},
    usage::UsageTerm,
    values::Looks,
};

/// Terms of a search that count, the rarest.
const MOST_TERMS: usize = 12;
/// Documents that become candidates for their use.
const CANDIDATES: usize = 16;

/// Use of documents after searches for the words of a query, 0 to 1.
#[derive(Debug, Default)]
pub(crate) struct Used(FxHashMap<(usize, u32), f32>);

impl Used {
    pub(crate) fn of(&self, candidate: &Candidate) -> f32 {
        self.0.get(&(candidate.part, candidate.document)).copied().unwrap_or(0.0)
    }

    /// The most used documents.
    pub(crate) fn candidates(&self) -> Vec<Candidate> {
        let mut all: Vec<Candidate> = self
            .0
            .iter()
            .map(|((part, document), share)| Candidate {
                part: *part,
                document: *document,
                score: *share,
                order: *share,
                exact: false,
            })
            .collect();
        all.sort_by(|a, b| {
            b.score.total_cmp(&a.score).then(a.part.cmp(&b.part)).then(a.document.cmp(&b.document))
        });
        all.truncate(CANDIDATES);
        all
    }
}

impl Index {
    /// The terms of a query after which calls count: the words of the request, without the values and the names in it that no document has.
    #[must_use]
    pub fn usage_terms(&self, text: &str) -> Vec<UsageTerm> {
        let parsed = ParsedQuery::new(&self.inner, self.len(), text);
        let mut slots: Vec<&Slot> = parsed.slots.iter().filter(|slot| counts(slot)).collect();
        slots.sort_by(|a, b| b.idf.total_cmp(&a.idf));
        slots.truncate(MOST_TERMS);
        slots.into_iter().map(|slot| UsageTerm::of(&slot.term)).collect()
    }

    /// The use of the documents that `query` may find.
    ///
    /// For each term, the share of its calls, as if there had been some more of other documents; the mean over the terms, weighted
    /// by what they ask. Calls of documents that the caller may not see do not count at all.
    pub(crate) fn used(&self, parsed: &ParsedQuery, ranges: &[Vec<Range<u32>>], query: &Query<'_>) -> Used {
        let mut used = Used::default();
        let Some((usage, now)) = query.usage else { return used };
        let asked: f32 = parsed.slots.iter().map(|slot| slot.asked).sum();
        for slot in parsed.slots.iter().filter(|slot| counts(slot)) {
            let mut called: Vec<(usize, u32, f32)> = Vec::new();
            for (hash, calls) in usage.called(UsageTerm::of(&slot.term), now) {
                for (number, part) in self.inner.parts.iter().enumerate() {
                    let documents = part.segment.used(hash);
                    let seen = documents.filter(|at| {
                        ranges[number].iter().any(|range| range.contains(at)) && part.sees(query.visible, *at)
                    });
                    called.extend(seen.map(|document| (number, document, calls)));
                }
            }
            let all: f32 = called.iter().map(|(.., calls)| calls).sum();
            for (part, document, calls) in called {
                let share = calls / (all + self.inner.weights.used_prior);
                *used.0.entry((part, document)).or_default() += slot.asked / asked * share;
            }
        }
        used
    }
}

fn counts(slot: &Slot) -> bool {
    slot.asked > 0.0 && slot.looks != Looks::Value
}
