//! A gateway in front of upstream apps, and the test kit's clients beside it in memory.

use std::{collections::HashMap, sync::Arc, time::Duration};

use gatewright_core::{
    App, AppFuture, AppHealth, AppOptions, Authorize, BearerToken, Gateway, GatewayConfig, Invoker,
    Principal, Registry, ToolNames, UserCredentials,
};
use gatewright_testing::{ElicitResult, Mcp, McpBuilder, PendingCall, RpcError, RpcRequest};
use gatewright_upstream::{PerCallerApp, UpstreamApp, UpstreamConfig};
use serde_json::{Value, json};

/// Longest wait for anything: far beyond what a loaded machine needs.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// The test server with these flags.
pub(crate) fn server(flags: &[&str]) -> UpstreamConfig {
    let mut config = UpstreamConfig::command(env!("CARGO_BIN_EXE_upstream-test-server"));
    config.args = flags.iter().map(|flag| (*flag).to_owned()).collect();
    quick(config)
}

/// Short waits between tries.
pub(crate) fn quick(mut config: UpstreamConfig) -> UpstreamConfig {
    config.restart.initial = Duration::from_millis(10);
    config.restart.max = Duration::from_millis(50);
    config
}

pub(crate) fn environment() -> HashMap<String, String> {
    let path = ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
    HashMap::from([path, ("GATEWAY_SECRET".to_owned(), "not for apps".to_owned())])
}

/// Waits until the health of `app` is what `wanted` says.
pub(crate) async fn until(app: &UpstreamApp, wanted: impl Fn(&AppHealth) -> bool) -> AppHealth {
    let mut events = app.events();
    let waiting = async {
        loop {
            let health = app.health();
            if wanted(&health) {
                return health;
            }
            let _ = events.recv().await;
        }
    };
    match tokio::time::timeout(LONG, waiting).await {
        Ok(health) => health,
        Err(_) => panic!("health stays {:?}", app.health()),
    }
}

pub(crate) fn is_down(health: &AppHealth) -> bool {
    matches!(health, AppHealth::Down(_))
}

/// A gateway and its apps.
pub(crate) struct Bench {
    pub(crate) registry: Arc<Registry>,
    gateway: Arc<Gateway>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let registry = Registry::new(ToolNames::Colon);
        let invoker = Arc::new(Invoker::new(registry.clone()));
        let gateway = Gateway::new(GatewayConfig::new("bench", "1"), invoker, Vec::new());
        Self { gateway: Arc::new(gateway), registry }
    }

    /// Starts an app without waiting for it.
    pub(crate) fn start(&self, id: &str, config: UpstreamConfig) -> Arc<UpstreamApp> {
        let options = AppOptions {
            timeout: config.timeout,
            question_timeout: config.question_timeout,
            ..AppOptions::default()
        };
        let app = UpstreamApp::start(id, config, environment());
        self.registry.add(id, app.clone(), options);
        app
    }

    /// Starts an app, and waits until its tools are listed.
    pub(crate) async fn add(&self, id: &str, config: UpstreamConfig) -> Arc<UpstreamApp> {
        let mut changes = self.registry.changes();
        let app = self.start(id, config);
        assert_eq!(app.wait_ready(LONG).await, AppHealth::Up);
        let listed = async {
            while !self.registry.operator_snapshot().tools.iter().any(|tool| &*tool.app_id == id) {
                let _ = changes.recv().await;
            }
        };
        tokio::time::timeout(LONG, listed).await.expect("the tools are listed");
        app
    }

    /// A client of the older era that answers everything.
    pub(crate) async fn client(&self) -> Mcp {
        self.connect(|client| client).await
    }

    /// A client of the older era whose principal has this subject.
    pub(crate) async fn client_of(&self, subject: &str) -> Mcp {
        let principal = Principal { subject: subject.into(), ..Principal::local() };
        self.connect_as(principal, |client| client).await
    }

    /// Adds an app with connections for each caller.
    pub(crate) fn add_per_caller(&self, id: &str, config: UpstreamConfig) -> Arc<PerCallerApp> {
        let app = PerCallerApp::start(id, config, environment(), None);
        self.registry.add(id, app.clone(), AppOptions::default());
        app
    }

    /// Adds an app with connections for each user, who has a token there.
    pub(crate) fn add_with_tokens(&self, id: &str, config: UpstreamConfig) -> Arc<PerCallerApp> {
        let app = PerCallerApp::start(id, config, environment(), Some(Arc::new(TokenOfEach)));
        self.registry.add(id, app.clone(), AppOptions::default());
        app
    }

    /// A client set up otherwise. Whoever asks it gets Ada and a sample.
    pub(crate) async fn connect(&self, set_up: impl FnOnce(McpBuilder) -> McpBuilder) -> Mcp {
        self.connect_as(Principal::local(), set_up).await
    }

    /// A client of `principal`.
    pub(crate) async fn connect_as(
        &self,
        principal: Principal,
        set_up: impl FnOnce(McpBuilder) -> McpBuilder,
    ) -> Mcp {
        let gateway = self.gateway.clone();
        let client = Mcp::in_memory_with(move || gateway.session_of(principal.clone())).timeout(LONG);
        let client = set_up(client).connect().await.expect("the gateway answers");
        client.on_elicitation(|_| async { ElicitResult::Accept(json!({"name": "Ada"})) });
        client.on_sampling(|_| async {
            json!({"role": "assistant", "content": {"type": "text", "text": "a sample"}, "model": "model"})
        });
        client
    }
}

/// Gives each subject a token of their own.
struct TokenOfEach;

impl UserCredentials for TokenOfEach {
    fn bearer<'a>(
        &'a self,
        _: &'a str,
        principal: &'a Principal,
        _: &'a [String],
    ) -> AppFuture<'a, Result<Option<BearerToken>, String>> {
        Box::pin(async { Ok(Some(BearerToken::new(format!("token of {}", principal.subject)))) })
    }

    fn authorize<'a>(
        &'a self,
        _: &'a str,
        _: &'a Principal,
        _: &'a [String],
    ) -> AppFuture<'a, Result<Authorize, String>> {
        Box::pin(async { Err("everybody has a token".to_owned()) })
    }

    fn refused<'a>(
        &'a self,
        _: &'a str,
        _: &'a Principal,
        _: &'a BearerToken,
    ) -> AppFuture<'a, Result<Option<BearerToken>, String>> {
        Box::pin(async { Ok(None) })
    }
}

/// The text of a call's answer.
pub(crate) async fn text(client: &Mcp, tool: &str) -> String {
    let result = client.tools().call(tool, json!({})).await.unwrap();
    assert_eq!(result.error, None);
    result.text()
}

/// What the gateway asked a client with requests, and not in an answer, where a question has the gateway's key.
pub(crate) fn sent_requests(client: &Mcp) -> Vec<RpcRequest> {
    let is_sent = |one: &RpcRequest| !one.id.as_str().is_some_and(|id| id.starts_with("question_"));
    client.server_requests().into_iter().filter(is_sent).collect()
}

/// The JSON-RPC error of a call.
pub(crate) async fn error(client: &Mcp, tool: &str, arguments: Value) -> RpcError {
    client.tools().call(tool, arguments).await.unwrap().error.expect("the call fails")
}

/// A call of a tool that reports once and never answers.
pub(crate) async fn hanging(client: &Mcp, tool: &str) -> PendingCall {
    let open = client.tools().call(tool, json!({})).progress("hanging").begin().await.unwrap();
    client.notifications().wait_for("notifications/progress", 1, LONG).await.unwrap();
    open
}

/// Returns `true` if a process runs. One that ended and was not reaped does not.
pub(crate) fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Looks again and again until `done`.
pub(crate) async fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let looking = async {
        let mut interval = tokio::time::interval(Duration::from_millis(5));
        while !done() {
            interval.tick().await;
        }
    };
    assert!(tokio::time::timeout(LONG, looking).await.is_ok(), "never: {what}");
}
