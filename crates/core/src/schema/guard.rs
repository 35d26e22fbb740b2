//! Conditions that a value has to meet to fit an alternative, seen without looking far into either.

use std::cell::Cell;

use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::{
    copying::{weight, weight_of_text},
    order::in_both,
};

/// Most values, names of properties and properties that a condition is read from.
const MOST_VALUES: usize = 64;
const MOST_NAMES: usize = 64;
const MOST_MEMBERS: usize = 8;
/// Longest constant or name of a property in a condition, in bytes.
const LONGEST: usize = 256;
/// References and `allOf` that are followed within each other, and schemas that are read for one condition.
const DEEPEST: u32 = 8;
const MOST_READ: u32 = 200;
/// Most work of reading all conditions of a schema: for each part of it, and for short schemas.
const MOST_READ_FOR_EACH: u64 = 4;
const MOST_READ_AT_LEAST: u64 = 10_000;

/// The parts of a condition that are applied.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// The type of the value, and constants of it and of its members.
    Values,
    /// Members that are required as well.
    Required,
    /// No other members than those that are allowed.
    Names,
    /// Types of members. Last: a member of another type is more often wrong than a sign of another alternative.
    Types,
}

/// A condition that every value meets that fits a schema.
#[derive(Debug, Clone, Default)]
pub(super) struct Guard {
    /// The keyword `type`.
    types: Option<Vec<Value>>,
    /// The keywords `const` and `enum`.
    values: Option<Vec<Value>>,
    required: Vec<String>,
    members: Vec<(String, Guard)>,
    /// Names of all members that may be there.
    names: Option<Vec<String>>,
}

impl Guard {
    /// Reads the condition from `schema`, a part of that of `reader`. Where keywords of one kind stand in several places, one counts.
    pub(super) fn of(schema: &Value, reader: &Reader<'_>) -> Self {
        let mut guard = Self::default();
        reader.left.set(MOST_READ);
        guard.read(schema, reader, 0, true);
        guard
    }

    fn read(&mut self, schema: &Value, reader: &Reader<'_>, depth: u32, with_members: bool) {
        let Some(object) = schema.as_object().filter(|_| depth < DEEPEST && reader.may_read()) else {
            return;
        };
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            if let Some(target) = reader.find(reference) {
                self.read(target, reader, depth + 1, with_members);
            }
            if reader.ignores_siblings {
                return;
            }
        }
        if self.types.is_none() {
            self.types = match object.get("type") {
                Some(Value::Array(types)) => reader.copied(types),
                Some(name @ Value::String(_)) => reader.copied(std::slice::from_ref(name)),
                _ => None,
            };
        }
        if self.values.is_none() {
            self.values = match (object.get("const"), object.get("enum")) {
                (Some(value), _) => reader.copied(std::slice::from_ref(value)),
                (None, Some(Value::Array(values))) => reader.copied(values),
                _ => None,
            };
        }
        if with_members {
            self.read_members(object, reader, depth);
        }
        for part in object.get("allOf").and_then(Value::as_array).into_iter().flatten().take(MOST_MEMBERS) {
            self.read(part, reader, depth + 1, with_members);
        }
    }

    fn read_members(&mut self, object: &JsonObject, reader: &Reader<'_>, depth: u32) {
        let required = object.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().take(MOST_NAMES).filter_map(Value::as_str) {
            if self.required.len() < MOST_NAMES
                && name.len() <= LONGEST
                && reader.spend(weight_of_text(name)).is_some()
            {
                self.required.push(name.to_owned());
            }
        }
        let properties = object.get("properties").and_then(Value::as_object);
        for (name, given) in properties.into_iter().flatten().take(MOST_NAMES) {
            if self.members.len() == MOST_MEMBERS {
                break;
            }
            let mut member = Self::default();
            member.read(given, reader, depth + 1, false);
            let is_new = name.len() <= LONGEST && self.members.iter().all(|(it, _)| it != name);
            if is_new && (member.types.is_some() || member.values.is_some()) {
                self.members.push((name.clone(), member));
            }
        }
        let is_closed = object.get("additionalProperties") == Some(&Value::Bool(false));
        if is_closed && self.names.is_none() && !object.contains_key("patternProperties") {
            let names = || properties.into_iter().flatten().map(|(name, _)| name);
            let are_short =
                names().take(MOST_NAMES + 1).count() <= MOST_NAMES && names().all(|it| it.len() <= LONGEST);
            if are_short && reader.spend(names().map(|name| weight_of_text(name)).sum()).is_some() {
                self.names = Some(names().cloned().collect());
            }
        }
    }

    /// Returns the condition as a schema.
    pub(super) fn schema(&self, strength: Strength) -> Value {
        let mut schema = JsonObject::new();
        put(&mut schema, "type", self.types.as_ref());
        put(&mut schema, "enum", self.values.as_ref());
        self.put_members(&mut schema, strength);
        Value::Object(schema)
    }

    fn put_members(&self, schema: &mut JsonObject, strength: Strength) {
        if strength >= Strength::Required && !self.required.is_empty() {
            schema.insert("required".to_owned(), json!(unique(self.required.iter().map(|it| json!(it)))));
        }
        let mut properties = JsonObject::new();
        if let Some(names) = self.names.as_ref().filter(|_| strength >= Strength::Names) {
            properties.extend(names.iter().map(|name| (name.clone(), Value::Bool(true))));
            schema.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        for (name, member) in &self.members {
            // A member may be read elsewhere than the names that are allowed.
            if !schema.contains_key("additionalProperties") || properties.contains_key(name) {
                let mut condition = JsonObject::new();
                put(&mut condition, "enum", member.values.as_ref());
                if strength >= Strength::Types {
                    put(&mut condition, "type", member.types.as_ref());
                }
                if !condition.is_empty() {
                    properties.insert(name.clone(), Value::Object(condition));
                }
            }
        }
        if !properties.is_empty() {
            schema.insert("properties".to_owned(), Value::Object(properties));
        }
    }

    fn may_be_object(&self) -> bool {
        let is_object = |name: &Value| name == "object";
        self.types.as_ref().is_none_or(|types| types.iter().any(is_object))
            && self.values.as_ref().is_none_or(|values| values.iter().any(Value::is_object))
    }
}

/// Returns keywords that every value meets that fits one of the schemas of `guards`.
pub(super) fn common(guards: &[Guard]) -> JsonObject {
    let mut schema = values_of(guards.iter());
    let objects: Vec<&Guard> = guards.iter().filter(|guard| guard.may_be_object()).collect();
    let Some((first, others)) = objects.split_first() else { return schema };
    let required = first.required.iter().filter(|name| others.iter().all(|it| it.required.contains(name)));
    let required = unique(required.map(|name| json!(name)));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    let mut properties = JsonObject::new();
    for (name, _) in &first.members {
        let member = |guard: &&Guard| guard.members.iter().position(|(it, _)| it == name);
        let members: Option<Vec<&Guard>> =
            objects.iter().map(|guard| Some(&guard.members[member(guard)?].1)).collect();
        let allowed = members.map(|members| values_of(members.into_iter())).unwrap_or_default();
        if !allowed.is_empty() {
            properties.insert(name.clone(), Value::Object(allowed));
        }
    }
    if !properties.is_empty() {
        schema.insert("properties".to_owned(), Value::Object(properties));
    }
    schema
}

/// Returns the types and values of all `guards`, where each has some.
fn values_of<'g>(guards: impl Iterator<Item = &'g Guard> + Clone) -> JsonObject {
    let all = |of: fn(&Guard) -> Option<&Vec<Value>>| {
        let lists: Option<Vec<_>> = guards.clone().map(of).collect();
        lists.map(|lists| unique(lists.into_iter().flatten().cloned())).filter(|it| it.len() < MOST_VALUES)
    };
    let mut schema = JsonObject::new();
    put(&mut schema, "type", all(|guard| guard.types.as_ref()).as_ref());
    put(&mut schema, "enum", all(|guard| guard.values.as_ref()).as_ref());
    schema
}

fn put(schema: &mut JsonObject, keyword: &str, values: Option<&Vec<Value>>) {
    if let Some(values) = values.filter(|values| !values.is_empty()) {
        schema.insert(keyword.to_owned(), Value::Array(values.clone()));
    }
}

/// Returns each value once, [`MOST_VALUES`] at most.
fn unique(values: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut all = Vec::new();
    for value in values {
        if all.len() == MOST_VALUES {
            break;
        }
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

fn is_short(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= LONGEST,
        Value::Array(_) | Value::Object(_) => false,
        _ => true,
    }
}

/// Reads conditions from the parts of one schema, all of them within a budget: alternatives may all refer to the same long part.
pub(super) struct Reader<'s> {
    source: &'s Value,
    ignores_siblings: bool,
    /// Schemas that may still be read for this condition.
    left: Cell<u32>,
    /// Work that is left for all conditions, as [`weight`] counts it.
    room: Cell<u64>,
}

impl<'s> Reader<'s> {
    /// A reader of parts of `source`. Keywords next to `$ref` may mean nothing.
    pub(super) fn new(source: &'s Value, ignores_siblings: bool) -> Self {
        let room = weight(source).saturating_mul(MOST_READ_FOR_EACH).saturating_add(MOST_READ_AT_LEAST);
        Self { source, ignores_siblings, left: Cell::new(0), room: Cell::new(room) }
    }

    /// Returns `true` if conditions were not read to their end.
    pub(super) fn is_used_up(&self) -> bool {
        self.room.get() == 0
    }

    fn spend(&self, work: u64) -> Option<()> {
        let mut left = self.room.get();
        let spent = spend(&mut left, work);
        self.room.set(left);
        spent
    }

    fn may_read(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0 && self.spend(1).is_some()
    }

    /// A copy of `values`, where they are few and short.
    fn copied(&self, values: &[Value]) -> Option<Vec<Value>> {
        if values.len() > MOST_VALUES || !values.iter().all(is_short) {
            return None;
        }
        self.spend(values.iter().map(weight).sum())?;
        Some(values.to_vec())
    }

    fn find(&self, reference: &str) -> Option<&'s Value> {
        self.spend(weight_of_text(reference))?;
        let pointer =
            percent_encoding::percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()?;
        self.source.pointer(&pointer)
    }
}

/// Tests a value against a condition, with `fuel` for the parts of both that are looked at. `None` if only a validator can tell.
pub(super) fn meets(value: &Value, condition: &Value, fuel: &mut u64) -> Option<bool> {
    spend(fuel, 1)?;
    let object = match condition {
        Value::Bool(all) => return Some(*all),
        Value::Object(object) => object,
        _ => return None,
    };
    let mut is_known = true;
    for (keyword, given) in object {
        let holds = match keyword.as_str() {
            "type" => is_of_type(value, given),
            "const" => is_equal(value, given),
            "enum" => {
                let options = given.as_array()?;
                spend(fuel, options.len() as u64)?;
                any(options.iter().map(|given| is_equal(value, given)))
            }
            "required" => has_all(value, given, fuel),
            "properties" => members_meet(value, given, fuel),
            "additionalProperties" if given == &Value::Bool(false) => {
                let known = object.get("properties").and_then(Value::as_object);
                spend(fuel, value.as_object().map_or(0, JsonObject::len) as u64)?;
                let members = value.as_object().into_iter().flatten();
                match object.contains_key("patternProperties") {
                    true => None,
                    false => Some(
                        members.into_iter().all(|(name, _)| known.is_some_and(|it| it.contains_key(name))),
                    ),
                }
            }
            "oneOf" => exactly_one(value, given, fuel),
            _ => None,
        };
        match holds {
            Some(true) => {}
            Some(false) => return Some(false),
            None => is_known = false,
        }
    }
    is_known.then_some(true)
}

/// Takes `parts` that are looked at from `fuel`; `None` if there are too many.
fn spend(fuel: &mut u64, parts: u64) -> Option<()> {
    let left = fuel.checked_sub(parts);
    *fuel = left.unwrap_or(0);
    left.map(|_| ())
}

fn has_all(value: &Value, names: &Value, fuel: &mut u64) -> Option<bool> {
    let Some(members) = value.as_object() else { return Some(true) };
    let names = names.as_array()?;
    spend(fuel, names.len().min(members.len()) as u64)?;
    Some(names.iter().filter_map(Value::as_str).all(|name| members.contains_key(name)))
}

fn members_meet(value: &Value, given: &Value, fuel: &mut u64) -> Option<bool> {
    let mut is_known = true;
    let given = given.as_object()?;
    spend(fuel, value.as_object().map_or(0, |members| members.len().min(given.len())) as u64)?;
    for (condition, member) in in_both(given, value) {
        match meets(member, condition, fuel) {
            Some(true) => {}
            Some(false) => return Some(false),
            None => is_known = false,
        }
    }
    is_known.then_some(true)
}

fn exactly_one(value: &Value, given: &Value, fuel: &mut u64) -> Option<bool> {
    let mut met = 0;
    for condition in given.as_array()? {
        met += u32::from(meets(value, condition, fuel)?);
    }
    Some(met == 1)
}

fn is_of_type(value: &Value, types: &Value) -> Option<bool> {
    let is = |name: &Value| {
        Some(match (name.as_str()?, value) {
            ("object", _) => value.is_object(),
            ("array", _) => value.is_array(),
            ("string", _) => value.is_string(),
            ("boolean", _) => value.is_boolean(),
            ("null", _) => value.is_null(),
            ("number", _) => value.is_number(),
            // A whole number may be written as a fraction.
            ("integer", Value::Number(number)) if number.is_f64() => return None,
            ("integer", _) => value.is_number(),
            _ => return None,
        })
    };
    match types {
        Value::Array(types) => any(types.iter().map(is)),
        name => is(name),
    }
}

fn is_equal(value: &Value, given: &Value) -> Option<bool> {
    match (value, given) {
        (Value::String(value), Value::String(given)) => Some(value == given),
        (Value::Bool(value), Value::Bool(given)) => Some(value == given),
        (Value::Null, Value::Null) => Some(true),
        // Numbers are equal in more ways than their texts are, and long values take long to compare.
        (value, given) if std::mem::discriminant(value) == std::mem::discriminant(given) => None,
        _ => Some(false),
    }
}

fn any(mut each: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    each.try_fold(false, |found, holds| Some(found || holds?))
}
