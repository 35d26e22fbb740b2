//! The catalog of a user who has not authorized the gateway yet: one tool, whose call asks for it.

use std::sync::Arc;

use gatewright_core::Catalog;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
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
    // It changes nothing by itself. Without this it would count as destructive, and wait for approvals.
    let annotations = ToolAnnotations::new().read_only(true).destructive(false);
    catalog.tools.push(Tool::new(AUTHORIZE, words, Arc::new(schema)).with_annotations(annotations));
    catalog.capabilities.tools.get_or_insert_default();
    catalog
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_that_asks_for_a_sign_in_is_not_destructive() {
        let annotations = catalog("notes").tools[0].annotations.clone().unwrap();
        assert_eq!((annotations.read_only_hint, annotations.is_destructive()), (Some(true), false));
    }
}
