//! The fields of a schema that is an object, with those of the schemas that it is put together from.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    context::Context,
    input::Open,
    kinds::is_nullable,
    sources::{Node, NodeSet},
};

/// Parts of an `allOf`, one within another, that are put together.
const DEEPEST: usize = 16;
/// Most schemas that are put together.
const MOST_PARTS: usize = 200;
/// Most fields. An object with more is one argument.
const MOST_FIELDS: usize = 2_000;

/// Work of reading a field; see [`Context::spend`].
const FIELD_WORK: usize = 100;

/// Fields of an object.
pub(super) struct Fields<'d> {
    /// Fields by name, without those that are `readOnly`.
    pub(super) properties: Vec<(&'d str, Node<'d>)>,
    pub(super) required: HashSet<&'d str>,
    pub(super) open: Open<'d>,
    /// An `anyOf` or `oneOf` that only says which fields are required.
    pub(super) choices: Vec<(&'static str, Node<'d>)>,
}

/// The fields of `schema`, if they can stand side by side with parameters: it is an object, and nothing else. None for objects
/// without names of fields.
pub(super) fn fields<'d>(context: &Context<'d>, schema: Node<'d>) -> Option<Fields<'d>> {
    let mut collected = Collected {
        context,
        fields: Fields {
            properties: Vec::new(),
            required: HashSet::new(),
            open: Open::Closed,
            choices: Vec::new(),
        },
        places: HashMap::new(),
        seen: NodeSet::default(),
    };
    let added = collected.add(schema, 0);
    let mut fields = collected.fields;
    context.spend(FIELD_WORK * fields.properties.len());
    added?;
    let hidden: HashSet<&str> = fields
        .properties
        .iter()
        .filter(|(_, property)| is_read_only(context, *property))
        .map(|(name, _)| *name)
        .collect();
    fields.properties.retain(|(name, _)| !hidden.contains(name));
    fields.required.retain(|name| !hidden.contains(name));
    (!fields.properties.is_empty()).then_some(fields)
}

fn is_read_only<'d>(context: &Context<'d>, property: Node<'d>) -> bool {
    let is = |node: Node<'d>| {
        node.is("readOnly")
            || node.get("allOf").is_some_and(|parts| parts.items().any(|part| part.is("readOnly")))
    };
    is(property) || context.sources.resolve(property).is_ok_and(is)
}

struct Collected<'c, 'd> {
    context: &'c Context<'d>,
    fields: Fields<'d>,
    /// Place of a field in the list.
    places: HashMap<&'d str, usize>,
    seen: NodeSet,
}

impl<'d> Collected<'_, 'd> {
    fn add(&mut self, schema: Node<'d>, depth: usize) -> Option<()> {
        let schema = self.context.resolved(schema)?;
        if depth > DEEPEST || self.seen.len() > MOST_PARTS {
            return None;
        }
        if !self.seen.insert(schema.identity()) {
            return Some(());
        }
        schema.value.as_object()?;
        let is_object = match schema.value.get("type") {
            None => ["properties", "allOf", "additionalProperties", "required"]
                .iter()
                .any(|key| schema.get(key).is_some()),
            Some(Value::String(kind)) => kind == "object",
            Some(Value::Array(kinds)) => kinds.len() == 1 && kinds[0] == "object",
            Some(_) => false,
        };
        let is_plain = ["patternProperties", "enum", "const", "discriminator"]
            .iter()
            .all(|key| schema.get(key).is_none());
        if !(is_object && is_plain) || depth > 0 && is_nullable(schema) {
            return None;
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(choice) = schema.get(key) {
                if !choice.items().all(only_requires) {
                    return None;
                }
                if choice.value.as_array().is_some_and(|all| !all.is_empty()) {
                    self.fields.choices.push((key, choice));
                }
            }
        }
        for part in schema.get("allOf").into_iter().flat_map(Node::items) {
            self.add(part, depth + 1)?;
        }
        for (name, property) in schema.get("properties").into_iter().flat_map(Node::members) {
            self.context.spend(name.len());
            match self.places.get(name) {
                // A later part is closer.
                Some(place) => self.fields.properties[*place].1 = property,
                None if self.places.len() == MOST_FIELDS => return None,
                None => {
                    self.places.insert(name, self.fields.properties.len());
                    self.fields.properties.push((name, property));
                }
            }
        }
        let required = schema.get("required").into_iter().flat_map(Node::items);
        let required = required.take(MOST_FIELDS).filter_map(|name| name.value.as_str());
        self.fields.required.extend(required.inspect(|name| self.context.spend(name.len())));
        match schema.get("additionalProperties") {
            Some(Node { value: Value::Bool(true), .. }) => self.fields.open = Open::Any,
            Some(node @ Node { value: Value::Object(map), .. }) => {
                self.fields.open = if map.is_empty() { Open::Any } else { Open::Of(node) };
            }
            _ => {}
        }
        Some(())
    }
}

/// Returns `true` for an alternative that names fields and says nothing else.
fn only_requires(alternative: Node<'_>) -> bool {
    let says = |(key, value): (&str, Node<'_>)| match key {
        "required" | "title" | "description" => true,
        "type" => value.value == "object",
        _ => false,
    };
    alternative.value.is_object() && alternative.members().all(says)
}
