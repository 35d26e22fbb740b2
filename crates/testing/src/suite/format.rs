//! The keys of a suite file.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::{matchers::registered, server::Transport};

/// A suite of tests for one MCP server.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(title = "Gatewright test suite")]
pub(super) struct SuiteFile {
    /// The name in reports. Default: the name of the file.
    pub(super) name: Option<String>,
    /// The server under test.
    pub(super) server: ServerSection,
    /// `true` starts a mock authorization server for the suite; an object has options. Default false.
    #[serde(default)]
    pub(super) auth: AuthSection,
    /// Users by name, in addition to `admin`, `user`, `readOnly` and `anonymous`.
    #[serde(default)]
    pub(super) users: BTreeMap<String, UserSection>,
    /// The user of clients, unless a test names another. Default: no token.
    #[serde(rename = "as")]
    pub(super) user: Option<User>,
    /// Variables for texts, as `${name}`, `${name.key}` or `${name.0}`.
    #[serde(default)]
    pub(super) variables: Map<String, Value>,
    /// MCP servers that the server calls, by name: each is started, and `${upstreams.name}` is its address.
    #[serde(default)]
    pub(super) upstreams: BTreeMap<String, UpstreamSection>,
    /// Responses to the server's HTTP calls. With at least one, every other call fails.
    #[serde(default)]
    pub(super) http_mocks: Vec<HttpMockEntry>,
    /// A cassette of the server's HTTP calls that no mock matches: replayed if the file exists, otherwise recorded.
    pub(super) record_http: Option<String>,
    /// Runs tests one after the other, in the order of the file. Default false: concurrently.
    #[serde(default)]
    pub(super) serial: bool,
    /// Steps before the first test. Every test has the variables they save.
    #[serde(default)]
    pub(super) setup: Vec<Step>,
    /// Steps before each test, with its client.
    #[serde(default)]
    pub(super) before_each: Vec<Step>,
    /// Steps after each test, even if it failed.
    #[serde(default)]
    pub(super) after_each: Vec<Step>,
    /// Steps after the last test, even if one failed.
    #[serde(default)]
    pub(super) teardown: Vec<Step>,
    /// The tests.
    pub(super) tests: Vec<TestEntry>,
}

/// The server: `command` to start it, or `url` if it is already running.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ServerSection {
    /// An executable, a `.js`, `.mjs`, `.ts` or `.py` file beside the suite, or a command line.
    pub(super) command: Option<String>,
    /// Arguments. `{port}` is replaced by the port, and `{config}` by the path of a file with `config`.
    #[serde(default)]
    pub(super) args: Vec<String>,
    /// Configuration of the server, written to a file as JSON.
    pub(super) config: Option<Map<String, Value>>,
    /// Environment variables, in addition to those the suite is run with.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// The working directory, relative to the suite. Default: the suite's directory.
    pub(super) cwd: Option<String>,
    /// The transport. Default `streamable-http`.
    #[serde(default)]
    pub(super) transport: Transport,
    /// The port, passed in the environment variable `PORT`. Default: a free one.
    pub(super) port: Option<u16>,
    /// The path of the endpoint. Default `/mcp`, for SSE `/sse`.
    pub(super) path: Option<String>,
    /// The path of the readiness check. Default `/health`.
    pub(super) ready_path: Option<String>,
    /// The MCP endpoint of a server that is already running, such as `http://127.0.0.1:3000/mcp`.
    pub(super) url: Option<String>,
    /// The same, without the path.
    pub(super) base_url: Option<String>,
    /// Time until the server must respond. Default 30000.
    pub(super) startup_timeout_ms: Option<u64>,
    /// `debug`, `info`, `warn` or `error`, in `LOG_LEVEL` and `RUST_LOG`. Default `warn`.
    pub(super) log_level: Option<ServerLogLevel>,
    /// The protocol revision of clients. Default `2025-11-25`.
    pub(super) protocol_version: Option<String>,
    /// Starts a server for each test. Default false: all tests share one.
    #[serde(default)]
    pub(super) per_test: bool,
}

/// The log level of the server.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ServerLogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

impl ServerLogLevel {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// The issuer of tokens: none, a mock, or one with options.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum AuthSection {
    Mock(bool),
    Issuer(IssuerSection),
}

impl Default for AuthSection {
    fn default() -> Self {
        Self::Mock(false)
    }
}

/// Options of the issuer.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct IssuerSection {
    /// `aud` of tokens. Default `test-audience`.
    pub(super) audience: Option<String>,
    /// An issuer that is already running; no mock is started. Requires `key`.
    pub(super) issuer: Option<String>,
    /// An RSA key in a PKCS#8 PEM file, created if it does not exist.
    pub(super) key: Option<String>,
}

/// A user: the claims of a token.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct UserSection {
    /// `sub`.
    pub(super) sub: String,
    /// `scope`.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    /// `email`.
    pub(super) email: Option<String>,
    /// `name`.
    pub(super) name: Option<String>,
    /// Further claims; they replace others of the same name.
    #[serde(default)]
    pub(super) claims: Map<String, Value>,
    /// Lifetime of the token in seconds. Default 3600.
    pub(super) expires_in: Option<i64>,
    /// Creates a token that expired an hour ago.
    #[serde(default)]
    pub(super) expired: bool,
    /// Creates a token that is signed by another key.
    #[serde(default)]
    pub(super) invalid_signature: bool,
}

/// A literal bearer token.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenSection {
    /// The token.
    pub(super) token: String,
}

/// The name of a user, a user, or a token.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum User {
    Named(String),
    Token(TokenSection),
    Described(Box<UserSection>),
}

/// An MCP server that the server under test calls.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct UpstreamSection {
    /// Its tools by name.
    pub(super) tools: BTreeMap<String, UpstreamTool>,
}

/// A tool of an upstream server.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct UpstreamTool {
    /// Description.
    pub(super) description: Option<String>,
    /// JSON Schema of the arguments. Default: any object.
    pub(super) input_schema: Option<Value>,
    /// JSON Schema of `structuredContent`.
    pub(super) output_schema: Option<Value>,
    /// Annotations, such as `{readOnlyHint: true}`.
    pub(super) annotations: Option<Value>,
    /// Answers. The first that matches a call and has uses left is given; a call without one fails, and so does the suite.
    #[serde(default)]
    pub(super) answers: Vec<UpstreamAnswer>,
}

/// An answer of an upstream tool: exactly one of `value`, `response` and `error`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct UpstreamAnswer {
    /// Matches only calls with exactly these arguments.
    #[serde(rename = "with")]
    pub(super) arguments: Option<Value>,
    /// The `structuredContent`. A value that is no object becomes its property `result`.
    #[serde(default, deserialize_with = "present")]
    pub(super) value: Option<Value>,
    /// The whole `CallToolResult`.
    pub(super) response: Option<Value>,
    /// The `structuredContent` of a failure, such as `{code: NOT_FOUND, message: no such user}`.
    pub(super) error: Option<Value>,
    /// Number of times the answer is given. Default: unlimited.
    pub(super) times: Option<u32>,
    /// Fails the suite if the answer was not used (with `times`: that often). Default false.
    #[serde(default)]
    pub(super) required: bool,
}

/// A value that is there, also if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A response to HTTP calls of the server.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct HttpMockEntry {
    /// Matches calls whose URL contains this text.
    pub(super) url: Option<String>,
    /// Matches calls whose URL matches this regular expression.
    pub(super) url_regex: Option<String>,
    /// Matches only this method. Default: any.
    pub(super) method: Option<String>,
    /// Matches only calls with these headers.
    #[serde(default)]
    pub(super) request_headers: BTreeMap<String, String>,
    /// Matches only JSON bodies that contain all of this.
    pub(super) request_json: Option<Value>,
    /// Matches only bodies that contain this text.
    pub(super) request_text: Option<String>,
    /// Status of the response. Default 200.
    pub(super) status: Option<u16>,
    /// Headers of the response.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    /// Body of the response, as JSON.
    pub(super) json: Option<Value>,
    /// Body of the response, as text.
    pub(super) text: Option<String>,
    /// Number of times the mock responds. Default: unlimited.
    pub(super) times: Option<u32>,
    /// Delay of the response. Default 0.
    pub(super) delay_ms: Option<u64>,
    /// Fails the suite if the mock was not used (with `times`: that often). Default false.
    #[serde(default)]
    pub(super) required: bool,
}

/// A test.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TestEntry {
    /// The name in reports.
    pub(super) name: String,
    /// Skips the test, for this reason.
    pub(super) skip: Option<String>,
    /// If any test has `only: true`, only such tests run. Default false.
    #[serde(default)]
    pub(super) only: bool,
    /// Tags for selecting tests.
    #[serde(default)]
    pub(super) tags: Vec<String>,
    /// The user of the client.
    #[serde(rename = "as")]
    pub(super) user: Option<User>,
    /// Variables of this test, which hide those of the suite. They may refer to each other in any order, and to `${random}`; one that
    /// names itself means the suite's.
    #[serde(default)]
    pub(super) variables: Map<String, Value>,
    /// Time limit of the test. Default 60000.
    pub(super) timeout_ms: Option<u64>,
    /// A cassette of the server's responses: replayed if the file exists, otherwise recorded.
    pub(super) record: Option<String>,
    /// Mocked responses, returned instead of the server's.
    #[serde(default)]
    pub(super) mocks: Vec<MockEntry>,
    /// The answer to `elicitation/create`. Default: decline.
    pub(super) elicitation: Option<ElicitationSection>,
    /// The answer to `sampling/createMessage`, a `CreateMessageResult`. Default: an error.
    pub(super) sampling: Option<Value>,
    /// The steps, in order.
    pub(super) steps: Vec<Step>,
}

/// An answer to `elicitation/create`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ElicitationSection {
    /// The action of the user.
    pub(super) action: ElicitationAction,
    /// The content the user enters.
    #[serde(default)]
    pub(super) content: Map<String, Value>,
}

/// The action of the user.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum ElicitationAction {
    Accept,
    Decline,
    Cancel,
}

/// A mocked response to calls of `tool`, reads of `resource`, or requests of `method`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct MockEntry {
    /// Matches calls of this tool.
    pub(super) tool: Option<String>,
    /// Matches reads of this resource.
    pub(super) resource: Option<String>,
    /// Matches requests of this method.
    pub(super) method: Option<String>,
    /// Matches only requests of `method` whose `params` contain all of this.
    pub(super) params: Option<Value>,
    /// The result.
    pub(super) response: Option<Value>,
    /// An error instead of a result.
    pub(super) error: Option<MockError>,
    /// Number of times the mock responds. Default: unlimited.
    pub(super) times: Option<u32>,
    /// Delay of the response. Default 0.
    pub(super) delay_ms: Option<u64>,
}

/// A JSON-RPC error.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MockError {
    /// The code.
    pub(super) code: i64,
    /// The message.
    pub(super) message: String,
    /// The data.
    pub(super) data: Option<Value>,
}

/// The objects a step lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum List {
    Tools,
    Resources,
    ResourceTemplates,
    Prompts,
}

/// A step: exactly one of the first eleven keys, and its expectations.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Step {
    /// Lists all objects of a type.
    pub(super) list: Option<List>,
    /// Calls this tool.
    pub(super) call: Option<String>,
    /// Reads this resource.
    pub(super) read: Option<String>,
    /// Gets this prompt.
    pub(super) get: Option<String>,
    /// Sends a request `{method, params, id?}`; text, or an object with `jsonrpc`, is sent as it is.
    pub(super) raw: Option<Value>,
    /// Sends this notification.
    pub(super) notify: Option<String>,
    /// Waits for `count` notifications of this method, counting earlier ones. The outcome is an array of them.
    pub(super) wait: Option<String>,
    /// Subscribes to changes (`subscriptions/listen`, 2026-07-28), such as `{toolsListChanged: true}`.
    pub(super) listen: Option<Map<String, Value>>,
    /// Waits for a line of the server's output that contains this text. The outcome is the line.
    pub(super) log: Option<String>,
    /// Waits for `count` HTTP calls of the server whose URL contains this text. The outcome is an array of them.
    pub(super) http_calls: Option<String>,
    /// Continues as this user.
    pub(super) authenticate: Option<User>,
    /// Arguments of `call` and `get`, `params` of `notify`.
    #[serde(default, rename = "with")]
    pub(super) arguments: Value,
    /// Progress token of `call`.
    pub(super) progress: Option<Value>,
    /// The number of events that `wait` and `httpCalls` wait for. Default 1.
    pub(super) count: Option<usize>,
    /// Timeout of `wait`, `log` and `httpCalls`. Default 5000.
    pub(super) timeout_ms: Option<u64>,
    /// Expectations of the outcome.
    #[serde(default)]
    pub(super) expect: Vec<WrittenExpectation>,
    /// Variables for later steps, by JSON pointer into the outcome.
    #[serde(default)]
    pub(super) save: BTreeMap<String, String>,
}

/// The actions of steps, in the order of [`Step`].
pub(super) const ACTIONS: [&str; 11] =
    ["list", "call", "read", "get", "raw", "notify", "wait", "listen", "log", "httpCalls", "authenticate"];

impl Step {
    /// The actions this step names; a valid step names one.
    pub(super) fn actions(&self) -> Vec<&'static str> {
        let present = [
            self.list.is_some(),
            self.call.is_some(),
            self.read.is_some(),
            self.get.is_some(),
            self.raw.is_some(),
            self.notify.is_some(),
            self.wait.is_some(),
            self.listen.is_some(),
            self.log.is_some(),
            self.http_calls.is_some(),
            self.authenticate.is_some(),
        ];
        ACTIONS.into_iter().zip(present).filter(|(_, present)| *present).map(|(name, _)| name).collect()
    }
}

/// The name of a matcher, or a matcher with its argument; `not` inverts it.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(super) struct WrittenExpectation(pub(super) Value);

impl JsonSchema for WrittenExpectation {
    fn schema_name() -> Cow<'static, str> {
        "Expectation".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = registered().iter().map(|one| &*one.name).collect();
        let mut properties: Map<String, Value> =
            registered().iter().map(|one| (one.name.clone(), one.schema.clone())).collect();
        properties.insert("not".into(), serde_json::json!({"$ref": "#/$defs/Expectation"}));
        json_schema!({
            "description": "The name of a matcher, or a matcher with its argument; `not` inverts it.",
            "anyOf": [
                {"enum": names},
                {"type": "object", "properties": properties, "additionalProperties": false,
                    "minProperties": 1, "maxProperties": 1},
            ],
        })
    }
}
