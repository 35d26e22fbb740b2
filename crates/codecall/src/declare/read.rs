//! JSON Schema to types. Schemas come from servers: depth, nodes and values that are read are bounded.

use std::collections::HashSet;

use gatewright_core::rmcp::model::JsonObject;
use serde_json::Value;

use super::node::{Graph, Id, Node, Object, Property};
use crate::references;

/// Depth at which a schema is cut off.
const DEEPEST: usize = 10;
/// Parts of one schema that are read.
const MOST_PARTS: usize = 1_000;
/// Names and properties of one schema that are looked at, those included that are left out.
const MOST_LOOKS: usize = 20_000;
/// Properties of one object.
const MOST_PROPERTIES: usize = 120;
/// Values of one enum, and the longest that is printed.
const MOST_VALUES: usize = 16;
const LONGEST_VALUE: usize = 60;
/// The longest name of a property.
const LONGEST_NAME: usize = 100;
/// Bytes of a property's description that are looked at; comments have fewer.
const LONGEST_ABOUT: usize = 2_000;
/// Types of one value, and required names of one branch of a rule.
const MOST_KINDS: usize = 7;
const MOST_NAMES: usize = 6;

/// Reads the schemas of one document, whose `$ref`s point into it.
pub(super) struct Reader<'g, 's> {
    graph: &'g mut Graph<'s>,
    root: &'s JsonObject,
    /// References that are being followed.
    open: Vec<&'s Value>,
    parts: usize,
    looks: usize,
}

impl<'g, 's> Reader<'g, 's> {
    /// The type that `schema` describes.
    pub(super) fn read(graph: &'g mut Graph<'s>, schema: &'s JsonObject) -> Id {
        let mut reader = Self { graph, root: schema, open: Vec::new(), parts: 0, looks: 0 };
        reader.object_schema(schema, "", 0)
    }

    fn schema(&mut self, schema: &'s Value, hint: &'s str, depth: usize) -> Id {
        match schema {
            Value::Object(schema) => self.object_schema(schema, hint, depth),
            Value::Bool(false) => self.graph.text("never"),
            _ => self.graph.text("unknown"),
        }
    }

    fn object_schema(&mut self, schema: &'s JsonObject, hint: &'s str, depth: usize) -> Id {
        self.parts += 1;
        if depth > DEEPEST || self.parts > MOST_PARTS {
            return self.graph.text("unknown");
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return self.reference(reference, depth);
        }
        if let Some(value) = schema.get("const") {
            let text = literal(value);
            return self.graph.text(text);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let id = self.values(values, schema);
            self.graph.hint(id, hint);
            return id;
        }
        let id = match ["oneOf", "anyOf"].iter().find_map(|union| schema.get(*union)?.as_array()) {
            Some(options) if !options.iter().take(MOST_VALUES).all(only_requires) => {
                self.union(schema, options, hint, depth)
            }
            _ => match schema.get("allOf").and_then(Value::as_array) {
                Some(parts) => self.all_of(schema, parts, hint, depth),
                None => self.typed(schema, hint, depth),
            },
        };
        let title = schema.get("title").and_then(Value::as_str).filter(|title| title.len() <= LONGEST_NAME);
        self.graph.hint(id, title.unwrap_or(hint));
        if schema.get("nullable") == Some(&Value::Bool(true)) {
            let null = self.graph.text("null");
            return self.graph.union([id, null]);
        }
        id
    }

    fn reference(&mut self, reference: &'s str, depth: usize) -> Id {
        let Some(target) = references::target(self.root, reference) else {
            return self.graph.text("unknown");
        };
        let name = reference.rsplit('/').next().unwrap_or_default();
        if self.open.iter().any(|open| std::ptr::eq(*open, target)) {
            return self.graph.recursive(target, name);
        }
        self.open.push(target);
        let id = self.schema(target, name, depth + 1);
        self.open.pop();
        self.graph.is_read(target, id);
        id
    }

    /// Counts a look at a name or property. Returns `false` when there were too many.
    fn may_look(&mut self) -> bool {
        self.looks += 1;
        self.looks <= MOST_LOOKS
    }

    fn values(&mut self, values: &'s [Value], schema: &'s JsonObject) -> Id {
        let mut known: Vec<Id> = Vec::new();
        for value in values.iter().take(MOST_VALUES) {
            let text = literal(value);
            known.push(self.graph.text(text));
        }
        if values.len() > MOST_VALUES {
            let rest = match schema.get("type").and_then(Value::as_str) {
                Some("integer" | "number") => "number",
                Some("string") => "string",
                _ if values.iter().take(MOST_VALUES).all(Value::is_string) => "string",
                _ => return self.graph.text("unknown"),
            };
            // Some values as examples of what the keyword stands for.
            known.truncate(MOST_VALUES / 2);
            let rest = self.graph.text(rest);
            known.push(rest);
        }
        self.graph.union(known)
    }

    fn union(&mut self, schema: &'s JsonObject, options: &'s [Value], hint: &'s str, depth: usize) -> Id {
        let mut ids = Vec::new();
        for option in options.iter().take(MOST_VALUES) {
            ids.push(self.schema(option, hint, depth + 1));
        }
        if options.len() > MOST_VALUES {
            return self.graph.text("unknown");
        }
        let union = self.graph.union(ids);
        if !schema.contains_key("properties") {
            return union;
        }
        let common = self.object(&[schema], depth);
        self.graph.add(Node::Intersection(vec![common, union]))
    }

    /// Parts that are objects become one object.
    fn all_of(&mut self, schema: &'s JsonObject, parts: &'s [Value], hint: &'s str, depth: usize) -> Id {
        let resolved: Vec<&'s Value> = parts.iter().take(MOST_VALUES).collect();
        let plain = |part: &&'s Value| -> Option<&'s JsonObject> {
            let part = match part.get("$ref").and_then(Value::as_str) {
                Some(reference) => references::target(self.root, reference)?,
                None => part,
            };
            let is_open = self.open.iter().any(|open| std::ptr::eq(*open, part));
            let object = part.as_object().filter(|_| !is_open)?;
            let compound = ["$ref", "allOf", "anyOf", "oneOf", "enum", "const"];
            (!compound.iter().any(|key| object.contains_key(*key))
                && object.get("type").is_none_or(|kind| kind == "object"))
            .then_some(object)
        };
        match resolved.iter().map(plain).collect::<Option<Vec<_>>>() {
            Some(objects) if objects.iter().any(|object| object.contains_key("properties")) => {
                let all: Vec<&'s JsonObject> = std::iter::once(schema).chain(objects).collect();
                self.object(&all, depth)
            }
            _ => {
                let mut ids: Vec<Id> = Vec::new();
                if schema.contains_key("properties") {
                    ids.push(self.object(&[schema], depth));
                }
                for part in resolved {
                    ids.push(self.schema(part, hint, depth + 1));
                }
                let unknown = self.graph.text("unknown");
                ids.retain(|id| *id != unknown);
                ids.dedup();
                match ids.as_slice() {
                    [] => self.typed(schema, hint, depth),
                    [only] => *only,
                    _ => self.graph.add(Node::Intersection(ids)),
                }
            }
        }
    }

    fn typed(&mut self, schema: &'s JsonObject, hint: &'s str, depth: usize) -> Id {
        match schema.get("type") {
            Some(Value::String(kind)) => self.of_kind(kind, schema, hint, depth),
            Some(Value::Array(kinds)) => {
                let kinds = kinds.iter().take(MOST_KINDS).filter_map(Value::as_str);
                let ids: Vec<Id> = kinds.map(|kind| self.of_kind(kind, schema, hint, depth)).collect();
                self.graph.union(ids)
            }
            _ if ["properties", "additionalProperties", "required"]
                .iter()
                .any(|k| schema.contains_key(*k)) =>
            {
                self.of_kind("object", schema, hint, depth)
            }
            _ if schema.contains_key("items") => self.of_kind("array", schema, hint, depth),
            _ => self.graph.text("unknown"),
        }
    }

    fn of_kind(&mut self, kind: &'s str, schema: &'s JsonObject, hint: &'s str, depth: usize) -> Id {
        match kind {
            "object" => self.object(&[schema], depth),
            "array" => self.array(schema, hint, depth),
            "integer" | "number" => self.graph.text("number"),
            "boolean" | "null" | "string" => self.graph.text(kind),
            _ => self.graph.text("unknown"),
        }
    }

    fn array(&mut self, schema: &'s JsonObject, hint: &'s str, depth: usize) -> Id {
        let places = schema.get("prefixItems").or_else(|| schema.get("items")).and_then(Value::as_array);
        if let Some(places) = places {
            let ids: Vec<Id> =
                places.iter().take(MOST_VALUES).map(|place| self.schema(place, hint, depth + 1)).collect();
            return self.graph.add(Node::Tuple(ids));
        }
        let of = match schema.get("items") {
            Some(items) => {
                let one = if hint.ends_with("ies") { None } else { hint.strip_suffix('s') };
                self.schema(items, one.unwrap_or(hint), depth + 1)
            }
            None => self.graph.text("unknown"),
        };
        self.graph.add(Node::Array(of))
    }

    /// One object of several schemas that all hold.
    fn object(&mut self, schemas: &[&'s JsonObject], depth: usize) -> Id {
        let each = |key: &'static str| schemas.iter().filter_map(move |schema| schema.get(key));
        let mut required: HashSet<&str> = HashSet::new();
        for name in each("required").filter_map(Value::as_array).flatten().take_while(|_| self.may_look()) {
            required.extend(name.as_str().filter(|name| name.len() <= LONGEST_NAME));
        }
        let mut properties: Vec<Property<'s>> = Vec::new();
        // Those that are not looked at, and then those that are not shown.
        let mut more: usize = each("properties").filter_map(Value::as_object).map(JsonObject::len).sum();
        let mut seen = HashSet::new();
        for (name, schema) in each("properties").filter_map(Value::as_object).flatten() {
            if !self.may_look() {
                break;
            }
            let is_short = name.len() <= LONGEST_NAME;
            if is_short && !seen.insert(name.as_str()) {
                more -= 1;
                continue;
            }
            if properties.len() >= MOST_PROPERTIES || !is_short || self.parts > MOST_PARTS {
                continue;
            }
            more -= 1;
            let of = self.schema(schema, name, depth + 1);
            let about = schema.get("description").and_then(Value::as_str).unwrap_or_default();
            let about = &about[..about.floor_char_boundary(LONGEST_ABOUT)];
            let optional = !required.contains(name.as_str());
            properties.push(Property { name, optional, of, about, facts: facts(schema) });
        }
        // What has to be given comes first.
        properties.sort_by_key(|property| property.optional);
        let mut unnamed =
            each("additionalProperties").chain(each("patternProperties").filter_map(first_value));
        let rest = unnamed.rfind(|rest| rest.is_object());
        let rest = rest.map(|rest| self.schema(rest, "", depth + 1));
        if properties.is_empty() && more == 0 {
            // A schema that lists its properties and has none is one of a tool that takes nothing.
            let is_closed = each("additionalProperties").any(|rest| *rest == Value::Bool(false))
                || schemas.iter().any(|schema| schema.contains_key("properties"));
            return match (rest, is_closed) {
                (Some(rest), _) => self.graph.add(Node::Record(rest)),
                (None, true) => self.graph.text("{}"),
                (None, false) => {
                    let unknown = self.graph.text("unknown");
                    self.graph.add(Node::Record(unknown))
                }
            };
        }
        let rule = schemas.iter().find_map(|schema| rule(schema));
        self.graph.add(Node::Object(Object { properties, rest, rule, more }))
    }
}

fn first_value(schema: &Value) -> Option<&Value> {
    schema.as_object()?.values().next()
}

/// Returns `true` for a branch of a union that only says which properties have to be there.
fn only_requires(option: &Value) -> bool {
    option.as_object().is_some_and(|option| option.contains_key("required") && option.len() == 1)
}

/// "one of `a`, `b, c`": the rule of a union whose branches only require.
fn rule(schema: &JsonObject) -> Option<String> {
    let options = ["anyOf", "oneOf"].iter().find_map(|union| schema.get(*union)?.as_array())?;
    if options.is_empty() || options.len() > 6 || !options.iter().all(only_requires) {
        return None;
    }
    let names = options.iter().map(|option| {
        let names = option["required"].as_array().into_iter().flatten().take(MOST_NAMES);
        let names: Vec<&str> = names.filter_map(Value::as_str).collect();
        names.iter().all(|name| name.len() <= LONGEST_NAME).then(|| names.join(" + "))
    });
    let names = names.collect::<Option<Vec<_>>>()?.join(" | ");
    (names.len() <= 160).then(|| format!("needs {names}"))
}

/// A JSON value as a literal type: strings, numbers, booleans and null; `unknown` for the rest.
fn literal(value: &Value) -> String {
    match value {
        Value::String(text) if text.len() <= LONGEST_VALUE => quoted(text),
        Value::String(_) => "string".to_owned(),
        Value::Number(_) | Value::Bool(_) | Value::Null => value.to_string(),
        Value::Array(_) | Value::Object(_) => "unknown".to_owned(),
    }
}

/// `text` in single quotes: double ones would be escaped again in the JSON around it.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for c in text.chars() {
        match c {
            '\'' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            c if c.is_control() || (!c.is_ascii() && !c.is_alphanumeric()) => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// Default, range, format and length of a value, as far as they matter to who writes one.
fn facts(schema: &Value) -> String {
    let Some(schema) = schema.as_object() else { return String::new() };
    let mut facts: Vec<String> = Vec::new();
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    let number = |key: &str| schema.get(key).filter(|value| value.is_number());
    if let Some(format) = text("format").filter(|format| format.len() <= 24 && !format.starts_with("int")) {
        facts.push(format.to_owned());
    }
    if let Some(pattern) = text("pattern").filter(|pattern| pattern.len() <= 40) {
        facts.push(format!("/{pattern}/"));
    }
    let (least, most) = (number("minimum"), number("maximum"));
    match (least, most) {
        (Some(least), Some(most)) if most.as_f64().is_some_and(|most| most.abs() < 9e15) => {
            facts.push(format!("{least}-{most}"));
        }
        (Some(least), _) if least.as_f64() > Some(1.0) => facts.push(format!(">= {least}")),
        (None, Some(most)) if most.as_f64().is_some_and(|most| most.abs() < 9e15) => {
            facts.push(format!("<= {most}"));
        }
        _ => {}
    }
    let count = |key: &str| schema.get(key).and_then(Value::as_u64);
    let most_items = count("maxItems").filter(|most| *most < 10_000);
    match (count("minItems").filter(|least| *least > 0), most_items) {
        (Some(least), Some(most)) => facts.push(format!("{least}-{most} items")),
        (Some(least), None) => facts.push(format!("at least {least} items")),
        (None, Some(most)) => facts.push(format!("at most {most} items")),
        (None, None) => {}
    }
    if let Some(most) = count("maxLength").filter(|most| *most < 1_000) {
        facts.push(format!("at most {most} characters"));
    }
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        let text = match default {
            Value::String(text) if text.len() <= 40 => quoted(text),
            Value::Bool(_) | Value::Number(_) => default.to_string(),
            Value::Array(items) if items.is_empty() => "[]".to_owned(),
            _ => String::new(),
        };
        if !text.is_empty() && default != "" {
            facts.push(format!("default {text}"));
        }
    }
    facts.join(", ")
}
