//! Regular expressions and JSON Schemas, compiled once.

use std::sync::Arc;

use gatewright_findings::Schema;
use regex::Regex;
use serde_json::Value;

/// A regular expression, compiled. One that does not compile matches nothing, under `not` as well.
#[derive(Debug, Clone)]
pub struct Pattern(pub(in crate::matchers) Result<Regex, String>);

impl From<&str> for Pattern {
    fn from(pattern: &str) -> Self {
        let last_line = |text: String| {
            let line = text.lines().last().unwrap_or_default();
            line.trim_start_matches("error: ").to_owned()
        };
        Self(Regex::new(pattern).map_err(|error| last_line(error.to_string())))
    }
}

impl From<String> for Pattern {
    fn from(pattern: String) -> Self {
        pattern.as_str().into()
    }
}

impl From<Regex> for Pattern {
    fn from(regex: Regex) -> Self {
        Self(Ok(regex))
    }
}

/// A JSON Schema, compiled (2020-12 unless `$schema` names another draft). One that does not compile matches nothing, under `not` as
/// well.
#[derive(Debug, Clone)]
pub struct JsonSchema(pub(in crate::matchers) Result<Arc<Schema>, String>);

impl From<Value> for JsonSchema {
    fn from(schema: Value) -> Self {
        Self(Schema::new(schema).map(Arc::new).map_err(|error| error.to_string()))
    }
}
