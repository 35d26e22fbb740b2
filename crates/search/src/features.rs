//! A close look at each candidate: how it answers the query, and from that its place and its score.
//!
//! Candidates are chosen in `rank`.

use rustc_hash::FxHashMap;

use crate::{
    Index,
    candidates::Candidate,
    fields::Field,
    parsed_query::{ParsedQuery, Slot, Why, idf},
    removal,
    score::Asked,
    vectors::cosines,
    weights::RankWeights,
};

/// Features of one candidate; each number is 0-1 unless it says otherwise.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Features {
    /// Share of what a perfect match would score, over the whole query and the clause it answers best.
    pub(crate) share: f32,
    /// Of the query's information, how much is found in the document at all.
    pub(crate) matched: f32,
    /// ... in the description.
    pub(crate) description: f32,
    /// ... in the app's name.
    pub(crate) app: f32,
    /// ... in the name, next to another word found there.
    pub(crate) name_pairs: f32,
    /// ... in the description, next to another word found there.
    pub(crate) description_pairs: f32,
    /// Share of a perfect match for the clause it answers best, alone.
    pub(crate) clause: f32,
    /// Nearness to the best candidate of some clause.
    pub(crate) relative: f32,
    /// Cosine of the document and the query, -1 to 1.
    pub(crate) meaning: f32,
    /// Standard deviations of `meaning` above the candidates' mean, divided by the number of clauses.
    pub(crate) standing: f32,
    /// 1 for a tool that removes something where the query does not ask for that.
    pub(crate) removes: f32,
    /// The score, not part of the order.
    pub(crate) score: f32,
    /// Slots that were found, as bits; not part of the order.
    pub(crate) found: u64,
}

impl Features {
    /// Sort key of candidates. Not comparable between queries.
    pub(crate) fn rank(&self, weights: &RankWeights) -> f32 {
        weights.share * self.share
            + weights.matched * self.matched
            + weights.description * self.description
            + weights.app * self.app
            + weights.name_pairs * self.name_pairs
            + weights.description_pairs * self.description_pairs
            + weights.clause * self.clause
            + weights.relative * self.relative
            + weights.standing * self.standing
            + weights.removes * self.removes
    }

    /// The numbers in order of [`RankWeights`]' fields, for training.
    pub(crate) fn row(&self) -> Vec<f32> {
        vec![
            self.share,
            self.matched,
            self.description,
            self.app,
            self.name_pairs,
            self.description_pairs,
            self.clause,
            self.relative,
            self.standing,
            self.removes,
        ]
    }
}

/// A close look at the candidates of a query.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// Of each candidate.
    pub(crate) features: Vec<Features>,
    /// Parts of the request that are looked at alone: its clauses, or none if there is one or too many.
    pub(crate) parts: usize,
    /// For each candidate, how it answers each part.
    pub(crate) each_part: Vec<Features>,
}

/// Slots of the query that a term of a document may fill, and its weight there.
#[derive(Debug)]
struct Fills {
    of: FxHashMap<u32, Vec<Fill>>,
    /// A bit for each such term, many of which share one: most terms of a document are passed by it.
    any: [u64; BITS / 64],
}

const BITS: usize = 1 << 11;

impl Fills {
    fn new(parsed: &ParsedQuery, part: usize) -> Self {
        let mut fills = Self { of: FxHashMap::default(), any: [0; BITS / 64] };
        for (at, slot) in parsed.slots.iter().enumerate() {
            for one in &slot.alternatives {
                if let Some(term) = one.numbers[part] {
                    let sure = if one.why == Why::Typo { one.weight / 2.0 } else { one.weight };
                    fills.of.entry(term).or_default().push(Fill { slot: at, weight: one.weight, sure });
                    fills.any[term as usize % BITS / 64] |= 1 << (term % 64);
                }
            }
        }
        fills
    }

    fn get(&self, term: u32) -> Option<&[Fill]> {
        let any = self.any[term as usize % BITS / 64] >> (term % 64) & 1 == 1;
        any.then(|| self.of.get(&term).map(Vec::as_slice)).flatten()
    }
}

/// One of those slots.
#[derive(Debug, Clone, Copy)]
struct Fill {
    slot: usize,
    weight: f32,
    /// Its weight in the score, where a corrected spelling counts half.
    sure: f32,
}

/// Match of one candidate in one slot.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Found {
    /// The best impact, weighted.
    best: f32,
    /// ... for the score.
    pub(crate) sure: f32,
    /// Fields, as bits.
    fields: u8,
}

/// The query as a whole and each of its clauses, for one candidate. Kept between candidates to save allocations.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    sums: Vec<f32>,
    /// For each scope, what was found of what it asks, for the score.
    pub(crate) sure: Vec<f32>,
    /// The factor of the whole query for covering the name.
    pub(crate) bonus: f32,
    /// For each scope, how much of each term of the name is covered.
    covered: Vec<f32>,
    pub(crate) found: Vec<Found>,
    /// Terms of the name: what each says.
    names: Vec<f32>,
}

impl Index {
    /// Looks at every candidate of a query.
    pub(crate) fn features(
        &self,
        parsed: &ParsedQuery,
        documents: usize,
        candidates: &[Candidate],
    ) -> Looked {
        let count = if parsed.clauses > 1 { parsed.clauses + 1 } else { 1 };
        let whole = count - 1;
        let mut perfect = vec![0.0_f32; count];
        for slot in &parsed.slots {
            each_scope(slot, whole, |scope| perfect[scope] += slot.idf);
        }
        perfect.iter_mut().for_each(|sum| *sum = sum.max(1e-6));
        let asked = Asked::new(parsed, whole);
        let fills: Vec<Fills> = (0..self.inner.parts.len()).map(|part| Fills::new(parsed, part)).collect();
        let mut out = Vec::with_capacity(candidates.len());
        let parts = parsed.part_vectors.len();
        let mut each_part: Vec<Features> = Vec::with_capacity(candidates.len() * parts);
        let mut clause_sums: Vec<f32> = Vec::with_capacity(candidates.len() * count);
        let mut scopes = Scopes::default();
        let removal_asked = removal::is_asked(parsed.terms());
        for candidate in candidates {
            self.look(parsed, documents, candidate, &fills[candidate.part], whole, &mut scopes);
            let score = asked.score(parsed, &scopes, self.inner.weights.clause_prior);
            let segment = &self.inner.parts[candidate.part].segment;
            let removes = if !removal_asked && segment.removes(candidate.document) { 1.0 } else { 0.0 };
            let found = scopes.found.iter().enumerate();
            let found = found.filter(|(_, one)| one.best > 0.0).fold(0, |bits, (at, _)| bits | 1 << at);
            out.push(Features { score, removes, found, ..self.seen(parsed, &perfect, whole, &scopes) });
            let alone = |part| Features { removes, ..seen_in(parsed, &perfect, part, whole, &scopes) };
            each_part.extend((0..parts).map(alone));
            clause_sums.extend_from_slice(&scopes.sums);
        }
        self.compare(parsed, candidates, &mut out);
        for (part, vector) in parsed.part_vectors.iter().enumerate() {
            let Some(vector) = vector else { continue };
            let cosines = self.cosines(vector, candidates);
            let spread = Spread::of(&cosines);
            for (one, cosine) in each_part.iter_mut().skip(part).step_by(parts).zip(cosines) {
                one.standing = spread.standing(cosine);
            }
        }
        for clause in 0..whole.max(1) {
            let of = || clause_sums.iter().skip(clause).step_by(count);
            let top = of().copied().fold(1e-6, f32::max);
            for (one, sum) in out.iter_mut().zip(of()) {
                one.relative = one.relative.max(sum / top);
            }
            for (one, sum) in each_part.iter_mut().skip(clause).step_by(parts.max(1)).zip(of()) {
                one.relative = sum / top;
            }
        }
        Looked { features: out, parts, each_part }
    }

    fn cosines(&self, vector: &[i8], candidates: &[Candidate]) -> Vec<f32> {
        cosines(
            vector,
            candidates.iter().map(|one| self.inner.parts[one.part].segment.vectors.of(one.document)),
        )
    }

    /// Fills in how near the candidates are in meaning.
    fn compare(&self, parsed: &ParsedQuery, candidates: &[Candidate], out: &mut [Features]) {
        let Some(vector) = &parsed.vector else { return };
        let cosines = self.cosines(vector, candidates);
        let spread = Spread::of(&cosines);
        // One vector says less about a request the more parts it has.
        let parts = parsed.clauses.max(1) as f32;
        let weights = &self.inner.weights;
        for (one, cosine) in out.iter_mut().zip(cosines) {
            (one.meaning, one.standing) = (cosine, spread.standing(cosine) / parts);
            one.score = one.score.max((cosine - weights.near_from) * weights.near);
        }
    }

    /// Finds what a candidate has for each slot, and sums it up for each scope.
    fn look(
        &self,
        parsed: &ParsedQuery,
        documents: usize,
        candidate: &Candidate,
        fills: &Fills,
        whole: usize,
        scopes: &mut Scopes,
    ) {
        let segment = &self.inner.parts[candidate.part].segment;
        let names = segment.name_terms_of(candidate.document);
        let Scopes { sums, sure, bonus, covered, found, names: says } = scopes;
        says.clear();
        says.extend(names.iter().map(|term| idf(documents, self.frequency(candidate.part, *term))));
        let width = names.len();
        sums.clear();
        sums.resize(whole + 1, 0.0);
        sure.clear();
        sure.resize(whole + 1, 0.0);
        covered.clear();
        covered.resize((whole + 1) * width, 0.0);
        found.clear();
        found.resize(parsed.slots.len(), Found::default());
        // A document has some fifty terms, of which the query asks for a few: cheaper than to look for each term of
        // the query among all documents that have it.
        for (at, term) in segment.terms_of(candidate.document).iter().enumerate() {
            let Some(slots) = fills.get(*term) else { continue };
            let Some((impact, mask)) = segment.postings(*term).of(candidate.document) else { continue };
            for fill in slots {
                let one = &mut found[fill.slot];
                one.best = one.best.max(impact * fill.weight);
                one.sure = one.sure.max(impact * fill.sure);
                one.fields |= mask;
                if at < width && mask & Field::Name.bit() != 0 {
                    each_scope(&parsed.slots[fill.slot], whole, |scope| {
                        let covered = &mut covered[scope * width + at];
                        *covered = covered.max(fill.weight);
                    });
                }
            }
        }
        for (slot, one) in parsed.slots.iter().zip(found.iter()).filter(|(_, one)| one.best > 0.0) {
            each_scope(slot, whole, |scope| {
                sums[scope] += one.best * slot.idf;
                sure[scope] += one.sure * slot.asked;
            });
        }
        let most = self.inner.weights.coverage;
        let informative: f32 = says.iter().sum::<f32>().max(1e-6);
        for (scope, (sum, sure)) in sums.iter_mut().zip(sure).enumerate() {
            let covered: f32 =
                says.iter().zip(&covered[scope * width..]).map(|(idf, share)| idf * share).sum();
            // The last is the whole query's.
            *bonus = (1.0 + most * covered / informative) / (1.0 + most);
            *sum *= *bonus;
            *sure *= *bonus;
        }
    }

    /// The features of what was found.
    fn seen(&self, parsed: &ParsedQuery, perfect: &[f32], whole: usize, scopes: &Scopes) -> Features {
        let mut seen = seen_in(parsed, perfect, whole, whole, scopes);
        if whole > 0 {
            let best = |prior: f32| {
                scopes.sums[..whole]
                    .iter()
                    .zip(perfect)
                    .map(|(score, of)| score / (of + prior * perfect[whole]))
                    .fold(0.0, f32::max)
            };
            seen.share = f32::midpoint(seen.share, best(self.inner.weights.clause_prior));
            seen.clause = best(0.0);
        }
        seen
    }
}

/// The features of what was found of one scope, were it alone.
fn seen_in(parsed: &ParsedQuery, perfect: &[f32], scope: usize, whole: usize, scopes: &Scopes) -> Features {
    let share = scopes.sums[scope] / perfect[scope];
    let mut seen = Features { share, clause: share, ..Features::default() };
    let mut before = 0;
    for (slot, one) in parsed.slots.iter().zip(&scopes.found) {
        if scope < whole && slot.clauses >> scope & 1 == 0 {
            continue;
        }
        if one.best > 0.0 {
            let share = slot.idf / perfect[scope];
            let if_in =
                |field: Field, also: u8| if one.fields & also & field.bit() != 0 { share } else { 0.0 };
            seen.matched += share;
            seen.description += if_in(Field::Description, u8::MAX);
            seen.app += if_in(Field::App, u8::MAX);
            seen.name_pairs += if_in(Field::Name, before);
            seen.description_pairs += if_in(Field::Description, before);
        }
        before = one.fields;
    }
    seen
}

/// Mean and standard deviation of some numbers.
struct Spread {
    mean: f32,
    deviation: f32,
}

impl Spread {
    fn of(values: &[f32]) -> Self {
        let count = values.len().max(1) as f32;
        let mean = values.iter().sum::<f32>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / count;
        Self { mean, deviation: variance.sqrt() }
    }

    /// Standard deviations of a value above the mean; few values, or ones that hardly differ, count less.
    fn standing(&self, value: f32) -> f32 {
        (value - self.mean) / (self.deviation + 0.02)
    }
}

/// Calls `each` with every scope a slot belongs to: `whole`, and the clauses before it.
pub(crate) fn each_scope(slot: &Slot, whole: usize, mut each: impl FnMut(usize)) {
    each(whole);
    let mut clauses = slot.clauses;
    while whole > 0 && clauses != 0 {
        let clause = clauses.trailing_zeros() as usize;
        if clause < whole {
            each(clause);
        }
        clauses &= clauses - 1;
    }
}
