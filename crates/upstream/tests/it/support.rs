//! A gateway in front of upstream apps, and clients that note what they hear.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use gatewright_core::{
    App, AppHealth, AppOptions, Gateway, GatewayConfig, Invoker, Registry, ToolNames, memory_transport,
};
use gatewright_upstream::{UpstreamApp, UpstreamConfig};
use rmcp::{
    ClientHandler, ErrorData, RoleClient, ServiceError, ServiceExt,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig,
        ClientRequest, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
        ElicitationAction, ElicitationCapability, Implementation, LoggingMessageNotificationParam,
        ProgressNotificationParam, ProtocolVersion, RootsCapabilities, SamplingCapability, SamplingMessage,
        ServerResult,
    },
    service::{
        ClientLifecycleMode, ClientServiceExt, NotificationContext, Peer, PeerRequestOptions, RequestContext,
        RequestHandle, RunningService,
    },
};
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
    gateway: Gateway,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let registry = Registry::new(ToolNames::Colon);
        let invoker = Arc::new(Invoker::new(registry.clone()));
        Self { gateway: Gateway::new(GatewayConfig::new("bench", "1"), invoker, Vec::new()), registry }
    }

    /// Starts an app without waiting for it.
    pub(crate) fn start(&self, id: &str, config: UpstreamConfig) -> Arc<UpstreamApp> {
        let options = AppOptions { timeout: config.timeout, ..AppOptions::default() };
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
            while !self.registry.snapshot().tools.iter().any(|tool| &*tool.app_id == id) {
                let _ = changes.recv().await;
            }
        };
        tokio::time::timeout(LONG, listed).await.expect("the tools are listed");
        app
    }

    /// A client of the older era that answers everything.
    pub(crate) async fn client(&self) -> Client {
        self.connect(Ears::default(), ClientLifecycleMode::Initialize).await
    }

    pub(crate) async fn connect(&self, ears: Ears, lifecycle: ClientLifecycleMode) -> Client {
        let (client_end, server_end) = memory_transport();
        let session = self.gateway.session();
        tokio::spawn(async move {
            if let Ok(running) = session.serve(server_end).await {
                let _ = running.waiting().await;
            }
        });
        let heard = ears.heard.clone();
        let running = ears.serve_with_lifecycle(client_end, lifecycle).await.expect("the gateway answers");
        Client { running, heard }
    }
}

/// What a client heard, in order.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<String>>>, Arc<tokio::sync::Notify>);

impl Heard {
    fn push(&self, what: String) {
        self.0.lock().unwrap().push(what);
        self.1.notify_waiters();
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Waits until that many things were heard.
    pub(crate) async fn count(&self, count: usize) -> Vec<String> {
        let waiting = async {
            loop {
                let next = self.1.notified();
                if self.all().len() >= count {
                    return self.all();
                }
                next.await;
            }
        };
        tokio::time::timeout(LONG, waiting).await.unwrap_or_else(|_| panic!("heard only {:?}", self.all()))
    }
}

/// A client's side.
pub(crate) struct Ears {
    pub(crate) heard: Heard,
    pub(crate) capabilities: bool,
    pub(crate) name: &'static str,
}

impl Default for Ears {
    fn default() -> Self {
        Self { heard: Heard::default(), capabilities: true, name: "Ada" }
    }
}

impl ClientHandler for Ears {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.capabilities {
            capabilities.elicitation = Some(ElicitationCapability::default());
            capabilities.sampling = Some(SamplingCapability::default());
            capabilities.roots = Some(RootsCapabilities::default());
        }
        let mut config = ClientConfig::new(capabilities, Implementation::new("ears", "1"));
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.heard.push(format!("progress {} of {}", params.progress, params.progress_token.0));
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.heard.push(format!("log {}", params.data));
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.heard.push("elicitation".to_owned());
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"name": self.name})))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Ok(CreateMessageResult::new(SamplingMessage::assistant_text("a sample"), "model".to_owned()))
    }
}

/// A connected client.
pub(crate) struct Client {
    running: RunningService<RoleClient, Ears>,
    pub(crate) heard: Heard,
}

impl Client {
    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        self.running.peer()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<CallToolResult, ErrorData> {
        let handle = self.begin(tool, arguments).await;
        match tokio::time::timeout(LONG, handle.await_response()).await.expect("an answer comes") {
            Ok(ServerResult::CallToolResult(result)) => Ok(result),
            Err(ServiceError::McpError(error)) => Err(error),
            other => panic!("{other:?}"),
        }
    }

    /// Sends a call without waiting for its answer.
    pub(crate) async fn begin(&self, tool: &str, arguments: Value) -> RequestHandle<RoleClient> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        self.peer().send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap()
    }

    /// The text of a call's answer.
    pub(crate) async fn text(&self, tool: &str) -> String {
        text_of(&self.call(tool, json!({})).await.unwrap())
    }
}

pub(crate) fn text_of(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| block.as_text()).map(|text| text.text.as_str()).collect()
}

/// Whether a process runs. One that ended and was not reaped does not.
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
