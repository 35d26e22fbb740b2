//! The index: an immutable snapshot that readers share and updates replace.
//!
//! A snapshot is a list of parts, each an immutable [`Segment`] and the documents removed from it since. An update
//! adds a small part and joins parts of like size, so its cost follows the change and not the index.

use std::{borrow::Cow, collections::BTreeMap, ops::Range, sync::Arc};

use rustc_hash::FxHashMap;

use crate::{
    Change, Document, Visible,
    builder::SegmentBuilder,
    merge::merge,
    segment::{Segment, squeezed},
    weights::Weights,
};

/// An immutable snapshot of searchable documents. Clones share everything and cost nothing.
#[derive(Debug, Clone, Default)]
pub struct Index {
    pub(crate) inner: Arc<IndexData>,
}

#[derive(Debug, Default)]
pub(crate) struct IndexData {
    pub(crate) weights: Arc<Weights>,
    pub(crate) parts: Vec<Part>,
    /// Apps that have more than a quarter of the documents, and 100 at least, and how far: 1 for one that has all.
    pub(crate) crowds: Vec<(Arc<str>, f32)>,
}

impl IndexData {
    fn new(weights: Arc<Weights>, parts: Vec<Part>) -> Self {
        const FROM: f32 = 0.25;
        const LEAST: usize = 100;
        let all: usize = parts.iter().map(Part::live).sum();
        let mut sizes: FxHashMap<&Arc<str>, usize> = FxHashMap::default();
        for part in &parts {
            for app in &part.segment.apps {
                *sizes.entry(&app.id).or_default() += part.live_in(&app.documents);
            }
        }
        let crowding = |size: usize| (size as f32 / all.max(1) as f32 - FROM) / (1.0 - FROM);
        let crowds = sizes
            .into_iter()
            .filter(|(_, size)| *size >= LEAST)
            .map(|(id, size)| (id.clone(), crowding(size)));
        let crowds = crowds.filter(|(_, crowding)| *crowding > 0.0).collect();
        Self { weights, crowds, parts }
    }
}

/// A segment and what was removed from it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    pub(crate) segment: Arc<Segment>,
    dead: Arc<Dead>,
}

#[derive(Debug, Clone, Default)]
struct Dead {
    documents: Bits,
    /// For each term, how many removed documents hold it.
    frequencies: FxHashMap<u32, u32>,
    count: usize,
}

/// A set of small numbers. Numbers past its end are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Bits(Vec<u64>);

impl Bits {
    fn has(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn add(&mut self, number: u32) {
        let at = number as usize / 64;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= 1 << (number % 64);
    }
}

impl Part {
    fn new(segment: Segment) -> Self {
        Self { segment: Arc::new(segment), dead: Arc::default() }
    }

    pub(crate) fn live(&self) -> usize {
        self.segment.documents.len() - self.dead.count
    }

    pub(crate) fn is_live(&self, document: u32) -> bool {
        self.dead.count == 0 || !self.dead.documents.has(document)
    }

    /// Those of some documents, in order, that are live.
    pub(crate) fn live_of<'d>(&self, documents: &'d [u32]) -> Cow<'d, [u32]> {
        match self.dead.count {
            0 => Cow::Borrowed(documents),
            _ => documents.iter().copied().filter(|at| self.is_live(*at)).collect(),
        }
    }

    pub(crate) fn live_in(&self, range: &Range<u32>) -> usize {
        if self.dead.count == 0 { range.len() } else { range.clone().filter(|at| self.is_live(*at)).count() }
    }

    pub(crate) fn live_documents(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.segment.documents.len() as u32).filter(|document| self.is_live(*document))
    }

    /// Live documents that hold a term.
    pub(crate) fn frequency(&self, term: u32) -> u32 {
        let all = self.segment.postings(term).documents.len() as u32;
        all - self.dead.frequencies.get(&term).copied().unwrap_or(0)
    }

    fn kill(&mut self, document: u32) {
        if !self.is_live(document) {
            return;
        }
        let dead = Arc::make_mut(&mut self.dead);
        dead.documents.add(document);
        dead.count += 1;
        for term in self.segment.terms_of(document) {
            *dead.frequencies.entry(*term).or_default() += 1;
        }
    }
}

/// A document in the index, as far as the index keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'i> {
    /// Public name.
    pub name: &'i str,
    /// The app it belongs to.
    pub app_id: &'i str,
    /// Its description, whole.
    pub description: &'i str,
}

/// The documents of one index that a caller may see, kept between queries.
///
/// Documents added by a later update are not visible through it, so make it anew after one.
#[derive(Debug, Clone, Default)]
pub struct VisibleSet {
    parts: Vec<(Arc<Segment>, Bits)>,
}

impl VisibleSet {
    fn of(&self, segment: &Arc<Segment>) -> Option<&Bits> {
        self.parts.iter().find(|(of, _)| Arc::ptr_eq(of, segment)).map(|(_, bits)| bits)
    }
}

impl Index {
    /// An index over `documents`; of two with one name the later counts.
    #[must_use]
    pub fn build(documents: impl IntoIterator<Item = Document>) -> Self {
        Self::build_with(Weights::default(), documents)
    }

    /// An empty index that ranks by words alone, as do those that [`Index::updated`] makes of it.
    #[must_use]
    pub fn by_words() -> Self {
        Self::build_with(Weights { meaning: false, ..Weights::default() }, [])
    }

    /// [`Index::build`] with other constants, for measuring.
    #[doc(hidden)]
    #[must_use]
    pub fn build_with(weights: Weights, documents: impl IntoIterator<Item = Document>) -> Self {
        let weights = Arc::new(weights);
        let mut builder = SegmentBuilder::new(Arc::clone(&weights));
        documents.into_iter().for_each(|document| builder.add(document));
        let part = Part::new(builder.finish());
        let parts = if part.live() == 0 { Vec::new() } else { vec![part] };
        Self { inner: Arc::new(IndexData::new(weights, parts)) }
    }

    /// The snapshot after `changes`, applied in order. `self` and its readers are unaffected.
    ///
    /// Searching the result is the same as searching an index built anew from the documents that are left.
    #[must_use]
    pub fn updated(&self, changes: impl IntoIterator<Item = Change>) -> Self {
        let mut parts = self.inner.parts.clone();
        let mut new: BTreeMap<String, Document> = BTreeMap::new();
        for change in changes {
            match change {
                Change::Upsert(document) => {
                    kill_named(&mut parts, &document.name);
                    new.insert(document.name.clone(), document);
                }
                Change::Remove(name) => {
                    kill_named(&mut parts, &name);
                    new.remove(&name);
                }
                Change::ReplaceApp { app_id, documents } => {
                    for part in &mut parts {
                        let range = part.segment.app(&app_id).map(|app| app.documents.clone());
                        range.into_iter().flatten().for_each(|document| part.kill(document));
                    }
                    new.retain(|_, document| document.app_id != app_id);
                    for mut document in documents {
                        document.app_id.clone_from(&app_id);
                        kill_named(&mut parts, &document.name);
                        new.insert(document.name.clone(), document);
                    }
                }
            }
        }
        if !new.is_empty() {
            let mut builder = SegmentBuilder::new(Arc::clone(&self.inner.weights));
            new.into_values().for_each(|document| builder.add(document));
            parts.push(Part::new(builder.finish()));
        }
        tidy(&mut parts);
        Self { inner: Arc::new(IndexData::new(Arc::clone(&self.inner.weights), parts)) }
    }

    /// Number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.parts.iter().map(Part::live).sum()
    }

    /// Returns true if there is no document.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Public names of all documents, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries().map(|entry| entry.name)
    }

    /// All documents, in no particular order.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.inner.parts.iter().flat_map(|part| {
            part.live_documents().map(|document| {
                let stored = &part.segment.documents[document as usize];
                Entry {
                    name: &stored.name,
                    app_id: &part.segment.app_of(document).id,
                    description: &stored.description,
                }
            })
        })
    }

    /// The document of this exact name.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<Entry<'_>> {
        let key = squeezed(name);
        self.inner.parts.iter().find_map(|part| {
            let segment = &part.segment;
            segment
                .named(&key)
                .find(|at| part.is_live(*at) && *segment.documents[*at as usize].name == *name)
                .map(|at| {
                    let stored = &segment.documents[at as usize];
                    Entry {
                        name: &stored.name,
                        app_id: &segment.app_of(at).id,
                        description: &stored.description,
                    }
                })
        })
    }

    /// Returns true if there is a document of this exact name that an app filter and the caller's rights leave.
    #[must_use]
    pub fn is_visible(&self, name: &str, app_ids: Option<&[String]>, visible: Visible<'_>) -> bool {
        let key = squeezed(name);
        self.inner.parts.iter().any(|part| {
            let segment = &part.segment;
            segment.named(&key).any(|at| {
                *segment.documents[at as usize].name == *name
                    && app_ids.is_none_or(|ids| ids.iter().any(|id| **id == *segment.app_of(at).id))
                    && part.sees(visible, at)
            })
        })
    }

    /// Names of the documents that an app filter and the caller's rights leave, in no particular order.
    pub fn visible_names<'i>(
        &'i self,
        app_ids: Option<&'i [String]>,
        visible: Visible<'i>,
    ) -> impl Iterator<Item = &'i str> {
        self.inner.parts.iter().zip(self.ranges(app_ids)).flat_map(move |(part, ranges)| {
            let documents = ranges.into_iter().flatten();
            documents
                .filter(move |at| part.sees(visible, *at))
                .map(|at| &*part.segment.documents[at as usize].name)
        })
    }

    /// The documents whose name passes, for use in many queries against this snapshot.
    #[must_use]
    pub fn visible_set(&self, visible: impl Fn(&str) -> bool) -> VisibleSet {
        let parts = self.inner.parts.iter().map(|part| {
            let mut bits = Bits::default();
            part.live_documents()
                .filter(|document| visible(&part.segment.documents[*document as usize].name))
                .for_each(|document| bits.add(document));
            (Arc::clone(&part.segment), bits)
        });
        VisibleSet { parts: parts.collect() }
    }

    /// Number of documents that the caller may see.
    #[must_use]
    pub fn count_visible(&self, visible: Visible<'_>) -> usize {
        if matches!(visible, Visible::All) {
            return self.len();
        }
        self.inner
            .parts
            .iter()
            .map(|part| part.live_documents().filter(|at| part.sees(visible, *at)).count())
            .sum()
    }
}

impl Part {
    /// Returns true if the caller may see a document of this part.
    pub(crate) fn sees(&self, visible: Visible<'_>, document: u32) -> bool {
        self.is_live(document)
            && match visible {
                Visible::All => true,
                Visible::By(passes) => passes(&self.segment.documents[document as usize].name),
                Visible::Set(set) => set.of(&self.segment).is_some_and(|bits| bits.has(document)),
            }
    }
}

fn kill_named(parts: &mut [Part], name: &str) {
    let key = squeezed(name);
    for part in parts {
        let segment = Arc::clone(&part.segment);
        for document in segment.named(&key) {
            if *segment.documents[document as usize].name == *name {
                part.kill(document);
            }
        }
    }
}

/// Joins parts of like size and drops what is mostly removed, so that there are few parts, each mostly alive.
fn tidy(parts: &mut Vec<Part>) {
    for part in parts.iter_mut() {
        if part.dead.count * 3 > part.segment.documents.len() && part.live() > 0 {
            *part = Part::new(merge(part, &Part::default()));
        }
    }
    parts.retain(|part| part.live() > 0);
    while let [.., before, last] = parts.as_slice() {
        if last.live() * 2 < before.live() {
            break;
        }
        let merged = Part::new(merge(before, last));
        parts.truncate(parts.len() - 2);
        parts.push(merged);
    }
}
