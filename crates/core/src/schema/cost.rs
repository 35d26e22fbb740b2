//! The work of checking a value against a schema, counted before it is done.
//!
//! References make a schema of a few kilobytes as large as they like: one that refers twice to the next, forty times in a row, is checked
//! 2^40 times. What is counted here is how often a part of the schema is applied to a part of the value. Every pair is counted once and
//! remembered, so counting takes no longer than there are pairs, and ends at a limit.

use std::{collections::HashMap, ptr, rc::Rc};

use rmcp::model::JsonObject;
use serde_json::Value;

/// Most times that parts of a schema are applied to parts of one value, for values of few parts; and for each part of one with many.
const MOST: u64 = 1_000_000;
const MOST_FOR_EACH: u64 = 8;

/// Returns how often parts of a schema may be applied to parts of `value`.
pub(super) fn most(value: &Value) -> u64 {
    values(value).saturating_mul(MOST_FOR_EACH).max(MOST)
}

/// Schemas within each other, by keywords or references.
const DEEPEST: u32 = 500;

/// Returns how often a value with one element in each of its arrays and objects can have parts of `schema` applied to it at most;
/// `u64::MAX` if the schema refers to itself. `None` if its parts are nested deeper than [`DEEPEST`] levels.
pub(super) fn unrolled(schema: &Value) -> Option<u64> {
    let mut counter = Counter::new(schema, u64::MAX);
    let cost = counter.all(None);
    (!counter.too_deep).then_some(cost.times)
}

/// Returns how often parts of `schema` are applied to parts of `value`; `None` for more than [`most`], and for what never ends.
///
/// With `every_problem`, also parts of schemas that an earlier keyword has ruled out.
pub(super) fn applications(schema: &Value, value: &Value, every_problem: bool) -> Option<u64> {
    let mut counter = Counter { every_problem, ..Counter::new(schema, most(value)) };
    let cost = counter.all(Some(value));
    (!counter.too_deep && cost.times <= counter.most).then_some(cost.times)
}

/// Returns the number of values in `value`, itself included.
pub(super) fn values(value: &Value) -> u64 {
    1 + match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(members) => members.values().map(values).sum(),
        _ => 0,
    }
}

/// Names of schemas in a schema, beyond which references are not followed: each could lead to any of them.
const MOST_NAMES: usize = 64;

/// Times that parts of the schema of schemas are applied to each part of a schema, and its levels; more than there are.
const META: u64 = 200;
const META_HEIGHT: u32 = 50;

#[derive(Clone, Copy)]
struct Cost {
    times: u64,
    /// Levels below.
    height: u32,
}

const ENDLESS: Cost = Cost { times: u64::MAX, height: 0 };

struct Counter<'s> {
    root: &'s Value,
    /// Schemas with a name of their own (`$id`, `$anchor`, `$dynamicAnchor`).
    named: Vec<(&'s str, &'s Value)>,
    /// Schemas that each reference leads to.
    targets: HashMap<&'s str, Rc<[&'s Value]>>,
    /// Costs of schemas that are referred to, at a value; `None` while one is counted. Without a value: at any.
    known: HashMap<(*const JsonObject, *const Value), Option<Cost>>,
    most: u64,
    counted: u64,
    too_deep: bool,
    every_problem: bool,
}

impl<'s> Counter<'s> {
    fn new(root: &'s Value, most: u64) -> Self {
        let mut named = Vec::new();
        find_names(root, &mut named);
        Self {
            root,
            named,
            targets: HashMap::new(),
            known: HashMap::new(),
            most,
            counted: 0,
            too_deep: false,
            every_problem: false,
        }
    }

    /// Counts the whole schema.
    fn all(&mut self, value: Option<&Value>) -> Cost {
        match self.root {
            Value::Object(schema) => self.referred(schema, value, 0),
            _ => Cost { times: 1, height: 0 },
        }
    }

    /// Counts `schema` and what is in it, applied to `value`.
    fn count(&mut self, schema: &'s JsonObject, value: Option<&Value>, depth: u32) -> Cost {
        self.counted += 1;
        if self.too_deep || self.counted > self.most {
            return ENDLESS;
        }
        if depth > DEEPEST {
            self.too_deep = true;
            return ENDLESS;
        }
        let mut sum = Sum(Cost { times: 1, height: 0 });
        if !self.every_problem && value.is_some_and(|value| is_ruled_out(schema, value)) {
            return sum.0;
        }
        for (keyword, given) in schema {
            match keyword.as_str() {
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    let name = given.as_str().unwrap_or_default();
                    if name.contains("//json-schema.org/") {
                        // The schema of schemas is known to the validator.
                        let times = META.saturating_mul(value.map_or(1, values));
                        sum.add(Cost { times, height: META_HEIGHT });
                        continue;
                    }
                    let targets = match self.targets.get(name) {
                        Some(targets) => targets.clone(),
                        None => {
                            let targets: Rc<[_]> = self.find_targets(name).into();
                            self.targets.insert(name, targets.clone());
                            targets
                        }
                    };
                    if targets.is_empty() {
                        sum.add(ENDLESS);
                    }
                    for target in targets.iter() {
                        match target {
                            Value::Object(target) => sum.add(self.referred(target, value, depth)),
                            _ => sum.add(Cost { times: 1, height: 0 }),
                        }
                    }
                }
                "not" | "if" | "then" | "else" | "allOf" | "anyOf" | "oneOf" => {
                    self.each(given, value, depth, &mut sum);
                }
                "dependentSchemas" | "dependencies" => {
                    for given in given.as_object().into_iter().flat_map(JsonObject::values) {
                        self.one(given, value, depth, &mut sum);
                    }
                }
                "properties" => {
                    for (name, given) in given.as_object().into_iter().flatten() {
                        match value {
                            None => self.one(given, None, depth, &mut sum),
                            Some(value) => {
                                if let Some(member) = value.as_object().and_then(|object| object.get(name)) {
                                    self.one(given, Some(member), depth, &mut sum);
                                }
                            }
                        }
                    }
                }
                "patternProperties" => {
                    for given in given.as_object().into_iter().flat_map(JsonObject::values) {
                        self.members(given, value, depth, &mut sum);
                    }
                }
                "additionalProperties" | "unevaluatedProperties" | "propertyNames" => {
                    self.members(given, value, depth, &mut sum);
                }
                "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" | "contains" => {
                    self.items(given, value, depth, &mut sum);
                }
                _ => {}
            }
        }
        if schema.contains_key("unevaluatedProperties") || schema.contains_key("unevaluatedItems") {
            // What was evaluated is found out by evaluating again.
            sum.0.times = sum.0.times.saturating_mul(2);
        }
        sum.0
    }

    /// Counts a schema, or each of a list, applied to `value`.
    fn each(&mut self, given: &'s Value, value: Option<&Value>, depth: u32, sum: &mut Sum) {
        match given {
            Value::Array(schemas) => schemas.iter().for_each(|given| self.one(given, value, depth, sum)),
            given => self.one(given, value, depth, sum),
        }
    }

    fn one(&mut self, given: &'s Value, value: Option<&Value>, depth: u32, sum: &mut Sum) {
        match given {
            Value::Object(schema) => sum.add(self.count(schema, value, depth + 1)),
            _ => sum.add(Cost { times: 1, height: 0 }),
        }
    }

    fn members(&mut self, given: &'s Value, value: Option<&Value>, depth: u32, sum: &mut Sum) {
        match value {
            None => self.one(given, None, depth, sum),
            Some(value) => {
                for member in value.as_object().into_iter().flat_map(JsonObject::values) {
                    self.one(given, Some(member), depth, sum);
                }
            }
        }
    }

    fn items(&mut self, given: &'s Value, value: Option<&Value>, depth: u32, sum: &mut Sum) {
        match value {
            None => self.each(given, None, depth, sum),
            Some(value) => {
                for item in value.as_array().into_iter().flatten() {
                    self.each(given, Some(item), depth, sum);
                }
            }
        }
    }

    /// Counts a schema that is referred to, once for each value.
    fn referred(&mut self, schema: &'s JsonObject, value: Option<&Value>, depth: u32) -> Cost {
        if !self.every_problem && value.is_some_and(|value| is_ruled_out(schema, value)) {
            return Cost { times: 1, height: 0 };
        }
        let key = (ptr::from_ref(schema), value.map_or(ptr::null(), ptr::from_ref));
        match self.known.get(&key) {
            Some(Some(known)) if depth + known.height < DEEPEST => return *known,
            Some(Some(_)) => {
                self.too_deep = true;
                return ENDLESS;
            }
            // It refers to itself, at the same value.
            Some(None) => return ENDLESS,
            None => {}
        }
        self.known.insert(key, None);
        let cost = self.count(schema, value, depth + 1);
        self.known.insert(key, Some(cost));
        cost
    }

    /// The schemas that a reference may name: all whose names end alike. None for one that leads out of the document.
    fn find_targets(&self, reference: &str) -> Vec<&'s Value> {
        if self.named.len() > MOST_NAMES {
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

struct Sum(Cost);

impl Sum {
    fn add(&mut self, part: Cost) {
        self.0.times = self.0.times.saturating_add(part.times);
        self.0.height = self.0.height.max(part.height + 1);
    }
}

/// Keywords that rule most schemas of a choice out, without looking far into the value.
const FIRST: [&str; 5] = ["type", "const", "enum", "required", "properties"];

/// Puts keywords and properties that rule a schema out before those that look into the value: validators check in this order.
pub(super) fn put_first_what_rules_out(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(put_first_what_rules_out),
        Value::Object(object) => {
            object.values_mut().for_each(put_first_what_rules_out);
            let rank = |keyword: &str| FIRST.iter().position(|it| *it == keyword).unwrap_or(FIRST.len());
            sort(object, |name, _| rank(name));
            if let Some(Value::Object(properties)) = object.get_mut("properties") {
                sort(properties, |_, given| usize::from(given.get("const").or(given.get("enum")).is_none()));
            }
        }
        _ => {}
    }
}

/// The same value with members that are no objects or arrays before the others: where a validator goes by the members of the value, and
/// not by the properties of the schema, those rule schemas out.
pub(super) fn with_plain_members_first(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(with_plain_members_first).collect(),
        Value::Object(object) => {
            let mut object =
                object.iter().map(|(name, it)| (name.clone(), with_plain_members_first(it))).collect();
            sort(&mut object, |_, value| usize::from(value.is_object() || value.is_array()));
            Value::Object(object)
        }
        plain => plain.clone(),
    }
}

fn sort(object: &mut JsonObject, rank: impl Fn(&str, &Value) -> usize) {
    let mut members: Vec<_> = std::mem::take(object).into_iter().collect();
    members.sort_by_key(|(name, value)| rank(name, value));
    object.extend(members);
}

/// Returns `true` if `value` does not fit `schema`, by what can be seen without looking far into either.
fn is_ruled_out(schema: &JsonObject, value: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut members = properties.filter_map(|(name, given)| Some((given.as_object()?, value.get(name)?)));
    // Not what is required: validators look for that while they look into the members.
    is_another(schema, value) || members.any(|(given, member)| is_another(given, member))
}

/// Returns `true` if `value` has another type, or is another value, than `schema` names.
fn is_another(schema: &JsonObject, value: &Value) -> bool {
    let is_type = |name: &Value| match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        // A whole number may be written as a fraction.
        _ => value.is_number(),
    };
    // Numbers are equal in more ways than their texts are, and long values take long to compare.
    let may_be = |given: &Value| match (given, value) {
        (Value::String(given), Value::String(value)) => given == value,
        (given, value) => std::mem::discriminant(given) == std::mem::discriminant(value),
    };
    let has_type = match schema.get("type") {
        None => true,
        Some(Value::Array(names)) => names.iter().any(is_type),
        Some(name) => is_type(name),
    };
    let may_be_one = |given: &Value| given.as_array().is_none_or(|given| given.iter().any(may_be));
    !has_type || !schema.get("const").is_none_or(may_be) || !schema.get("enum").is_none_or(may_be_one)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A chain of definitions in which each refers `width` times to the next.
    fn doubling(keyword: &str, depth: usize, width: usize) -> Value {
        let mut definitions = JsonObject::new();
        for n in 0..depth {
            let next = vec![json!({"$ref": format!("#/$defs/d{}", n + 1)}); width];
            definitions.insert(format!("d{n}"), json!({keyword: next}));
        }
        definitions.insert(format!("d{depth}"), json!({"type": "string"}));
        json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions})
    }

    #[test]
    fn references_that_multiply_are_counted_without_being_followed_again() {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let schema = doubling(keyword, 40, 2);
            assert!(unrolled(&schema).unwrap() > 1 << 40);
            assert_eq!(applications(&schema, &json!({"a": 5}), false), None);
            assert_eq!(applications(&schema, &json!({}), false), Some(1));
            let few = applications(&doubling(keyword, 3, 2), &json!({"a": 5}), true).unwrap();
            assert!((16..64).contains(&few), "{few}");
        }
        let nested = json!({"$ref": "#/$defs/node", "$defs": {"node": {"properties": {"next":
            {"allOf": [{"$ref": "#/$defs/node"}, {"$ref": "#/$defs/node"}]}}}}});
        let mut value = json!({});
        for _ in 0..40 {
            value = json!({"next": value});
        }
        assert_eq!(applications(&nested, &value, false), None);
    }

    #[test]
    fn recursive_schemas_cost_as_much_as_their_values_are_long() {
        let tree = json!({"$id": "https://example.com/tree", "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#"}}, "name": {"$ref": "tree#/$defs/name"}},
            "$defs": {"name": {"type": "string"}, "other": {"$anchor": "it"}}, "not": {"$ref": "#it"}});
        assert_eq!(unrolled(&tree), Some(u64::MAX));
        let of = |children: usize| {
            let child = json!({"name": "a", "children": []});
            applications(&tree, &json!({"name": "b", "children": vec![child; children]}), true).unwrap()
        };
        let (one, many) = (of(100), of(200));
        assert!(many > one && many < 2 * one + 20 && many < 3_000, "{one} and {many}");
    }

    #[test]
    fn schemas_that_refer_to_themselves_at_the_same_value_never_end() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}}),
        ] {
            assert_eq!(applications(&schema, &json!({}), false), None);
        }
    }

    #[test]
    fn long_chains_of_references_are_too_deep() {
        assert!(unrolled(&doubling("allOf", 100, 1)).is_some());
        assert_eq!(unrolled(&doubling("allOf", 100_000, 1)), None);
    }
}
