//! A small app behind a real server on a free port.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use gatewright_core::{
    AnswerRoom, AppOptions, AuthRefusal, Authenticator, CallerAddress, Gateway, GatewayConfig, Invoker,
    LocalApp, Plugin, Principal, Registry, ToolNames,
};
use gatewright_server::{HttpConfig, Occupancy, Server, ServerBuilder};
use gatewright_testing::{Mcp, McpBuilder};
use http::{StatusCode, request::Parts};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Tools that answer at once, when told to, or only for some callers.
#[derive(Clone, Default)]
pub(crate) struct Tools {
    pub(crate) started: Arc<Notify>,
    pub(crate) go_on: Arc<Notify>,
    /// A call of `wait` was answered or given up.
    pub(crate) ended: Arc<Notify>,
    /// Calls so far.
    pub(crate) calls: Arc<AtomicUsize>,
}

struct NotifyOnDrop(Arc<Notify>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = json!([
            {"name": "echo", "description": "Says it again.", "inputSchema": {"type": "object"}},
            {"name": "whoami", "description": "Says who calls.", "inputSchema": {"type": "object"}},
            {"name": "wait", "description": "Answers when told to.", "inputSchema": {"type": "object"}},
            {"name": "guarded", "description": "Needs a scope.", "inputSchema": {"type": "object"},
             "_meta": {"gatewright": {"scopes": ["crm:write"]}}},
        ]);
        let tools: Vec<Tool> = serde_json::from_value(tools).unwrap();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let text = match &*params.name {
            "echo" => match params.arguments.as_ref().and_then(|asked| asked.get("repeat")?.as_u64()) {
                Some(times) => "x".repeat(usize::try_from(times).unwrap()),
                None => json!(params.arguments).to_string(),
            },
            "whoami" => match params.arguments.as_ref().and_then(|asked| asked.get("of")?.as_str()) {
                Some("headers") => {
                    let parts = context.extensions.get::<Parts>().unwrap();
                    parts.headers.keys().map(http::HeaderName::as_str).collect::<Vec<_>>().join(" ")
                }
                Some(_) => {
                    CallerAddress::of(&context).map_or_else(String::new, |caller| caller.0.to_string())
                }
                None => Principal::of(&context).unwrap().subject.to_string(),
            },
            "wait" => {
                let bytes = params.arguments.as_ref().and_then(|asked| asked.get("memory")?.as_u64());
                let room =
                    bytes.map(|bytes| AnswerRoom::of(&context).expect("room for answers").reserve(bytes));
                let _memory = room.transpose().map_err(|why| ErrorData::internal_error(why, None))?;
                let _ended = NotifyOnDrop(self.ended.clone());
                self.started.notify_one();
                self.go_on.notified().await;
                "done".to_owned()
            }
            _ => "yes".to_owned(),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// Whoever names themselves in `Authorization: Bearer name` is believed, with the scope `crm:read`.
pub(crate) struct Believing;

impl Authenticator for Believing {
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> BoxFuture<'a, Result<Principal, AuthRefusal>> {
        let name = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
        let name = name.and_then(|value| value.strip_prefix("Bearer ")).map(str::to_owned);
        Box::pin(async move {
            match name {
                Some(name) => Ok(Principal {
                    subject: name.into(),
                    client_id: Some("test".into()),
                    scopes: gatewright_core::Scopes::parse("crm:read"),
                    ..Principal::local()
                }),
                None => Err(refusal(StatusCode::UNAUTHORIZED, "Bearer")),
            }
        })
    }

    fn insufficient_scope(&self, _: &Principal, missing: &[String]) -> AuthRefusal {
        let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{}\"", missing.join(" "));
        refusal(StatusCode::FORBIDDEN, &challenge)
    }
}

/// Believes like [`Believing`], and counts how often it is asked.
pub(crate) struct Counting(pub(crate) Arc<AtomicUsize>);

impl Authenticator for Counting {
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> BoxFuture<'a, Result<Principal, AuthRefusal>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Believing.authenticate(parts)
    }

    fn insufficient_scope(&self, principal: &Principal, missing: &[String]) -> AuthRefusal {
        Believing.insufficient_scope(principal, missing)
    }
}

fn refusal(status: StatusCode, challenge: &str) -> AuthRefusal {
    http::Response::builder()
        .status(status)
        .header("www-authenticate", challenge)
        .body(String::new())
        .unwrap()
}

/// A running server.
pub(crate) struct Rig {
    pub(crate) base: String,
    pub(crate) url: String,
    pub(crate) http: reqwest::Client,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) tools: Tools,
    pub(crate) occupancy: Occupancy,
    pub(crate) shutdown: CancellationToken,
    pub(crate) served: Option<JoinHandle<()>>,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

pub(crate) async fn gateway(tools: Tools) -> Arc<Gateway> {
    gateway_with(tools, Vec::new()).await
}

async fn gateway_with(tools: Tools, plugins: Vec<Arc<dyn Plugin>>) -> Arc<Gateway> {
    let registry = Registry::new(ToolNames::Colon);
    registry.add("app", Arc::new(LocalApp::start(tools).await.unwrap()), AppOptions::default());
    let invoker = Arc::new(Invoker::new(registry));
    Arc::new(Gateway::new(GatewayConfig::new("test-gateway", "1.2.3"), invoker, plugins))
}

/// A server with this `http` section.
pub(crate) async fn start(config: Value) -> Rig {
    start_with(config, |builder| builder).await
}

pub(crate) async fn start_with(config: Value, set_up: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Rig {
    start_plugged(config, Vec::new(), set_up).await
}

/// A server whose gateway has plugins.
pub(crate) async fn start_plugged(
    mut config: Value,
    plugins: Vec<Arc<dyn Plugin>>,
    set_up: impl FnOnce(ServerBuilder) -> ServerBuilder,
) -> Rig {
    config["port"] = json!(0);
    let config: HttpConfig = serde_json::from_value(config).unwrap();
    let path = config.path.clone();
    let tools = Tools::default();
    let gateway = gateway_with(tools.clone(), plugins).await;
    let bound = set_up(Server::builder(gateway.clone(), config)).bind().await.unwrap();
    let base = format!("http://{}", bound.local_addr());
    let (shutdown, occupancy) = (CancellationToken::new(), bound.occupancy());
    let served = Some(tokio::spawn(bound.serve(shutdown.clone())));
    let url = format!("{base}{path}");
    Rig { base, url, http: reqwest::Client::new(), gateway, tools, occupancy, shutdown, served }
}

impl Rig {
    /// A client of the test kit. Tests whose matter is the HTTP itself use [`Rig::post`] and what is below it.
    pub(crate) fn client(&self) -> McpBuilder {
        Mcp::http(&self.url).timeout(PATIENCE)
    }

    /// The same over the older HTTP+SSE.
    pub(crate) fn sse_client(&self) -> McpBuilder {
        Mcp::sse(format!("{}/sse", self.base)).timeout(PATIENCE)
    }

    /// Ends the server and waits for its end.
    pub(crate) async fn end(&mut self) {
        self.shutdown.cancel();
        tokio::time::timeout(PATIENCE, self.served.take().unwrap()).await.unwrap().unwrap();
    }

    /// A POST to the endpoint with the headers every client sends.
    pub(crate) fn post(&self, body: impl Into<reqwest::Body>) -> reqwest::RequestBuilder {
        self.http
            .post(&self.url)
            .timeout(PATIENCE)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body)
    }

    /// A request of the 2026-07-28 era.
    pub(crate) fn modern(&self, method: &str, mut params: Value) -> reqwest::RequestBuilder {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        let mut request = self.post(message(7, method, &params));
        if let Some(name) = params.get("name").or(params.get("uri")).and_then(Value::as_str) {
            request = request.header("mcp-name", name);
        }
        request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", method)
    }

    pub(crate) fn initialize(&self) -> reqwest::RequestBuilder {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        self.post(message(0, "initialize", &params))
    }

    /// Opens a session as `who`; its id.
    pub(crate) async fn open(&self, who: &str) -> String {
        let response = self.initialize().bearer_auth(who).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        response.bytes().await.unwrap();
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let told =
            self.post(initialized).bearer_auth(who).header("mcp-session-id", &id).send().await.unwrap();
        assert_eq!(told.status(), StatusCode::ACCEPTED);
        id
    }

    pub(crate) fn in_session(&self, id: &str, method: &str, params: Value) -> reqwest::RequestBuilder {
        self.post(message(7, method, &params))
            .header("mcp-session-id", id)
            .header("mcp-protocol-version", "2025-11-25")
    }
}

pub(crate) fn message(id: u32, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// The JSON-RPC message of an answer, of either kind.
pub(crate) async fn answer(response: reqwest::Response) -> Value {
    let is_json = response.headers()["content-type"].to_str().unwrap().starts_with("application/json");
    let text = response.text().await.unwrap();
    let json = match is_json {
        true => text.as_str(),
        false => {
            let mut data = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
            data.rfind(|data| !data.is_empty()).unwrap_or_else(|| panic!("no event: {text:?}"))
        }
    };
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

/// The status, and the error of a JSON-RPC error answer.
pub(crate) async fn refused(request: reqwest::RequestBuilder) -> (u16, i64, String) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let body = answer(response).await;
    assert_eq!(body["jsonrpc"], "2.0", "{body}");
    let error = &body["error"];
    (status, error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
}
