//! Answers to requests of the server to the client.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::mocks::MockError;

/// An answer to requests of the server to the client: exactly one of `elicitation`, `sampling`, `roots` and `error`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::suite) struct AnswerEntry {
    /// Matches only requests whose `params` contain all of this; a text matches a text that contains it.
    pub(in crate::suite) when: Option<Value>,
    /// The answer to `elicitation/create`.
    pub(in crate::suite) elicitation: Option<ElicitationSection>,
    /// The answer to `sampling/createMessage`: a `CreateMessageResult`, or the text of one.
    pub(in crate::suite) sampling: Option<Value>,
    /// The answer to `roots/list`: URIs, or objects with `uri` and `name`.
    pub(in crate::suite) roots: Option<Vec<Value>>,
    /// An error, as the answer to the requests of `method`.
    pub(in crate::suite) error: Option<MockError>,
    /// The method that `error` answers, such as `sampling/createMessage`.
    pub(in crate::suite) method: Option<String>,
    /// Number of times the answer is given. Default: unlimited.
    pub(in crate::suite) times: Option<u32>,
}

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
