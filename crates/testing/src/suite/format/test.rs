//! The key `tests`: a test.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    answers::{AnswerEntry, ElicitationSection},
    cases::CasesSection,
    cassettes::CassetteSection,
    http_mocks::HttpMockEntry,
    mocks::MockEntry,
    step::Step,
    users::User,
};
use crate::shapes::Strict;

/// A test.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::suite) struct TestEntry {
    /// The name in reports. With `cases` it may contain `${name}` of their variables.
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
    /// Runs the test once for each case, each with its own variables: a list of mappings, or a CSV or JSON file beside the suite.
    pub(in crate::suite) cases: Option<CasesSection>,
    /// Runs the test this often, one after the other, until it fails. Default 1.
    #[schemars(range(min = 1, max = 10000))]
    pub(in crate::suite) repeat: Option<u32>,
    /// Time limit of the test, and of a response in it, in milliseconds. `afterEach` runs after it, with the same limit. Default: that of the suite.
    #[schemars(range(min = 1))]
    pub(in crate::suite) timeout_ms: Option<u64>,
    /// Environment variables of the server, in addition to those of the suite. The test gets a process of its own.
    #[serde(default)]
    pub(in crate::suite) env: BTreeMap<String, String>,
    /// Starts a server for this test. Default false: it shares that of the suite.
    #[serde(default)]
    pub(in crate::suite) isolated: bool,
    /// Responses to the server's HTTP calls in this test, before those of the suite. The test runs alone on its server.
    #[serde(default)]
    pub(in crate::suite) http_mocks: Vec<HttpMockEntry>,
    /// A cassette of the server's responses: replayed if the file exists, otherwise recorded, and written when the test passed.
    pub(in crate::suite) record: Option<CassetteSection>,
    /// Rules that messages of the server are checked against, in place of those of `server`.
    pub(in crate::suite) strict: Option<Strict>,
    /// Mocked responses, returned instead of the server's.
    #[serde(default)]
    pub(in crate::suite) mocks: Vec<MockEntry>,
    /// The answer to `elicitation/create`. Default: decline.
    pub(in crate::suite) elicitation: Option<ElicitationSection>,
    /// The answer to `sampling/createMessage`, a `CreateMessageResult`. Default: an error.
    pub(in crate::suite) sampling: Option<Value>,
    /// Answers to requests of the server to the client: the first that matches and has uses left is given.
    #[serde(default)]
    pub(in crate::suite) answers: Vec<AnswerEntry>,
    /// The steps, in order.
    pub(in crate::suite) steps: Vec<Step>,
}
