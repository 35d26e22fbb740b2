//! The key `expect` of a step.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::matchers::registered;

/// The name of a matcher, or a matcher with its argument; `not` inverts it.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(in crate::suite) struct WrittenExpectation(pub(in crate::suite) Value);

impl JsonSchema for WrittenExpectation {
    fn schema_name() -> Cow<'static, str> {
        "Expectation".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = registered().iter().map(|one| &*one.name).collect();
        let mut properties: Map<String, Value> =
            registered().iter().map(|one| (one.name.clone(), one.schema.clone())).collect();
        properties.insert("not".into(), serde_json::json!({"$ref": "#/$defs/Expectation"}));
        json_schema!({
            "description": "The name of a matcher, or a matcher with its argument; `not` inverts it.",
            "anyOf": [
                {"enum": names},
                {"type": "object", "properties": properties, "additionalProperties": false,
                    "minProperties": 1, "maxProperties": 1},
            ],
        })
    }
}
