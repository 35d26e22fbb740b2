//! One immutable part of an index: documents, dictionary and postings, laid out flat.
//!
//! Built from documents by `builder`, joined by `merge`.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use crate::{
    document_vectors::Vectors, fields::bare_name, removal, terms::Terms, tokenize, trigrams::Trigrams,
    usage::UsedDocument,
};

/// Bit of a posting's mask that says the term is only there as the joined form of an identifier in the name.
pub(crate) const JOINED_NAME: u8 = 1 << 7;

/// The part of a document that hits show.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) name: Box<str>,
    pub(crate) description: Box<str>,
}

/// Documents of one app, next to each other.
#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(crate) id: Arc<str>,
    pub(crate) documents: Range<u32>,
    /// Terms of the id, once the dictionary is there.
    pub(crate) terms: Box<[u32]>,
}

/// One posting list, its columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Postings<'s> {
    /// Ascending.
    pub(crate) documents: &'s [u32],
    /// Saturated term weight, 0-1 as 0-65535.
    pub(crate) impacts: &'s [u16],
    /// Fields that have the term.
    pub(crate) masks: &'s [u8],
}

impl<'s> Postings<'s> {
    /// The postings of documents in a range.
    pub(crate) fn within(self, range: &Range<u32>) -> Self {
        let from = self.documents.partition_point(|document| *document < range.start);
        let to = from + self.documents[from..].partition_point(|document| *document < range.end);
        Self {
            documents: &self.documents[from..to],
            impacts: &self.impacts[from..to],
            masks: &self.masks[from..to],
        }
    }

    /// Impact and mask for one document.
    pub(crate) fn of(self, document: u32) -> Option<(f32, u8)> {
        let at = self.documents.binary_search(&document).ok()?;
        Some((f32::from(self.impacts[at]) / 65535.0, self.masks[at]))
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Segment {
    /// In order of app, then name.
    pub(crate) documents: Vec<Arc<Stored>>,
    pub(crate) apps: Vec<App>,
    pub(crate) dictionary: Dictionary,
    /// Start of each term's postings, and the end of the last.
    pub(crate) starts: Vec<u32>,
    pub(crate) posting_documents: Vec<u32>,
    pub(crate) posting_impacts: Vec<u16>,
    pub(crate) posting_masks: Vec<u8>,
    /// Each document's distinct terms, those of its name first.
    pub(crate) forward: Vec<u32>,
    pub(crate) forward_starts: Vec<u32>,
    pub(crate) name_terms: Vec<u8>,
    pub(crate) vectors: Vectors,
    /// Hash of the name without separators, of the bare name too; ascending.
    pub(crate) exact: Vec<(u64, u32)>,
    pub(crate) trigrams: Trigrams,
    /// Terms of [`removal::TERMS`], ascending.
    pub(crate) removing: Box<[u32]>,
    /// Hash of the name for usage; ascending.
    pub(crate) hashes: OnceLock<Vec<(UsedDocument, u32)>>,
}

impl Segment {
    pub(crate) fn postings(&self, term: u32) -> Postings<'_> {
        let range = self.starts[term as usize] as usize..self.starts[term as usize + 1] as usize;
        Postings {
            documents: &self.posting_documents[range.clone()],
            impacts: &self.posting_impacts[range.clone()],
            masks: &self.posting_masks[range],
        }
    }

    /// Distinct terms of a document.
    pub(crate) fn terms_of(&self, document: u32) -> &[u32] {
        let at = document as usize;
        &self.forward[self.forward_starts[at] as usize..self.forward_starts[at + 1] as usize]
    }

    /// Distinct terms of a document's name, without its joined forms.
    pub(crate) fn name_terms_of(&self, document: u32) -> &[u32] {
        &self.terms_of(document)[..usize::from(self.name_terms[document as usize])]
    }

    pub(crate) fn app_of(&self, document: u32) -> &App {
        let at = self.apps.partition_point(|app| app.documents.end <= document);
        &self.apps[at]
    }

    /// Looks up the terms of the apps' ids, and those of removal.
    pub(crate) fn read_app_names(&mut self) {
        let terms = Terms::default();
        let mut removing: Vec<u32> =
            removal::TERMS.iter().filter_map(|term| self.dictionary.get(term)).collect();
        removing.sort_unstable();
        self.removing = removing.into();
        for app in &mut self.apps {
            let mut of_id = Vec::new();
            tokenize::words(&app.id, |word, kind| {
                if kind == tokenize::TokenKind::Word
                    && let Some(term) = terms.of(word, kind)
                {
                    of_id.extend(self.dictionary.get(term.as_ref()));
                }
            });
            of_id.sort_unstable();
            of_id.dedup();
            app.terms = of_id.into();
        }
    }

    /// Returns true if the name of a document says that it removes something.
    pub(crate) fn removes(&self, document: u32) -> bool {
        self.name_terms_of(document).iter().any(|term| self.removing.contains(term))
    }

    pub(crate) fn app(&self, id: &str) -> Option<&App> {
        self.apps.binary_search_by(|app| (*app.id).cmp(id)).ok().map(|at| &self.apps[at])
    }

    /// Documents whose name has this hash.
    pub(crate) fn used(&self, hash: UsedDocument) -> impl Iterator<Item = u32> + '_ {
        let hashes = self.hashes.get_or_init(|| {
            let names = self.documents.iter().map(|document| UsedDocument::of(&document.name));
            let mut hashes: Vec<(UsedDocument, u32)> = names.zip(0..).collect();
            hashes.sort_unstable();
            hashes
        });
        let from = hashes.partition_point(|(other, _)| *other < hash);
        let same = hashes[from..].iter().take_while(move |(other, _)| *other == hash);
        same.map(|(_, document)| *document)
    }

    /// Documents whose name, with or without its app, is `key` when both are [`squeezed`].
    pub(crate) fn named<'a>(&'a self, key: &'a str) -> impl Iterator<Item = u32> + 'a {
        let hash = hash(key);
        let from = self.exact.partition_point(|(other, _)| *other < hash);
        self.exact[from..]
            .iter()
            .take_while(move |(other, _)| *other == hash)
            .map(|(_, document)| *document)
            .filter(move |document| {
                let name = &self.documents[*document as usize].name;
                squeezed(name) == key || squeezed(bare_name(name, &self.app_of(*document).id)) == key
            })
    }
}

/// A name without separators, case and accents: what two spellings of one name share.
pub(crate) fn squeezed(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut last_gram: Option<char> = None;
    tokenize::words(name, |word, kind| match kind {
        tokenize::TokenKind::Joined => {}
        tokenize::TokenKind::Word => {
            last_gram = None;
            out.push_str(word);
        }
        tokenize::TokenKind::Gram => {
            let mut chars = word.chars();
            let first = chars.next();
            if last_gram != first {
                out.extend(first);
            }
            let second = chars.next();
            out.extend(second);
            last_gram = second;
        }
    });
    out
}

pub(crate) fn hash(text: &str) -> u64 {
    use std::hash::Hasher as _;
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// Terms in order, each with its number.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    text: String,
    ends: Vec<u32>,
    /// Open addressing by hash; `u32::MAX` is empty. A power of two long.
    table: Vec<u32>,
}

impl Dictionary {
    /// `terms` ascending and distinct.
    pub(crate) fn new<'t>(terms: impl Iterator<Item = &'t str>) -> Self {
        let mut new = Self::default();
        for term in terms {
            new.text.push_str(term);
            new.ends.push(u32::try_from(new.text.len()).expect("a dictionary is far below 4 GiB"));
        }
        let size = (new.ends.len() * 2).next_power_of_two().max(2);
        new.table = vec![u32::MAX; size];
        for number in 0..new.ends.len() {
            let mut at = slot(new.term(number), size);
            while new.table[at] != u32::MAX {
                at = (at + 1) & (size - 1);
            }
            new.table[at] = u32::try_from(number).expect("a dictionary has fewer than 2^32 terms");
        }
        new
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn term(&self, number: usize) -> &str {
        let start = if number == 0 { 0 } else { self.ends[number - 1] as usize };
        &self.text[start..self.ends[number] as usize]
    }

    pub(crate) fn get(&self, term: &str) -> Option<u32> {
        let size = self.table.len();
        if size == 0 {
            return None;
        }
        let mut at = slot(term, size);
        loop {
            match self.table[at] {
                u32::MAX => return None,
                number if self.term(number as usize) == term => return Some(number),
                _ => at = (at + 1) & (size - 1),
            }
        }
    }
}

fn slot(term: &str, size: usize) -> usize {
    let hash = hash(term);
    let low = (hash ^ (hash >> 32)) as usize;
    low & (size - 1)
}
