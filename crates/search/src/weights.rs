//! The numbers of the ranking, in one place.
//!
//! They were chosen as `docs/adr/search-ranking.md` says.

use crate::fields::FIELDS;

/// Weight of one field.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct FieldWeight {
    /// Weight of one occurrence.
    pub weight: f32,
    /// Penalty for a long field, 0 (none) to 1 (in proportion): BM25's `b`.
    pub length: f32,
    /// The length, in words, at which a field is neither marked up nor down. Fixed, not the corpus mean, so that
    /// a document scores the same whatever else is indexed.
    pub pivot: f32,
}

/// Weight of each feature in the order of hits; learned, see `scripts/train_search.py`.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct RankWeights {
    /// Share of a perfect match.
    pub share: f32,
    /// Query found at all.
    pub matched: f32,
    /// Query found in the description.
    pub description: f32,
    /// Query found in the app.
    pub app: f32,
    /// Neighbours found in the name.
    pub name_pairs: f32,
    /// Neighbours found in the description.
    pub description_pairs: f32,
    /// Share of a perfect match for one clause.
    pub clause: f32,
    /// Nearness to the best of a clause.
    pub relative: f32,
    /// Standing among the candidates by nearness in meaning.
    pub standing: f32,
    /// Removal that the query does not ask for.
    pub removes: f32,
}

impl RankWeights {
    /// Returns the sort key of a row of features.
    #[must_use]
    pub fn of(&self, row: &[f32]) -> f32 {
        let weights = [
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
        ];
        weights.iter().zip(row).map(|(weight, value)| weight * value).sum()
    }
}

/// Constants of the ranking. [`Weights::default`] is what was measured best.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct Weights {
    /// Name, description, parameter names, parameter texts, enum values, app.
    pub fields: [FieldWeight; FIELDS],
    /// Saturation: how soon repeating a word stops helping.
    pub k1: f32,
    /// Bonus for covering the whole name of the tool.
    pub coverage: f32,
    /// Weight of a number, path or quotation in a query, against an ordinary word.
    pub value: f32,
    /// Weight of a word that no document has, itself or corrected.
    pub unknown: f32,
    /// Weight of a synonym, against the word itself.
    pub synonym: f32,
    /// Share of the whole query's information that every clause is thought to have on top of its own, so that
    /// a short clause does not win by one common word.
    pub clause_prior: f32,
    /// Postings read to find candidates for the whole query, as a share of the documents.
    pub budget: f32,
    /// ... for each clause.
    pub clause_budget: f32,
    /// Bonus for tools of an app that the query names, beside an app that has every tool.
    pub named: f32,
    /// Loss of a tool for each better one of its app beyond the first [`Weights::crowd_from`], in an app that has every tool.
    pub crowd: f32,
    /// Tools of such an app that lose nothing.
    pub crowd_from: f32,
    /// Share of a perfect match that the best tool for a part of a request must have, to be kept among the first hits.
    pub place_from: f32,
    /// Order of a candidate for words of a request with several parts that no better one has, if it has all of them.
    pub variety: f32,
    /// Meaning counts, not words alone.
    pub meaning: bool,
    /// Score of a tool for each unit of its cosine with the query above [`Weights::near_from`], whatever its words.
    pub near: f32,
    /// See [`Weights::near`].
    pub near_from: f32,
    /// Order of a document for each unit of its use after searches for the same words, which is 0 to 1.
    pub used: f32,
    /// ... score.
    pub used_score: f32,
    /// Calls of other documents that are assumed for each word of a query.
    pub used_prior: f32,
    /// The order of hits.
    pub rank: RankWeights,
}

impl Default for Weights {
    fn default() -> Self {
        let field = |weight, length, pivot| FieldWeight { weight, length, pivot };
        Self {
            fields: [
                field(2.0, 0.6, 3.0),
                field(1.0, 0.75, 16.0),
                field(1.0, 0.5, 5.0),
                field(0.3, 0.5, 40.0),
                field(0.4, 0.7, 5.0),
                field(0.25, 0.3, 2.0),
            ],
            k1: 0.9,
            coverage: 0.5,
            value: 0.5,
            unknown: 0.75,
            synonym: 0.5,
            clause_prior: 0.3,
            budget: 0.3,
            clause_budget: 0.1,
            named: 4.0,
            crowd: 1.0,
            crowd_from: 2.0,
            place_from: 0.2,
            variety: 2.0,
            meaning: true,
            near: 0.5,
            near_from: 0.27,
            used: 6.0,
            used_score: 0.3,
            used_prior: 3.0,
            rank: RankWeights {
                share: 7.12,
                matched: 4.75,
                description: -2.33,
                app: 5.25,
                name_pairs: 1.78,
                description_pairs: 2.38,
                clause: 1.02,
                relative: 4.04,
                standing: 1.5,
                removes: -4.0,
            },
        }
    }
}

impl Weights {
    /// Sets a constant by name, for experiments. `None` if there is none of that name.
    #[must_use]
    pub fn with(mut self, name: &str, value: f32) -> Option<Self> {
        if name == "meaning" {
            self.meaning = value > 0.0;
            return Some(self);
        }
        let place = match name {
            "k1" => &mut self.k1,
            "coverage" => &mut self.coverage,
            "value" => &mut self.value,
            "unknown" => &mut self.unknown,
            "synonym" => &mut self.synonym,
            "clause_prior" => &mut self.clause_prior,
            "budget" => &mut self.budget,
            "clause_budget" => &mut self.clause_budget,
            "named" => &mut self.named,
            "crowd" => &mut self.crowd,
            "crowd_from" => &mut self.crowd_from,
            "variety" => &mut self.variety,
            "place_from" => &mut self.place_from,
            "rank.share" => &mut self.rank.share,
            "rank.matched" => &mut self.rank.matched,
            "rank.description" => &mut self.rank.description,
            "rank.app" => &mut self.rank.app,
            "rank.name_pairs" => &mut self.rank.name_pairs,
            "rank.description_pairs" => &mut self.rank.description_pairs,
            "rank.clause" => &mut self.rank.clause,
            "rank.relative" => &mut self.rank.relative,
            "rank.standing" => &mut self.rank.standing,
            "rank.removes" => &mut self.rank.removes,
            "near" => &mut self.near,
            "used" => &mut self.used,
            "used_score" => &mut self.used_score,
            "used_prior" => &mut self.used_prior,
            "near_from" => &mut self.near_from,
            _ => {
                let (kind, number) = name.split_at_checked(1)?;
                let field = self.fields.get_mut(number.parse::<usize>().ok()?)?;
                match kind {
                    "w" => &mut field.weight,
                    "b" => &mut field.length,
                    "p" => &mut field.pivot,
                    _ => return None,
                }
            }
        };
        *place = value;
        Some(self)
    }
}
