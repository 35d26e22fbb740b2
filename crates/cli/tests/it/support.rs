//! A gateway for the demo's apps, with an in-memory client of the test kit.

use std::{path::PathBuf, sync::Arc};

use gatewright::{Builder, CodeCallConfig, LocalApp, Principal, Running, WorkerCommand};
use gatewright_demo::{App as DemoApp, Dataset};
use gatewright_testing::{BoxError, Fixture, Mcp, TestContext, Tool, ToolResult, expect};
use serde_json::{Value, json};

/// The binary under test.
pub fn gatewright() -> PathBuf {
    env!("CARGO_BIN_EXE_gatewright").into()
}

/// The demo's apps in code mode with the default settings, and a client.
pub struct Demo {
    pub running: Running,
    mcp: Mcp,
}

impl Fixture for Demo {
    async fn build(context: &Arc<TestContext>) -> Result<Self, BoxError> {
        Ok(Gateways::build(context).await?.demo(json!({})).await)
    }
}

/// Starts gateways with other settings, any number per test.
pub struct Gateways(Arc<TestContext>);

impl Fixture for Gateways {
    async fn build(context: &Arc<TestContext>) -> Result<Self, BoxError> {
        Ok(Self(context.clone()))
    }
}

impl Gateways {
    /// The demo's apps in code mode, set up by `config` (JSON of the `codecall` section).
    pub async fn demo(&self, config: Value) -> Demo {
        self.start(sample_apps().await, config).await
    }

    /// The same with default settings, for tests that need many: it ends when it is dropped, and the requests of its client are in no
    /// report.
    pub async fn fleeting(&self) -> Demo {
        start(sample_apps().await, json!({})).await
    }

    /// Builds a gateway and connects a client.
    pub async fn start(&self, builder: Builder, config: Value) -> Demo {
        let demo = start(builder, config).await;
        self.0.watch(&demo.mcp);
        demo
    }
}

pub async fn sample_apps() -> Builder {
    let dataset = Dataset::seeded();
    Builder::new("test", "1.0.0")
        .app("crm", Arc::new(LocalApp::start(DemoApp::crm(dataset.clone())).await.unwrap()))
        .app("billing", Arc::new(LocalApp::start(DemoApp::billing(dataset.clone())).await.unwrap()))
        .app("support", Arc::new(LocalApp::start(DemoApp::support(dataset)).await.unwrap()))
}

async fn start(builder: Builder, config: Value) -> Demo {
    let config: CodeCallConfig = serde_json::from_value(config).unwrap();
    let worker = WorkerCommand { program: gatewright(), args: vec!["worker".into()] };
    let running = builder.code_mode(config).worker(worker).build().unwrap();
    let gateway = running.gateway().clone();
    let mcp = Mcp::in_memory_with(move || gateway.session_of(Principal::local())).connect().await.unwrap();
    Demo { running, mcp }
}

impl Demo {
    /// Calls any tool.
    pub async fn call(&self, name: &str, input: Value) -> ToolResult {
        self.mcp.tools().call(name, input).await.unwrap()
    }

    /// Calls a meta-tool, and checks what they have in common: the body is the structured content, its text is the only item, and
    /// `isError` agrees with `status`.
    pub async fn meta(&self, tool: &str, input: Value) -> Value {
        let result = self.call(&format!("codecall:{tool}"), input).await;
        let body = result.structured().unwrap().clone();
        assert_eq!(result.content.len(), 1);
        assert_eq!(serde_json::from_str::<Value>(&result.text()).unwrap(), body);
        match body.get("status").is_some_and(|status| status != "ok") {
            true => expect(&result).to_be_error(),
            false => expect(&result).to_be_successful(),
        }
        body
    }

    /// Runs a script.
    pub async fn run(&self, script: &str) -> Value {
        self.meta("execute", json!({"script": script})).await
    }

    /// The result of a script that must succeed.
    pub async fn result(&self, script: &str) -> Value {
        let body = self.run(script).await;
        assert_eq!(body["status"], "ok", "{body:#}");
        body["result"].clone()
    }

    /// Subscribes to every listed resource, and unsubscribes. Returns their number.
    pub async fn follow_all(&self) -> usize {
        let listed = self.mcp.resources().list().await.unwrap();
        for resource in &listed {
            self.mcp.resources().subscribe(&resource.uri).await.unwrap();
            self.mcp.resources().unsubscribe(&resource.uri).await.unwrap();
        }
        listed.len()
    }

    /// The tools of `tools/list`.
    pub async fn listed(&self) -> Vec<Tool> {
        self.mcp.tools().list().await.unwrap()
    }
}
