//! MCP servers that the server under test calls, with the answers of the suite.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};

use gatewright_core::rmcp::{
    model::{CallToolRequestParams, CallToolResult},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    format::{UpstreamAnswer, UpstreamSection},
    variables::Variables,
};
use crate::{
    base::{json::is_subset, lock, serve::serve, text::shorten},
    tool_server::ToolServer,
};

/// Longest call in a report, in bytes.
const SHOWN: usize = 300;
/// Calls without an answer that a report names.
const MOST_NAMED: usize = 10;

/// Running servers. They end when this is dropped.
pub(super) struct Upstreams {
    servers: BTreeMap<String, (String, Arc<Answers>)>,
    _stop: DropGuard,
}

impl Upstreams {
    /// Starts one server for each section.
    pub(super) async fn start(
        sections: &BTreeMap<String, UpstreamSection>,
        variables: &Variables,
    ) -> Result<Self, String> {
        let stop = CancellationToken::new();
        let mut servers = BTreeMap::new();
        for (name, section) in sections {
            let failed = |problem: String| format!("the upstream `{name}`: {problem}");
            let (server, answers) = of(section, variables).map_err(failed)?;
            let url = listen(server, stop.clone()).await.map_err(|error| failed(error.to_string()))?;
            servers.insert(name.clone(), (url, answers));
        }
        Ok(Self { servers, _stop: stop.drop_guard() })
    }

    /// The addresses by name.
    pub(super) fn addresses(&self) -> Value {
        self.servers.iter().map(|(name, (url, _))| (name.clone(), Value::from(url.as_str()))).collect()
    }

    /// Calls without an answer, and required answers that were not used. The latter count only if all tests ran (`complete`).
    pub(super) fn problems(&self, complete: bool) -> Vec<String> {
        let all = self.servers.iter();
        all.flat_map(|(name, (_, answers))| {
            answers.problems(complete).into_iter().map(move |problem| format!("upstream `{name}`: {problem}"))
        })
        .collect()
    }
}

/// The server of a section, and its answers.
fn of(section: &UpstreamSection, variables: &Variables) -> Result<(ToolServer, Arc<Answers>), String> {
    let (mut tools, mut answers) = (Vec::new(), Vec::new());
    for (name, tool) in &section.tools {
        let mut listed = json!({"name": name, "inputSchema": {"type": "object"}});
        for (key, value) in [
            ("description", tool.description.clone().map(Value::from)),
            ("inputSchema", tool.input_schema.clone()),
            ("outputSchema", tool.output_schema.clone()),
            ("annotations", tool.annotations.clone()),
        ] {
            if let Some(value) = value {
                listed[key] = value;
            }
        }
        tools.push(listed);
        for answer in &tool.answers {
            answers.push(Answer::of(name, answer, variables)?);
        }
    }
    let tools: Value = tools.into();
    // A server of other definitions would be a mistake of the suite's author, not of this program.
    serde_json::from_value::<Vec<gatewright_core::rmcp::model::Tool>>(tools.clone())
        .map_err(|error| format!("its tools are no definitions of tools: {error}"))?;
    let answers = Arc::new(Answers { all: answers, used: Mutex::default() });
    let own = answers.clone();
    let server = ToolServer::new(tools, move |call, _| std::future::ready(Ok(own.answer(&call))));
    Ok((server, answers))
}

async fn listen(server: ToolServer, stop: CancellationToken) -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    serve(listener, axum::Router::new().route_service("/mcp", service), None, stop);
    Ok(url)
}

/// The answers of a server.
struct Answers {
    all: Vec<Answer>,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    /// Uses of each answer.
    times: Vec<u32>,
    /// Calls that no answer matched.
    unmatched: Vec<String>,
}

/// One answer of a tool.
struct Answer {
    tool: String,
    arguments: Option<Value>,
    result: CallToolResult,
    times: Option<u32>,
    required: bool,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tool)?;
        self.arguments.iter().try_for_each(|with| write!(f, " {}", shorten(&with.to_string(), SHOWN)))
    }
}

impl Answer {
    fn of(tool: &str, answer: &UpstreamAnswer, variables: &Variables) -> Result<Self, String> {
        let filled = |value: &Option<Value>| value.as_ref().map(|value| variables.fill(value)).transpose();
        let result = match (filled(&answer.response)?, filled(&answer.error)?, filled(&answer.value)?) {
            (Some(whole), ..) => serde_json::from_value(whole)
                .map_err(|error| format!("a response of `{tool}` is no result of a tool call: {error}"))?,
            (_, Some(error), _) => CallToolResult::structured_error(error),
            (.., value) => CallToolResult::structured(match value.unwrap_or_default() {
                object @ Value::Object(_) => object,
                other => json!({"result": other}),
            }),
        };
        Ok(Self {
            tool: tool.to_owned(),
            arguments: filled(&answer.arguments)?,
            result,
            times: answer.times,
            required: answer.required,
        })
    }

    fn matches(&self, tool: &str, arguments: &Value) -> bool {
        let is_equal = |with: &Value| is_subset(with, arguments) && is_subset(arguments, with);
        self.tool == tool && self.arguments.as_ref().is_none_or(is_equal)
    }
}

impl Answers {
    /// The first answer that matches and has uses left; else an error.
    fn answer(&self, call: &CallToolRequestParams) -> CallToolResult {
        let arguments = Value::Object(call.arguments.clone().unwrap_or_default());
        let mut used = lock(&self.used);
        used.times.resize(self.all.len(), 0);
        let mut matching = self.all.iter().enumerate().filter(|(_, one)| one.matches(&call.name, &arguments));
        if let Some((at, found)) =
            matching.find(|(at, one)| one.times.is_none_or(|most| used.times[*at] < most))
        {
            used.times[at] += 1;
            return found.result.clone();
        }
        let call = format!("{} {}", call.name, shorten(&arguments.to_string(), SHOWN));
        let message = format!("the suite has no answer left for {call}");
        if used.unmatched.len() < MOST_NAMED {
            used.unmatched.push(call);
        }
        CallToolResult::structured_error(json!({"code": "NO_ANSWER", "message": message}))
    }

    fn problems(&self, complete: bool) -> Vec<String> {
        let used = lock(&self.used);
        let uses = |at: usize| used.times.get(at).copied().unwrap_or(0);
        let needed = |one: &Answer| one.times.unwrap_or(1);
        let missing = self.all.iter().enumerate().filter(|(at, one)| one.required && uses(*at) < needed(one));
        let missing = missing
            .filter(|_| complete)
            .map(|(at, one)| format!("not called: {one} (called {} of {} times)", uses(at), needed(one)));
        missing.chain(used.unmatched.iter().map(|call| format!("no answer left for {call}"))).collect()
    }
}
