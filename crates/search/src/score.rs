//! The score shown: from 0 to 1, and comparable between queries. What hits are ordered by is in `features`.

use crate::{
    features::{Scopes, each_scope},
    parsed_query::ParsedQuery,
};

/// The request, whatever the document.
#[derive(Debug)]
pub(crate) struct Asked {
    /// For the clauses and the whole, what finding every word counts.
    perfect: Vec<f32>,
    /// Only one word counts.
    single: bool,
    whole: usize,
}

impl Asked {
    pub(crate) fn new(parsed: &ParsedQuery, whole: usize) -> Self {
        let mut perfect = vec![0.0_f32; whole + 1];
        for slot in &parsed.slots {
            each_scope(slot, whole, |scope| perfect[scope] += slot.asked);
        }
        perfect.iter_mut().for_each(|sum| *sum = sum.max(1e-6));
        let single = parsed.slots.iter().filter(|slot| slot.asked > 0.0).nth(1).is_none();
        Self { perfect, single, whole }
    }

    /// The score of what was found in one document.
    ///
    /// Share of the request that is answered (the share of a perfect match over the whole of it and its best clause, and
    /// the share that is found at all), times how much evidence that is: what was found in words that few other documents
    /// have, and the second of them above all, as one telling word is often there by chance.
    pub(crate) fn score(&self, parsed: &ParsedQuery, scopes: &Scopes, prior: f32) -> f32 {
        let (mut matched, mut first, mut second, mut all) = (0.0, 0.0_f32, 0.0_f32, 0.0);
        for (slot, one) in parsed.slots.iter().zip(&scopes.found).filter(|(_, one)| one.sure > 0.0) {
            matched += slot.asked;
            let tells = one.sure * slot.rarity;
            all += tells;
            (first, second) = if tells > first { (tells, first) } else { (first, second.max(tells)) };
        }
        if self.single {
            second = first;
        }
        let (perfect, whole) = (&self.perfect, self.whole);
        let full = scopes.sure[whole] / perfect[whole];
        let (mut share, mut clause) = (full, full);
        if whole > 0 {
            let best = |prior: f32| {
                let each = scopes.sure[..whole].iter().zip(perfect);
                each.map(|(sum, of)| sum / (of + prior * perfect[whole])).fold(0.0, f32::max)
            };
            share = f32::midpoint(full, best(prior));
            clause = best(0.0);
        }
        let answered = (0.75 * share + 0.25 * clause) * (matched / perfect[whole]);
        let all = all * scopes.bonus;
        let evidence = all / (all + 1.2) * (second + 0.4) / 1.4;
        // The powers are for reading: that the best hit of most requests scores between 0.1 and 0.6.
        (answered.max(0.0).powf(0.3) * evidence).powf(0.62).clamp(0.0, 1.0)
    }
}
