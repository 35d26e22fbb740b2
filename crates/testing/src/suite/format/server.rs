//! The key `server`: the server under test.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{server::Transport, shapes::Strict};

/// The server: `command` to start it, or `url` if it is already running.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::suite) struct ServerSection {
    /// An executable, a `.js`, `.mjs`, `.ts` or `.py` file beside the suite, or a command line.
    pub(in crate::suite) command: Option<String>,
    /// Arguments. `{port}` is replaced by the port, and `{config}` by the path of a file with `config`.
    #[serde(default)]
    pub(in crate::suite) args: Vec<String>,
    /// Configuration of the server, written to a file as JSON.
    pub(in crate::suite) config: Option<Map<String, Value>>,
    /// Environment variables, in addition to those the suite is run with. `{port}` is replaced by the port.
    #[serde(default)]
    pub(in crate::suite) env: BTreeMap<String, String>,
    /// The working directory, relative to the suite. Default: the suite's directory.
    pub(in crate::suite) cwd: Option<String>,
    /// The transport. Default `streamable-http`.
    #[serde(default)]
    pub(in crate::suite) transport: Transport,
    /// The port, passed in the environment variable `PORT`. Default: a free one.
    pub(in crate::suite) port: Option<u16>,
    /// The path of the endpoint. Default `/mcp`, for SSE `/sse`.
    pub(in crate::suite) path: Option<String>,
    /// The path of the readiness check. Default `/health`.
    pub(in crate::suite) ready_path: Option<String>,
    /// The MCP endpoint of a server that is already running, such as `http://127.0.0.1:3000/mcp`.
    pub(in crate::suite) url: Option<String>,
    /// The same, without the path.
    pub(in crate::suite) base_url: Option<String>,
    /// Headers of every HTTP request of clients, such as an API key. `as: anonymous` sends none of them.
    #[serde(default)]
    pub(in crate::suite) headers: BTreeMap<String, String>,
    /// Time until the server must respond. Default 30000.
    pub(in crate::suite) startup_timeout_ms: Option<u64>,
    /// `debug`, `info`, `warn` or `error`, in `LOG_LEVEL` and `RUST_LOG`. Default `warn`.
    pub(in crate::suite) log_level: Option<ServerLogLevel>,
    /// The protocol revision of clients. Default `2025-11-25`.
    pub(in crate::suite) protocol_version: Option<String>,
    /// Rules that messages of the server are checked against: `true` for all, `false` for none, or `{except: [RULE…]}`. A message
    /// that breaks one fails the test. Default true.
    #[serde(default)]
    pub(in crate::suite) strict: Strict,
    /// Starts a server for each test. Default false: all tests share one process, also over standard input and output.
    #[serde(default)]
    pub(in crate::suite) per_test: bool,
}

/// The log level of the server.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::suite) enum ServerLogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

impl ServerLogLevel {
    pub(in crate::suite) const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}
