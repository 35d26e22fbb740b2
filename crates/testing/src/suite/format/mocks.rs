//! The key `mocks` of a test: responses in place of the server's.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// A mocked response to calls of `tool`, reads of `resource`, or requests of `method`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::suite) struct MockEntry {
    /// Matches calls of this tool.
    pub(in crate::suite) tool: Option<String>,
    /// Matches reads of this resource.
    pub(in crate::suite) resource: Option<String>,
    /// Matches requests of this method.
    pub(in crate::suite) method: Option<String>,
    /// Matches only requests of `method` whose `params` contain all of this.
    pub(in crate::suite) params: Option<Value>,
    /// The result.
    pub(in crate::suite) response: Option<Value>,
    /// An error instead of a result.
    pub(in crate::suite) error: Option<MockError>,
    /// Number of times the mock responds. Default: unlimited.
    pub(in crate::suite) times: Option<u32>,
    /// Delay of the response. Default 0.
    pub(in crate::suite) delay_ms: Option<u64>,
}

/// A JSON-RPC error.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::suite) struct MockError {
    /// The code.
    pub(in crate::suite) code: i64,
    /// The message.
    pub(in crate::suite) message: String,
    /// The data.
    pub(in crate::suite) data: Option<Value>,
}
