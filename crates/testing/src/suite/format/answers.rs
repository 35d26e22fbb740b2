//! Answers to requests of the server to the client.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// An answer to `elicitation/create`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::suite) struct ElicitationSection {
    /// The action of the user.
    pub(in crate::suite) action: ElicitationAction,
    /// The content the user enters.
    #[serde(default)]
    pub(in crate::suite) content: Map<String, Value>,
}

/// The action of the user.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::suite) enum ElicitationAction {
    Accept,
    Decline,
    Cancel,
}
