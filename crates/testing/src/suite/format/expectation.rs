//! The key `expect` of a step.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::matchers::registered;

/// The name of a matcher, names with their arguments, or a list of these. `None` without the key.
#[derive(Debug, Clone, Default)]
pub(in crate::suite) struct WrittenExpectations(pub(in crate::suite) Option<Value>);

impl WrittenExpectations {
    /// True if nothing is expected.
    pub(in crate::suite) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// An empty list is no expectation, as it always was; `null` is a mistake that the check names.
impl<'de> Deserialize<'de> for WrittenExpectations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Value::deserialize(deserializer)?;
        Ok(Self(Some(written).filter(|written| written.as_array().is_none_or(|list| !list.is_empty()))))
    }
}

impl JsonSchema for WrittenExpectations {
    fn schema_name() -> Cow<'static, str> {
        "Expectations".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = registered().iter().map(|one| &*one.name).collect();
        let mut properties: Map<String, Value> =
            registered().iter().map(|one| (one.name.clone(), one.schema.clone())).collect();
        let all = json!({"$ref": "#/$defs/Expectations"});
        properties.insert("not".into(), all.clone());
        properties.insert(
            "at".into(),
            json!({
                "description": "Expectations of parts, by path: `structuredContent.items.0`, `content.*.text` (every item), or a JSON \
                    pointer. A plain value is what the part equals.",
                "type": "object",
                "additionalProperties": {"anyOf": [all.clone(), {"type": ["string", "number", "boolean", "null"]}]},
                "minProperties": 1,
            }),
        );
        // Further names are the suite's own matchers.
        json_schema!({
            "description": "The name of a matcher, names with their arguments, or a list of these. `not` inverts, `at` goes to parts.",
            "anyOf": [
                {"enum": names},
                {"type": "string"},
                {"type": "object", "properties": properties, "minProperties": 1},
                {"type": "array", "items": all},
            ],
        })
    }
}
