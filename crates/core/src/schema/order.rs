//! The order in which a schema is checked: first what rules it out.

use rmcp::model::JsonObject;
use serde_json::Value;

/// Keywords that rule most schemas of a choice out, without looking far into the value.
const FIRST: [&str; 5] = ["type", "const", "enum", "required", "properties"];

/// Most options of an `enum` that are looked at.
const MOST_OPTIONS: usize = 64;

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
pub(super) fn is_ruled_out(schema: &JsonObject, value: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter();
    let mut members = properties.flat_map(|properties| in_both(properties, value));
    is_another(schema, value)
        || lacks(schema, value)
        || members.any(|(given, member)| given.as_object().is_some_and(|given| is_another(given, member)))
}

/// Returns the schemas of `properties` with the members of `value` that they are for, going through the shorter of both.
pub(super) fn in_both<'s, 'v>(
    properties: &'s JsonObject,
    value: &'v Value,
) -> impl Iterator<Item = (&'s Value, &'v Value)> {
    let members = value.as_object();
    let shorter = members.filter(|members| members.len() < properties.len());
    let longer = members.filter(|_| shorter.is_none());
    let by_member = shorter.into_iter().flatten();
    let by_property = longer.into_iter().flat_map(move |members| {
        properties.iter().filter_map(move |(name, given)| Some((given, members.get(name)?)))
    });
    by_member.filter_map(move |(name, member)| Some((properties.get(name)?, member))).chain(by_property)
}

/// Returns `true` if `value` lacks a member that `schema` requires, and validators see that before they look into others.
fn lacks(schema: &JsonObject, value: &Value) -> bool {
    let (Some(Value::Array(names)), Some(members)) = (schema.get("required"), value.as_object()) else {
        return false;
    };
    !looks_for_two(schema) && names.iter().filter_map(Value::as_str).any(|name| !members.contains_key(name))
}

/// Returns `true` if a validator looks for the members that `schema` requires while it looks into all: `jsonschema` does so for two names.
fn looks_for_two(schema: &JsonObject) -> bool {
    let is_pair = schema.get("required").and_then(Value::as_array).is_some_and(|names| names.len() == 2);
    let is_open = !matches!(schema.get("additionalProperties"), Some(Value::Bool(false) | Value::Object(_)));
    is_pair && is_open && schema.contains_key("properties") && !schema.contains_key("patternProperties")
}

/// Makes validators look for what is required before they look into members: schemas of two required names say that other members may be
/// anything. Not where `unevaluatedProperties` could take those for evaluated.
pub(super) fn look_for_required_first(schema: &mut Value) {
    if !names_keyword(schema, "unevaluatedProperties") {
        allow_others(schema);
    }
}

fn allow_others(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(allow_others),
        Value::Object(object) => {
            let is_schema = object.get("properties").is_some_and(Value::is_object);
            if is_schema && looks_for_two(object) && !object.contains_key("additionalProperties") {
                object.insert("additionalProperties".to_owned(), Value::Object(JsonObject::new()));
            }
            let parts = object.iter_mut().filter(|(name, _)| !["const", "enum"].contains(&name.as_str()));
            parts.for_each(|(_, part)| allow_others(part));
        }
        _ => {}
    }
}

fn names_keyword(schema: &Value, keyword: &str) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(|item| names_keyword(item, keyword)),
        Value::Object(object) => {
            object.contains_key(keyword) || object.values().any(|part| names_keyword(part, keyword))
        }
        _ => false,
    }
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
    let may_be_one = |given: &Value| {
        given.as_array().is_none_or(|given| given.len() > MOST_OPTIONS || given.iter().any(may_be))
    };
    !has_type || !schema.get("const").is_none_or(may_be) || !schema.get("enum").is_none_or(may_be_one)
}
