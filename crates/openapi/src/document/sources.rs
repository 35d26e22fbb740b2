//! The document and those that it refers to, and the targets of references between them.
//!
//! All documents are read before anything is made of them: what comes later only looks up.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    DocumentError, parse,
    scan::{Scan, join, without_fragment},
};
pub(super) use super::{
    node::{Identity, Node},
    scan::reference,
};

/// Most documents that one may refer to, directly or through others.
const MOST_SOURCES: usize = 500;
/// Longest reference, in bytes.
const LONGEST_REFERENCE: usize = 2_000;
/// References that are followed from one to the next.
const LONGEST_CHAIN: usize = 32;

#[derive(Debug)]
struct Source {
    /// URL, or path relative to the first document. Empty for the first document.
    url: String,
    value: Value,
}

/// Documents by their URLs.
#[derive(Debug)]
pub(super) struct Sources {
    all: Vec<Source>,
    by_url: HashMap<String, Result<usize, String>>,
    /// Pointers of schemas with `$anchor`, `$dynamicAnchor` and `$id`, by document and name.
    anchors: HashMap<(usize, String), String>,
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
        let mut sources = Self { all: Vec::new(), by_url: HashMap::new(), anchors: HashMap::new() };
        let mut room = parse::LONGEST_TEXT.saturating_sub(text.len());
        let mut wanted = sources.add(String::new(), parse::parse(text)?);
        if let Some(own) = sources.all[0].value.get("$self").and_then(Value::as_str) {
            sources.by_url.insert(without_fragment(own).to_owned(), Ok(0));
        }
        while let Some(url) = wanted.pop() {
            if sources.by_url.contains_key(&url) {
                continue;
            }
            let read = match sources.all.len() {
                0..MOST_SOURCES => fetch(&url),
                _ => Err(format!("more than {MOST_SOURCES} documents are referred to")),
            };
            let value = read.and_then(|text| {
                let left = room.checked_sub(text.len());
                room = left.ok_or("the documents that are referred to are too large")?;
                parse::parse(&text).map_err(|error| error.to_string())
            });
            match value {
                Ok(value) => wanted.extend(sources.add(url, value)),
                Err(problem) => drop(sources.by_url.insert(url, Err(problem))),
            }
        }
        Ok(sources)
    }

    /// Adds a document, and returns the URLs of those that it refers to.
    fn add(&mut self, url: String, value: Value) -> Vec<String> {
        let source = self.all.len();
        let mut scan = Scan::new(&url);
        scan.value(&value, false);
        let Scan { wanted, anchors, .. } = scan;
        for (name, pointer) in anchors {
            self.anchors.entry((source, name)).or_insert(pointer);
        }
        self.by_url.insert(url.clone(), Ok(source));
        self.all.push(Source { url, value });
        wanted
    }

    /// The first document.
    pub(super) fn root(&self) -> Node<'_> {
        Node { value: &self.all[0].value, source: 0 }
    }

    /// The value itself, or what its `$ref` refers to in the end.
    ///
    /// # Errors
    /// There is no such thing, or the references go round in a circle.
    pub(super) fn resolve<'d>(&'d self, node: Node<'d>) -> Result<Node<'d>, String> {
        let mut at = node;
        for _ in 0..LONGEST_CHAIN {
            let Some(reference) = reference(at.value) else { return Ok(at) };
            at = self.target(at, reference)?;
        }
        Err("its references go round in a circle".to_owned())
    }

    /// The value that `reference`, a text in the document of `node`, refers to.
    ///
    /// # Errors
    /// There is no such thing.
    pub(super) fn target<'d>(&'d self, node: Node<'d>, reference: &str) -> Result<Node<'d>, String> {
        self.target_in(node.source, reference, 0)
    }

    fn target_in(&self, source: usize, reference: &str, depth: usize) -> Result<Node<'_>, String> {
        let shown = || clipped(reference);
        if reference.len() > LONGEST_REFERENCE {
            return Err(format!("`{}…` is longer than {LONGEST_REFERENCE} bytes", shown()));
        }
        let (url, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let source = match url {
            "" => source,
            url => {
                let joined = join(&self.all[source].url, url);
                match self.by_url.get(&joined) {
                    Some(Ok(source)) => *source,
                    Some(Err(problem)) => return Err(format!("`{}` cannot be read: {problem}", shown())),
                    // A schema may name itself with `$id`.
                    None => match self.anchors.get(&(source, url.to_owned())) {
                        Some(pointer) => {
                            let within = format!("#{pointer}{fragment}");
                            return self.target_in(source, &within, depth);
                        }
                        None => return Err(format!("`{}` was not read", shown())),
                    },
                }
            }
        };
        let found = match fragment.starts_with('/') || fragment.is_empty() {
            true => self.pointed(source, fragment, depth).or_else(|| {
                let decoded = percent_decoded(fragment)?;
                self.pointed(source, &decoded, depth)
            }),
            false => {
                let pointer = self.anchors.get(&(source, fragment.to_owned()));
                pointer.and_then(|pointer| self.pointed(source, pointer, depth))
            }
        };
        found.ok_or_else(|| format!("there is nothing at `{}`", shown()))
    }

    fn pointed(&self, source: usize, pointer: &str, depth: usize) -> Option<Node<'_>> {
        let mut at = Node { value: &self.all[source].value, source };
        for token in pointer.split('/').skip(1) {
            let token = match token.contains('~') {
                true => &*token.replace("~1", "/").replace("~0", "~"),
                false => token,
            };
            // The pointer may lead through a reference.
            for _ in 0..LONGEST_CHAIN {
                match reference(at.value) {
                    Some(through) if child(at.value, token).is_none() && depth < LONGEST_CHAIN => {
                        at = self.target_in(at.source, through, depth + 1).ok()?;
                    }
                    _ => break,
                }
            }
            let value = child(at.value, token)?;
            at = Node { value, ..at };
        }
        Some(at)
    }

    /// Places of values, as [`Finding::place`](super::Finding::place) has them, found in one pass.
    pub(super) fn places(&self, mut wanted: HashMap<Identity, String>) -> HashMap<Identity, String> {
        for source in &self.all {
            let mut path = String::new();
            if !source.url.is_empty() {
                path.push_str(&source.url);
                path.push('#');
            }
            place(&source.value, &mut path, &mut wanted);
        }
        wanted
    }
}

fn child<'d>(value: &'d Value, token: &str) -> Option<&'d Value> {
    match value {
        Value::Object(members) => members.get(token),
        Value::Array(items) => items.get(token.parse::<usize>().ok()?),
        _ => None,
    }
}

fn place(value: &Value, path: &mut String, wanted: &mut HashMap<Identity, String>) {
    if let Some(found) = wanted.get_mut(&Identity::of(value)) {
        found.clone_from(path);
    }
    let length = path.len();
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                path.push('/');
                match key.contains(['~', '/']) {
                    true => path.push_str(&key.replace('~', "~0").replace('/', "~1")),
                    false => path.push_str(key),
                }
                place(value, path, wanted);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                path.push('/');
                path.push_str(&at.to_string());
                place(value, path, wanted);
                path.truncate(length);
            }
        }
        _ => {}
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

/// The beginning of a text of the document, for a message.
pub(super) fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(200)]
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
            assert_eq!(join(base, reference), joined, "{base} {reference}");
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
        let root = sources.root();
        assert_eq!(sources.resolve(root.get("a").unwrap()).unwrap().value, &third);
        let target = |reference: &str| sources.target(root, reference).map(|node| node.value.clone());
        assert_eq!(target("#/here/type"), Ok(json!("string")));
        assert_eq!(target("#/a~1b/c%d"), Ok(json!(7)));
        assert_eq!(target("#/a~1b/e%20f"), Ok(json!(8)));
        assert_eq!(target("common/b.json#/defs/y"), Ok(json!({"$ref": "#/defs/x/deep"})));
        let y = sources.target(root, "common/b.json#/defs/y").unwrap();
        assert_eq!(sources.resolve(y).unwrap().value, &json!(true));
        assert_eq!(target("#/nowhere"), Err("there is nothing at `#/nowhere`".to_owned()));
    }

    #[test]
    fn circles_and_unreadable_documents_are_errors_of_the_reference() {
        let root = json!({"a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}, "c": {"$ref": "no.json#/x"}, "d": {"$ref": "#/a/x"}});
        let (sources, _) = loaded(&root, &[]);
        let problem = |key: &str| sources.resolve(sources.root().get(key).unwrap()).unwrap_err();
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
        let target =
            |reference: &str| sources.target(sources.root(), reference).map(|node| node.value.clone());
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
}
