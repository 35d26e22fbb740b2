//! Schemas of a document as JSON Schema 2020-12, for the input or the output of a tool.
//!
//! Referred schemas come along as `$defs`. Bounds are kept in `bounded`.

#![expect(clippy::collapsible_match, reason = "what a guard refuses would reach the arms below")]

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::{
    context::{Context, Version},
    definitions::DefinitionNames,
    json::{is_shorter, object, size_of_json},
    kinds::{implied_kind, is_nullable, kinds, kinds_value, with_null},
    parts::{is_small, only_part, or_null, take_annotations},
    sources::{ByNode, Node, NodeSet, clipped, reference},
    words::{first_sentence, letters, plain_start, sentences},
};

/// Longest description in an input schema, in characters. One of a parameter may be longer.
const INPUT_DESCRIPTION: usize = 200;
/// Longest description in an output schema.
const OUTPUT_DESCRIPTION: usize = 100;
/// Longest default, in bytes of JSON.
const LONGEST_DEFAULT: usize = 500;
/// Longest example of a single value, in bytes of JSON.
const LONGEST_EXAMPLE: usize = 120;

/// The side of a tool that a schema is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Arguments: without `readOnly`, with all constraints.
    Input,
    /// Results: without `writeOnly`, and with what tells readers the shape. A schema is never stricter than that of the document,
    /// and constraints that nobody needs to read a result are left out.
    Output,
}

/// One try to write a schema with all that it refers to.
pub(super) struct Pass<'p, 'd> {
    pub(super) context: &'p Context<'d>,
    names: &'p DefinitionNames,
    direction: Direction,
    /// Levels below the root beyond which schemas are cut off.
    deepest: usize,
    /// Descriptions are left out.
    terse: bool,
    /// Most bytes.
    pub(super) limit: usize,
    /// About the bytes so far.
    pub(super) size: usize,
    /// Something was cut off.
    pub(super) is_cut: bool,
    /// Definitions to be written, by the depth at which they are first referred to.
    waiting: BTreeMap<usize, Vec<Node<'d>>>,
    depths: ByNode<usize>,
    done: NodeSet,
}

pub(super) type Members = Vec<(String, Value)>;

impl<'p, 'd> Pass<'p, 'd> {
    pub(super) fn new(
        context: &'p Context<'d>,
        names: &'p DefinitionNames,
        direction: Direction,
        deepest: usize,
        terse: bool,
        limit: usize,
    ) -> Self {
        Self {
            context,
            names,
            direction,
            deepest,
            terse,
            limit,
            size: 0,
            is_cut: false,
            waiting: BTreeMap::new(),
            depths: ByNode::default(),
            done: NodeSet::default(),
        }
    }

    /// Returns `true` once the schema is larger than its limit. What is written from then on is worthless.
    pub(super) fn is_over(&self) -> bool {
        self.size > self.limit
    }

    /// About the bytes so far.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Returns `true` if descriptions are left out.
    pub(super) fn is_terse(&self) -> bool {
        self.terse
    }

    /// Counts bytes that the caller writes.
    pub(super) fn count(&mut self, bytes: usize) {
        self.size += bytes;
    }

    /// The schema `node`, `depth` levels below the root. `name` is that of the property that it describes.
    pub(super) fn schema(&mut self, node: Node<'d>, depth: usize, name: &str) -> Value {
        self.size += 2;
        if self.is_over() {
            return Value::Object(Map::new());
        }
        if depth > self.deepest {
            return self.stub(node);
        }
        match node.value {
            Value::Bool(all) => Value::Bool(*all),
            Value::Object(_) => Value::Object(object(self.members(node, depth, name))),
            _ => {
                self.context.find(node, "a schema is an object or a boolean");
                Value::Object(Map::new())
            }
        }
    }

    /// Remainder of a schema that is cut off: its type.
    fn stub(&mut self, node: Node<'d>) -> Value {
        let mut members = Members::new();
        if reference(node.value).is_some() || node.value.as_object().is_some_and(|map| !map.is_empty()) {
            self.is_cut = true;
        }
        if let Some(kinds) = kinds(node.value.get("type")) {
            let kinds = with_null(kinds, is_nullable(node));
            self.put(&mut members, "type", kinds_value(&kinds));
        }
        Value::Object(object(members))
    }

    /// The members of a schema that is an object.
    pub(super) fn members(&mut self, node: Node<'d>, depth: usize, name: &str) -> Members {
        if reference(node.value).is_some() {
            return self.reference(node, node, depth, name);
        }
        if let Some(part) = only_part(node) {
            return self.reference(part, node, depth, name);
        }
        let is_composed = ["allOf", "anyOf", "oneOf"].iter().any(|key| node.get(key).is_some());
        match is_composed && is_nullable(node) {
            false => self.own_members(node, depth, name),
            true => {
                let mut inner = self.own_members(node, depth, name);
                let outer = take_annotations(&mut inner);
                or_null(inner, outer)
            }
        }
    }

    /// The schema that `part` refers to, with what stands beside it in `around`.
    fn reference(&mut self, part: Node<'d>, around: Node<'d>, depth: usize, name: &str) -> Members {
        let mut beside = match self.context.version {
            Version::V31 => self.own_members(around, depth, name),
            Version::Swagger | Version::V30 => self.annotations(around, name),
        };
        let Some(target) = self.context.resolved(part) else { return beside };
        let nullable = is_nullable(around) && self.context.version != Version::V31;
        if is_small(target) {
            let inner = self.own_members(target, depth, name);
            let inner = match nullable && !is_nullable(target) {
                true => or_null(inner, Members::new()),
                false => inner,
            };
            let has = |beside: &Members, key: &str| beside.iter().any(|(other, _)| other == key);
            let inner: Members = inner.into_iter().filter(|(key, _)| !has(&beside, key)).collect();
            beside.splice(0..0, inner);
            return beside;
        }
        self.wait(target, depth);
        let place = format!("#/$defs/{}", self.names.name(part, target));
        self.size += place.len() + 10;
        let refers = vec![("$ref".to_owned(), Value::String(place))];
        match nullable {
            true => or_null(refers, beside),
            false => {
                beside.splice(0..0, refers);
                beside
            }
        }
    }

    /// Puts a definition in line, unless it is there at a smaller depth.
    fn wait(&mut self, target: Node<'d>, depth: usize) {
        let id = target.identity();
        let is_new = self.depths.get(&id).is_none_or(|known| depth < *known);
        if is_new && !self.done.contains(&id) {
            self.depths.insert(id, depth);
            self.waiting.entry(depth).or_default().push(target);
        }
    }

    /// Writes the definitions that are referred to, and those that they refer to.
    pub(super) fn definitions(&mut self) -> Option<Map<String, Value>> {
        let mut definitions = Members::new();
        while let Some(mut first) = self.waiting.first_entry() {
            let depth = *first.key();
            let Some(node) = first.get_mut().pop() else {
                first.remove();
                continue;
            };
            if !self.done.insert(node.identity()) {
                continue;
            }
            let name = self.names.name(node, node);
            self.size += name.len() + 6;
            let schema = self.schema(node, depth, "");
            definitions.push((name, schema));
            if self.is_over() {
                return None;
            }
        }
        (!definitions.is_empty()).then(|| object(definitions))
    }

    /// Everything but a `$ref`.
    fn own_members(&mut self, node: Node<'d>, depth: usize, name: &str) -> Members {
        let Some(map) = node.value.as_object() else { return Members::new() };
        let mut out = Members::with_capacity(map.len().min(32));
        let nullable = is_nullable(node);
        if let Some(kinds) = self.kinds(node) {
            self.put(&mut out, "type", kinds_value(&with_null(kinds, nullable)));
        }
        let input = self.direction == Direction::Input;
        for (key, value) in map {
            if self.is_over() {
                return out;
            }
            let part = node.with(value);
            // What is left out takes time, too.
            self.size += 1;
            match (key.as_str(), value) {
                ("properties", Value::Object(_)) => self.properties(&mut out, part, depth),
                ("required", Value::Array(_)) => self.required(&mut out, node, part),
                ("items", Value::Array(_)) | ("prefixItems", Value::Array(_)) => {
                    self.list(&mut out, "prefixItems", part, depth + 1);
                }
                ("items", Value::Object(_) | Value::Bool(_)) => {
                    self.child(&mut out, "items", part, depth + 1);
                }
                ("anyOf" | "oneOf", Value::Array(_)) if node.get("discriminator").is_some() => {
                    self.alternatives(&mut out, key, node, part, depth);
                }
                // Parts of the same value are on the same level.
                ("allOf" | "anyOf" | "oneOf", Value::Array(_)) => self.list(&mut out, key, part, depth),
                ("additionalProperties" | "unevaluatedProperties", Value::Object(inner)) => {
                    if !inner.is_empty() {
                        self.child(&mut out, key, part, depth + 1);
                    }
                }
                // Servers add properties, and what is `writeOnly` is not listed.
                (
                    "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems",
                    Value::Bool(false),
                ) => {
                    if input {
                        self.put(&mut out, key, Value::Bool(false));
                    }
                }
                ("unevaluatedItems", Value::Object(_)) => self.child(&mut out, key, part, depth + 1),
                ("patternProperties", Value::Object(_)) => self.map(&mut out, key, part, depth + 1),
                ("enum", Value::Array(values)) if !values.is_empty() => {
                    self.choices(&mut out, values, nullable)
                }
                ("const", value) if is_shorter(value, self.limit) => self.put(&mut out, key, value.clone()),
                ("format", Value::String(format)) if format.len() <= 64 => {
                    self.put(&mut out, key, value.clone());
                }
                ("contentEncoding" | "contentMediaType", Value::String(text)) if text.len() <= 100 => {
                    self.put(&mut out, key, value.clone());
                }
                ("pattern" | "not" | "if" | "then" | "else" | "contains" | "propertyNames", _) if input => {
                    self.constraint(&mut out, key, part, depth);
                }
                ("dependentSchemas", Value::Object(_)) if input => self.map(&mut out, key, part, depth),
                ("dependentRequired", Value::Object(names)) if input => {
                    let is_names = |names: &Value| {
                        names.as_array().is_some_and(|names| names.iter().all(Value::is_string))
                    };
                    if is_shorter(value, self.limit) && names.values().all(is_names) {
                        self.put(&mut out, key, value.clone());
                    }
                }
                (_, Value::Number(_) | Value::Bool(_)) if input => self.number(&mut out, node, key, value),
                _ => {}
            }
        }
        if let Some(kind) = implied_kind(map, &out) {
            self.put(&mut out, "type", kind.into());
        }
        let annotations = self.annotations(node, name);
        out.extend(annotations);
        out
    }

    /// The types of a schema that JSON Schema knows.
    fn kinds(&self, node: Node<'d>) -> Option<Vec<&'static str>> {
        let given = node.get("type")?;
        let kinds = kinds(Some(given.value));
        if kinds.is_none() {
            let shown = match given.value {
                value if is_shorter(value, LONGEST_DEFAULT) => value.to_string(),
                Value::String(text) => format!("\"{}…", clipped(text)),
                _ => "like this".to_owned(),
            };
            self.context
                .find(given, format!("there is no type {}, so any value is accepted", clipped(&shown)));
        }
        kinds
    }

    /// Descriptions and examples.
    fn annotations(&mut self, node: Node<'d>, name: &str) -> Members {
        let mut out = Members::new();
        let input = self.direction == Direction::Input;
        let most = if input { INPUT_DESCRIPTION } else { OUTPUT_DESCRIPTION };
        let says_more = |text: &str| !text.is_empty() && !letters(text).eq(letters(name));
        let description = node.text("description").filter(|_| !self.terse);
        // A text of marks is read, too, and leaves nothing that is counted.
        self.context.spend(description.map_or(0, |text| text.len().min(4 * most) / 4));
        let description = description.map(|text| plain_start(text, 4 * most)).unwrap_or_default();
        let description = match input {
            true => sentences(&description, most),
            false => sentences(first_sentence(&description), most),
        };
        if says_more(description) {
            self.put(&mut out, "description", description.into());
        } else if let Some(title) = node.text("title").filter(|title| title.len() <= 80 && !self.terse)
            && input
            && says_more(title)
        {
            self.put(&mut out, "title", title.into());
        }
        if node.is("deprecated") {
            self.put(&mut out, "deprecated", Value::Bool(true));
        }
        if !input {
            return out;
        }
        if let Some(default) = node.value.get("default")
            && (!default.is_null() || is_nullable(node))
            && is_shorter(default, LONGEST_DEFAULT)
        {
            self.put(&mut out, "default", default.clone());
        }
        let examples = node.value.get("examples").and_then(Value::as_array).and_then(|all| all.first());
        if let Some(example) = examples.or_else(|| node.value.get("example"))
            && !self.terse
            // `true` is no news.
            && !example.is_boolean()
            && is_shorter(example, LONGEST_EXAMPLE)
        {
            self.put(&mut out, "examples", Value::Array(vec![example.clone()]));
        }
        out
    }

    fn properties(&mut self, out: &mut Members, part: Node<'d>, depth: usize) {
        let mut properties =
            Members::with_capacity(part.value.as_object().map_or(0, Map::len).min(self.limit));
        for (name, property) in part.members() {
            self.size += 1;
            if self.is_hidden(property) {
                if self.is_over() {
                    return;
                }
                continue;
            }
            self.size += name.len() + 5;
            let schema = self.schema(property, depth + 1, name);
            properties.push((name.to_owned(), schema));
            if self.is_over() {
                return;
            }
        }
        self.size += "\"properties\":{},".len();
        out.push(("properties".to_owned(), Value::Object(object(properties))));
    }

    fn required(&mut self, out: &mut Members, node: Node<'d>, part: Node<'d>) {
        let mut known = HashSet::new();
        let mut required = Vec::new();
        for name in part.items() {
            self.size += 1;
            if self.is_over() {
                return;
            }
            let Some(text) = name.value.as_str() else {
                self.context.find(name, "`required` lists names of properties");
                continue;
            };
            let property = node.get("properties").and_then(|properties| properties.get(text));
            if property.is_some_and(|property| self.is_hidden(property)) || !known.insert(text) {
                continue;
            }
            self.size += text.len() + 3;
            required.push(Value::String(text.to_owned()));
        }
        if !required.is_empty() {
            required.shrink_to_fit();
            self.put(out, "required", Value::Array(required));
        }
    }

    /// Returns `true` for a property that this side does not have.
    pub(super) fn is_hidden(&self, property: Node<'d>) -> bool {
        let key = match self.direction {
            Direction::Input => "readOnly",
            Direction::Output => "writeOnly",
        };
        let is = |node: Node<'d>| {
            node.is(key) || node.get("allOf").is_some_and(|parts| parts.items().any(|part| part.is(key)))
        };
        is(property)
            || reference(property.value).is_some() && self.context.sources.resolve(property).is_ok_and(is)
    }

    fn alternatives(&mut self, out: &mut Members, key: &str, node: Node<'d>, part: Node<'d>, depth: usize) {
        let discriminator = self.context.discriminator(node);
        let mut schemas = Vec::with_capacity(part.value.as_array().map_or(0, Vec::len).min(self.limit));
        for alternative in part.items() {
            if self.is_over() {
                return;
            }
            let mut schema = self.schema(alternative, depth, "");
            let pin = discriminator.as_ref().and_then(|of| of.pin(self.context, alternative));
            if let Some(pin) = pin
                && let Value::Object(members) = &mut schema
                && members.contains_key("$ref")
            {
                self.size += pin.size();
                if self.is_over() {
                    return;
                }
                members.extend(pin.members());
            }
            schemas.push(schema);
        }
        if !schemas.is_empty() {
            self.size += key.len() + 5;
            out.push((key.to_owned(), Value::Array(schemas)));
        }
    }

    fn list(&mut self, out: &mut Members, key: &str, part: Node<'d>, depth: usize) {
        let mut schemas = Vec::new();
        for schema in part.items() {
            schemas.push(self.schema(schema, depth, ""));
            if self.is_over() {
                return;
            }
        }
        schemas.shrink_to_fit();
        if !schemas.is_empty() {
            self.size += key.len() + 5;
            out.push((key.to_owned(), Value::Array(schemas)));
        }
    }

    fn map(&mut self, out: &mut Members, key: &str, part: Node<'d>, depth: usize) {
        let mut schemas = Members::new();
        for (name, schema) in part.members() {
            self.size += name.len() + 5;
            if self.is_over() {
                return;
            }
            let schema = self.schema(schema, depth, "");
            schemas.push((name.to_owned(), schema));
        }
        self.size += key.len() + 5;
        out.push((key.to_owned(), Value::Object(object(schemas))));
    }

    pub(super) fn child(&mut self, out: &mut Members, key: &str, part: Node<'d>, depth: usize) {
        let schema = self.schema(part, depth, "");
        self.size += key.len() + 4;
        out.push((key.to_owned(), schema));
    }

    /// Adds a member that has no schemas in it.
    pub(super) fn put(&mut self, out: &mut Members, key: &str, value: Value) {
        self.size += key.len() + 4 + size_of_json(&value);
        out.push((key.to_owned(), value));
    }
}
