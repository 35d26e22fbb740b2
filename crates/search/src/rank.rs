//! From a plan to hits: gathers candidates from the postings, then looks at each closely.

use std::{cell::RefCell, ops::Range};

use crate::{
    Hit, Index, Query, SearchResult,
    fields::Field,
    plan::{Plan, Slot, idf},
    query::MAX_TOP_K,
    segment::squeezed,
};

/// Candidates looked at closely, besides those of single clauses.
const CANDIDATES: usize = 128;

thread_local! {
    /// Sums per document, kept between queries to save the allocation.
    static SUMS: RefCell<(Vec<f32>, Vec<f32>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// A document under consideration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) part: usize,
    pub(crate) document: u32,
    pub(crate) score: f32,
    /// Named exactly by the query.
    pub(crate) exact: bool,
}

impl Index {
    /// The best tools for a query, best first. Equal scores are in order of app and name.
    #[must_use]
    pub fn search(&self, query: &Query<'_>) -> SearchResult {
        let hits = self
            .ranked(query)
            .1
            .into_iter()
            .map(|candidate| {
                let segment = &self.inner.parts[candidate.part].segment;
                let stored = &segment.documents[candidate.document as usize];
                Hit {
                    name: stored.name.to_string(),
                    app_id: segment.app_of(candidate.document).id.to_string(),
                    description: stored.description.to_string(),
                    score: candidate.score,
                }
            })
            .collect();
        SearchResult { hits, total_indexed: self.count_visible(query.visible) }
    }

    /// The plan for the query and the candidates that become hits.
    pub(crate) fn ranked(&self, query: &Query<'_>) -> (Plan, Vec<Candidate>) {
        let documents = self.len();
        let plan = Plan::new(&self.inner, documents, query.text);
        let ranges = self.ranges(query.app_ids);
        let mut candidates = self.gather(&plan, &ranges, query);
        self.score(&plan, documents, &mut candidates);
        self.exact(query, &ranges, &mut candidates);
        candidates.retain(|candidate| candidate.score >= query.min_score && candidate.score > 0.0);
        candidates.sort_by(|a, b| {
            b.exact
                .cmp(&a.exact)
                .then(b.score.total_cmp(&a.score))
                .then_with(|| self.tie(a).cmp(&self.tie(b)))
        });
        candidates.truncate(query.top_k.clamp(1, MAX_TOP_K));
        (plan, candidates)
    }

    fn tie(&self, candidate: &Candidate) -> (&str, &str) {
        let segment = &self.inner.parts[candidate.part].segment;
        (&segment.app_of(candidate.document).id, &segment.documents[candidate.document as usize].name)
    }

    /// Per part, the documents the app filter leaves.
    fn ranges(&self, app_ids: Option<&[String]>) -> Vec<Vec<Range<u32>>> {
        let parts = self.inner.parts.iter();
        match app_ids {
            None => parts.map(|part| vec![0..part.segment.documents.len() as u32]).collect(),
            Some(ids) => {
                let mut ids: Vec<&String> = ids.iter().collect();
                ids.sort_unstable();
                ids.dedup();
                parts
                    .map(|part| {
                        ids.iter()
                            .filter_map(|id| part.segment.app(id))
                            .map(|app| app.documents.clone())
                            .collect()
                    })
                    .collect()
            }
        }
    }

    /// The best documents by plain sums.
    fn gather(&self, plan: &Plan, ranges: &[Vec<Range<u32>>], query: &Query<'_>) -> Vec<Candidate> {
        let mut best = Best::new(CANDIDATES);
        SUMS.with_borrow_mut(|(sums, scratch)| {
            for (number, part) in self.inner.parts.iter().enumerate() {
                let length = part.segment.documents.len();
                if sums.len() < length {
                    sums.resize(length, 0.0);
                    scratch.resize(length, 0.0);
                }
                for slot in &plan.slots {
                    self.add(number, slot, &ranges[number], sums, scratch);
                }
                for range in &ranges[number] {
                    for document in range.clone() {
                        let score = std::mem::take(&mut sums[document as usize]);
                        if score > best.bar && part.sees(query.visible, document) {
                            best.offer(Candidate { part: number, document, score, exact: false });
                        }
                    }
                }
            }
        });
        best.candidates
    }

    /// Adds what a slot is worth to each document that fills it.
    fn add(&self, part: usize, slot: &Slot, ranges: &[Range<u32>], sums: &mut [f32], scratch: &mut [f32]) {
        let segment = &self.inner.parts[part].segment;
        for (at, alternative) in slot.alternatives.iter().enumerate() {
            let Some(term) = alternative.numbers[part] else { continue };
            let unit = slot.idf * alternative.weight / 65535.0;
            let only = slot.alternatives.len() == 1;
            for range in ranges {
                let postings = segment.postings(term).within(range);
                for (document, impact) in postings.documents.iter().zip(postings.impacts) {
                    let worth = f32::from(*impact) * unit;
                    let document = *document as usize;
                    if only {
                        sums[document] += worth;
                    } else if worth > scratch[document] {
                        sums[document] += worth - scratch[document];
                        scratch[document] = worth;
                    }
                }
            }
            let _ = at;
        }
        if slot.alternatives.len() > 1 {
            for alternative in &slot.alternatives {
                let Some(term) = alternative.numbers[part] else { continue };
                for range in ranges {
                    for document in segment.postings(term).within(range).documents {
                        scratch[*document as usize] = 0.0;
                    }
                }
            }
        }
    }

    /// Replaces plain sums by final scores.
    fn score(&self, plan: &Plan, documents: usize, candidates: &mut [Candidate]) {
        let weights = &self.inner.weights;
        let perfect: f32 = plan.slots.iter().map(|slot| slot.idf).sum::<f32>() * (1.0 + weights.coverage);
        for candidate in candidates {
            let part = &self.inner.parts[candidate.part];
            let segment = &part.segment;
            let (mut covered, mut whole) = (0.0, 0.0);
            for term in segment.name_terms_of(candidate.document) {
                let idf = idf(documents, self.frequency(candidate.part, *term));
                whole += idf;
                let share = plan
                    .slots
                    .iter()
                    .flat_map(|slot| &slot.alternatives)
                    .filter(|one| one.numbers[candidate.part] == Some(*term))
                    .map(|one| one.weight)
                    .fold(0.0, f32::max);
                covered += idf * share;
            }
            let coverage = if whole > 0.0 { covered / whole } else { 0.0 };
            candidate.score = (candidate.score * (1.0 + weights.coverage * coverage) / perfect).min(1.0);
        }
    }

    /// Live documents of the whole index that hold a part's term.
    pub(crate) fn frequency(&self, part: usize, term: u32) -> u32 {
        if let [only] = self.inner.parts.as_slice() {
            return only.frequency(term);
        }
        let text = self.inner.parts[part].segment.dictionary.term(term as usize);
        self.inner
            .parts
            .iter()
            .map(|part| part.segment.dictionary.get(text).map_or(0, |number| part.frequency(number)))
            .sum()
    }

    /// Puts documents that the query names first, with a score of 1.
    fn exact(&self, query: &Query<'_>, ranges: &[Vec<Range<u32>>], candidates: &mut Vec<Candidate>) {
        if query.text.len() > 512 {
            return;
        }
        let key = squeezed(query.text);
        if key.is_empty() {
            return;
        }
        for (number, part) in self.inner.parts.iter().enumerate() {
            for document in part.segment.named(&key) {
                if !ranges[number].iter().any(|range| range.contains(&document))
                    || !part.sees(query.visible, document)
                {
                    continue;
                }
                let known = candidates.iter_mut().find(|one| one.part == number && one.document == document);
                let named = Candidate { part: number, document, score: 1.0, exact: true };
                match known {
                    Some(known) => *known = named,
                    None => candidates.push(named),
                }
            }
        }
    }
}

/// The best so many candidates.
struct Best {
    candidates: Vec<Candidate>,
    keep: usize,
    /// Scores up to this no longer get in.
    bar: f32,
}

impl Best {
    fn new(keep: usize) -> Self {
        Self { candidates: Vec::with_capacity(keep * 2), keep, bar: 0.0 }
    }

    fn offer(&mut self, candidate: Candidate) {
        self.candidates.push(candidate);
        if self.candidates.len() >= self.keep * 2 {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let by_score = |a: &Candidate, b: &Candidate| {
            b.score.total_cmp(&a.score).then(a.part.cmp(&b.part)).then(a.document.cmp(&b.document))
        };
        self.candidates.select_nth_unstable_by(self.keep - 1, by_score);
        self.candidates.truncate(self.keep);
        self.bar = self.candidates[self.keep - 1].score;
    }
}

/// Whether a mask says the term is in the name.
pub(crate) fn in_name(mask: u8) -> bool {
    mask & Field::Name.bit() != 0
}
