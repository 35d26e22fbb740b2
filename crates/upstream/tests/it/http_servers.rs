//! Servers over Streamable HTTP, in both eras.

use std::{borrow::Cow, net::SocketAddr, sync::Arc, time::Duration};

use gatewright_core::{App as _, AppHealth};
use gatewright_upstream::{Secret, UpstreamApp, UpstreamAuth, UpstreamConfig};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest,
        ElicitRequestParams, ElicitationSchema, ListToolsResult, PaginatedRequestParams,
        ProgressNotificationParam, ProtocolVersion, ServerCapabilities, ServerConfig, ServerRequest, Tool,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::json;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use crate::support::{Bench, LONG, environment, error, is_down, quick, text, until};

#[derive(Clone)]
struct Fixture {
    modern_only: bool,
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        if self.modern_only {
            Cow::Borrowed(&[ProtocolVersion::LATEST])
        } else {
            Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = Arc::new(json!({"type": "object"}).as_object().cloned().unwrap());
        let tool = |name: &'static str| Tool::new(name, "", schema.clone());
        Ok(ListToolsResult::with_all_items(
            ["version", "steps", "elicit", "big", "many", "hang"].map(tool).to_vec(),
        ))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let number = |name: &str| {
            params.arguments.as_ref().and_then(|given| given[name].as_u64()).unwrap_or(0) as usize
        };
        let text = match &*params.name {
            "many" => {
                let items = vec![json!({}); number("items")];
                return Ok(CallToolResult::structured(json!({"a": items})).into());
            }
            "version" => {
                let parts = context.extensions.get::<http::request::Parts>().expect("a request");
                let key = parts.headers.get("x-key").map(|key| key.to_str().unwrap_or_default());
                let version = context.protocol_version();
                format!(
                    "{} {}",
                    version.as_ref().map_or("", |version| version.as_str()),
                    key.unwrap_or_default()
                )
            }
            "steps" => {
                let token = context.meta.get_progress_token().expect("a token");
                for step in 1..=3 {
                    let progress = ProgressNotificationParam::new(token.clone(), f64::from(step));
                    let _ = context.peer.notify_progress(progress).await;
                }
                "done".to_owned()
            }
            "elicit" => {
                let params = ElicitRequestParams::FormElicitationParams {
                    meta: None,
                    message: "Who?".to_owned(),
                    requested_schema: ElicitationSchema::builder().build().expect("a schema"),
                };
                let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
                match context.peer.send_request(request).await {
                    Ok(answer) => serde_json::to_string(&answer).unwrap_or_default(),
                    Err(error) => error.to_string(),
                }
            }
            "big" => "x".repeat(number("bytes")),
            _ => {
                context.ct.cancelled().await;
                String::new()
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// A server on loopback, until it is dropped.
struct Server {
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Server {
    async fn start(address: &str, fixture: Fixture) -> Self {
        Self::start_with(address, fixture, StreamableHttpServerConfig::default()).await
    }

    async fn start_with(address: &str, fixture: Fixture, config: StreamableHttpServerConfig) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = StreamableHttpService::new(
            move || Ok(fixture.clone()),
            Arc::new(LocalSessionManager::default()),
            config,
        );
        let router = axum::Router::new().nest_service("/mcp", service);
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            tokio::select! {
                _ = std::future::IntoFuture::into_future(axum::serve(listener, router)) => {}
                _ = stopped => {}
            }
        });
        Self { address, _stop: stop, serving }
    }

    fn config(&self) -> UpstreamConfig {
        quick(UpstreamConfig::url(format!("http://{}/mcp", self.address)))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[tokio::test]
async fn a_server_over_http_gets_its_headers_and_gives_progress_and_questions_to_the_caller() {
    let server = Server::start("127.0.0.1:0", Fixture { modern_only: false }).await;
    let bench = Bench::new();
    let mut config = server.config();
    config.auth = Some(UpstreamAuth::Header { name: "X-Key".to_owned(), value: Secret::new("sesame-open") });
    bench.add("a", config).await;
    let client = bench.client().await;
    assert_eq!(text(&client, "a:version").await, "2025-11-25 sesame-open");
    let steps = client.tools().call("a:steps", json!({})).progress(7).await.unwrap();
    assert_eq!(steps.progress(), [1.0, 2.0, 3.0]);
    assert!(text(&client, "a:elicit").await.contains("Ada"));
    bench.registry.shutdown().await;
}

#[tokio::test]
async fn a_question_over_http_reaches_its_own_caller_while_others_have_calls_open() {
    let server = Server::start("127.0.0.1:0", Fixture { modern_only: false }).await;
    let bench = Bench::new();
    bench.add("a", server.config()).await;
    let (one, two) = (bench.client().await, bench.client().await);
    let open = one.tools().call("a:hang", json!({})).begin().await.unwrap();
    assert!(text(&two, "a:elicit").await.contains("Ada"));
    assert_eq!(
        two.server_requests().iter().map(|one| &*one.method).collect::<Vec<_>>(),
        ["elicitation/create"]
    );
    assert!(one.server_requests().is_empty());
    open.cancel().await;
}

#[tokio::test]
async fn a_server_over_http_that_knows_only_the_newer_era_is_reached() {
    let server = Server::start("127.0.0.1:0", Fixture { modern_only: true }).await;
    let bench = Bench::new();
    bench.add("a", server.config()).await;
    assert!(text(&bench.client().await, "a:version").await.starts_with("2026-07-28"));
}

#[tokio::test]
async fn an_answer_over_http_that_is_too_long_is_an_error_of_its_call() {
    let server = Server::start("127.0.0.1:0", Fixture { modern_only: false }).await;
    let bench = Bench::new();
    let mut config = server.config();
    config.max_message_bytes = 100_000;
    config.timeout = Duration::from_secs(5);
    bench.add("a", config).await;
    let client = bench.client().await;
    let error = error(&client, "a:big", json!({"bytes": 1_000_000})).await;
    assert!(error.message.contains("maxMessageBytes"), "{}", error.message);
    assert!(text(&client, "a:version").await.starts_with("2025"));
}

#[tokio::test]
async fn an_answer_of_too_many_values_is_an_error_of_its_call_as_events_and_as_json() {
    let json = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
    for config in [StreamableHttpServerConfig::default(), json] {
        let server = Server::start_with("127.0.0.1:0", Fixture { modern_only: false }, config).await;
        let bench = Bench::new();
        let mut config = server.config();
        config.max_message_bytes = 1_000_000;
        config.timeout = Duration::from_secs(20);
        let app = bench.add("a", config).await;
        let client = bench.client().await;
        let error = error(&client, "a:many", json!({"items": 20_000})).await;
        assert!(error.message.contains("31250 keys and values"), "{}", error.message);
        assert_eq!(error.data.unwrap()["code"], "UPSTREAM_TOO_LARGE");
        assert_eq!(app.health(), AppHealth::Up);
        let few = client.tools().call("a:many", json!({"items": 1_000})).await.unwrap();
        assert_eq!(few.raw["structuredContent"]["a"].as_array().map(Vec::len), Some(1_000));
    }
}

#[tokio::test]
async fn a_server_over_http_that_goes_away_is_down_and_up_again_when_it_is_back() {
    let server = Server::start("127.0.0.1:0", Fixture { modern_only: false }).await;
    let address = server.address.to_string();
    let bench = Bench::new();
    let app = bench.add("a", server.config()).await;
    let client = bench.client().await;
    drop(server);
    // Connections that are open already may live a little longer than the listener.
    let failing = async {
        while !is_down(&app.health()) {
            let _ = client.tools().call("a:hang-no-more", json!({})).await;
            let call = client.tools().call("a:version", json!({})).into_future();
            let _ = tokio::time::timeout(Duration::from_millis(100), call).await;
        }
    };
    tokio::time::timeout(LONG, failing).await.expect("it is down");
    let _again = Server::start(&address, Fixture { modern_only: false }).await;
    until(&app, |health| *health == AppHealth::Up).await;
}

#[tokio::test]
async fn a_url_nobody_listens_at_is_down_without_the_secrets_in_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let config = quick(UpstreamConfig::url(format!("http://{address}/mcp?api_key=hunter2-hunter2")));
    let app = UpstreamApp::start("a", config, environment());
    let AppHealth::Down(why) = app.wait_ready(LONG).await else { panic!("it is up") };
    let why = why.in_full();
    assert!(why.contains("cannot be reached") && !why.contains("hunter2"), "{why}");
}

#[tokio::test]
async fn a_server_that_refuses_our_credentials_says_what_to_check() {
    let refuse = || async {
        let challenge = [("www-authenticate", "Bearer")];
        (axum::http::StatusCode::UNAUTHORIZED, challenge, "")
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router: axum::Router = axum::Router::new().fallback(refuse);
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let app =
        UpstreamApp::start("a", quick(UpstreamConfig::url(format!("http://{address}/mcp"))), environment());
    let AppHealth::Down(why) = app.wait_ready(LONG).await else { panic!("it is up") };
    assert!(why.to_string().contains("credentials"), "{why}");
    serving.abort();
}
