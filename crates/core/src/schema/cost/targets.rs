//! The schemas that references lead to.

use std::{collections::HashMap, ptr, rc::Rc};

use serde_json::Value;

/// Names of schemas in a schema, beyond which references are not followed: each could lead to any of them.
const MOST_NAMES: usize = 64;

pub(super) struct Targets<'s> {
    root: &'s Value,
    /// Schemas with a name of their own (`$id`, `$anchor`, `$dynamicAnchor`).
    named: Vec<(&'s str, &'s Value)>,
    /// Schemas that each reference leads to.
    known: HashMap<&'s str, Rc<[&'s Value]>>,
}

impl<'s> Targets<'s> {
    pub(super) fn new(root: &'s Value) -> Self {
        let mut named = Vec::new();
        find_names(root, &mut named);
        Self { root, named, known: HashMap::new() }
    }

    /// Returns `true` if references are not followed, because they could lead to too many schemas.
    pub(super) fn has_too_many_names(&self) -> bool {
        self.named.len() > MOST_NAMES
    }

    /// The schemas that `reference` may lead to.
    pub(super) fn of(&mut self, reference: &'s str) -> Rc<[&'s Value]> {
        if let Some(targets) = self.known.get(reference) {
            return targets.clone();
        }
        let targets: Rc<[_]> = self.find(reference).into();
        self.known.insert(reference, targets.clone());
        targets
    }

    /// The schemas that a reference may name: all whose names end alike. None for one that leads out of the document.
    fn find(&self, reference: &str) -> Vec<&'s Value> {
        if self.has_too_many_names() {
            return Vec::new();
        }
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let last = |name: &'s str| name.rsplit(['/', ':']).next().unwrap_or_default();
        let named = |wanted: &str| {
            let wanted = wanted.rsplit(['/', ':']).next().unwrap_or_default().to_owned();
            self.named.iter().filter(move |(name, _)| last(name) == wanted).map(|(_, schema)| *schema)
        };
        let resources = self.named.iter().map(|(_, schema)| *schema);
        let documents: Vec<_> = match document {
            "" => std::iter::once(self.root).chain(resources).collect(),
            document => named(document).collect(),
        };
        let mut targets: Vec<&'s Value> = match fragment.strip_prefix('/') {
            None if fragment.is_empty() && document.is_empty() => vec![self.root],
            None if fragment.is_empty() => documents,
            None => named(fragment).collect(),
            Some(pointer) => {
                let pointer = percent_encoding::percent_decode_str(pointer).decode_utf8_lossy();
                documents
                    .into_iter()
                    .filter_map(|document| document.pointer(&format!("/{pointer}")))
                    .collect()
            }
        };
        targets.sort_by_key(|target| ptr::from_ref(*target));
        targets.dedup_by_key(|target| ptr::from_ref(*target));
        targets
    }
}

/// Finds the objects in `value` that have names.
fn find_names<'s>(value: &'s Value, named: &mut Vec<(&'s str, &'s Value)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| find_names(item, named)),
        Value::Object(object) => {
            let names = ["$id", "$anchor", "$dynamicAnchor"].into_iter();
            let names = names.filter_map(|keyword| object.get(keyword)?.as_str());
            named.extend(names.map(|name| (name.trim_start_matches('#').trim_end_matches('#'), value)));
            object.values().for_each(|value| find_names(value, named));
        }
        _ => {}
    }
}
