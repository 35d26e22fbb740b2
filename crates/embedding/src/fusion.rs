//! Blending two rankings: sums of z-scores.

use std::collections::HashMap;

use serde::Serialize;

/// Weights of the lexical and the semantic ranking. Both are z-scores over the documents either one found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fusion {
    /// Weight of the semantic ranking against the lexical one, divided by the parts of the request. Default 1.75.
    pub semantic: f32,
    /// Weight of the better of the two on top. Default 0.6.
    pub either: f32,
    /// Cosine below which a tool with hardly a word in common is left out, -1 to 1. Default 0.2.
    pub similarity_threshold: f32,
    /// Nothing is returned when the best hit scores less, 0 to 1, unless the query sets a threshold of its own.
    /// Default 0.13.
    pub min_best: f32,
}

impl Default for Fusion {
    fn default() -> Self {
        Self { semantic: 1.75, either: 0.6, similarity_threshold: 0.2, min_best: 0.13 }
    }
}

/// Lexical score from which a tool counts as having words in common.
const IN_COMMON: f32 = 0.08;

/// A document's place in either ranking.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Places {
    /// Sort key of the lexical ranking.
    pub(crate) order: Option<f32>,
    /// The lexical score, 0-1.
    pub(crate) score: f32,
    pub(crate) cosine: Option<f32>,
    pub(crate) exact: bool,
}

/// A document in the blended ranking, and how it came to its place.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Blended {
    /// Public name of the tool.
    pub name: String,
    /// 0-1; the mean of `words` and `cosine`, or that of a hit below, if it is higher.
    pub score: f32,
    /// The lexical score, 0-1.
    pub words: f32,
    /// Nearness to the query in meaning, -1 to 1, if it was compared.
    pub cosine: Option<f32>,
    /// The lexical ranking's part of the sort key, in standard deviations from the mean of all that were found.
    pub by_words: f32,
    /// ... the semantic ranking's, weighed.
    pub by_meaning: f32,
    /// ... what the better of the two adds.
    pub by_either: f32,
    /// The query is this tool's name: it comes first.
    pub exact_name: bool,
}

impl Blended {
    fn order(&self) -> f32 {
        self.by_words + self.by_meaning + self.by_either
    }
}

impl Fusion {
    /// Documents with their scores (0-1), best first; `documents` may come in any order. A score is the mean of the
    /// lexical score and the cosine.
    pub(crate) fn blend(
        &self,
        documents: HashMap<String, Places>,
        min_score: f32,
        min_best: f32,
    ) -> Vec<Blended> {
        let others = || documents.values().filter(|one| !one.exact);
        // What one ranking did not find is thought to lie below all it found.
        let last = others().filter_map(|one| one.order).fold(f32::INFINITY, f32::min);
        let last = if last.is_finite() { last / 2.0 } else { 0.0 };
        let lowest = documents.values().filter_map(|one| one.cosine).fold(f32::INFINITY, f32::min);
        let lowest = if lowest.is_finite() { lowest } else { 0.0 };
        let order = |one: &Places| one.order.unwrap_or(last);
        let cosine = |one: &Places| one.cosine.unwrap_or(lowest);
        let lexical = Spread::of(others().map(order));
        let semantic = Spread::of(others().map(cosine));
        // A query that leaves nothing out for its score leaves nothing out for its cosine.
        let threshold = if min_score > 0.0 { self.similarity_threshold } else { -1.0 };
        let mut all: Vec<Blended> = documents
            .into_iter()
            .filter(|(_, one)| {
                one.exact || one.cosine.is_some_and(|cosine| cosine >= threshold) || one.score >= IN_COMMON
            })
            .map(|(name, one)| {
                let (by_words, meaning) = (lexical.z(order(&one)), semantic.z(cosine(&one)));
                let score = match one.exact {
                    true => 1.0,
                    false => f32::midpoint(one.score, one.cosine.unwrap_or(0.0).max(0.0)).clamp(0.0, 1.0),
                };
                Blended {
                    name,
                    score,
                    words: one.score,
                    cosine: one.cosine,
                    by_words,
                    by_meaning: self.semantic * meaning,
                    by_either: self.either * by_words.max(meaning),
                    exact_name: one.exact,
                }
            })
            .filter(|one| one.score >= min_score)
            .collect();
        all.sort_by(|a, b| {
            let by_order = b.order().total_cmp(&a.order());
            b.exact_name.cmp(&a.exact_name).then(by_order).then_with(|| a.name.cmp(&b.name))
        });
        // A hit scores no less than those below it.
        let mut least = 0.0_f32;
        for one in all.iter_mut().rev() {
            least = least.max(one.score);
            one.score = least;
        }
        if least < min_best {
            return Vec::new();
        }
        all
    }
}

/// Mean and standard deviation of some numbers.
struct Spread {
    mean: f32,
    deviation: f32,
}

impl Spread {
    fn of(values: impl Iterator<Item = f32> + Clone) -> Self {
        let count = values.clone().count().max(1) as f32;
        let mean = values.clone().sum::<f32>() / count;
        let variance = values.map(|value| (value - mean).powi(2)).sum::<f32>() / count;
        Self { mean, deviation: variance.sqrt().max(1e-6) }
    }

    fn z(&self, value: f32) -> f32 {
        (value - self.mean) / self.deviation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(order: f32, score: f32, cosine: f32) -> Places {
        Places { order: Some(order), score, cosine: Some(cosine), exact: false }
    }

    #[test]
    fn the_semantic_ranking_decides_between_lexical_near_ties() {
        let documents = HashMap::from([
            ("words".to_owned(), places(5.0, 0.5, 0.3)),
            ("sense".to_owned(), places(4.8, 0.4, 0.8)),
            ("other".to_owned(), places(1.0, 0.1, 0.26)),
        ]);
        let found = Fusion::default().blend(documents, 0.05, 0.13);
        assert_eq!(found[0].name, "sense");
        assert!((found[0].score - 0.6).abs() < 1e-6, "the mean of both");
        assert!(found.is_sorted_by(|a, b| a.score >= b.score));
        assert!(
            found[0].by_meaning > found[0].by_words && found[1].by_words > found[0].by_words,
            "{found:?}"
        );
    }

    #[test]
    fn what_neither_ranking_thinks_near_is_left_out() {
        let far = || HashMap::from([("far".to_owned(), places(1.0, 0.07, 0.1))]);
        assert!(Fusion::default().blend(far(), 0.05, 0.0).is_empty());
        assert_eq!(Fusion::default().blend(far(), 0.0, 0.0).len(), 1, "unless nothing is to be left out");
    }

    #[test]
    fn near_misses_are_left_out_together_when_even_the_best_is_one() {
        let near = |cosine| HashMap::from([("near".to_owned(), places(1.0, 0.0, cosine))]);
        assert!(Fusion::default().blend(near(0.24), 0.05, 0.13).is_empty());
        assert_eq!(Fusion::default().blend(near(0.28), 0.05, 0.13).len(), 1);
    }

    #[test]
    fn an_exact_name_stays_first() {
        let named = Places { order: Some(f32::MAX), score: 1.0, cosine: Some(0.1), exact: true };
        let documents =
            HashMap::from([("named".to_owned(), named), ("near".to_owned(), places(9.0, 0.9, 0.9))]);
        let found = Fusion::default().blend(documents, 0.0, 0.0);
        assert_eq!((found[0].name.as_str(), found[0].score, found[0].exact_name), ("named", 1.0, true));
    }
}
