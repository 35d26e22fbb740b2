//! A tool's input schema, compiled once and used for every call.

use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use rmcp::model::JsonObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Validation of arguments before a call leaves the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaMode {
    /// Arguments must fit the input schema; a tool whose schema is invalid cannot be called.
    #[default]
    Strict,
    /// Nothing is checked here: the server behind the tool judges.
    Off,
}

/// An input schema, compiled at its first use. References to other documents are never fetched.
#[derive(Debug)]
pub struct InputSchema {
    source: Arc<JsonObject>,
    compiled: OnceLock<Result<Validator, String>>,
}

/// Problems shown of one bad input: enough to mend it, short enough to read.
const SHOWN: usize = 5;

impl InputSchema {
    /// Keeps `source` for later.
    pub fn new(source: Arc<JsonObject>) -> Self {
        Self { source, compiled: OnceLock::new() }
    }

    /// Checks `arguments`.
    ///
    /// # Errors
    /// One sentence per problem with its JSON pointer, or why the schema itself cannot be used.
    pub fn check(&self, arguments: &Value) -> Result<(), String> {
        let validator = self.compiled().as_ref().map_err(|why| {
            format!(
                "the tool's own input schema is invalid: {why}. The server that offers the tool has to mend it, \
                 or set `schemaValidation: off` for its app"
            )
        })?;
        if validator.is_valid(arguments) {
            return Ok(());
        }
        let mut problems: Vec<String> = Vec::new();
        for error in validator.iter_errors(arguments) {
            if problems.len() == SHOWN {
                problems.push("…".to_owned());
                break;
            }
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "input".to_owned() } else { shorten(&place) };
            let mut problem = error.to_string();
            if problem.len() > LONGEST {
                // The value comes first in the sentence and would crowd out what is wrong with it.
                problem = error.masked().to_string();
            }
            problems.push(format!("{place}: {}", shorten(&problem)));
        }
        Err(problems.join("; "))
    }

    /// Why the schema cannot be used, if so.
    pub fn defect(&self) -> Option<&str> {
        self.compiled().as_ref().err().map(String::as_str)
    }

    fn compiled(&self) -> &Result<Validator, String> {
        self.compiled.get_or_init(|| {
            jsonschema::options()
                .build(&Value::Object((*self.source).clone()))
                .map_err(|error| shorten(&format!("{}: {error}", error.instance_path())))
        })
    }
}

/// Characters shown of a place, and of what is wrong there.
const LONGEST: usize = 300;

fn shorten(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(value: Value) -> InputSchema {
        let Value::Object(object) = value else { panic!("an object") };
        InputSchema::new(Arc::new(object))
    }

    #[test]
    fn names_each_bad_place() {
        let schema = schema(json!({"type": "object", "required": ["id"],
            "properties": {"id": {"type": "string"}, "limit": {"type": "integer", "maximum": 5}}}));
        assert!(schema.check(&json!({"id": "a", "limit": 2})).is_ok());
        let problems = schema.check(&json!({"limit": 9})).unwrap_err();
        assert!(problems.contains("/limit") && problems.contains("id"), "{problems}");
    }

    #[test]
    fn long_keys_and_values_are_cut_in_what_is_said_of_them() {
        let schema = schema(json!({"type": "object", "additionalProperties": {"type": "integer"}}));
        let many: serde_json::Map<_, _> =
            (0..9).map(|n| (format!("{n}{}", "k".repeat(100_000)), json!("v".repeat(100_000)))).collect();
        let problems = schema.check(&Value::Object(many)).unwrap_err();
        assert!(problems.len() < 8_000 && problems.ends_with('…'), "{} bytes", problems.len());
    }

    #[test]
    fn a_list_that_is_too_long_is_said_to_be_so_and_not_repeated() {
        let schema =
            schema(json!({"type": "object", "properties": {"a": {"type": "array", "maxItems": 100}}}));
        let problems = schema.check(&json!({"a": vec!["x"; 101]})).unwrap_err();
        assert!(
            problems.contains("/a") && problems.contains("100 items") && problems.len() < 100,
            "{problems}"
        );
    }

    #[test]
    fn an_invalid_schema_is_said_to_be_the_servers_fault() {
        let schema = schema(json!({"type": "object", "properties": {"a": {"type": "any"}}}));
        assert!(schema.defect().is_some());
        assert!(schema.check(&json!({})).unwrap_err().contains("schemaValidation"));
    }

    #[test]
    fn a_reference_to_another_host_is_not_fetched() {
        let schema = schema(json!({"$ref": "http://127.0.0.1:9/schema.json"}));
        assert!(schema.defect().is_some());
    }
}
