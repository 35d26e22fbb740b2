//! A JSON Schema, read as the kinds of values that may be there.
//!
//! A shape is unknown, and nothing is said of it, where the schema leaves it open or chooses it by value.

use gatewright_core::rmcp::model::JsonObject;
use serde_json::Value;

/// Most alternatives of a value that are looked at.
const MOST_OPTIONS: usize = 12;
/// Most references and unions within each other.
const DEEPEST: u8 = 16;
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
    /// The properties that an object has.
    pub(super) names: Vec<&'s str>,
    /// Those of them that are arrays.
    pub(super) arrays: Vec<&'s str>,
}

/// Options as they are collected; `None` once anything may be there.
type Options<'s> = Option<Vec<&'s JsonObject>>;

impl<'s> Shape<'s> {
    /// The shape that `root` describes, if it says anything.
    pub(super) fn of(root: &'s JsonObject) -> Option<Self> {
        let mut options = Some(Vec::new());
        expand_object(root, root, DEEPEST, &mut options);
        Some(Self { root, options: options.filter(|options| !options.is_empty())? })
    }

    fn expanded(&self, schema: &'s Value) -> Options<'s> {
        let mut options = Some(Vec::new());
        expand(self.root, schema, DEEPEST, &mut options);
        options
    }

    /// The value of property `name`.
    pub(super) fn property(&self, name: &str) -> Found<'s> {
        self.part(|kind, schema| self.property_of(kind, schema, name))
    }

    /// Any element of an array.
    pub(super) fn item(&self) -> Found<'s> {
        self.part(|kind, schema| match kind {
            "array" if schema.contains_key("prefixItems") => Part::Unknown,
            "array" => schema.get("items").map_or(Part::Unknown, Part::Schema),
            "string" => Part::Unknown,
            _ => Part::None,
        })
    }

    /// An element or a property whose key is not known.
    pub(super) fn computed(&self) -> Found<'s> {
        let is_array = |schema: &&JsonObject| kinds(schema).is_some_and(|kinds| kinds == ["array"]);
        if self.options.iter().all(is_array) { self.item() } else { Found::Unknown }
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
                    Part::None => lack = Some(self.lack(kind)),
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
            Some(lack) if !is_found => Found::Missing(lack),
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

    fn lack(&self, kind: &'static str) -> Lack<'s> {
        let names = if kind == "object" { self.names() } else { Vec::new() };
        let is_array = |name: &&'s str| match self.property(name) {
            Found::Shape(shape) => {
                shape.options.iter().all(|schema| kinds(schema).is_some_and(|kinds| kinds == ["array"]))
            }
            _ => false,
        };
        let arrays = names.iter().copied().take(100).filter(is_array).collect();
        Lack { kind, names, arrays }
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

fn expand<'s>(root: &'s JsonObject, schema: &'s Value, left: u8, options: &mut Options<'s>) {
    match schema {
        Value::Object(schema) => expand_object(root, schema, left, options),
        Value::Bool(false) => {}
        _ => *options = None,
    }
}

fn expand_object<'s>(root: &'s JsonObject, schema: &'s JsonObject, left: u8, options: &mut Options<'s>) {
    let Some(collected) = options else { return };
    if left == 0 || collected.len() >= MOST_OPTIONS {
        *options = None;
        return;
    }
    if let Some(reference) = schema.get("$ref") {
        match reference.as_str().and_then(|reference| target(root, reference)) {
            Some(target) => expand(root, target, left - 1, options),
            None => *options = None,
        }
        return;
    }
    let union = ["anyOf", "oneOf"].iter().find_map(|union| schema.get(*union)?.as_array());
    let union = union.filter(|union| !union.iter().all(only_requires));
    match (union, schema.get("allOf").and_then(Value::as_array)) {
        (Some(_), _) | (_, Some(_)) if schema.contains_key("properties") => *options = None,
        (Some(union), None) => union.iter().for_each(|option| expand(root, option, left - 1, options)),
        (None, Some(all)) => match all.as_slice() {
            [only] => expand(root, only, left - 1, options),
            _ => *options = None,
        },
        (Some(_), Some(_)) => *options = None,
        (None, None) if schema.get("type").is_some_and(|name| name == "null") => {}
        (None, None) => collected.push(schema),
    }
}

/// Returns `true` for a part of a union that adds no properties.
fn only_requires(schema: &Value) -> bool {
    schema.as_object().is_some_and(|schema| schema.keys().all(|keyword| keyword == "required"))
}

/// The target of a reference within the schema.
fn target<'s>(root: &'s JsonObject, reference: &str) -> Option<&'s Value> {
    let mut parts = reference.strip_prefix("#/")?.split('/');
    let unescaped = |part: &str| part.replace("~1", "/").replace("~0", "~");
    let first = root.get(&unescaped(parts.next()?))?;
    parts.try_fold(first, |at, part| at.get(unescaped(part)))
}
