//! Targets of references. Each is looked up once, so that references that pass through others take no longer than there are of them.

use std::{
    cell::{OnceCell, RefCell},
    collections::HashMap,
    sync::Arc,
};

use serde_json::Value;

use super::{
    scan::{anchors, join},
    sources::{ByNode, LONGEST_REFERENCE, MOST_SOURCES, Node, Sources, clipped, reference},
};

/// References that are followed from one to the next.
const LONGEST_CHAIN: usize = 32;
/// Work of following a reference; see [`Context::spend`](super::context::Context::spend).
const REFERENCE_WORK: usize = 8;

/// Targets of the references in documents.
pub(super) struct Targets<'d> {
    sources: &'d Sources,
    /// Targets of the references of objects, failures included.
    known: RefCell<ByNode<Result<Node<'d>, Failure>>>,
    /// Schemas with `$anchor`, `$dynamicAnchor` and `$id`, by document and name.
    anchors: OnceCell<HashMap<(usize, &'d str), Node<'d>>>,
}

/// Reason why a reference has no target.
#[derive(Debug, Clone)]
enum Failure {
    TooLong,
    Circle,
    Unreadable(Arc<str>),
    NotRead { is_full: bool },
    Nothing,
    Spent,
}

impl Failure {
    fn of(self, reference: &str) -> String {
        let shown = clipped(reference);
        match self {
            Self::TooLong => format!("`{shown}…` is longer than {LONGEST_REFERENCE} bytes"),
            Self::Circle => CIRCLE.to_owned(),
            Self::Unreadable(problem) => format!("`{shown}` cannot be read: {problem}"),
            Self::NotRead { is_full: true } => {
                format!("`{shown}` was not read: more than {MOST_SOURCES} documents are referred to")
            }
            Self::NotRead { is_full: false } => format!("`{shown}` was not read"),
            Self::Nothing => format!("there is nothing at `{shown}`"),
            Self::Spent => format!("`{shown}` is not followed: the document takes too long to read"),
        }
    }
}

const CIRCLE: &str = "its references go round in a circle";

impl<'d> Targets<'d> {
    pub(super) fn new(sources: &'d Sources) -> Self {
        Self { sources, known: RefCell::default(), anchors: OnceCell::new() }
    }

    /// The documents.
    pub(super) fn sources(&self) -> &'d Sources {
        self.sources
    }

    /// The value itself, or what its `$ref` refers to in the end.
    ///
    /// # Errors
    /// There is no such thing, or the references go round in a circle.
    pub(super) fn resolve(&self, node: Node<'d>) -> Result<Node<'d>, String> {
        let mut at = node;
        for _ in 0..LONGEST_CHAIN {
            let Some(reference) = reference(at.value) else { return Ok(at) };
            at = self.follow(at, reference, 0).map_err(|failure| failure.of(reference))?;
        }
        Err(CIRCLE.to_owned())
    }

    /// The value that `reference`, a text in the document of `node`, refers to.
    ///
    /// # Errors
    /// There is no such thing.
    pub(super) fn target(&self, node: Node<'d>, reference: &str) -> Result<Node<'d>, String> {
        self.find(node.source, reference, 0).map_err(|failure| failure.of(reference))
    }

    /// The target of the reference of `node`.
    fn follow(&self, node: Node<'d>, reference: &str, depth: usize) -> Result<Node<'d>, Failure> {
        if !node.work.spend(REFERENCE_WORK) {
            return Err(Failure::Spent);
        }
        let identity = node.identity();
        if let Some(known) = self.known.borrow().get(&identity) {
            return known.clone();
        }
        // One that passes through itself has no target.
        self.known.borrow_mut().insert(identity, Err(Failure::Circle));
        let found = self.find(node.source, reference, depth);
        self.known.borrow_mut().insert(identity, found.clone());
        found
    }

    fn find(&self, source: usize, reference: &str, depth: usize) -> Result<Node<'d>, Failure> {
        if reference.len() > LONGEST_REFERENCE {
            return Err(Failure::TooLong);
        }
        let (url, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let start = match url {
            "" => self.sources.document(source),
            url => self.document(source, url)?,
        };
        let found = match fragment.starts_with('/') || fragment.is_empty() {
            true => self.pointed(start, fragment, depth).or_else(|| {
                let decoded = percent_decoded(fragment)?;
                self.pointed(start, &decoded, depth)
            }),
            false => self.anchor(start.source, fragment),
        };
        found.ok_or(Failure::Nothing)
    }

    /// The document that `url` names in another, or the schema there that calls itself so with `$id`.
    fn document(&self, source: usize, url: &str) -> Result<Node<'d>, Failure> {
        let joined = join(self.sources.url(source), url);
        match joined.and_then(|joined| self.sources.at(&joined)) {
            Some(Ok(source)) => Ok(self.sources.document(*source)),
            Some(Err(problem)) => Err(Failure::Unreadable(Arc::clone(problem))),
            None => self.anchor(source, url).ok_or(Failure::NotRead { is_full: self.sources.is_full() }),
        }
    }

    fn anchor(&self, source: usize, name: &str) -> Option<Node<'d>> {
        let anchors = self.anchors.get_or_init(|| {
            let mut all = HashMap::new();
            for document in self.sources.documents() {
                for (name, value) in anchors(document.value) {
                    all.entry((document.source, name)).or_insert(document.with(value));
                }
            }
            all
        });
        anchors.get(&(source, name)).copied()
    }

    fn pointed(&self, start: Node<'d>, pointer: &str, depth: usize) -> Option<Node<'d>> {
        let mut at = start;
        for token in pointer.split('/').skip(1) {
            let token = match token.contains('~') {
                true => &*token.replace("~1", "/").replace("~0", "~"),
                false => token,
            };
            if !at.work.spend(1) {
                return None;
            }
            // The pointer may lead through a reference.
            for _ in 0..LONGEST_CHAIN {
                match reference(at.value) {
                    Some(through) if child(at.value, token).is_none() && depth < LONGEST_CHAIN => {
                        at = self.follow(at, through, depth + 1).ok()?;
                    }
                    _ => break,
                }
            }
            at = at.with(child(at.value, token)?);
        }
        Some(at)
    }
}

fn child<'d>(value: &'d Value, token: &str) -> Option<&'d Value> {
    match value {
        Value::Object(members) => members.get(token),
        Value::Array(items) => items.get(token.parse::<usize>().ok()?),
        _ => None,
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let (mut decoded, bytes) = (Vec::with_capacity(text.len()), text.as_bytes());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let code = digits.and_then(|digits| str::from_utf8(digits).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn loaded(text: &Value, others: &[(&str, Value)]) -> (Sources, Vec<String>) {
        let mut asked = Vec::new();
        let mut fetch = |url: &str| {
            asked.push(url.to_owned());
            let found = others.iter().find(|(other, _)| *other == url);
            found.map(|(_, value)| value.to_string()).ok_or("no such file".to_owned())
        };
        let sources = Sources::load(&text.to_string(), &mut fetch).unwrap();
        (sources, asked)
    }

    #[test]
    fn urls_and_paths_are_joined() {
        for (base, reference, joined) in [
            ("", "a.yaml", "a.yaml"),
            ("", "./a/b.yaml", "a/b.yaml"),
            ("a/b.yaml", "c.yaml", "a/c.yaml"),
            ("a/b.yaml", "../c.yaml", "c.yaml"),
            ("b.yaml", "../c.yaml", "../c.yaml"),
            ("../b.yaml", "../c.yaml", "../../c.yaml"),
            ("/x/b.yaml", "c.yaml", "/x/c.yaml"),
            ("a/b.yaml", "/c.yaml", "/c.yaml"),
            ("https://h.example/a/b.yaml", "../c.yaml", "https://h.example/c.yaml"),
            ("https://h.example/a/b.yaml", "../../../c.yaml", "https://h.example/c.yaml"),
            ("https://h.example", "c.yaml", "https://h.example/c.yaml"),
            ("https://h.example/a/b", "//g.example/c", "https://g.example/c"),
            ("a.yaml", "https://h.example/c.yaml", "https://h.example/c.yaml"),
        ] {
            assert_eq!(join(base, reference).as_deref(), Some(joined), "{base} {reference}");
        }
    }

    #[test]
    fn references_lead_into_other_documents_and_back() {
        let root = json!({
            "a": {"$ref": "common/b.json#/defs/x"},
            "here": {"type": "string"},
            "a/b": {"c%d": 7, "e f": 8},
        });
        let other = json!({"defs": {"x": {"$ref": "../c.json"}, "y": {"$ref": "#/defs/x/deep"}}});
        let third = json!({"type": "object", "deep": true});
        let (sources, asked) = loaded(&root, &[("common/b.json", other), ("c.json", third.clone())]);
        assert_eq!(asked, ["common/b.json", "c.json"]);
        let (root, targets) = (sources.root(), Targets::new(&sources));
        assert_eq!(targets.resolve(root.get("a").unwrap()).unwrap().value, &third);
        let target = |reference: &str| targets.target(root, reference).map(|node| node.value.clone());
        assert_eq!(target("#/here/type"), Ok(json!("string")));
        assert_eq!(target("#/a~1b/c%d"), Ok(json!(7)));
        assert_eq!(target("#/a~1b/e%20f"), Ok(json!(8)));
        assert_eq!(target("common/b.json#/defs/y"), Ok(json!({"$ref": "#/defs/x/deep"})));
        let y = targets.target(root, "common/b.json#/defs/y").unwrap();
        assert_eq!(targets.resolve(y).unwrap().value, &json!(true));
        assert_eq!(target("#/nowhere"), Err("there is nothing at `#/nowhere`".to_owned()));
    }

    #[test]
    fn circles_and_unreadable_documents_are_errors_of_the_reference() {
        let root = json!({"a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}, "c": {"$ref": "no.json#/x"}, "d": {"$ref": "#/a/x"}});
        let (sources, _) = loaded(&root, &[]);
        let targets = Targets::new(&sources);
        let problem = |key: &str| targets.resolve(sources.root().get(key).unwrap()).unwrap_err();
        assert_eq!(problem("a"), "its references go round in a circle");
        assert_eq!(problem("c"), "`no.json#/x` cannot be read: no such file");
        assert_eq!(problem("d"), "there is nothing at `#/a/x`");
    }

    #[test]
    fn names_of_schemas_and_of_the_document_are_known() {
        let root = json!({
            "$self": "https://h.example/api.json",
            "schemas": {"T": {"$anchor": "tree", "properties": {"$anchor": {"type": "string"}}}, "U": {"$id": "u.json", "type": "null"}},
        });
        let (sources, asked) = loaded(&root, &[]);
        assert!(asked.is_empty());
        let targets = Targets::new(&sources);
        let target =
            |reference: &str| targets.target(sources.root(), reference).map(|node| node.value.clone());
        assert_eq!(target("#tree").unwrap()["$anchor"], "tree");
        assert_eq!(target("https://h.example/api.json#/schemas/U/type"), Ok(json!("null")));
        assert_eq!(target("u.json#/type"), Ok(json!("null")));
    }

    #[test]
    fn references_in_data_are_not_fetched() {
        let root = json!({
            "example": {"$ref": "a.json"},
            "schemas": {"x": {"default": {"$ref": "b.json"}, "properties": {"default": {"$ref": "c.json"}}}},
        });
        assert_eq!(loaded(&root, &[]).1, ["c.json"]);
    }

    #[test]
    fn references_that_pass_through_themselves_take_few_steps() {
        let through = |from: &str| json!({"$ref": format!("#/c/{from}/%70/%70/%70/%70")});
        let root = json!({
            "paths": {"$ref": "#/c/A/%70"},
            "c": {"A": {"$ref": "#/c/A/%70"}, "B": through("C"), "C": through("D"), "D": through("B")},
        });
        let (sources, _) = loaded(&root, &[]);
        let targets = Targets::new(&sources);
        assert!(targets.resolve(sources.root().get("paths").unwrap()).is_err());
        for name in ["A", "B", "C", "D"] {
            assert!(
                targets.resolve(targets.target(sources.root(), &format!("#/c/{name}")).unwrap()).is_err()
            );
        }
        assert!(sources.work().spend((8 << 20) - 1_000), "some thousand steps at most");
    }

    #[test]
    fn anchors_below_long_names_and_long_urls_are_not_copied() {
        let anchors: Vec<Value> = (0..5_000).map(|at| json!({"$anchor": format!("a{at}")})).collect();
        let root = json!({"k".repeat(200_000): anchors, "a": {"$ref": "#a4999"}, "b": {"$ref": "d/".repeat(900) + "o.json"}});
        let below = json!({"c": {"$ref": "e/".repeat(900) + "o.json"}});
        let long = "d/".repeat(900) + "o.json";
        let (sources, asked) = loaded(&root, &[(&long, below)]);
        let targets = Targets::new(&sources);
        assert_eq!(targets.resolve(sources.root().get("a").unwrap()).unwrap().text("$anchor"), Some("a4999"));
        assert_eq!(asked, [long], "a URL of more than 2,000 bytes is not asked for");
    }

    #[test]
    fn documents_that_cannot_be_read_count() {
        let refers: Vec<Value> =
            (0..2_000).map(|at| json!({"$ref": format!("{}.json", at % 1_000)})).collect();
        let (sources, asked) = loaded(&json!({"a": refers}), &[]);
        assert_eq!(asked.len(), MOST_SOURCES);
        let last = sources.root().get("a").unwrap().items().nth(999).unwrap();
        assert!(Targets::new(&sources).resolve(last).unwrap_err().contains("more than 500 documents"));
    }
}
