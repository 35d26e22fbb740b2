//! The catalog of a user who has not authorized the gateway yet: one tool, whose call asks for it.

use std::sync::Arc;

use gatewright_core::Catalog;
use rmcp::model::{JsonObject, Tool};
use serde_json::json;

/// The tool that lets a user authorize before any other tool is known.
pub(crate) const AUTHORIZE: &str = "authorize";

/// The catalog for a user without a token.
pub(crate) fn catalog(id: &str) -> Catalog {
    let words = format!(
        "Lets this gateway act for you at `{id}`. Answers with an address to open in a browser when you have not allowed it yet."
    );
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let schema: JsonObject = serde_json::from_value(schema).unwrap_or_default();
    let mut catalog = Catalog::default();
    catalog.tools.push(Tool::new(AUTHORIZE, words, Arc::new(schema)));
    catalog.capabilities.tools.get_or_insert_default();
    catalog
}
