//! References of a document to others, and names of its schemas.

use serde_json::Value;

/// The `$ref` of an object. A `$dynamicRef` is read as one: what it would find elsewhere depends on the way to it.
pub(super) fn reference(value: &Value) -> Option<&str> {
    let members = value.as_object()?;
    members.get("$ref").or_else(|| members.get("$dynamicRef"))?.as_str()
}

/// Search for references to other documents and for names of schemas.
pub(super) struct Scan<'d> {
    base: &'d str,
    path: Vec<Step<'d>>,
    pub(super) wanted: Vec<String>,
    pub(super) anchors: Vec<(String, String)>,
}

#[derive(Clone, Copy)]
enum Step<'d> {
    Key(&'d str),
    Item(usize),
}

impl<'d> Scan<'d> {
    /// A search through the document at `base`.
    pub(super) fn new(base: &'d str) -> Self {
        Self { base, path: Vec::new(), wanted: Vec::new(), anchors: Vec::new() }
    }

    /// Looks through `value`. The keys of a `map` are names that the author chose.
    pub(super) fn value(&mut self, value: &'d Value, map: bool) {
        match value {
            Value::Object(members) => {
                if !map {
                    self.names(members);
                }
                for (key, value) in members {
                    if !map && is_data(key) || !(value.is_object() || value.is_array()) {
                        continue;
                    }
                    self.path.push(Step::Key(key));
                    self.value(value, !map && is_map(key));
                    self.path.pop();
                }
            }
            Value::Array(items) => {
                for (at, value) in items.iter().enumerate() {
                    self.path.push(Step::Item(at));
                    self.value(value, false);
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    fn names(&mut self, members: &'d serde_json::Map<String, Value>) {
        let text = |key: &str| members.get(key).and_then(Value::as_str);
        if let Some(reference) = text("$ref").or_else(|| text("$dynamicRef")) {
            let url = without_fragment(reference);
            if !url.is_empty() {
                self.wanted.push(join(self.base, url));
            }
        }
        for key in ["$anchor", "$dynamicAnchor", "$id"] {
            if let Some(name) = text(key) {
                let pointer: String = self.path.iter().map(|step| step.token()).collect();
                self.anchors.push((name.to_owned(), pointer));
            }
        }
    }
}

impl Step<'_> {
    fn token(self) -> String {
        match self {
            Self::Key(key) => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
            Self::Item(at) => format!("/{at}"),
        }
    }
}

/// Returns `true` for a key whose value is neither a schema nor a part of the document that may have references.
fn is_data(key: &str) -> bool {
    matches!(key, "example" | "examples" | "default" | "enum" | "const") || key.starts_with("x-")
}

/// Returns `true` for a key whose value has keys that the author chose.
fn is_map(key: &str) -> bool {
    matches!(
        key,
        "properties"
            | "patternProperties"
            | "dependentSchemas"
            | "$defs"
            | "definitions"
            | "schemas"
            | "responses"
            | "parameters"
            | "requestBodies"
            | "headers"
            | "securitySchemes"
            | "securityDefinitions"
            | "pathItems"
            | "mediaTypes"
            | "paths"
            | "content"
            | "encoding"
            | "additionalOperations"
    )
}

pub(super) fn without_fragment(reference: &str) -> &str {
    reference.split('#').next().unwrap_or_default()
}

/// The URL or path of `reference` in the document `base` (RFC 3986 §5.2, for paths and hierarchical URLs).
pub(super) fn join(base: &str, reference: &str) -> String {
    if reference.contains("://") {
        return reference.to_owned();
    }
    let (origin, path) = match base.split_once("://") {
        Some((scheme, rest)) => {
            if let Some(rest) = reference.strip_prefix("//") {
                return format!("{scheme}://{rest}");
            }
            let host = rest.find('/').unwrap_or(rest.len());
            base.split_at(scheme.len() + "://".len() + host)
        }
        None => ("", base),
    };
    let directory = match reference.starts_with('/') {
        true => "",
        false => path.rfind('/').map_or("", |at| &path[..=at]),
    };
    let is_absolute = !origin.is_empty() || reference.starts_with('/') || directory.starts_with('/');
    let mut kept: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(reference.split('/')) {
        match part {
            "" | "." => {}
            ".." if kept.last().is_some_and(|last| *last != "..") => drop(kept.pop()),
            ".." if is_absolute => {}
            part => kept.push(part),
        }
    }
    format!("{origin}{}{}", if is_absolute { "/" } else { "" }, kept.join("/"))
}
