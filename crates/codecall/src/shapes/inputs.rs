//! Shapes of inputs that tools accepted, where their input schemas leave the type open: examples have the same names and types, and no values.

use std::sync::Arc;

use gatewright_core::{Caller, ToolEntry, rmcp::model::JsonObject};
use gatewright_shape::Shape;
use serde_json::Value;

use super::{Shapes, declared::is_vacuous, learned::witness, slot::Slot};

/// Parts of an input that are looked at.
const WORK: usize = 256;
/// Properties of a schema that are looked at, and levels.
const MOST_PROPERTIES: usize = 64;
const DEEPEST: usize = 4;

/// The shape of an input whose call is under way.
pub(crate) struct SentInput {
    slot: Arc<Slot>,
    shape: Shape,
    to_share: bool,
}

impl SentInput {
    /// Keeps the shape: the tool took the input.
    pub(crate) fn accepted(self) {
        self.slot.lock().learn_input(self.shape, self.to_share);
    }
}

impl Shapes {
    /// The shape of `input`, if it is to be learned when `tool` accepts it.
    pub(crate) fn sent_input(
        &self,
        tool: &ToolEntry,
        caller: &Caller,
        input: &JsonObject,
    ) -> Option<SentInput> {
        if input.is_empty() || !self.is_on() || !leaves_open(tool.input_schema(), DEEPEST) {
            return None;
        }
        let slot = self.slot_of(tool, caller);
        if !slot.looks_at_next_input() {
            return None;
        }
        let mut shape = Shape::default();
        shape.learn_members(input, witness(caller), WORK);
        Some(SentInput { slot, shape, to_share: self.is_shared() })
    }

    /// The input schema of `tool`, with the types of inputs that it accepted where it leaves them open and `caller` may know them; `None` if
    /// nothing was learned.
    pub(crate) fn observed_input(&self, tool: &ToolEntry, caller: &Caller) -> Option<JsonObject> {
        let observed = self.slot_if_known(tool, caller)?.lock().input_schema(witness(caller))?;
        let mut completed = (**tool.input_schema()).clone();
        complete(&mut completed, &observed, DEEPEST);
        Some(completed)
    }
}

/// Returns `true` for a schema of which a part accepts any object, any array or any value.
fn leaves_open(schema: &JsonObject, levels: usize) -> bool {
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let parts = || {
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        properties.map(|(_, part)| part).take(MOST_PROPERTIES).chain(schema.get("items"))
    };
    levels > 0
        && (is_vacuous(schema) && !is_closed
            || parts().any(|part| match part {
                Value::Object(part) => leaves_open(part, levels - 1),
                part => *part == Value::Bool(true),
            }))
}

/// Fills in what was observed where `schema` leaves the type open. A property that every input had is required.
fn complete(schema: &mut JsonObject, observed: &JsonObject, levels: usize) {
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
            if is_vacuous(part) && always.iter().any(|always| always == name) {
                required.push(Value::from(name.as_str()));
            }
            complete(part, observed, levels - 1);
        }
    }
    if let (Some(Value::Object(items)), Some(Value::Object(observed))) =
        (schema.get_mut("items"), observed.get("items"))
    {
        complete(items, observed, levels - 1);
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
        assert!(leaves_open(&schema, DEEPEST));
        let text = json!({"type": "string"});
        let filter = json!({"type": "object", "properties": {"state": text}, "required": ["state"]});
        let observed = object(json!({"type": "object", "required": ["n", "filter"], "properties": {
            "n": text, "filter": filter, "any": text, "list": {"type": "array", "items": text}, "more": text,
            "deep": {"type": "object", "properties": {"where": filter}}}}));
        let mut completed = schema.clone();
        complete(&mut completed, &observed, DEEPEST);
        let properties = &completed["properties"];
        assert_eq!(completed["required"], json!(["n", "filter"]));
        assert_eq!((&properties["n"], &properties["filter"]), (&schema["properties"]["n"], &filter));
        assert_eq!(properties["any"], json!({"type": "string", "description": "Any", "examples": [1]}));
        assert_eq!(properties["list"]["items"], text);
        assert_eq!(properties["deep"]["properties"]["where"], filter);
        assert_eq!((&properties["unseen"], properties.get("more")), (&json!({}), None));
        let mut root = object(json!({"type": "object", "additionalProperties": true}));
        complete(&mut root, &observed, DEEPEST);
        assert_eq!(root["properties"]["filter"], filter);
    }

    #[test]
    fn a_schema_that_gives_every_type_leaves_nothing_open() {
        for closed in [
            json!({"type": "object", "properties": {"n": {"type": "integer"}, "e": {"enum": [1]}, "r": {"$ref": "#/$defs/x"}}}),
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
            json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}}}}),
        ] {
            assert!(!leaves_open(&object(closed.clone()), DEEPEST), "{closed}");
        }
    }
}
