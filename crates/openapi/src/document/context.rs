//! Context of all readers of a document: its sources, its version, and the findings so far.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
};

use super::{
    Finding,
    sources::{Identity, Node, Sources},
};

/// Most findings that are kept.
const MOST_FINDINGS: usize = 1_000;
/// Work on a document: about so many bytes to read and write, and so many for each byte of its text. Operations may share schemas, so
/// that a short document describes much.
const WORK: usize = 64 << 20;
const WORK_FACTOR: usize = 32;

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
    pub(super) sources: &'d Sources,
    pub(super) version: Version,
    findings: RefCell<Findings>,
    work_left: Cell<usize>,
}

#[derive(Default)]
struct Findings {
    all: Vec<(Option<Identity>, String)>,
    known: HashSet<(Option<Identity>, String)>,
    left_out: usize,
}

impl<'d> Context<'d> {
    /// Context of readers of `sources`, whose texts have `bytes` together.
    pub(super) fn new(sources: &'d Sources, version: Version, bytes: usize) -> Self {
        let work_left = Cell::new(WORK.saturating_add(bytes.saturating_mul(WORK_FACTOR)));
        Self { sources, version, findings: RefCell::default(), work_left }
    }

    /// Counts work, about in bytes that are read or written.
    pub(super) fn spend(&self, work: usize) {
        self.work_left.set(self.work_left.get().saturating_sub(work));
    }

    /// Returns `true` once no more work is to be done.
    pub(super) fn is_spent(&self) -> bool {
        self.work_left.get() == 0
    }

    /// Records a problem of `node`, once.
    pub(super) fn find(&self, node: Node<'_>, problem: impl Into<String>) {
        self.record(Some(node.identity()), problem.into());
    }

    /// Records a problem that has no place.
    pub(super) fn find_anywhere(&self, problem: String) {
        self.record(None, problem);
    }

    fn record(&self, at: Option<Identity>, problem: String) {
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
        let wanted: HashMap<Identity, String> =
            findings.all.iter().filter_map(|(at, _)| at.map(|at| (at, String::new()))).collect();
        let places = self.sources.places(wanted);
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
