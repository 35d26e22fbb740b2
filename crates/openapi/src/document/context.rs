//! Context of all readers of a document: its sources, its version, and the findings so far.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    rc::Rc,
    sync::Arc,
};

use super::{
    Finding,
    discriminator::Discriminator,
    sources::{ByNode, Identity, Node, Sources, clipped},
    targets::Targets,
};

/// Most findings that are kept.
const MOST_FINDINGS: usize = 1_000;
/// Longest problem of a finding, in bytes.
const LONGEST_PROBLEM: usize = 1_000;
/// Longest name, media type or URL that is kept as the document has it, in bytes.
const LONGEST_TEXT: usize = 4 << 10;

/// Versions that differ in meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// Swagger 2.0.
    Swagger,
    /// OpenAPI 3.0, whose schemas are not those of JSON Schema, and which ignores what stands beside a `$ref`.
    V30,
    /// OpenAPI 3.1 and later.
    V31,
}

/// Context of all readers.
pub(super) struct Context<'d> {
    pub(super) sources: Targets<'d>,
    pub(super) version: Version,
    findings: RefCell<Findings>,
    /// Texts that are kept, by their address and length in the document.
    texts: RefCell<HashMap<(usize, usize), Arc<str>>>,
    discriminators: RefCell<ByNode<Option<Rc<Discriminator<'d>>>>>,
}

#[derive(Default)]
struct Findings {
    all: Vec<(Option<Identity>, String)>,
    known: HashSet<(Option<Identity>, String)>,
    left_out: usize,
}

impl<'d> Context<'d> {
    /// Context of readers of `sources`.
    pub(super) fn new(sources: &'d Sources, version: Version) -> Self {
        Self {
            sources: Targets::new(sources),
            version,
            findings: RefCell::default(),
            texts: RefCell::default(),
            discriminators: RefCell::default(),
        }
    }

    /// Counts work, about in bytes that are read or written.
    pub(super) fn spend(&self, work: usize) {
        self.sources.sources().work().spend(work);
    }

    /// Returns `true` once no more work is to be done.
    pub(super) fn is_spent(&self) -> bool {
        self.sources.sources().work().is_spent()
    }

    /// Returns `true` for a text of `node` that is short enough to be kept; else records a finding.
    pub(super) fn is_short(&self, node: Node<'_>, text: &str) -> bool {
        let is_short = text.len() <= LONGEST_TEXT;
        if !is_short {
            self.find(node, format!("`{}…` is longer than {LONGEST_TEXT} bytes", clipped(text)));
        }
        is_short
    }

    /// A text of the document to be kept; none, and a finding, where it is too long.
    ///
    /// Parts of a document may be used many times, and their texts are copied once all the same.
    pub(super) fn own(&self, node: Node<'_>, text: &'d str) -> Option<Arc<str>> {
        if !self.is_short(node, text) {
            return None;
        }
        self.spend(text.len());
        let key = (text.as_ptr().addr(), text.len());
        Some(Arc::clone(self.texts.borrow_mut().entry(key).or_insert_with(|| text.into())))
    }

    /// The discriminator of a schema, if it has one.
    pub(super) fn discriminator(&self, node: Node<'d>) -> Option<Rc<Discriminator<'d>>> {
        let known = self.discriminators.borrow().get(&node.identity()).cloned();
        known.unwrap_or_else(|| {
            let read = Discriminator::of(self, node).map(Rc::new);
            self.discriminators.borrow_mut().insert(node.identity(), read.clone());
            read
        })
    }

    /// Records a problem of `node`, once.
    pub(super) fn find(&self, node: Node<'_>, problem: impl Into<String>) {
        self.record(Some(node.identity()), problem.into());
    }

    /// Records a problem that has no place.
    pub(super) fn find_anywhere(&self, problem: String) {
        self.record(None, problem);
    }

    fn record(&self, at: Option<Identity>, mut problem: String) {
        problem.truncate(problem.floor_char_boundary(LONGEST_PROBLEM));
        let mut findings = self.findings.borrow_mut();
        if findings.all.len() >= MOST_FINDINGS {
            findings.left_out += 1;
        } else if findings.known.insert((at, problem.clone())) {
            findings.all.push((at, problem));
        }
    }

    /// The value or the target of its `$ref`; a finding and nothing if there is none.
    pub(super) fn resolved(&self, node: Node<'d>) -> Option<Node<'d>> {
        self.sources.resolve(node).inspect_err(|problem| self.find(node, problem.as_str())).ok()
    }

    /// The findings with their places.
    pub(super) fn into_findings(self) -> Vec<Finding> {
        let findings = self.findings.into_inner();
        if findings.all.is_empty() {
            return Vec::new();
        }
        let wanted: ByNode<String> =
            findings.all.iter().filter_map(|(at, _)| at.map(|at| (at, String::new()))).collect();
        let places = self.sources.sources().places(wanted);
        let place = |at: &Option<Identity>| at.and_then(|at| places.get(&at)).cloned().unwrap_or_default();
        let mut all: Vec<Finding> =
            findings.all.into_iter().map(|(at, problem)| Finding { place: place(&at), problem }).collect();
        if findings.left_out > 0 {
            let problem = format!("{} more problems are not listed", findings.left_out);
            all.push(Finding { place: String::new(), problem });
        }
        all
    }
}
