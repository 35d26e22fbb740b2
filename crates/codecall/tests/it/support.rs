//! A gateway in this process with one app, `app`, and clients of it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use gatewright_agentscript::{Adapter, PoolConfig, WorkerPool};
use gatewright_codecall::{CodeCall, CodeCallConfig, Mode};
use gatewright_core::{
    App, AppOptions, Authenticator, Gateway, GatewayConfig, Invoker, LocalApp, Principal, Registry, Scopes,
    ToolNames, memory_transport,
    rmcp::{
        ClientHandler, ErrorData, RoleClient, ServerHandler, ServiceError, ServiceExt as _,
        model::{CallToolRequestParams, CallToolResult, ReadResourceRequestParams, ReadResourceResult},
        service::{ClientLifecycleMode, ClientServiceExt as _, RunningService},
    },
};
use gatewright_executions::Executions;
use gatewright_testing::ToolServer;
use serde_json::{Value, json};

/// A tool whose call with `{"n": 2}` gives the third of its answers.
#[derive(Clone)]
pub struct Fixture {
    pub name: &'static str,
    pub output_schema: Option<Value>,
    pub answers: Vec<Value>,
}

impl Fixture {
    /// A tool without an output schema.
    pub fn new(name: &'static str, answers: impl Into<Vec<Value>>) -> Self {
        Self { name, output_schema: None, answers: answers.into() }
    }

    pub fn declaring(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }
}

/// An answer of one text.
pub fn text(text: impl Into<String>) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}]})
}

/// An answer of structured content.
pub fn structured(value: Value) -> Value {
    json!({"content": [], "structuredContent": value})
}

pub fn server(fixtures: impl IntoIterator<Item = Fixture>) -> ToolServer {
    let (mut tools, mut answers) = (Vec::new(), HashMap::new());
    for Fixture { name, output_schema, answers: own } in fixtures {
        let input = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let mut tool = json!({"name": name, "description": "A tool", "inputSchema": input});
        if let Some(schema) = output_schema {
            tool["outputSchema"] = schema;
        }
        tools.push(tool);
        answers.insert(name, own);
    }
    ToolServer::new(tools.into(), move |call, _| {
        let n = call.arguments.and_then(|input| input.get("n")?.as_u64()).unwrap_or(0);
        let answer = answers[&*call.name].get(usize::try_from(n).unwrap()).cloned();
        async move {
            let answer = answer.ok_or_else(|| ErrorData::invalid_params("there is no such answer", None))?;
            Ok(serde_json::from_value::<CallToolResult>(answer).unwrap())
        }
    })
}

/// A gateway in code mode.
pub struct Served {
    pub code_call: Arc<CodeCall>,
    pub invoker: Arc<Invoker>,
    pub gateway: Gateway,
}

impl Served {
    /// Over an app `app` with these tools, every one listed and reached by code mode.
    pub async fn new(config: Value, fixtures: impl IntoIterator<Item = Fixture>) -> Self {
        Self::over(config, server(fixtures)).await
    }

    /// Over `handler` as the app `app`, every tool listed and reached by code mode.
    pub async fn over(config: Value, handler: impl ServerHandler + Clone) -> Self {
        let mut config: CodeCallConfig = serde_json::from_value(config).unwrap();
        config.mode = Mode::MetadataDriven;
        Self::start(config, "app", handler, AppOptions::default()).await
    }

    /// Over `handler` as the app `app`, with runs kept in `executions`.
    pub async fn keeping(executions: Executions, handler: impl ServerHandler + Clone) -> Self {
        let config = CodeCallConfig { mode: Mode::MetadataDriven, ..CodeCallConfig::default() };
        Self::start_keeping(config, "app", handler, AppOptions::default(), Some(executions)).await
    }

    /// Over `handler` as the app `name`.
    pub async fn start(
        config: CodeCallConfig,
        name: &str,
        handler: impl ServerHandler + Clone,
        options: AppOptions,
    ) -> Self {
        Self::start_keeping(config, name, handler, options, None).await
    }

    async fn start_keeping(
        config: CodeCallConfig,
        name: &str,
        handler: impl ServerHandler + Clone,
        options: AppOptions,
        executions: Option<Executions>,
    ) -> Self {
        let app = Arc::new(LocalApp::start(handler).await.unwrap());
        Self::of_apps(config, vec![(name, app, options)], executions)
    }

    /// Over these apps. There is one worker.
    pub fn of_apps(
        config: CodeCallConfig,
        apps: Vec<(&str, Arc<dyn App>, AppOptions)>,
        executions: Option<Executions>,
    ) -> Self {
        Self::of_pool(PoolConfig::default(), config, apps, executions)
    }

    /// The same, with one worker and the queue of `pool`.
    pub fn of_pool(
        pool: PoolConfig,
        config: CodeCallConfig,
        apps: Vec<(&str, Arc<dyn App>, AppOptions)>,
        executions: Option<Executions>,
    ) -> Self {
        Self::of_invoker(pool, config, apps, executions, |invoker| invoker)
    }

    /// The same, with calls as `calling` makes them.
    pub fn of_invoker(
        pool: PoolConfig,
        config: CodeCallConfig,
        apps: Vec<(&str, Arc<dyn App>, AppOptions)>,
        executions: Option<Executions>,
        calling: impl FnOnce(Invoker) -> Invoker,
    ) -> Self {
        Self::of_owners(pool, config, apps, (executions, None), calling)
    }

    /// The same, with an authenticator that says what those may do whose runs go on without them.
    pub fn of_owners(
        pool: PoolConfig,
        config: CodeCallConfig,
        apps: Vec<(&str, Arc<dyn App>, AppOptions)>,
        (executions, owners): (Option<Executions>, Option<&Arc<dyn Authenticator>>),
        calling: impl FnOnce(Invoker) -> Invoker,
    ) -> Self {
        let registry = Registry::new(ToolNames::Colon);
        for (name, app, options) in apps {
            registry.add(name, app, options);
        }
        let invoker = Arc::new(calling(Invoker::new(registry)));
        let pool = WorkerPool::new(pool.adapter(Adapter::InProcess).workers(1)).unwrap();
        let mut code_call = CodeCall::new(config, invoker.clone(), pool, ToolNames::Colon);
        if let Some(executions) = executions {
            code_call = code_call.kept_in(executions);
        }
        code_call = code_call.park_after(Duration::from_millis(10));
        let code_call = Arc::new(code_call);
        code_call.run_in_background(owners);
        let gateway = Gateway::new(GatewayConfig::new("test", "1"), invoker.clone(), vec![code_call.clone()]);
        Self { code_call, invoker, gateway }
    }

    /// A session of `principal`, served to `handler`.
    pub async fn connect<H: ClientHandler>(
        &self,
        principal: Principal,
        handler: H,
    ) -> RunningService<RoleClient, H> {
        self.connect_in(principal, handler, ClientLifecycleMode::Initialize).await
    }

    /// A connection of `principal` that begins as `lifecycle` says, served to `handler`.
    pub async fn connect_in<H: ClientHandler>(
        &self,
        principal: Principal,
        handler: H,
        lifecycle: ClientLifecycleMode,
    ) -> RunningService<RoleClient, H> {
        let (client_end, server_end) = memory_transport();
        let serving = self.gateway.session_of(principal).serve(server_end);
        tokio::spawn(async move { serving.await.unwrap().waiting().await });
        handler.serve_with_lifecycle(client_end, lifecycle).await.unwrap()
    }

    /// A client of `subject`.
    pub async fn client(&self, subject: &str) -> Client {
        self.client_with(subject, ()).await
    }

    /// A client of `subject` that answers requests with `handler`.
    pub async fn client_with<H: ClientHandler>(&self, subject: &str, handler: H) -> Client<H> {
        let principal =
            Principal { subject: subject.into(), client_id: None, scopes: Scopes::All, ..Principal::local() };
        Client(self.connect(principal, handler).await)
    }
}

/// A connected client.
pub struct Client<H: ClientHandler = ()>(pub RunningService<RoleClient, H>);

impl<H: ClientHandler> Client<H> {
    pub async fn call(&self, tool: &str, input: Value) -> CallToolResult {
        let params =
            CallToolRequestParams::new(tool.to_owned()).with_arguments(input.as_object().unwrap().clone());
        self.0.peer().call_tool(params).await.unwrap()
    }

    /// The structured content of an answer.
    pub async fn body(&self, tool: &str, input: Value) -> Value {
        self.call(tool, input).await.structured_content.unwrap()
    }

    /// The body of `codecall:invoke` with the `n`th answer of `app:{tool}`.
    pub async fn invoke(&self, tool: &str, n: usize) -> Value {
        self.body("codecall:invoke", json!({"tool": format!("app:{tool}"), "input": {"n": n}})).await
    }

    /// The result of a script.
    pub async fn run(&self, script: &str) -> Value {
        let body = self.body("codecall:execute", json!({"script": script})).await;
        assert_eq!(body["status"], "ok", "{body}");
        body["result"].clone()
    }

    /// The schema that was learned of `app:{tool}`, and the number of answers.
    pub async fn observed(&self, tool: &str) -> Option<(Value, u64)> {
        let input = json!({"toolNames": [format!("app:{tool}")], "detail": "full"});
        let body = self.body("codecall:describe", input).await;
        let observed = body["tools"][0].get("observedOutput")?.clone();
        Some((observed["schema"].clone(), observed["answers"].as_u64().unwrap()))
    }

    pub async fn read(&self, uri: &str) -> Result<ReadResourceResult, ServiceError> {
        self.0.peer().read_resource(ReadResourceRequestParams::new(uri)).await
    }
}
