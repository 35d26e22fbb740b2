//! Explanation of a hit: the words that matched, as what, in which fields, and the score of each.

use serde::Serialize;

use crate::{
    Hit, Index, Query,
    candidates::Candidate,
    fields::Field,
    parsed_query::{ParsedQuery, Why},
    terms::Terms,
    tokenize,
    used::Used,
    vectors::cosines,
};

/// A hit with what made it one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The hit, as [`Index::search`] returns it.
    pub hit: Hit,
    /// The query is this tool's name.
    pub exact_name: bool,
    /// Nearness in meaning to the query by the words' vectors, -1 to 1. `None` where words alone count, and for queries without a known word.
    pub meaning: Option<f32>,
    /// Use after searches for the words of the query, 0-1; see [`Query::usage`].
    pub used: f32,
    /// Share of the query's information that the tool's text has, 0-1.
    pub matched: f32,
    /// Words of the query found, in order of the query.
    pub terms: Vec<TermMatch>,
    /// Words of the query not found.
    pub missing: Vec<String>,
}

/// One word of the query found in a document.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TermMatch {
    /// The query's word.
    pub query: String,
    /// The word found for it: as the tool's name or description has it, else its stem; see [`word_of`].
    pub found: String,
    /// The stem found for it.
    pub stem: String,
    /// Relation of the term to the word.
    pub relation: Relation,
    /// Fields it is in: `name`, `description`, `parameter`, `parameter text`, `enum`, `app`.
    pub fields: Vec<&'static str>,
    /// Its part of a perfect match for the whole query, 0-1.
    pub share: f32,
}

/// Relation of a term that was found to the query's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Relation {
    /// The same word, or another form of it.
    Same,
    /// Written as one word with its neighbour.
    Joined,
    /// Another word for the same.
    Synonym,
    /// Spelt almost alike; no document has the query's spelling.
    Typo,
}

impl From<Why> for Relation {
    fn from(why: Why) -> Self {
        match why {
            Why::Same => Self::Same,
            Why::Joined => Self::Joined,
            Why::Synonym => Self::Synonym,
            Why::Typo => Self::Typo,
        }
    }
}

/// Bytes of a text that [`word_of`] reads.
const MAX_BYTES: usize = 8 * 1024;

/// The first word in `texts` that has this stem, in lower case. Reads at most 8 KiB of each text.
#[must_use]
pub fn word_of<'t>(stem: &str, texts: impl IntoIterator<Item = &'t str>) -> Option<String> {
    let terms = Terms::default();
    let mut found = None;
    for text in texts {
        tokenize::words(&text[..text.floor_char_boundary(MAX_BYTES)], |word, _| {
            if found.is_none() && terms.stem(word) == stem {
                found = Some(word.to_owned());
            }
        });
        if found.is_some() {
            break;
        }
    }
    found
}

impl Index {
    /// The hits of [`Index::search`], each with its reasons.
    #[must_use]
    pub fn explain(&self, query: &Query<'_>) -> Vec<Explanation> {
        let (parsed, candidates) = self.ranked(query);
        let used = self.used(&parsed, &self.ranges(query.app_ids), query);
        candidates.into_iter().map(|candidate| self.explanation(&parsed, &used, candidate)).collect()
    }

    fn explanation(&self, parsed: &ParsedQuery, used: &Used, candidate: Candidate) -> Explanation {
        let segment = &self.inner.parts[candidate.part].segment;
        let total = parsed.slots.iter().map(|slot| slot.idf).sum::<f32>().max(1e-6);
        let document = &segment.documents[candidate.document as usize];
        let texts = [&*document.name, &*document.description];
        let (mut terms, mut missing, mut matched) = (Vec::new(), Vec::new(), 0.0);
        for slot in &parsed.slots {
            let best = slot
                .alternatives
                .iter()
                .filter_map(|one| {
                    let (impact, mask) =
                        segment.postings(one.numbers[candidate.part]?).of(candidate.document)?;
                    Some((impact * one.weight, mask, one))
                })
                .max_by(|a, b| a.0.total_cmp(&b.0));
            let Some((worth, mask, one)) = best else {
                missing.push(slot.word.clone());
                continue;
            };
            matched += slot.idf / total;
            terms.push(TermMatch {
                query: slot.word.clone(),
                found: word_of(&one.term, texts).unwrap_or_else(|| one.term.clone()),
                stem: one.term.clone(),
                relation: one.why.into(),
                fields: Field::of_mask(mask).map(Field::label).collect(),
                share: worth * slot.idf / total,
            });
        }
        let vector = [segment.vectors.of(candidate.document)];
        let meaning = parsed.vector.as_ref().and_then(|query| cosines(query, vector.into_iter()).pop());
        Explanation {
            hit: self.hit(&candidate),
            exact_name: candidate.exact,
            meaning,
            used: used.of(&candidate),
            matched,
            terms,
            missing,
        }
    }
}
