//! From a parsed query to hits: gathers candidates from the postings, then looks at each closely.

use std::{cell::Cell, ops::Range};

use crate::{
    Hit, Index, Query, Ranked, SearchResult,
    apps::NamedApp,
    candidates::{Best, Candidate},
    parsed_query::{ParsedQuery, Slot},
    query::MAX_TOP_K,
    segment::squeezed,
    used::Used,
    variety::vary,
};

/// Candidates looked at closely, besides those of single clauses.
const CANDIDATES: usize = 48;
/// ... besides them, because they are near in meaning.
const NEAR: usize = 32;
/// So many postings are read in no time.
const CHEAP: usize = 500;
/// Documents are gone through one by one if there are this many times as many as postings.
const SPARSE: usize = 16;
/// Candidates of each clause.
const CLAUSE_CANDIDATES: usize = 8;

thread_local! {
    /// Sums per document, all zero, kept between queries to save the allocation. Taken out while in use, so that a
    /// caller's visibility check may itself search, or panic, without harm.
    static SUMS: Cell<(Vec<f32>, Vec<f32>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

impl Index {
    /// The best tools for a query, best first. Equal scores are in order of app and name.
    #[must_use]
    pub fn search(&self, query: &Query<'_>) -> SearchResult {
        let hits = self.ranked(query).1.iter().map(|candidate| self.hit(candidate)).collect();
        SearchResult { hits, total_indexed: self.count_visible(query.visible) }
    }

    /// The best documents by words alone with what they are ordered by, for blending with another ranking.
    #[must_use]
    pub fn rank(&self, query: &Query<'_>) -> Vec<Ranked> {
        let ranked = |one: &Candidate| Ranked {
            name: self.tie(one).1.to_owned(),
            order: one.order,
            score: one.score,
            exact: one.exact,
        };
        let mut parsed = ParsedQuery::new(&self.inner, self.len(), query.text);
        parsed.vector = None;
        self.ranked_as(query, &parsed).iter().map(ranked).collect()
    }

    pub(crate) fn hit(&self, candidate: &Candidate) -> Hit {
        let segment = &self.inner.parts[candidate.part].segment;
        let stored = &segment.documents[candidate.document as usize];
        Hit {
            name: stored.name.to_string(),
            app_id: segment.app_of(candidate.document).id.to_string(),
            description: stored.description.to_string(),
            score: candidate.score,
        }
    }

    /// The parsed query and the candidates that become hits.
    pub(crate) fn ranked(&self, query: &Query<'_>) -> (ParsedQuery, Vec<Candidate>) {
        let parsed = ParsedQuery::new(&self.inner, self.len(), query.text);
        let candidates = self.ranked_as(query, &parsed);
        (parsed, candidates)
    }

    fn ranked_as(&self, query: &Query<'_>, parsed: &ParsedQuery) -> Vec<Candidate> {
        let ranges = self.ranges(query.app_ids);
        let mut named = self.named_apps(parsed, &ranges);
        self.add_apps_of_words(parsed, &ranges, &mut named);
        let mut candidates = self.gather(parsed, &ranges, &named, query);
        let used = self.used(parsed, &ranges, query);
        add_new(&mut candidates, used.candidates());
        self.score(parsed, &named, &used, &mut candidates, query.top_k);
        self.exact(query, &ranges, &mut candidates);
        // The sort is stable: the rest stay in order.
        candidates.sort_by_key(|candidate| !candidate.exact);
        candidates.retain(|candidate| candidate.score >= query.min_score && candidate.score > 0.0);
        if candidates.first().is_none_or(|best| best.score < query.min_best) {
            candidates.clear();
        }
        candidates.truncate(query.top_k.clamp(1, MAX_TOP_K));
        candidates
    }

    pub(crate) fn tie(&self, candidate: &Candidate) -> (&str, &str) {
        let segment = &self.inner.parts[candidate.part].segment;
        (&segment.app_of(candidate.document).id, &segment.documents[candidate.document as usize].name)
    }

    /// Per part, the documents the app filter leaves.
    pub(crate) fn ranges(&self, app_ids: Option<&[String]>) -> Vec<Vec<Range<u32>>> {
        let parts = self.inner.parts.iter();
        match app_ids {
            None => {
                parts.map(|part| std::iter::once(0..part.segment.documents.len() as u32).collect()).collect()
            }
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

    /// The best documents by plain sums, over the whole query and over each clause.
    fn gather(
        &self,
        parsed: &ParsedQuery,
        ranges: &[Vec<Range<u32>>],
        named: &[NamedApp],
        query: &Query<'_>,
    ) -> Vec<Candidate> {
        let keep = CANDIDATES.max(query.top_k.min(MAX_TOP_K));
        let affordable = self.affordable(parsed, u64::MAX);
        let mut all = self.gather_for(&affordable, keep, ranges, query);
        let mut add = |more| add_new(&mut all, more);
        if parsed.clauses > 1 {
            for clause in 0..parsed.clauses {
                let slots = self.affordable(parsed, 1 << clause);
                add(self.gather_for(&slots, CLAUSE_CANDIDATES, ranges, query));
            }
        }
        if let Some(vector) = &parsed.vector {
            add(self.nearest(vector, NEAR, ranges, query));
        }
        // What names the app may be common elsewhere, so that the rarer words do not lead to its tools.
        let every: Vec<&Slot> = parsed.slots.iter().collect();
        for app in named {
            add(self.gather_for(&every, CLAUSE_CANDIDATES, &app.ranges, query));
        }
        if let Some(others) = self.outside_of_a_crowd(ranges) {
            add(self.gather_for(&affordable, CLAUSE_CANDIDATES, &others, query));
        }
        all
    }

    fn gather_for(
        &self,
        chosen: &[&Slot],
        keep: usize,
        ranges: &[Vec<Range<u32>>],
        query: &Query<'_>,
    ) -> Vec<Candidate> {
        let mut best = Best::new(keep);
        let (mut sums, mut scratch) = SUMS.take();
        for (number, part) in self.inner.parts.iter().enumerate() {
            let length = part.segment.documents.len();
            if sums.len() < length {
                sums.resize(length, 0.0);
                scratch.resize(length, 0.0);
            }
            let slots = || chosen.iter().copied();
            let (mut postings, mut touched) = (0, Vec::new());
            for slot in slots() {
                postings += self.add(number, slot, &ranges[number], &mut sums, &mut scratch);
            }
            // Few documents were touched: they are gone through by name, in order as the others are.
            if postings * SPARSE < length {
                for slot in slots() {
                    self.documents_of(number, slot, &ranges[number], &mut touched);
                }
                touched.sort_unstable();
                for document in touched {
                    let score = std::mem::take(&mut sums[document as usize]);
                    if score > best.bar && part.sees(query.visible, document) {
                        best.offer(Candidate { part: number, document, score, order: score, exact: false });
                    }
                }
                continue;
            }
            for range in &ranges[number] {
                let sums = &mut sums[range.start as usize..range.end as usize];
                each_above(sums, &mut best, |best, at, score| {
                    let document = range.start + at as u32;
                    if part.sees(query.visible, document) {
                        best.offer(Candidate { part: number, document, score, order: score, exact: false });
                    }
                });
            }
        }
        SUMS.set((sums, scratch));
        best.candidates
    }

    /// Slots of some clauses by which candidates are found, rarest first. A long request has words that a large part
    /// of the documents hold: they say little, take the most time, and count when candidates are looked at closely.
    fn affordable<'p>(&self, parsed: &'p ParsedQuery, clauses: u64) -> Vec<&'p Slot> {
        let cost = |slot: &Slot| slot.alternatives.iter().map(|one| one.frequency as usize).sum::<usize>();
        let asked = parsed.slots.iter().filter(|slot| slot.clauses & clauses != 0);
        let mut slots: Vec<(usize, &Slot)> =
            asked.map(|slot| (cost(slot), slot)).filter(|(cost, _)| *cost > 0).collect();
        slots.sort_by_key(|(cost, _)| *cost);
        let all: f32 = slots.iter().map(|(_, slot)| slot.idf).sum();
        let share = match clauses {
            u64::MAX => self.inner.weights.budget,
            _ => self.inner.weights.clause_budget,
        };
        let budget = CHEAP.max((self.len() as f32 * share) as usize);
        let (mut spent, mut found) = (0, 0.0);
        slots
            .into_iter()
            .take_while(|(cost, slot)| {
                let fits = spent + cost <= budget || found < all * 0.5;
                (spent, found) = (spent + cost, found + slot.idf);
                fits
            })
            .map(|(_, slot)| slot)
            .collect()
    }

    /// Documents that fill a slot; some come more than once.
    fn documents_of(&self, part: usize, slot: &Slot, ranges: &[Range<u32>], out: &mut Vec<u32>) {
        let segment = &self.inner.parts[part].segment;
        for term in slot.alternatives.iter().filter_map(|one| one.numbers[part]) {
            for range in ranges {
                out.extend_from_slice(segment.postings(term).within(range).documents);
            }
        }
    }

    /// Adds what a slot is worth to each document that fills it, and returns how many postings there were.
    fn add(
        &self,
        part: usize,
        slot: &Slot,
        ranges: &[Range<u32>],
        sums: &mut [f32],
        scratch: &mut [f32],
    ) -> usize {
        let mut count = 0;
        let segment = &self.inner.parts[part].segment;
        let only = slot.alternatives.len() == 1;
        for alternative in &slot.alternatives {
            let Some(term) = alternative.numbers[part] else { continue };
            let unit = slot.idf * alternative.weight / 65535.0;
            for range in ranges {
                let postings = segment.postings(term).within(range);
                count += postings.documents.len();
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
        }
        if only {
            return count;
        }
        for alternative in &slot.alternatives {
            let Some(term) = alternative.numbers[part] else { continue };
            for range in ranges {
                for document in segment.postings(term).within(range).documents {
                    scratch[*document as usize] = 0.0;
                }
            }
        }
        count
    }

    /// Orders candidates, best first, and replaces their plain sums by final scores.
    fn score(
        &self,
        parsed: &ParsedQuery,
        named: &[NamedApp],
        used: &Used,
        candidates: &mut Vec<Candidate>,
        top_k: usize,
    ) {
        let weights = &self.inner.weights;
        let looked = self.features(parsed, self.len(), candidates);
        // Of a request with several parts, an app is named by some.
        let naming = |app: &NamedApp| app.clauses.count_ones() as f32 / parsed.clauses.max(1) as f32;
        let mut order: Vec<(f32, Candidate)> = candidates
            .iter()
            .zip(&looked.features)
            .map(|(candidate, seen)| {
                let used = used.of(candidate);
                let order =
                    seen.rank(&weights.rank) + self.bonus(named, candidate, naming) + weights.used * used;
                (order, Candidate { score: seen.score.max(weights.used_score * used), order, ..*candidate })
            })
            .collect();
        let by_order = |(a, x): &(f32, Candidate), (b, y): &(f32, Candidate)| {
            b.total_cmp(a).then_with(|| self.tie(x).cmp(&self.tie(y)))
        };
        order.sort_by(by_order);
        if !self.inner.crowds.is_empty() {
            self.thin_out(&mut order);
            order.sort_by(by_order);
        }
        vary(parsed, weights.variety, candidates, &looked, &mut order);
        self.keep_places(named, candidates, &looked, &mut order, top_k);
        // A hit scores no less than those below it.
        let mut least = 0.0_f32;
        for (_, candidate) in order.iter_mut().rev() {
            least = least.max(candidate.score);
            candidate.score = least;
        }
        candidates.clear();
        candidates.extend(order.into_iter().map(|(_, candidate)| candidate));
    }

    /// Features of the candidates of a query, with their names, for training.
    #[doc(hidden)]
    #[must_use]
    pub fn training_rows(&self, query: &Query<'_>) -> Vec<(String, Vec<f32>)> {
        let documents = self.len();
        let parsed = ParsedQuery::new(&self.inner, documents, query.text);
        let ranges = self.ranges(query.app_ids);
        let candidates = self.gather(&parsed, &ranges, &self.named_apps(&parsed, &ranges), query);
        let features = self.features(&parsed, documents, &candidates).features;
        let rows = candidates.iter().zip(features);
        rows.map(|(one, features)| (self.tie(one).1.to_owned(), features.row())).collect()
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
                let named = Candidate { part: number, document, score: 1.0, order: f32::MAX, exact: true };
                match known {
                    Some(known) => *known = named,
                    None => candidates.push(named),
                }
            }
        }
    }
}

/// Adds candidates that are not there yet.
fn add_new(all: &mut Vec<Candidate>, more: Vec<Candidate>) {
    for candidate in more {
        if !all.iter().any(|one| one.part == candidate.part && one.document == candidate.document) {
            all.push(candidate);
        }
    }
}

/// Takes every sum above the bar out of `sums`, in order, and leaves zeros.
///
/// Sums are never negative, so they compare like their bits, and runs of low ones are passed at once.
fn each_above(sums: &mut [f32], best: &mut Best, mut each: impl FnMut(&mut Best, usize, f32)) {
    const RUN: usize = 32;
    for (number, run) in sums.chunks_mut(RUN).enumerate() {
        let top = run.iter().map(|sum| sum.to_bits().cast_signed()).max().unwrap_or(0);
        if top == 0 {
            continue;
        }
        if f32::from_bits(top.cast_unsigned()) > best.bar {
            for (at, sum) in run.iter().enumerate() {
                if *sum > best.bar {
                    each(best, number * RUN + at, *sum);
                }
            }
        }
        run.fill(0.0);
    }
}
