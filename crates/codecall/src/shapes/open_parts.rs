//! Parts of schemas that leave the type open, and what was observed there.

use gatewright_core::rmcp::model::JsonObject;
use serde_json::Value;

use super::declared::is_vacuous;

/// Properties of a schema that are looked at, and levels.
const MOST_PROPERTIES: usize = 64;
const DEEPEST: usize = 4;

/// The properties that a completed schema requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Required {
    /// Those that its author says, and open ones that every value had.
    AsObserved,
    /// Those that its author says.
    AsDeclared,
}

/// Returns `true` for a schema of which a part accepts any object, any array or any value.
pub(super) fn leaves_open(schema: &JsonObject) -> bool {
    has_open_part(schema, DEEPEST)
}

fn has_open_part(schema: &JsonObject, levels: usize) -> bool {
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let parts = || {
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        properties.map(|(_, part)| part).take(MOST_PROPERTIES).chain(schema.get("items"))
    };
    levels > 0
        && (is_vacuous(schema) && !is_closed
            || parts().any(|part| match part {
                Value::Object(part) => has_open_part(part, levels - 1),
                part => *part == Value::Bool(true),
            }))
}

/// Fills in what was observed where `schema` leaves the type open.
pub(super) fn complete(schema: &mut JsonObject, observed: &JsonObject, required: Required) {
    fill(schema, observed, required, DEEPEST);
}

fn fill(schema: &mut JsonObject, observed: &JsonObject, required_are: Required, levels: usize) {
    if levels == 0 {
        return;
    }
    if is_vacuous(schema) {
        // What the author says of the value stays.
        let own = std::mem::replace(schema, observed.clone());
        schema
            .extend(own.into_iter().filter(|(name, _)| !["type", "properties", "items"].contains(&&**name)));
        return;
    }
    let always = observed.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let of_properties = observed.get("properties").and_then(Value::as_object);
    let mut required = Vec::new();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
    for (name, part) in properties.take(MOST_PROPERTIES) {
        let Some(Value::Object(observed)) = of_properties.and_then(|all| all.get(name)) else { continue };
        if *part == Value::Bool(true) {
            *part = Value::Object(JsonObject::new());
        }
        if let Value::Object(part) = part {
            if required_are == Required::AsObserved
                && is_vacuous(part)
                && always.iter().any(|always| always == name)
            {
                required.push(Value::from(name.as_str()));
            }
            fill(part, observed, required_are, levels - 1);
        }
    }
    if let (Some(Value::Object(items)), Some(Value::Object(observed))) =
        (schema.get_mut("items"), observed.get("items"))
    {
        fill(items, observed, required_are, levels - 1);
    }
    if !required.is_empty()
        && let Value::Array(all) = schema.entry("required").or_insert_with(|| Value::Array(Vec::new()))
    {
        required.retain(|name| !all.contains(name));
        all.append(&mut required);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> JsonObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn only_what_a_schema_leaves_open_is_filled_in() {
        let open = json!({"description": "Any", "examples": [1]});
        let schema = object(json!({"type": "object", "required": ["n"], "properties": {
            "n": {"type": "integer"}, "filter": {"type": "object"}, "any": open, "list": {"type": "array", "items": {}},
            "unseen": {}, "deep": {"type": "object", "properties": {"where": true}}}}));
        assert!(leaves_open(&schema));
        let text = json!({"type": "string"});
        let filter = json!({"type": "object", "properties": {"state": text}, "required": ["state"]});
        let observed = object(json!({"type": "object", "required": ["n", "filter"], "properties": {
            "n": text, "filter": filter, "any": text, "list": {"type": "array", "items": text}, "more": text,
            "deep": {"type": "object", "properties": {"where": filter}}}}));
        let mut completed = schema.clone();
        complete(&mut completed, &observed, Required::AsObserved);
        let properties = &completed["properties"];
        assert_eq!(completed["required"], json!(["n", "filter"]));
        let mut declared = schema.clone();
        complete(&mut declared, &observed, Required::AsDeclared);
        assert_eq!((&declared["required"], &declared["properties"]), (&json!(["n"]), properties));
        assert_eq!((&properties["n"], &properties["filter"]), (&schema["properties"]["n"], &filter));
        assert_eq!(properties["any"], json!({"type": "string", "description": "Any", "examples": [1]}));
        assert_eq!(properties["list"]["items"], text);
        assert_eq!(properties["deep"]["properties"]["where"], filter);
        assert_eq!((&properties["unseen"], properties.get("more")), (&json!({}), None));
        let mut root = object(json!({"type": "object", "additionalProperties": true}));
        complete(&mut root, &observed, Required::AsObserved);
        assert_eq!(root["properties"]["filter"], filter);
    }

    #[test]
    fn a_schema_that_gives_every_type_leaves_nothing_open() {
        for closed in [
            json!({"type": "object", "properties": {"n": {"type": "integer"}, "e": {"enum": [1]}, "r": {"$ref": "#/$defs/x"}}}),
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
            json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}}}}),
        ] {
            assert!(!leaves_open(&object(closed.clone())), "{closed}");
        }
    }
}
