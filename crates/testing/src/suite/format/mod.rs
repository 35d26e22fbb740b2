//! The keys of a suite file, in one file for each section.

mod answers;
mod cases;
mod cassettes;
mod expectation;
mod http_mocks;
mod http_step;
mod mocks;
mod server;
mod step;
mod test;
mod upstreams;
mod users;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cassette::Redaction;

pub(super) use answers::{AnswerEntry, ElicitationAction, ElicitationSection};
pub(super) use cases::CasesSection;
pub(super) use cassettes::CassetteSection;
pub(super) use expectation::WrittenExpectations;
pub(super) use http_mocks::{HttpMockEntry, HttpMockResponse};
pub(super) use http_step::{HttpRequest, HttpStep};
pub(super) use mocks::{MockEntry, MockError};
pub(super) use server::ServerSection;
pub(super) use step::{ACTIONS, List, RetrySection, Step};
pub(super) use test::TestEntry;
pub(super) use upstreams::{UpstreamAnswer, UpstreamSection};
pub(super) use users::{AuthSection, IssuerSection, User, UserSection};

/// A suite of tests for one MCP server.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(title = "Gatewright test suite")]
pub(in crate::suite) struct SuiteFile {
    /// The name in reports. Default: the name of the file.
    pub(in crate::suite) name: Option<String>,
    /// The server under test.
    pub(in crate::suite) server: ServerSection,
    /// `true` starts a mock authorization server for the suite; an object has options. Default false.
    #[serde(default)]
    pub(in crate::suite) auth: AuthSection,
    /// Users by name, in addition to `admin`, `user`, `readOnly` and `anonymous`.
    #[serde(default)]
    pub(in crate::suite) users: BTreeMap<String, UserSection>,
    /// The user of clients, unless a test names another. Default: no token.
    #[serde(rename = "as")]
    pub(in crate::suite) user: Option<User>,
    /// Variables for texts, as `${name}`, `${name.key}` or `${name.0}`.
    #[serde(default)]
    pub(in crate::suite) variables: Map<String, Value>,
    /// Matchers of this suite, by name: each is a JSON Schema that allows the value, or the name of a file with one.
    #[serde(default)]
    pub(in crate::suite) matchers: BTreeMap<String, Value>,
    /// MCP servers that the server calls, by name: each is started, and `${upstreams.name}` is its address.
    #[serde(default)]
    pub(in crate::suite) upstreams: BTreeMap<String, UpstreamSection>,
    /// Responses to the server's HTTP calls. With at least one, every other call fails.
    #[serde(default)]
    pub(in crate::suite) http_mocks: Vec<HttpMockEntry>,
    /// A cassette of the server's HTTP calls that no mock matches: replayed if the file exists, otherwise recorded, and written when all
    /// tests passed.
    pub(in crate::suite) record_http: Option<CassetteSection>,
    /// Places of secrets in cassettes, besides the usual ones.
    #[serde(default)]
    pub(in crate::suite) redact: Redaction,
    /// Time limit of each test, and of a response in it, in milliseconds. Default 60000 for a test, 30000 for a response.
    #[schemars(range(min = 1))]
    pub(super) timeout_ms: Option<u64>,
    /// Answers to requests of the server to the client: the first that matches and has uses left is given. A test's own come first.
    #[serde(default)]
    pub(super) answers: Vec<AnswerEntry>,
    /// Values that no answer, message or line of output of the server may contain. With at least one, the tokens of clients are
    /// among them.
    #[serde(default)]
    pub(in crate::suite) secrets: Vec<String>,
    /// Runs tests one after the other, in the order of the file. Default false: concurrently.
    #[serde(default)]
    pub(in crate::suite) serial: bool,
    /// Steps before the first test. Every test has the variables they save.
    #[serde(default)]
    pub(in crate::suite) setup: Vec<Step>,
    /// Steps before each test, with its client.
    #[serde(default)]
    pub(in crate::suite) before_each: Vec<Step>,
    /// Steps after each test, even if it failed.
    #[serde(default)]
    pub(in crate::suite) after_each: Vec<Step>,
    /// Steps after the last test, even if one failed.
    #[serde(default)]
    pub(in crate::suite) teardown: Vec<Step>,
    /// The tests.
    pub(in crate::suite) tests: Vec<TestEntry>,
}
