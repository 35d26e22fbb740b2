//! The document and those that it refers to. `targets` looks up what references in them refer to.
//!
//! All documents are read before anything is made of them: what comes later only looks up.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::Value;

use super::{
    DocumentError, parse,
    room::{DocumentRoom, IfTaken},
    scan::{wanted, without_fragment},
    work::Work,
};
pub(super) use super::{
    node::{ByNode, Identity, Node, NodeSet},
    scan::reference,
};

/// Most documents that one may refer to, directly or through others.
pub(super) const MOST_SOURCES: usize = 500;
/// Longest reference, and longest URL of a document, in bytes.
pub(super) const LONGEST_REFERENCE: usize = 2_000;
/// Longest place of a finding, in bytes. A longer one is cut.
const LONGEST_PLACE: usize = 300;

#[derive(Debug)]
struct Source {
    /// URL, or path relative to the first document. Empty for the first document.
    url: String,
    value: Value,
    _room: DocumentRoom,
}

/// Documents by their URLs.
#[derive(Debug, Default)]
pub(super) struct Sources {
    all: Vec<Source>,
    by_url: HashMap<String, Result<usize, Arc<str>>>,
    /// More documents are referred to than may be.
    is_full: bool,
    work: Work,
}

impl Sources {
    /// Reads `text` and what it refers to.
    ///
    /// # Errors
    /// `text` itself cannot be read. Other documents that cannot be read are found out when something refers to them.
    pub(super) fn load(
        text: &str,
        fetch: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Self, DocumentError> {
        let mut sources = Self::default();
        let mut bytes = text.len();
        let (mut known, mut waiting) = (HashSet::new(), Vec::new());
        let mut new = sources.add(String::new(), parse::parse(text, IfTaken::Wait)?);
        if let Some(own) = sources.all[0].value.get("$self").and_then(Value::as_str) {
            sources.by_url.insert(without_fragment(own).to_owned(), Ok(0));
        }
        loop {
            for url in new {
                if sources.by_url.contains_key(&url) || known.contains(&url) {
                    continue;
                }
                // Those that cannot be read count, too.
                match known.len() < MOST_SOURCES {
                    true => waiting.push(url.clone()),
                    false => sources.is_full = true,
                }
                if !sources.is_full {
                    known.insert(url);
                }
            }
            let Some(url) = waiting.pop() else { break };
            let mut no_memory = None;
            let value = fetch(&url).and_then(|text| {
                bytes += text.len();
                match bytes <= parse::LONGEST_TEXT {
                    true => match parse::parse(&text, IfTaken::Refuse) {
                        // All of it is read when there is memory again: a part would be taken for the whole.
                        Err(error @ DocumentError::NoMemory(_)) => {
                            no_memory = Some(error);
                            Err(String::new())
                        }
                        read => read.map_err(|error| error.to_string()),
                    },
                    false => Err("the documents that are referred to are too large".to_owned()),
                }
            });
            if let Some(error) = no_memory {
                return Err(error);
            }
            new = match value {
                Ok(value) => sources.add(url, value),
                Err(problem) => {
                    sources.by_url.insert(url, Err(clipped(&problem).into()));
                    Vec::new()
                }
            };
        }
        sources.work = Work::of(bytes);
        Ok(sources)
    }

    /// Adds a document, and returns the URLs of those that it refers to.
    fn add(&mut self, url: String, (value, room): (Value, DocumentRoom)) -> Vec<String> {
        let wanted = wanted(&url, &value);
        self.by_url.insert(url.clone(), Ok(self.all.len()));
        self.all.push(Source { url, value, _room: room });
        wanted
    }

    /// The first document.
    pub(super) fn root(&self) -> Node<'_> {
        self.document(0)
    }

    /// The document at a place among the sources.
    pub(super) fn document(&self, source: usize) -> Node<'_> {
        let value = self.all.get(source).map_or(&Value::Null, |source| &source.value);
        Node { value, source, work: &self.work }
    }

    /// All documents.
    pub(super) fn documents(&self) -> impl Iterator<Item = Node<'_>> {
        (0..self.all.len()).map(|source| self.document(source))
    }

    /// The URL of a document.
    pub(super) fn url(&self, source: usize) -> &str {
        self.all.get(source).map_or("", |source| &source.url)
    }

    /// Place of the document at a URL; none where nothing refers to one there, and the problem where it cannot be read.
    pub(super) fn at(&self, url: &str) -> Option<&Result<usize, Arc<str>>> {
        self.by_url.get(url)
    }

    /// Returns `true` if more documents are referred to than are read.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Work that is left.
    pub(super) fn work(&self) -> &Work {
        &self.work
    }

    /// Places of values, as [`Finding::place`](super::Finding::place) has them, found in one pass.
    pub(super) fn places(&self, mut wanted: ByNode<String>) -> ByNode<String> {
        for source in &self.all {
            let mut path = String::new();
            if !source.url.is_empty() {
                push(&mut path, &source.url);
                push(&mut path, "#");
            }
            place(&source.value, &mut path, &mut wanted);
        }
        wanted
    }
}

/// Appends to a place, up to its limit.
fn push(path: &mut String, text: &str) {
    let room = LONGEST_PLACE.saturating_sub(path.len());
    path.push_str(&text[..text.floor_char_boundary(room)]);
    if text.len() > room && !path.ends_with('…') {
        path.push('…');
    }
}

fn place(value: &Value, path: &mut String, wanted: &mut ByNode<String>) {
    if let Some(found) = wanted.get_mut(&Identity::of(value)) {
        found.clone_from(path);
    }
    let length = path.len();
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                push(path, "/");
                let key = &key[..key.floor_char_boundary(LONGEST_PLACE + 1)];
                match key.contains(['~', '/']) {
                    true => push(path, &key.replace('~', "~0").replace('/', "~1")),
                    false => push(path, key),
                }
                place(value, path, wanted);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                push(path, "/");
                push(path, &at.to_string());
                place(value, path, wanted);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// The beginning of a text of the document, for a message.
pub(super) fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(200)]
}
