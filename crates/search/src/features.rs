//! A close look at each candidate: how it answers the query, and from that its place and its score.
//!
//! Which documents are candidates is decided in `rank`.

use crate::{
    Index,
    fields::Field,
    plan::{Plan, Slot, idf},
    rank::Candidate,
    segment::Postings,
    weights::RankWeights,
};

/// What was seen of one candidate; each number is 0-1 unless it says otherwise.
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
    /// How near it is to the best candidate of some clause.
    pub(crate) relative: f32,
    /// How much was found at all, in words that no other document has: 0 and up. Not part of the order.
    pub(crate) evidence: f32,
}

impl Features {
    /// What candidates are ordered by. Says nothing between queries.
    pub(crate) fn rank(&self, weights: &RankWeights) -> f32 {
        weights.share * self.share
            + weights.matched * self.matched
            + weights.description * self.description
            + weights.app * self.app
            + weights.name_pairs * self.name_pairs
            + weights.description_pairs * self.description_pairs
            + weights.clause * self.clause
            + weights.relative * self.relative
    }

    /// The score shown, comparable between queries: how much of the query is answered, marked down where that is
    /// little evidence, such as one common word.
    pub(crate) fn absolute(&self) -> f32 {
        let answered = (f32::midpoint(self.share, self.clause) * self.matched).max(0.0).sqrt().sqrt();
        (answered * self.evidence / (self.evidence + 1.0)).clamp(0.0, 1.0)
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
            self.evidence,
        ]
    }
}

/// A slot's way into one part: the postings of each of its terms.
struct Access<'i> {
    term: u32,
    weight: f32,
    postings: Postings<'i>,
}

/// The query as a whole or one of its clauses.
struct Scope {
    sum: f32,
    /// How much of each term of the name is covered.
    covered: Vec<f32>,
}

impl Index {
    /// Looks at every candidate of a query.
    pub(crate) fn features(&self, plan: &Plan, documents: usize, candidates: &[Candidate]) -> Vec<Features> {
        let scopes = if plan.clauses > 1 { plan.clauses + 1 } else { 1 };
        let whole = scopes - 1;
        let mut perfect = vec![0.0_f32; scopes];
        for slot in &plan.slots {
            each_scope(slot, whole, |scope| perfect[scope] += slot.idf);
        }
        perfect.iter_mut().for_each(|sum| *sum = sum.max(1e-6));
        let access: Vec<Vec<Vec<Access<'_>>>> =
            (0..self.inner.parts.len()).map(|part| self.access(plan, part)).collect();
        let mut out = Vec::with_capacity(candidates.len());
        let mut clause_sums: Vec<Vec<f32>> = Vec::with_capacity(candidates.len());
        let bonus = self.inner.weights.coverage;
        let clause_prior = self.inner.weights.clause_prior;
        for candidate in candidates {
            let segment = &self.inner.parts[candidate.part].segment;
            let names: Vec<(u32, f32)> = segment
                .name_terms_of(candidate.document)
                .iter()
                .map(|term| (*term, idf(documents, self.frequency(candidate.part, *term))))
                .collect();
            let mut sums: Vec<Scope> =
                (0..scopes).map(|_| Scope { sum: 0.0, covered: vec![0.0; names.len()] }).collect();
            let mut seen = Features::default();
            let (mut fields_before, mut evidence) = (0, 0.0);
            for (slot, terms) in plan.slots.iter().zip(&access[candidate.part]) {
                let (mut best, mut fields) = (0.0_f32, 0_u8);
                for one in terms {
                    let Some((impact, mask)) = one.postings.of(candidate.document) else { continue };
                    best = best.max(impact * one.weight);
                    fields |= mask;
                    if mask & Field::Name.bit() != 0
                        && let Some(at) = names.iter().position(|(term, _)| *term == one.term)
                    {
                        each_scope(slot, whole, |scope| {
                            let covered = &mut sums[scope].covered[at];
                            *covered = covered.max(one.weight);
                        });
                    }
                }
                if best > 0.0 {
                    each_scope(slot, whole, |scope| sums[scope].sum += best * slot.idf);
                    let share = slot.idf / perfect[whole];
                    let if_in = |field: Field, also: u8| {
                        if fields & also & field.bit() != 0 { share } else { 0.0 }
                    };
                    seen.matched += share;
                    evidence += best * slot.rarity;
                    seen.description += if_in(Field::Description, u8::MAX);
                    seen.app += if_in(Field::App, u8::MAX);
                    seen.name_pairs += if_in(Field::Name, fields_before);
                    seen.description_pairs += if_in(Field::Description, fields_before);
                }
                fields_before = fields;
            }
            let informative: f32 = names.iter().map(|(_, idf)| idf).sum::<f32>().max(1e-6);
            let scores: Vec<f32> = sums
                .iter()
                .map(|scope| {
                    let covered: f32 =
                        names.iter().zip(&scope.covered).map(|((_, idf), share)| idf * share).sum();
                    scope.sum * (1.0 + bonus * covered / informative) / (1.0 + bonus)
                })
                .collect();
            let full = scores[whole] / perfect[whole];
            // The bonus for the name is in the score of the whole query: the same for the evidence.
            seen.evidence = evidence * scores[whole] / sums[whole].sum.max(1e-6);
            if whole == 0 {
                (seen.share, seen.clause) = (full, full);
            } else {
                let best = |prior: f32| {
                    scores[..whole]
                        .iter()
                        .zip(&perfect)
                        .map(|(score, of)| score / (of + prior * perfect[whole]))
                        .fold(0.0, f32::max)
                };
                seen.share = f32::midpoint(full, best(clause_prior));
                seen.clause = best(0.0);
            }
            out.push(seen);
            clause_sums.push(scores);
        }
        let clauses = whole.max(1);
        for clause in 0..clauses {
            let top = clause_sums.iter().map(|scores| scores[clause]).fold(1e-6, f32::max);
            for (one, scores) in out.iter_mut().zip(&clause_sums) {
                one.relative = one.relative.max(scores[clause] / top);
            }
        }
        out
    }

    fn access(&self, plan: &Plan, part: usize) -> Vec<Vec<Access<'_>>> {
        let segment = &self.inner.parts[part].segment;
        plan.slots
            .iter()
            .map(|slot| {
                let terms = slot.alternatives.iter().filter_map(|one| {
                    let term = one.numbers[part]?;
                    Some(Access { term, weight: one.weight, postings: segment.postings(term) })
                });
                terms.collect()
            })
            .collect()
    }
}

/// Calls `each` with every scope a slot belongs to: `whole`, and the clauses before it.
fn each_scope(slot: &Slot, whole: usize, mut each: impl FnMut(usize)) {
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
