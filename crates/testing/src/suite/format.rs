//! The keys of a suite file.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{matchers::registered, server::Transport};

/// A suite of tests for one MCP server.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(title = "Gatewright test suite")]
pub(super) struct SuiteFile {
    /// What reports call it. Default: the file's name.
    pub(super) name: Option<String>,
    /// The server under test.
    pub(super) server: ServerSection,
    /// `true` starts a mock authorization server beside the server; an object says more. Default false.
    #[serde(default)]
    pub(super) auth: AuthSection,
    /// Users by name, beside `admin`, `user`, `readOnly` and `anonymous`.
    #[serde(default)]
    pub(super) users: BTreeMap<String, UserSection>,
    /// Whom clients connect as, unless a test says otherwise. Default: nobody.
    #[serde(rename = "as")]
    pub(super) user: Option<User>,
    /// Texts hold them as `${name}`, `${name.key}` or `${name.0}`.
    #[serde(default)]
    pub(super) variables: Map<String, Value>,
    /// Answers to the server's HTTP calls. With at least one, every other call fails.
    #[serde(default)]
    pub(super) http_mocks: Vec<HttpMockEntry>,
    /// A cassette of the server's HTTP calls that no mock answers: recorded when the file is not there, else replayed.
    pub(super) record_http: Option<String>,
    /// Tests run one after the other, in the order of the file. Default false: at the same time.
    #[serde(default)]
    pub(super) serial: bool,
    /// Steps before the first test. What they save every test knows.
    #[serde(default)]
    pub(super) setup: Vec<Step>,
    /// Steps before each test, with its client.
    #[serde(default)]
    pub(super) before_each: Vec<Step>,
    /// Steps after each test, also when it failed.
    #[serde(default)]
    pub(super) after_each: Vec<Step>,
    /// Steps after the last test, also when one failed.
    #[serde(default)]
    pub(super) teardown: Vec<Step>,
    /// The tests.
    pub(super) tests: Vec<TestEntry>,
}

/// How the server is started, or where it is: `command` or `url`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ServerSection {
    /// An executable, a `.js`, `.mjs`, `.ts` or `.py` file beside the suite, or a command line.
    pub(super) command: Option<String>,
    /// Arguments. `{port}` in one becomes the port.
    #[serde(default)]
    pub(super) args: Vec<String>,
    /// Environment variables over those the suite is run with.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// Where it runs, from the suite's directory. Default: there.
    pub(super) cwd: Option<String>,
    /// How clients talk to it. Default `streamable-http`.
    #[serde(default)]
    pub(super) transport: Transport,
    /// Its port. Default: a free one, in the environment variable `PORT`.
    pub(super) port: Option<u16>,
    /// Its endpoint. Default `/mcp`, for SSE `/sse`.
    pub(super) path: Option<String>,
    /// What is asked to see whether it is up. Default `/health`.
    pub(super) ready_path: Option<String>,
    /// The MCP endpoint of a server that runs already, such as `http://127.0.0.1:3000/mcp`.
    pub(super) url: Option<String>,
    /// The same without the path.
    pub(super) base_url: Option<String>,
    /// How long it may take until it answers. Default 30000.
    pub(super) startup_timeout_ms: Option<u64>,
    /// `debug`, `info`, `warn` or `error`, in `LOG_LEVEL` and `RUST_LOG`. Default `warn`.
    pub(super) log_level: Option<ServerLogLevel>,
    /// The revision clients ask for. Default `2025-11-25`.
    pub(super) protocol_version: Option<String>,
    /// Every test gets a server of its own. Default false: all share one.
    #[serde(default)]
    pub(super) per_test: bool,
}

/// How much the server says.
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

/// Whether there is an issuer, and what its tokens say.
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

/// Who signs tokens.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct IssuerSection {
    /// `aud` of tokens. Default `test-audience`.
    pub(super) audience: Option<String>,
    /// Tokens of this issuer, which runs already; no mock is started. Needs `key`.
    pub(super) issuer: Option<String>,
    /// RSA key in a PKCS#8 PEM file, made when it is not there.
    pub(super) key: Option<String>,
}

/// A user: what a token says.
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
    /// Further claims; they replace those set otherwise.
    #[serde(default)]
    pub(super) claims: Map<String, Value>,
    /// Lifetime of the token in seconds. Default 3600.
    pub(super) expires_in: Option<i64>,
    /// The token expired an hour ago.
    #[serde(default)]
    pub(super) expired: bool,
    /// The token is signed by another key.
    #[serde(default)]
    pub(super) invalid_signature: bool,
}

/// A bearer token as it is.
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

/// An answer to HTTP calls of the server.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct HttpMockEntry {
    /// Calls whose URL holds this text.
    pub(super) url: Option<String>,
    /// Calls whose URL this regular expression finds.
    pub(super) url_regex: Option<String>,
    /// Only this method. Default: any.
    pub(super) method: Option<String>,
    /// Only with these headers.
    #[serde(default)]
    pub(super) request_headers: BTreeMap<String, String>,
    /// Only with a JSON body that holds all of this.
    pub(super) request_json: Option<Value>,
    /// Only with a body that holds this text.
    pub(super) request_text: Option<String>,
    /// Status of the answer. Default 200.
    pub(super) status: Option<u16>,
    /// Headers of the answer.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    /// Body of the answer as JSON.
    pub(super) json: Option<Value>,
    /// Body of the answer as text.
    pub(super) text: Option<String>,
    /// How often it answers. Default: without end.
    pub(super) times: Option<u32>,
    /// Waits before it answers. Default 0.
    pub(super) delay_ms: Option<u64>,
    /// The suite fails when it was not used (with `times`, that often). Default false.
    #[serde(default)]
    pub(super) required: bool,
}

/// One test.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TestEntry {
    /// What reports call it.
    pub(super) name: String,
    /// Why it does not run.
    pub(super) skip: Option<String>,
    /// Only tests with `only: true` run, when there are any. Default false.
    #[serde(default)]
    pub(super) only: bool,
    /// Words to choose tests by.
    #[serde(default)]
    pub(super) tags: Vec<String>,
    /// Whom the client connects as.
    #[serde(rename = "as")]
    pub(super) user: Option<User>,
    /// Variables of this test, over those of the suite. They may name each other in any order, and `${random}`; one that names
    /// itself means the one of the suite.
    #[serde(default)]
    pub(super) variables: Map<String, Value>,
    /// How long the test may take. Default 60000.
    pub(super) timeout_ms: Option<u64>,
    /// A cassette of what the server answers: recorded when the file is not there, else replayed.
    pub(super) record: Option<String>,
    /// Answers given to the client in place of the server's.
    #[serde(default)]
    pub(super) mocks: Vec<MockEntry>,
    /// How the client answers questions of the server (`elicitation/create`). Default: declines.
    pub(super) elicitation: Option<ElicitationSection>,
    /// What the client answers to `sampling/createMessage`, a `CreateMessageResult`. Default: an error.
    pub(super) sampling: Option<Value>,
    /// What it does, in order.
    pub(super) steps: Vec<Step>,
}

/// An answer to a question of the server.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ElicitationSection {
    /// What the user does.
    pub(super) action: ElicitationAction,
    /// What the user fills in.
    #[serde(default)]
    pub(super) content: Map<String, Value>,
}

/// What the user does.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum ElicitationAction {
    Accept,
    Decline,
    Cancel,
}

/// An answer in place of the server's: to `tool`, to `resource`, or to `method`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct MockEntry {
    /// Calls of this tool.
    pub(super) tool: Option<String>,
    /// Reads of this resource.
    pub(super) resource: Option<String>,
    /// Requests of this method.
    pub(super) method: Option<String>,
    /// Only requests of `method` whose `params` hold all of this.
    pub(super) params: Option<Value>,
    /// The result.
    pub(super) response: Option<Value>,
    /// An error in place of a result.
    pub(super) error: Option<MockError>,
    /// How often it answers. Default: without end.
    pub(super) times: Option<u32>,
    /// Waits before it answers. Default 0.
    pub(super) delay_ms: Option<u64>,
}

/// A JSON-RPC error.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MockError {
    /// Its code.
    pub(super) code: i64,
    /// Its message.
    pub(super) message: String,
    /// Its data.
    pub(super) data: Option<Value>,
}

/// What a step lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum List {
    Tools,
    Resources,
    ResourceTemplates,
    Prompts,
}

/// One step: exactly one of the first eleven keys, and what is expected of it.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Step {
    /// Lists all of a kind.
    pub(super) list: Option<List>,
    /// Calls this tool.
    pub(super) call: Option<String>,
    /// Reads this resource.
    pub(super) read: Option<String>,
    /// Gets this prompt.
    pub(super) get: Option<String>,
    /// Sends a request `{method, params, id?}`; one with `jsonrpc`, or a text, is sent as it is.
    pub(super) raw: Option<Value>,
    /// Sends this notification.
    pub(super) notify: Option<String>,
    /// Waits until the server sent `count` notifications of this method, earlier ones included. Gives them as an array.
    pub(super) wait: Option<String>,
    /// Asks to be told of changes (`subscriptions/listen`, 2026-07-28), such as `{toolsListChanged: true}`.
    pub(super) listen: Option<Map<String, Value>>,
    /// Waits until the server printed a line that holds this text. Gives the line.
    pub(super) log: Option<String>,
    /// Waits until the server made `count` HTTP calls whose URL holds this text. Gives them as an array.
    pub(super) http_calls: Option<String>,
    /// Goes on as this user.
    pub(super) authenticate: Option<User>,
    /// Arguments of `call` and `get`, `params` of `notify`.
    #[serde(default, rename = "with")]
    pub(super) arguments: Value,
    /// Progress token of `call`.
    pub(super) progress: Option<Value>,
    /// How many `wait` and `httpCalls` wait for. Default 1.
    pub(super) count: Option<usize>,
    /// How long `wait`, `log` and `httpCalls` wait. Default 5000.
    pub(super) timeout_ms: Option<u64>,
    /// What must hold.
    #[serde(default)]
    pub(super) expect: Vec<WrittenExpectation>,
    /// Variables for later steps, by JSON pointer into what the step gave.
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

/// The name of a matcher, or a matcher with its argument; `not` turns one round.
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
            "description": "The name of a matcher, or a matcher with its argument; `not` turns one round.",
            "anyOf": [
                {"enum": names},
                {"type": "object", "properties": properties, "additionalProperties": false,
                    "minProperties": 1, "maxProperties": 1},
            ],
        })
    }
}
