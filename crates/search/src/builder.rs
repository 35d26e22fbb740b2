//! Documents to a segment: one pass over the text, then a sort by term.

use std::{ops::Range, sync::Arc};

use rustc_hash::FxHashMap;

use crate::{
    Document,
    document_vectors::Vectors,
    fields::{self, FIELDS, Field, bare_name},
    meaning::{self, DIMENSIONS},
    segment::{App, Dictionary, JOINED_NAME, Segment, Stored, hash, squeezed},
    terms::Terms,
    tokenize::{self, TokenKind},
    trigrams::Trigrams,
    weights::Weights,
};

/// Most words of one document that are read; what follows in a longer one is not searched.
const MAX_WORDS: usize = 20_000;
/// Most words of a name and of a description that its meaning is made of.
const MEANT_NAME: usize = 12;
const MEANT_DESCRIPTION: usize = 24;
const STOPPED: u32 = u32::MAX;
const JOINED_IN_NAME: u32 = FIELDS as u32;

/// One distinct term of one document.
#[derive(Debug, Clone, Copy)]
struct Entry {
    term: u32,
    impact: u16,
    mask: u8,
}

struct Pending {
    stored: Arc<Stored>,
    app: Arc<str>,
    /// Place of its entries among the builder's.
    entries: Range<usize>,
    /// Number of its vector.
    vector: usize,
    name_terms: u8,
}

/// A distinct word.
#[derive(Debug, Clone, Copy)]
struct Word {
    /// Number of its term.
    term: u32,
    /// Place and number of its pieces.
    pieces: (u32, u32),
}

/// Collects documents into one [`Segment`].
pub(crate) struct SegmentBuilder {
    weights: Arc<Weights>,
    terms: Terms,
    /// Words as read.
    words: FxHashMap<Box<str>, Word>,
    /// Pieces of all words, side by side.
    pieces: Vec<u32>,
    /// Vectors of all documents, side by side.
    vectors: Vec<i8>,
    numbers: FxHashMap<Arc<str>, u32>,
    by_number: Vec<Arc<str>>,
    apps: FxHashMap<Arc<str>, ()>,
    pending: Vec<Pending>,
    /// Entries of all documents, side by side: one large block is given back to the system, many small ones not.
    entries: Vec<Entry>,
    occurrences: Vec<u32>,
}

impl SegmentBuilder {
    pub(crate) fn new(weights: Arc<Weights>) -> Self {
        Self {
            weights,
            terms: Terms::default(),
            words: FxHashMap::default(),
            pieces: Vec::new(),
            vectors: Vec::new(),
            numbers: FxHashMap::default(),
            by_number: Vec::new(),
            apps: FxHashMap::default(),
            pending: Vec::new(),
            entries: Vec::new(),
            occurrences: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, document: Document) {
        let mut occurrences = std::mem::take(&mut self.occurrences);
        occurrences.clear();
        let mut lengths = [0_u32; FIELDS];
        let (mut meant, mut meant_of) = (Vec::new(), [0_usize; 2]);
        fields::texts(&document, &mut |field, text| {
            tokenize::words(text, |word, kind| {
                if occurrences.len() >= MAX_WORDS {
                    return;
                }
                let Word { term, pieces } = self.number(word, kind);
                if term == STOPPED {
                    return;
                }
                let room = match field {
                    Field::Name => MEANT_NAME,
                    Field::Description => MEANT_DESCRIPTION,
                    _ => 0,
                };
                if room > 0 && kind == TokenKind::Word && pieces.1 > 0 && meant_of[field as usize] < room {
                    meant_of[field as usize] += 1;
                    let start = pieces.0 as usize;
                    meant.extend_from_slice(&self.pieces[start..start + pieces.1 as usize]);
                }
                let column = match (field, kind) {
                    (Field::Name, TokenKind::Joined) => JOINED_IN_NAME,
                    _ => field as u32,
                };
                if kind != TokenKind::Joined {
                    lengths[field as usize] += 1;
                }
                occurrences.push(term << 3 | column);
            });
        });
        occurrences.sort_unstable();
        let mut entries: Vec<Entry> =
            occurrences.chunk_by(|a, b| a >> 3 == b >> 3).map(|same| self.entry(same, &lengths)).collect();
        // Terms of the name first, so that they can be listed.
        entries.sort_by_key(|entry| entry.mask & Field::Name.bit() == 0);
        let in_name = entries.iter().take_while(|entry| entry.mask & Field::Name.bit() != 0).count();
        self.occurrences = occurrences;
        let app = match self.apps.get_key_value(document.app_id.as_str()) {
            Some((app, ())) => Arc::clone(app),
            None => {
                let app: Arc<str> = document.app_id.as_str().into();
                self.apps.insert(Arc::clone(&app), ());
                app
            }
        };
        if self.weights.meaning {
            self.vectors.extend(meaning::table().vector(&meant));
        }
        let start = self.entries.len();
        self.entries.extend_from_slice(&entries);
        self.pending.push(Pending {
            stored: Arc::new(Stored {
                name: document.name.into_boxed_str(),
                description: document.description.into_boxed_str(),
            }),
            app,
            entries: start..start + entries.len(),
            vector: self.pending.len(),
            name_terms: u8::try_from(in_name).unwrap_or(u8::MAX),
        });
    }

    fn number(&mut self, word: &str, kind: TokenKind) -> Word {
        if let Some(known) = self.words.get(word) {
            return *known;
        }
        let term = match self.terms.of(word, kind) {
            None => STOPPED,
            Some(term) => match self.numbers.get(term.as_ref()) {
                Some(number) => *number,
                None => {
                    let number = u32::try_from(self.by_number.len()).expect("fewer than 2^29 terms");
                    let term: Arc<str> = term.as_ref().into();
                    self.by_number.push(Arc::clone(&term));
                    self.numbers.insert(term, number);
                    number
                }
            },
        };
        let start = self.pieces.len();
        if term != STOPPED && self.weights.meaning {
            meaning::table().cut(word, &mut self.pieces);
        }
        let known = Word { term, pieces: (start as u32, (self.pieces.len() - start) as u32) };
        self.words.insert(word.into(), known);
        known
    }

    fn entry(&self, occurrences: &[u32], lengths: &[u32; FIELDS]) -> Entry {
        let mut mask = 0;
        let mut weighted = 0.0;
        for same in occurrences.chunk_by(|a, b| a == b) {
            let column = same[0] & 7;
            let joined = column == JOINED_IN_NAME;
            let field = if joined { 0 } else { column as usize };
            mask |= if joined { JOINED_NAME } else { 1 << field };
            let weight = &self.weights.fields[field];
            let norm = 1.0 - weight.length + weight.length * lengths[field].max(1) as f32 / weight.pivot;
            weighted += weight.weight * same.len() as f32 / norm;
        }
        let impact = weighted / (self.weights.k1 + weighted);
        let impact = (impact * 65535.0).round() as u16;
        Entry { term: occurrences[0] >> 3, impact: impact.max(1), mask }
    }

    /// The segment of everything added. Of two documents with one name the later stays.
    pub(crate) fn finish(self) -> Segment {
        let Self { by_number, mut pending, entries, words, numbers, weights, vectors, .. } = self;
        drop((words, numbers));
        keep_last_of_each_name(&mut pending);
        pending.sort_by(|a, b| (&a.app, &a.stored.name).cmp(&(&b.app, &b.stored.name)));

        let mut counts = vec![0_u32; by_number.len()];
        pending
            .iter()
            .flat_map(|one| &entries[one.entries.clone()])
            .for_each(|entry| counts[entry.term as usize] += 1);
        let mut order: Vec<u32> =
            (0..by_number.len() as u32).filter(|term| counts[*term as usize] > 0).collect();
        order.sort_unstable_by(|a, b| by_number[*a as usize].cmp(&by_number[*b as usize]));
        let dictionary = Dictionary::new(order.iter().map(|term| &*by_number[*term as usize]));
        let mut renumbered = vec![0_u32; by_number.len()];
        let mut starts = Vec::with_capacity(order.len() + 1);
        let mut total = 0;
        for (new, old) in order.iter().enumerate() {
            renumbered[*old as usize] = new as u32;
            starts.push(total);
            total += counts[*old as usize];
        }
        starts.push(total);

        let mut segment = Segment {
            documents: Vec::with_capacity(pending.len()),
            posting_documents: vec![0; total as usize],
            posting_impacts: vec![0; total as usize],
            posting_masks: vec![0; total as usize],
            forward: Vec::with_capacity(total as usize),
            forward_starts: Vec::with_capacity(pending.len() + 1),
            ..Segment::default()
        };
        if weights.meaning {
            segment.vectors = Vectors::with_capacity(pending.len());
        }
        let mut next = starts.clone();
        for (document, one) in pending.into_iter().enumerate() {
            segment.forward_starts.push(segment.forward.len() as u32);
            segment.name_terms.push(one.name_terms);
            for entry in &entries[one.entries.clone()] {
                let term = renumbered[entry.term as usize];
                let at = next[term as usize] as usize;
                next[term as usize] += 1;
                segment.posting_documents[at] = document as u32;
                segment.posting_impacts[at] = entry.impact;
                segment.posting_masks[at] = entry.mask;
                segment.forward.push(term);
            }
            if weights.meaning {
                let at = one.vector * DIMENSIONS;
                segment.vectors.push(&vectors[at..at + DIMENSIONS]);
            }
            push_document(&mut segment, one.stored, one.app);
        }
        segment.forward_starts.push(segment.forward.len() as u32);
        segment.exact.sort_unstable();
        segment.trigrams = Trigrams::new(&dictionary);
        segment.dictionary = dictionary;
        segment.starts = starts;
        segment.read_app_names();
        segment
    }
}

fn keep_last_of_each_name(pending: &mut Vec<Pending>) {
    let mut last: FxHashMap<&str, usize> = FxHashMap::default();
    for (at, one) in pending.iter().enumerate() {
        last.insert(&one.stored.name, at);
    }
    if last.len() == pending.len() {
        return;
    }
    let keep: Vec<bool> =
        pending.iter().enumerate().map(|(at, one)| last.get(&*one.stored.name) == Some(&at)).collect();
    drop(last);
    let mut at = 0;
    pending.retain(|_| {
        at += 1;
        keep[at - 1]
    });
}

/// Files the next document under its app and its names.
pub(crate) fn push_document(segment: &mut Segment, stored: Arc<Stored>, app: Arc<str>) {
    let document = segment.documents.len() as u32;
    let full = squeezed(&stored.name);
    let bare = squeezed(bare_name(&stored.name, &app));
    segment.exact.push((hash(&full), document));
    if bare != full {
        segment.exact.push((hash(&bare), document));
    }
    match segment.apps.last_mut() {
        Some(last) if last.id == app => last.documents.end = document + 1,
        _ => segment.apps.push(App { id: app, documents: document..document + 1, terms: Box::default() }),
    }
    segment.documents.push(stored);
}
