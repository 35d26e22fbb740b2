//! The key `tests`: a test.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{answers::ElicitationSection, mocks::MockEntry, step::Step, users::User};
use crate::shapes::Strict;

/// A test.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::suite) struct TestEntry {
    /// The name in reports.
    pub(in crate::suite) name: String,
    /// Skips the test, for this reason.
    pub(in crate::suite) skip: Option<String>,
    /// If any test has `only: true`, only such tests run. Default false.
    #[serde(default)]
    pub(in crate::suite) only: bool,
    /// Tags for selecting tests.
    #[serde(default)]
    pub(in crate::suite) tags: Vec<String>,
    /// The user of the client.
    #[serde(rename = "as")]
    pub(in crate::suite) user: Option<User>,
    /// Variables of this test, which hide those of the suite. They may refer to each other in any order, and to `${random}`; one that
    /// names itself means the suite's.
    #[serde(default)]
    pub(in crate::suite) variables: Map<String, Value>,
    /// Time limit of the test. Default 60000.
    pub(in crate::suite) timeout_ms: Option<u64>,
    /// A cassette of the server's responses: replayed if the file exists, otherwise recorded.
    pub(in crate::suite) record: Option<String>,
    /// Rules that messages of the server are checked against, in place of those of `server`.
    pub(in crate::suite) strict: Option<Strict>,
    /// Mocked responses, returned instead of the server's.
    #[serde(default)]
    pub(in crate::suite) mocks: Vec<MockEntry>,
    /// The answer to `elicitation/create`. Default: decline.
    pub(in crate::suite) elicitation: Option<ElicitationSection>,
    /// The answer to `sampling/createMessage`, a `CreateMessageResult`. Default: an error.
    pub(in crate::suite) sampling: Option<Value>,
    /// The steps, in order.
    pub(in crate::suite) steps: Vec<Step>,
}
