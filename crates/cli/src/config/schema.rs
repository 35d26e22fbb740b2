//! The JSON Schema of the configuration.

use std::sync::OnceLock;

use anyhow::Context as _;
use gatewright_findings::{Finding, Schema};
use serde_json::Value;

use super::{Config, removed};

/// The JSON Schema of the configuration, keys sorted.
pub fn schema() -> anyhow::Result<Value> {
    let mut schema = serde_json::to_value(schemars::schema_for!(Config))
        .context("the schema cannot be written as JSON")?;
    schema.sort_all_objects();
    Ok(schema)
}

/// Every violation of the schema in `value`, with advice for keys of earlier versions.
pub(super) fn violations(value: &Value) -> Vec<Finding> {
    static COMPILED: OnceLock<Option<Schema>> = OnceLock::new();
    match COMPILED.get_or_init(|| Schema::new(schema().ok()?).ok()) {
        Some(schema) => removed::explain(schema.findings(value), value),
        None => vec![Finding::new("", "internal error: the configuration's schema does not compile")],
    }
}
