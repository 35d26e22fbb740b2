//! A JSON Schema, read as the kinds of values that may be there.
//!
//! A shape is unknown, and nothing is said of it, where the schema leaves it open or chooses it by value.

use gatewright_core::rmcp::model::JsonObject;
use serde_json::Value;

use crate::references::target;

/// Most alternatives of a value that are looked at.
const MOST_OPTIONS: usize = 12;
/// Most references and unions within each other.
const DEEPEST: u8 = 16;
/// Most schemas that are looked at for one value.
const MOST_STEPS: u16 = 1_000;
/// Keywords that can add to what `properties` says.
const OPEN: [&str; 9] = [
    "$dynamicRef",
    "$recursiveRef",
    "if",
    "patternProperties",
    "unevaluatedProperties",
    "dependentSchemas",
    "dependencies",
    "propertyNames",
    "not",
];
const OBJECT_MEMBERS: [&str; 5] =
    ["hasOwnProperty", "toString", "toLocaleString", "valueOf", "propertyIsEnumerable"];
const ARRAY_MEMBERS: [&str; 37] = [
    "at",
    "concat",
    "copyWithin",
    "entries",
    "every",
    "fill",
    "filter",
    "find",
    "findIndex",
    "findLast",
    "findLastIndex",
    "flat",
    "flatMap",
    "forEach",
    "includes",
    "indexOf",
    "join",
    "keys",
    "lastIndexOf",
    "length",
    "map",
    "pop",
    "push",
    "reduce",
    "reduceRight",
    "reverse",
    "shift",
    "slice",
    "some",
    "sort",
    "splice",
    "toReversed",
    "toSorted",
    "toSpliced",
    "unshift",
    "values",
    "with",
];
const STRING_MEMBERS: [&str; 36] = [
    "anchor",
    "at",
    "charAt",
    "charCodeAt",
    "codePointAt",
    "concat",
    "endsWith",
    "includes",
    "indexOf",
    "isWellFormed",
    "lastIndexOf",
    "length",
    "link",
    "localeCompare",
    "match",
    "matchAll",
    "normalize",
    "padEnd",
    "padStart",
    "repeat",
    "replace",
    "replaceAll",
    "search",
    "slice",
    "split",
    "startsWith",
    "substr",
    "substring",
    "toLocaleLowerCase",
    "toLocaleUpperCase",
    "toLowerCase",
    "toUpperCase",
    "toWellFormed",
    "trim",
    "trimEnd",
    "trimStart",
];
const NUMBER_MEMBERS: [&str; 3] = ["toExponential", "toFixed", "toPrecision"];

/// The kinds of values that may be at a place, each a schema without references.
#[derive(Debug, Clone)]
pub(super) struct Shape<'s> {
    root: &'s JsonObject,
    options: Vec<&'s JsonObject>,
}

/// A part of a shape.
#[derive(Debug, Clone)]
pub(super) enum Found<'s> {
    /// Its shape.
    Shape(Shape<'s>),
    /// Nothing is known of it.
    Unknown,
    /// There is no such part.
    Missing(Lack<'s>),
}

/// A value without the part that was looked for.
#[derive(Debug, Clone)]
pub(super) struct Lack<'s> {
    /// The kind of value: `object`, `array`, `string`, `number` or `boolean`.
    pub(super) kind: &'static str,
    pub(super) of: Lacking<'s>,
}

/// A type or value that lacks a part.
#[derive(Debug, Clone)]
pub(super) enum Lacking<'s> {
    Shape(Shape<'s>),
    /// An object of these properties, of which no type is known.
    Names(&'static [&'static str]),
}

impl<'s> Lack<'s> {
    /// The properties that an object has.
    pub(super) fn names(&self) -> Vec<&'s str> {
        match &self.of {
            Lacking::Shape(shape) if self.kind == "object" => shape.names(),
            Lacking::Shape(_) => Vec::new(),
            Lacking::Names(names) => names.to_vec(),
        }
    }

    /// Those of them that are arrays.
    pub(super) fn arrays(&self) -> Vec<&'s str> {
        match &self.of {
            Lacking::Shape(shape) => {
                self.names().into_iter().take(100).filter(|name| shape.is_array(name)).collect()
            }
            Lacking::Names(_) => Vec::new(),
        }
    }
}

/// Options as they are collected.
struct Expansion<'s> {
    root: &'s JsonObject,
    /// `None` once anything may be there.
    options: Option<Vec<&'s JsonObject>>,
    /// Schemas that are looked at yet: references can multiply what a short schema describes.
    steps: u16,
}

impl<'s> Shape<'s> {
    /// The shape that `root` describes, if it says anything.
    pub(super) fn of(root: &'s JsonObject) -> Option<Self> {
        let mut expansion = Expansion::new(root);
        expansion.expand_object(root, DEEPEST);
        Some(Self { root, options: expansion.options.filter(|options| !options.is_empty())? })
    }

    fn expanded(&self, schema: &'s Value) -> Option<Vec<&'s JsonObject>> {
        let mut expansion = Expansion::new(self.root);
        expansion.expand(schema, DEEPEST);
        expansion.options
    }

    /// The value of property `name`.
    pub(super) fn property(&self, name: &str) -> Found<'s> {
        self.part(|kind, schema| self.property_of(kind, schema, name))
    }

    /// Any element of an array. Texts have characters, and maps may have numbers as names, but nobody iterates over these.
    pub(super) fn item(&self, iterated: bool) -> Found<'s> {
        self.part(|kind, schema| match kind {
            "array" if schema.contains_key("prefixItems") => Part::Unknown,
            "array" => schema.get("items").map_or(Part::Unknown, Part::Schema),
            "string" if !iterated => Part::Unknown,
            "object" if !iterated && !matches!(property_of_object(schema, "0"), Part::None) => Part::Unknown,
            _ => Part::None,
        })
    }

    /// An element or a property whose key is not known.
    pub(super) fn computed(&self) -> Found<'s> {
        let is_array = |schema: &&JsonObject| kinds(schema).is_some_and(|kinds| kinds == ["array"]);
        if self.options.iter().all(is_array) { self.item(false) } else { Found::Unknown }
    }

    /// The properties of objects.
    pub(super) fn names(&self) -> Vec<&'s str> {
        let properties = |schema: &&'s JsonObject| schema.get("properties").and_then(Value::as_object);
        self.options.iter().filter_map(properties).flat_map(JsonObject::keys).map(String::as_str).collect()
    }

    fn part(&self, of: impl Fn(&'static str, &'s JsonObject) -> Part<'s>) -> Found<'s> {
        let mut found = Vec::new();
        let (mut is_found, mut lack) = (false, None);
        for schema in &self.options {
            let Some(kinds) = kinds(schema) else { return Found::Unknown };
            for kind in kinds {
                match of(kind, schema) {
                    Part::Unknown => return Found::Unknown,
                    Part::None => lack = Some(kind),
                    Part::Schema(schema) => {
                        let Some(options) = self.expanded(schema) else { return Found::Unknown };
                        is_found = true;
                        found.extend(options);
                    }
                }
            }
        }
        match lack {
            _ if !found.is_empty() && found.len() <= MOST_OPTIONS => {
                Found::Shape(Self { root: self.root, options: found })
            }
            Some(kind) if !is_found => Found::Missing(Lack { kind, of: Lacking::Shape(self.clone()) }),
            _ => Found::Unknown,
        }
    }

    fn property_of(&self, kind: &str, schema: &'s JsonObject, name: &str) -> Part<'s> {
        let has = |members: &[&str]| members.contains(&name) || OBJECT_MEMBERS.contains(&name);
        let known = match kind {
            "array" => has(&ARRAY_MEMBERS),
            "string" => has(&STRING_MEMBERS),
            // Long numbers come as their digits.
            "number" => has(&NUMBER_MEMBERS) || has(&STRING_MEMBERS),
            "boolean" => has(&[]),
            _ => return property_of_object(schema, name),
        };
        if known { Part::Unknown } else { Part::None }
    }

    /// Returns `true` if property `name` is an array in each object that has it.
    fn is_array(&self, name: &str) -> bool {
        let mut values = self.options.iter().filter_map(|schema| match property_of_object(schema, name) {
            Part::Schema(schema) => self.expanded(schema),
            Part::Unknown | Part::None => None,
        });
        let is_array = |schema: &JsonObject| kinds(schema).is_some_and(|kinds| kinds == ["array"]);
        values.all(|options| !options.is_empty() && options.into_iter().all(is_array))
    }
}

enum Part<'s> {
    Schema(&'s Value),
    Unknown,
    None,
}

fn property_of_object<'s>(schema: &'s JsonObject, name: &str) -> Part<'s> {
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(property) = properties.and_then(|properties| properties.get(name)) {
        return Part::Schema(property);
    }
    match schema.get("additionalProperties") {
        _ if OBJECT_MEMBERS.contains(&name) || OPEN.iter().any(|keyword| schema.contains_key(*keyword)) => {
            Part::Unknown
        }
        None | Some(Value::Bool(false)) if properties.is_some_and(|properties| !properties.is_empty()) => {
            Part::None
        }
        Some(more @ Value::Object(_)) => Part::Schema(more),
        _ => Part::Unknown,
    }
}

/// The kinds of values of a schema, but for `null`; `None` when it does not say.
fn kinds(schema: &JsonObject) -> Option<Vec<&'static str>> {
    let named = |name: &Value| match name.as_str()? {
        "object" => Some("object"),
        "array" => Some("array"),
        "string" => Some("string"),
        "number" | "integer" => Some("number"),
        "boolean" => Some("boolean"),
        _ => None,
    };
    let mut kinds: Vec<&str> = match schema.get("type") {
        Some(Value::Array(types)) => {
            types.iter().filter(|name| *name != "null").map(named).collect::<Option<_>>()?
        }
        Some(name) => vec![named(name)?],
        None if schema.contains_key("properties") => vec!["object"],
        None => return None,
    };
    kinds.dedup();
    Some(kinds)
}

impl<'s> Expansion<'s> {
    fn new(root: &'s JsonObject) -> Self {
        Self { root, options: Some(Vec::new()), steps: MOST_STEPS }
    }

    fn expand(&mut self, schema: &'s Value, left: u8) {
        match schema {
            Value::Object(schema) => self.expand_object(schema, left),
            Value::Bool(false) => {}
            _ => self.options = None,
        }
    }

    fn expand_object(&mut self, schema: &'s JsonObject, left: u8) {
        let Some(collected) = &mut self.options else { return };
        if left == 0 || self.steps == 0 || collected.len() >= MOST_OPTIONS {
            self.options = None;
            return;
        }
        self.steps -= 1;
        if let Some(reference) = schema.get("$ref") {
            match reference.as_str().and_then(|reference| target(self.root, reference)) {
                Some(target) => self.expand(target, left - 1),
                None => self.options = None,
            }
            return;
        }
        let union = ["anyOf", "oneOf"].iter().find_map(|union| schema.get(*union)?.as_array());
        let union = union.filter(|union| !union.iter().all(only_requires));
        match (union, schema.get("allOf").and_then(Value::as_array)) {
            (Some(_), _) | (_, Some(_)) if schema.contains_key("properties") => self.options = None,
            (Some(union), None) => union.iter().for_each(|option| self.expand(option, left - 1)),
            (None, Some(all)) => match all.as_slice() {
                [only] => self.expand(only, left - 1),
                _ => self.options = None,
            },
            (Some(_), Some(_)) => self.options = None,
            (None, None) if schema.get("type").is_some_and(|name| name == "null") => {}
            (None, None) => collected.push(schema),
        }
    }
}

/// Returns `true` for a part of a union that adds no properties.
fn only_requires(schema: &Value) -> bool {
    schema.as_object().is_some_and(|schema| schema.keys().all(|keyword| keyword == "required"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> &JsonObject {
        value.as_object().unwrap()
    }

    #[test]
    fn a_property_that_only_some_alternatives_have_ends_the_description_of_what_is_missing() {
        let one = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}});
        let list = json!({"type": "array", "properties": {"a": {"type": "array"}}});
        for alternatives in
            [json!([one("a"), one("b")]), json!([one("b"), list]), json!([one("a"), {"type": "string"}])]
        {
            for keyword in ["oneOf", "anyOf"] {
                let schema = json!({"type": "object", keyword: alternatives});
                let shape = Shape::of(object(&schema)).unwrap();
                assert!(matches!(shape.property("a"), Found::Shape(_) | Found::Missing(_)), "{schema}");
                assert!(matches!(shape.property("c"), Found::Missing(_) | Found::Unknown), "{schema}");
            }
        }
        let schema = json!({"oneOf": [one("a"), {"type": "object", "properties": {"b": {"type": "array"}}}]});
        let Found::Missing(lack) = Shape::of(object(&schema)).unwrap().property("c") else {
            panic!("none has it")
        };
        assert_eq!((lack.names(), lack.arrays()), (vec!["a", "b"], vec!["b"]));
    }

    #[test]
    fn references_that_multiply_are_followed_a_bounded_number_of_times() {
        let level = |n: u8| json!({"anyOf": vec![json!({"$ref": format!("#/$defs/l{}", n + 1)}); 40]});
        let mut definitions: JsonObject = (0..6).map(|n| (format!("l{n}"), level(n))).collect();
        definitions.insert("l6".into(), json!({"type": "null"}));
        let schema =
            json!({"type": "object", "properties": {"deep": {"$ref": "#/$defs/l0"}}, "$defs": definitions});
        assert!(matches!(Shape::of(object(&schema)).unwrap().property("deep"), Found::Unknown));
    }
}
