//! References of a document to others, and names of its schemas.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{
    json::member,
    sources::{LONGEST_REFERENCE, MOST_SOURCES},
};

/// The `$ref` of an object. A `$dynamicRef` is read as one: what it would find elsewhere depends on the way to it.
pub(super) fn reference(value: &Value) -> Option<&str> {
    member(value, "$ref").or_else(|| member(value, "$dynamicRef"))?.as_str()
}

/// URLs of other documents that `value`, the document at `base`, refers to: each once, and no more than are read.
pub(super) fn wanted(base: &str, value: &Value) -> Vec<String> {
    let (mut wanted, mut known) = (Vec::new(), HashSet::new());
    visit(value, false, &mut |_, members| {
        let url = text(members, "$ref").or_else(|| text(members, "$dynamicRef")).map(without_fragment);
        if let Some(url) = url.filter(|url| !url.is_empty())
            && wanted.len() <= MOST_SOURCES
            && known.insert(url)
        {
            wanted.extend(join(base, url));
        }
    });
    wanted
}

/// Schemas of a document with `$anchor`, `$dynamicAnchor` and `$id`, by name.
pub(super) fn anchors(value: &Value) -> Vec<(&str, &Value)> {
    let mut anchors = Vec::new();
    visit(value, false, &mut |value, members| {
        let names = ["$anchor", "$dynamicAnchor", "$id"].into_iter().filter_map(|key| text(members, key));
        anchors.extend(names.map(|name| (name, value)));
    });
    anchors
}

fn text<'d>(members: &'d Map<String, Value>, key: &str) -> Option<&'d str> {
    members.get(key).and_then(Value::as_str)
}

/// Calls `look` with the objects of `value` that are no data. The keys of a `map` are names that the author chose.
fn visit<'d>(value: &'d Value, map: bool, look: &mut dyn FnMut(&'d Value, &'d Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            if !map {
                look(value, members);
            }
            for (key, value) in members {
                if !map && is_data(key) || !(value.is_object() || value.is_array()) {
                    continue;
                }
                visit(value, !map && is_map(key), look);
            }
        }
        Value::Array(items) => items.iter().for_each(|value| visit(value, false, look)),
        _ => {}
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

/// The URL or path of `reference` in the document `base` (RFC 3986 §5.2, for paths and hierarchical URLs); none where it is longer than a
/// reference may be.
pub(super) fn join(base: &str, reference: &str) -> Option<String> {
    if base.len() > LONGEST_REFERENCE || reference.len() > LONGEST_REFERENCE {
        return None;
    }
    if reference.contains("://") {
        return Some(reference.to_owned());
    }
    let (origin, path) = match base.split_once("://") {
        Some((scheme, rest)) => {
            if let Some(rest) = reference.strip_prefix("//") {
                return Some(format!("{scheme}://{rest}"));
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
    let joined = format!("{origin}{}{}", if is_absolute { "/" } else { "" }, kept.join("/"));
    (joined.len() <= LONGEST_REFERENCE).then_some(joined)
}
