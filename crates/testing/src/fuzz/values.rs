//! Values that fit a JSON Schema, as far as its keywords tell; the caller checks them.

use serde_json::{Map, Value, json};

use super::random::Random;

/// Depth at which a schema that contains itself is cut off.
const DEEPEST: usize = 6;
/// Nodes of the schema that are read for one value.
const MOST_NODES: usize = 500;
/// Longest text and array that `minLength` and `minItems` can ask for.
const LONGEST: u64 = 1_000;

/// Properties of an object that are not required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Optional {
    None,
    All,
    Some,
}

/// Fills in schemas of one document.
pub(super) struct Values<'a> {
    pub(super) root: &'a Value,
    pub(super) random: Random,
    pub(super) optional: Optional,
    pub(super) nodes: usize,
}

impl<'a> Values<'a> {
    pub(super) fn new(root: &'a Value, random: Random, optional: Optional) -> Self {
        Self { root, random, optional, nodes: 0 }
    }

    pub(super) fn of(&mut self, schema: &'a Value, depth: usize) -> Value {
        self.nodes += 1;
        let schema = resolve(self.root, schema);
        let Some(object) = schema.as_object().filter(|_| depth <= DEEPEST && self.nodes <= MOST_NODES) else {
            return json!("a");
        };
        if let Some(value) = object.get("const") {
            return value.clone();
        }
        if let Some(values) = object.get("enum").and_then(Value::as_array) {
            return self.random.pick(values).cloned().unwrap_or_default();
        }
        let given = ["examples", "default"].iter().find_map(|key| object.get(*key));
        if let Some(given) = given
            && !self.random.once_in(3)
        {
            return given
                .as_array()
                .filter(|_| object.contains_key("examples"))
                .and_then(|all| all.first())
                .unwrap_or(given)
                .clone();
        }
        for union in ["anyOf", "oneOf"] {
            if let Some(options) = object.get(union).and_then(Value::as_array)
                && !object.contains_key("properties")
            {
                let option = self.random.below(options.len());
                return options.get(option).map(|option| self.of(option, depth + 1)).unwrap_or_default();
            }
        }
        match self.kind(object) {
            "object" => self.object(schema, depth),
            "array" => self.array(object, depth),
            "integer" => self.number(object, true),
            "number" => self.number(object, false),
            "boolean" => json!(self.random.once_in(2)),
            "null" => Value::Null,
            _ => json!(self.text(object)),
        }
    }

    fn kind(&mut self, schema: &'a Map<String, Value>) -> &'a str {
        match schema.get("type") {
            Some(Value::String(kind)) => kind,
            Some(Value::Array(kinds)) => self.random.pick(kinds).and_then(Value::as_str).unwrap_or("string"),
            _ if schema.contains_key("properties") || schema.contains_key("allOf") => "object",
            _ if schema.contains_key("items") => "array",
            _ => "string",
        }
    }

    fn object(&mut self, schema: &'a Value, depth: usize) -> Value {
        let mut result = Map::new();
        let parts = schema["allOf"].as_array().into_iter().flatten();
        let parts: Vec<&Value> =
            std::iter::once(schema).chain(parts.map(|part| resolve(self.root, part))).collect();
        for part in &parts {
            for (name, property) in part["properties"].as_object().into_iter().flatten() {
                let is_required = parts.iter().any(|part| requires(part, name));
                let wanted = match self.optional {
                    Optional::None => false,
                    Optional::All => depth < 3,
                    Optional::Some => self.random.once_in(2),
                };
                if is_required || wanted {
                    let value = self.of(property, depth + 1);
                    result.insert(name.clone(), value);
                }
            }
        }
        let unlisted =
            parts.iter().filter_map(|part| part["required"].as_array()).flatten().filter_map(Value::as_str);
        for name in unlisted {
            if !result.contains_key(name) {
                result.insert(name.to_owned(), json!("a"));
            }
        }
        Value::Object(result)
    }

    fn array(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Value {
        if let Some(places) = schema.get("prefixItems").and_then(Value::as_array) {
            return places.iter().map(|place| self.of(place, depth + 1)).collect();
        }
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
        let least = bound("minItems").unwrap_or(0).min(LONGEST);
        let most = bound("maxItems").unwrap_or(least + 2).max(least);
        let count = match self.optional {
            Optional::None => least,
            _ => least.max(1).min(most),
        };
        let Some(items) = schema.get("items") else { return json!([]) };
        (0..count).map(|_| self.of(items, depth + 1)).collect()
    }

    fn number(&mut self, schema: &Map<String, Value>, whole: bool) -> Value {
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let step = bound("multipleOf").filter(|step| *step > 0.0).unwrap_or(1.0);
        let low = bound("minimum")
            .or_else(|| bound("exclusiveMinimum").map(|low| low + if whole { 1.0 } else { step }));
        let high = bound("maximum")
            .or_else(|| bound("exclusiveMaximum").map(|high| high - if whole { 1.0 } else { step }));
        #[expect(clippy::cast_precision_loss, reason = "at most 20")]
        let offset = self.random.below(20) as f64;
        let value = match (low, high) {
            (Some(low), _) => (low + offset * step).min(high.unwrap_or(f64::INFINITY)),
            (None, Some(high)) => high - offset * step,
            (None, None) => offset * step,
        };
        let value = (value / step).ceil() * step;
        #[expect(clippy::cast_possible_truncation, reason = "whole and small")]
        match value.fract() == 0.0 && value.abs() < 1e15 {
            true => json!(value as i64),
            false => json!(value),
        }
    }

    fn text(&mut self, schema: &Map<String, Value>) -> String {
        let told = match schema.get("format").and_then(Value::as_str).unwrap_or_default() {
            "date" => "2026-01-31",
            "date-time" => "2026-01-31T09:30:00Z",
            "time" => "09:30:00Z",
            "email" => "ada@example.com",
            "uri" | "url" | "iri" => "https://example.com/a",
            "uuid" => "123e4567-e89b-42d3-a456-426614174000",
            "ipv4" => "192.0.2.1",
            "ipv6" => "2001:db8::1",
            "hostname" => "example.com",
            _ => match schema.get("pattern") {
                Some(_) => PATTERNS[self.random.below(PATTERNS.len())],
                None => WORDS[self.random.below(WORDS.len())],
            },
        };
        let length = |key: &str| schema.get(key).and_then(Value::as_u64);
        let least = usize::try_from(length("minLength").unwrap_or(0).min(LONGEST)).unwrap_or_default();
        let most = length("maxLength").and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        let mut text: String = told.chars().take(most).collect();
        text.extend(std::iter::repeat_n('x', least.saturating_sub(text.chars().count())));
        text
    }
}

/// Texts for schemas without a pattern.
const WORDS: [&str; 6] = ["a", "hello world", "42", "Oslo", "2026-01-31", "x-y_z.1"];
/// Texts that common patterns match.
const PATTERNS: [&str; 10] = [
    "a",
    "A",
    "1",
    "abc",
    "2026-01-31",
    "09:30",
    "#aabbcc",
    "a-b",
    "ada@example.com",
    "https://example.com/a",
];

fn requires(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
}

/// The schema that a local reference leads to.
pub(super) fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..DEEPEST {
        let Some(target) = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#')) else { break };
        match root.pointer(target) {
            Some(found) => schema = found,
            None => break,
        }
    }
    schema
}
