//! Forms generated from the input schema of a tool, and their values as JSON.
//!
//! Each property that a person can type gets a field. Other properties (nested objects, unions) are typed as JSON. The gateway validates
//! the result against the schema.

use std::collections::HashMap;

use gatewright_core::{read_json, rmcp::model::JsonObject};
use serde_json::Value;

/// Most fields of one form. Input with more properties is typed as JSON.
const MOST_FIELDS: usize = 60;
/// Most choices of one list.
const MOST_CHOICES: usize = 500;

/// Kind of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FieldKind {
    /// One line, with the value of `type` in HTML.
    Text(&'static str),
    /// Several lines.
    LongText,
    /// A number.
    Number { whole: bool, min: Option<f64>, max: Option<f64> },
    /// One of these values.
    Choice(Vec<Value>),
    /// A list with one item per line, of numbers or of texts.
    Lines { numbers: bool },
    /// JSON.
    Json,
}

/// One property of the input.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) required: bool,
    pub(crate) kind: FieldKind,
    pub(crate) default: Option<String>,
}

/// An error in one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldError {
    pub(crate) field: String,
    pub(crate) text: String,
}

/// Name of a property's field in the form. The prefix keeps it apart from our own fields.
pub(crate) fn key(name: &str) -> String {
    format!("f.{name}")
}

/// The fields for `schema`, required ones first. `None` if it is not an object whose properties fit a form.
pub(crate) fn fields(schema: &JsonObject) -> Option<Vec<Field>> {
    let whole = schema;
    let composed = ["oneOf", "anyOf", "allOf", "$ref"].iter().any(|key| schema.contains_key(*key));
    let empty = JsonObject::new();
    let properties = match schema.get("properties") {
        Some(Value::Object(properties)) => properties,
        Some(_) => return None,
        None => &empty,
    };
    if composed || properties.len() > MOST_FIELDS {
        return None;
    }
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut fields: Vec<Field> = properties
        .iter()
        .map(|(name, property)| field(name, property, required.contains(&name.as_str()), whole))
        .collect();
    fields.sort_by_key(|field| !field.required);
    Some(fields)
}

fn field(name: &str, property: &Value, required: bool, whole: &JsonObject) -> Field {
    let said = |property: &Value, key: &str| property.get(key).and_then(Value::as_str).map(str::to_owned);
    let inner = resolve(property, whole);
    let description = said(property, "description").or_else(|| said(inner, "description"));
    let default = property.get("default").or_else(|| inner.get("default")).filter(|value| !value.is_null());
    Field {
        name: name.to_owned(),
        description: description.unwrap_or_default(),
        required,
        kind: kind(inner, whole),
        default: default.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
    }
}

/// Resolves references within the schema, and `T | null` to `T`.
fn resolve<'a>(mut property: &'a Value, whole: &'a JsonObject) -> &'a Value {
    // References can be cyclic; eight steps are enough for a form.
    for _ in 0..8 {
        if let Some(reference) = property.get("$ref").and_then(Value::as_str) {
            let Some(target) = reference.strip_prefix("#/").and_then(|path| lookup(whole, path)) else {
                break;
            };
            property = target;
            continue;
        }
        let union = ["anyOf", "oneOf"].iter().find_map(|key| property.get(*key)?.as_array());
        let Some(union) = union else { break };
        let mut sorts = union.iter().filter(|sort| sort.get("type").and_then(Value::as_str) != Some("null"));
        match (sorts.next(), sorts.next()) {
            (Some(one), None) => property = one,
            _ => break,
        }
    }
    property
}

fn lookup<'a>(whole: &'a JsonObject, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('/').map(|part| part.replace("~1", "/").replace("~0", "~"));
    let first = whole.get(&parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(&part))
}

fn kind(property: &Value, whole: &JsonObject) -> FieldKind {
    if let Some(choices) = property.get("enum").and_then(Value::as_array) {
        let scalar = |value: &Value| !value.is_object() && !value.is_array();
        if choices.len() <= MOST_CHOICES && choices.iter().all(scalar) {
            return FieldKind::Choice(choices.iter().filter(|value| !value.is_null()).cloned().collect());
        }
    }
    let limit = |key: &str| property.get(key).and_then(Value::as_f64);
    match type_of(property) {
        Some("boolean") => FieldKind::Choice(vec![true.into(), false.into()]),
        Some("integer") => FieldKind::Number { whole: true, min: limit("minimum"), max: limit("maximum") },
        Some("number") => FieldKind::Number { whole: false, min: limit("minimum"), max: limit("maximum") },
        Some("string") => match property.get("format").and_then(Value::as_str) {
            Some("date") => FieldKind::Text("date"),
            Some("email") => FieldKind::Text("email"),
            Some("uri" | "url") => FieldKind::Text("url"),
            _ if limit("maxLength").is_some_and(|most| most > 200.0) => FieldKind::LongText,
            _ => FieldKind::Text("text"),
        },
        Some("array") => match property.get("items").map(|items| type_of(resolve(items, whole))) {
            Some(Some("string")) => FieldKind::Lines { numbers: false },
            Some(Some("integer" | "number")) => FieldKind::Lines { numbers: true },
            _ => FieldKind::Json,
        },
        _ => FieldKind::Json,
    }
}

/// The one type besides `null`.
fn type_of(property: &Value) -> Option<&str> {
    match property.get("type")? {
        Value::String(one) => Some(one),
        Value::Array(several) => {
            let mut several = several.iter().filter_map(Value::as_str).filter(|one| *one != "null");
            several.next().filter(|_| several.next().is_none())
        }
        _ => None,
    }
}

/// The input from the values `typed` into the form. Empty fields are left out, except for required texts.
///
/// # Errors
/// One error for each field that cannot be read.
pub(crate) fn read(fields: &[Field], typed: &HashMap<String, String>) -> Result<JsonObject, Vec<FieldError>> {
    let mut input = JsonObject::new();
    let mut problems = Vec::new();
    for field in fields {
        let text = typed.get(&key(&field.name)).map(String::as_str).unwrap_or_default();
        match value(field, text) {
            Ok(None) if field.required => {
                problems.push(FieldError { field: field.name.clone(), text: "This is required.".to_owned() });
            }
            Ok(None) => {}
            Ok(Some(value)) => {
                input.insert(field.name.clone(), value);
            }
            Err(text) => problems.push(FieldError { field: field.name.clone(), text }),
        }
    }
    if problems.is_empty() { Ok(input) } else { Err(problems) }
}

fn value(field: &Field, text: &str) -> Result<Option<Value>, String> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        let empty_text =
            field.required && matches!(field.kind, FieldKind::Text("text") | FieldKind::LongText);
        return Ok(empty_text.then(|| Value::from("")));
    }
    let json = || read_json::<Value>(trimmed);
    Ok(Some(match &field.kind {
        FieldKind::Text(_) => trimmed.into(),
        // Forms send line ends as CR LF (WHATWG HTML, "constructing the entry list").
        FieldKind::LongText => text.replace("\r\n", "\n").into(),
        FieldKind::Number { whole, .. } => number(trimmed, *whole)?,
        FieldKind::Choice(choices) => json()
            .ok()
            .filter(|value| choices.contains(value))
            .ok_or_else(|| "Choose one of the values.".to_owned())?,
        FieldKind::Lines { numbers } => {
            let lines = trimmed.lines().map(str::trim).filter(|line| !line.is_empty());
            if *numbers {
                lines.map(|line| number(line, false)).collect::<Result<Vec<Value>, String>>()?.into()
            } else {
                lines.collect::<Vec<_>>().into()
            }
        }
        FieldKind::Json => json().map_err(|error| format!("This is not JSON: {error}."))?,
    }))
}

fn number(text: &str, whole: bool) -> Result<Value, String> {
    let value = read_json::<Value>(text).ok().filter(Value::is_number);
    match value {
        Some(value) if !whole || value.is_i64() || value.is_u64() => Ok(value),
        _ if whole => Err("Type a whole number.".to_owned()),
        _ => Err("Type a number.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(schema: Value) -> Option<Vec<Field>> {
        let Value::Object(schema) = schema else { panic!("an object") };
        fields(&schema)
    }

    fn typed(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        pairs.iter().map(|(name, value)| (key(name), (*value).to_owned())).collect()
    }

    #[test]
    fn each_property_gets_the_field_that_fits() {
        let found = of(json!({
            "properties": {
                "note": {"type": "string", "maxLength": 2000},
                "status": {"enum": ["open", "closed"]},
                "limit": {"type": ["integer", "null"], "minimum": 1, "maximum": 50, "default": 20},
                "tags": {"type": "array", "items": {"type": "string"}},
                "where": {"type": "object"},
                "kind": {"$ref": "#/$defs/Kind"},
                "since": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
                "sure": {"type": "boolean"},
            },
            "$defs": {"Kind": {"enum": ["a", 1], "description": "Which"}},
            "required": ["sure"]
        }))
        .unwrap();
        assert_eq!(found[0].name, "sure");
        let kind = |name: &str| found.iter().find(|field| field.name == name).unwrap().kind.clone();
        assert_eq!(kind("note"), FieldKind::LongText);
        assert_eq!(kind("limit"), FieldKind::Number { whole: true, min: Some(1.0), max: Some(50.0) });
        assert_eq!(kind("tags"), FieldKind::Lines { numbers: false });
        assert_eq!(kind("where"), FieldKind::Json);
        assert_eq!(kind("kind"), FieldKind::Choice(vec![json!("a"), json!(1)]));
        assert_eq!(kind("since"), FieldKind::Text("date"));
        assert_eq!(kind("sure"), FieldKind::Choice(vec![json!(true), json!(false)]));
    }

    #[test]
    fn typed_values_become_json_of_the_right_types() {
        let fields = of(json!({"properties": {
            "n": {"type": "integer"}, "x": {"type": "number"}, "s": {"type": "string"}, "on": {"type": "boolean"},
            "ids": {"type": "array", "items": {"type": "integer"}}, "any": {}, "left": {"type": "string"}
        }, "required": ["s"]}))
        .unwrap();
        let input = typed(&[
            ("n", "3"),
            ("x", " 1.5 "),
            ("s", ""),
            ("on", "false"),
            ("ids", "1\r\n\r\n2"),
            ("any", "[{}]"),
        ]);
        let read = read(&fields, &input).unwrap();
        assert_eq!(
            Value::Object(read),
            json!({"n": 3, "x": 1.5, "s": "", "on": false, "ids": [1, 2], "any": [{}]})
        );
    }

    #[test]
    fn every_bad_field_is_named() {
        let fields = of(json!({"properties": {
            "n": {"type": "integer"}, "e": {"enum": ["a"]}, "j": {"type": "object"}, "r": {"type": "integer"}
        }, "required": ["r"]}))
        .unwrap();
        let problems = read(&fields, &typed(&[("n", "1.5"), ("e", "\"b\""), ("j", "{")])).unwrap_err();
        let mut names: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["e", "j", "n", "r"]);
    }

    #[test]
    fn input_that_fits_no_form_is_typed_as_json() {
        assert!(of(json!({"anyOf": [{"type": "object"}]})).is_none());
        assert!(of(json!({"properties": 3})).is_none());
        let many: serde_json::Map<String, Value> = (0..100).map(|n| (n.to_string(), json!({}))).collect();
        assert!(of(json!({"properties": many})).is_none());
        assert_eq!(of(json!({"type": "object"})), Some(vec![]));
    }

    #[test]
    fn a_cyclic_reference_ends() {
        let fields =
            of(json!({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}}));
        assert_eq!(fields.unwrap()[0].kind, FieldKind::Json);
    }
}
