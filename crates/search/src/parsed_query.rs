//! Turns the text of a query into what is looked up: one slot per word, with the terms that may fill it.

use rustc_hash::FxHashMap;

use crate::{
    fuzzy,
    index::IndexData,
    intents, meaning, synonyms,
    terms::Terms,
    tokenize::{self, TokenKind},
    trigrams,
    values::{Looks, Values},
};

/// Most distinct words of a query that are looked up: as many as a `u64` has bits.
const MAX_SLOTS: usize = 64;
/// Documents thought to be elsewhere when it is judged how much evidence a word is.
const ELSEWHERE: usize = 1000;
/// Bytes of a query that are read.
const MAX_BYTES: usize = 8 * 1024;
/// Parts of a request that get a place each among the hits. A request of more tells a story, and gets none for its parts.
pub(crate) const MOST_PARTS: usize = 4;

/// Relation by which a term may fill a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Same,
    Joined,
    Synonym,
    Typo,
}

/// A term that may fill a slot.
#[derive(Debug, Clone)]
pub(crate) struct Alternative {
    pub(crate) term: String,
    pub(crate) weight: f32,
    pub(crate) why: Why,
    /// The term's number in each part.
    pub(crate) numbers: Vec<Option<u32>>,
    pub(crate) frequency: u32,
}

/// One distinct word of the query.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub(crate) term: String,
    /// The word as it was first written, in lower case.
    pub(crate) word: String,
    /// Inverse document frequency.
    pub(crate) idf: f32,
    /// Weight in the score: as `idf`, but a word that no document has counts in full, and a name that
    /// none has not at all.
    pub(crate) asked: f32,
    /// `idf` as a share of the rarest word's, 0-1, were there [`ELSEWHERE`] more documents: so that a
    /// word says something in a small index too.
    pub(crate) rarity: f32,
    /// A word of the request, or a value in it.
    pub(crate) looks: Looks,
    /// In no particular order; empty if no document has anything like it.
    pub(crate) alternatives: Vec<Alternative>,
    /// Clauses it occurs in, as bits.
    pub(crate) clauses: u64,
}

impl Slot {
    /// A name that no document has is said of the request, not of the tool.
    fn is_strange(&self) -> bool {
        self.looks == Looks::Name && self.alternatives.is_empty()
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ParsedQuery {
    pub(crate) slots: Vec<Slot>,
    /// Number of clauses of the query.
    pub(crate) clauses: usize,
    /// Its meaning; none if no word has one.
    pub(crate) vector: Option<Vec<i8>>,
    /// ... and that of each clause, if there are two to [`MOST_PARTS`].
    pub(crate) part_vectors: Vec<Option<Vec<i8>>>,
}

/// The information a term carries when `frequency` of `documents` hold it.
pub(crate) fn idf(documents: usize, frequency: u32) -> f32 {
    let (all, some) = (documents as f32, frequency as f32);
    ((all - some + 0.5).max(0.5) / (some + 0.5)).ln_1p()
}

impl ParsedQuery {
    /// The terms of the query, and those that may be meant by them.
    pub(crate) fn terms(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().flat_map(|slot| {
            let alternatives = slot.alternatives.iter().map(|one| one.term.as_str());
            std::iter::once(slot.term.as_str()).chain(alternatives)
        })
    }

    /// Parses a text against an index of `documents` documents.
    pub(crate) fn new(inner: &IndexData, documents: usize, text: &str) -> Self {
        let terms = Terms::default();
        let text = &text[..text.floor_char_boundary(MAX_BYTES)];
        let mut builder =
            Builder { inner, documents, slots: Vec::new(), seen: FxHashMap::default(), meant: Vec::new() };
        let clauses = intents::clauses(text);
        for (number, clause) in clauses.iter().enumerate() {
            builder.clause(&terms, clause, number);
        }
        builder.fill();
        let vector = builder.vector(|_| true);
        let parts = if (2..=MOST_PARTS).contains(&clauses.len()) { clauses.len() } else { 0 };
        let part_vectors = (0..parts).map(|part| builder.vector(|clause| clause == part)).collect();
        Self { slots: builder.slots, clauses: clauses.len(), vector, part_vectors }
    }
}

struct Builder<'i> {
    inner: &'i IndexData,
    documents: usize,
    slots: Vec<Slot>,
    seen: FxHashMap<String, usize>,
    /// Pieces of words, and the slot and the clause of each.
    meant: Vec<(u32, usize, usize)>,
}

impl Builder<'_> {
    fn clause(&mut self, terms: &Terms, text: &str, clause: usize) {
        // The word before, for pairs that are also written as one word.
        let mut before: Option<(String, usize)> = None;
        let mut pieces = Vec::new();
        let mut values = Values::default();
        for (_, chunk) in intents::chunks(text) {
            let looks = values.look(chunk);
            let mut recent: Vec<usize> = Vec::new();
            tokenize::words(chunk, |word, kind| {
                if kind == TokenKind::Joined {
                    let stem = terms.stem(word).into_owned();
                    for at in recent.iter().rev().take(4) {
                        self.alternative(*at, &stem, 1.0, Why::Joined);
                    }
                    return;
                }
                let Some(term) = terms.of(word, kind) else {
                    before = None;
                    return;
                };
                if self.slots.len() >= MAX_SLOTS && !self.seen.contains_key(term.as_ref()) {
                    return;
                }
                let at = *self.seen.entry(term.as_ref().to_owned()).or_insert_with(|| {
                    self.slots.push(Slot {
                        term: term.as_ref().to_owned(),
                        word: word.to_owned(),
                        idf: 0.0,
                        asked: 0.0,
                        rarity: 0.0,
                        looks,
                        alternatives: Vec::new(),
                        clauses: 0,
                    });
                    self.slots.len() - 1
                });
                if self.inner.weights.meaning
                    && kind == TokenKind::Word
                    && looks != Looks::Value
                    && self.slots[at].clauses >> clause.min(63) & 1 == 0
                {
                    pieces.clear();
                    meaning::table().cut(word, &mut pieces);
                    self.meant.extend(pieces.iter().map(|piece| (*piece, at, clause)));
                }
                let slot = &mut self.slots[at];
                slot.clauses |= 1 << clause.min(63);
                slot.looks = slot.looks.min(looks);
                recent.push(at);
                if kind == TokenKind::Word {
                    if let Some((first, first_at)) = &before {
                        let joined = format!("{first}{word}");
                        let joined = terms.stem(&joined);
                        self.alternative(*first_at, &joined, 1.0, Why::Joined);
                        self.alternative(at, &joined, 1.0, Why::Joined);
                    }
                    before = Some((word.to_owned(), at));
                }
            });
        }
    }

    /// Adds a term to a slot if any document has it and the slot does not have it yet.
    fn alternative(&mut self, slot: usize, term: &str, weight: f32, why: Why) {
        if self.slots[slot].alternatives.iter().any(|other| other.term == term) {
            return;
        }
        let numbers: Vec<Option<u32>> =
            self.inner.parts.iter().map(|part| part.segment.dictionary.get(term)).collect();
        let frequency = self
            .inner
            .parts
            .iter()
            .zip(&numbers)
            .map(|(part, number)| number.map_or(0, |number| part.frequency(number)))
            .sum();
        if frequency > 0 {
            self.slots[slot].alternatives.push(Alternative {
                term: term.to_owned(),
                weight,
                why,
                numbers,
                frequency,
            });
        }
    }

    /// The vector of the words of some clauses, without values and names that no document has.
    fn vector(&self, of: impl Fn(usize) -> bool) -> Option<Vec<i8>> {
        let meant =
            self.meant.iter().filter(|(_, slot, clause)| of(*clause) && !self.slots[*slot].is_strange());
        let pieces: Vec<u32> = meant.map(|(piece, ..)| *piece).collect();
        (!pieces.is_empty()).then(|| meaning::table().vector(&pieces))
    }

    /// Looks up every slot's own term, and what stands in for it.
    fn fill(&mut self) {
        let weights = &self.inner.weights;
        let mut budget = fuzzy::Budget::default();
        for at in 0..self.slots.len() {
            let term = self.slots[at].term.clone();
            self.alternative(at, &term, 1.0, Why::Same);
            let own =
                self.slots[at].alternatives.iter().find(|one| one.why == Why::Same).map(|one| one.frequency);
            if weights.synonym > 0.0 {
                for other in synonyms::of(&term) {
                    self.alternative(at, other, weights.synonym, Why::Synonym);
                }
            }
            if own.is_none()
                && self.slots[at].looks == Looks::Word
                && term.chars().count() >= trigrams::MIN_CHARS
            {
                for (other, similarity) in fuzzy::corrections(self.inner, &term, &mut budget) {
                    self.alternative(at, &other, similarity, Why::Typo);
                }
            }
            let slot = &mut self.slots[at];
            let of = |documents| match own {
                Some(frequency) => idf(documents, frequency),
                None => slot
                    .alternatives
                    .iter()
                    .map(|one| idf(documents, one.frequency))
                    .reduce(f32::max)
                    .unwrap_or_else(|| idf(documents, 0)),
            };
            let wide = self.documents + ELSEWHERE;
            let value = if slot.looks == Looks::Value { weights.value } else { 1.0 };
            let unknown = if own.is_none() { weights.unknown } else { 1.0 };
            let (here, there) = (of(self.documents), of(wide) / idf(wide, 0));
            let strange = slot.is_strange();
            slot.idf = here * value * unknown;
            slot.asked = if strange { 0.0 } else { here * value };
            slot.rarity = there * value;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Document, Index, removal::is_asked};

    #[test]
    fn requests_to_take_away_are_told_from_others_in_some_languages() {
        let tool = Document {
            name: "files:delete_file".to_owned(),
            app_id: "files".to_owned(),
            description: "Delete a file for good".to_owned(),
            input_schema: Arc::default(),
        };
        let index = Index::build([tool]);
        let asks = |text| is_asked(ParsedQuery::new(&index.inner, index.len(), text).terms());
        for text in [
            "delete a file",
            "erase the file",
            "deletting of fiels",
            "get rid of it",
            "forget Ada",
            "Datei löschen",
            "supprimer le fichier",
            "удалить файл",
            "请删除文件",
        ] {
            assert!(asks(text), "{text}");
        }
        for text in ["", "read a file", "list the labels of an issue", "Datei lesen", "读取文件"] {
            assert!(!asks(text), "{text}");
        }
    }
}
