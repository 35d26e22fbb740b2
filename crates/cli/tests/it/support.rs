//! A gateway over the demo's apps, with a client beside it in memory.

use std::{path::PathBuf, sync::Arc};

use gatewright::{
    Builder, CodeCallConfig, LocalApp, Running, WorkerCommand,
    core::memory_transport,
    rmcp::{
        RoleClient, ServiceExt,
        model::{CallToolRequestParams, CallToolResult, Tool},
        service::RunningService,
    },
};
use gatewright_demo::{App as DemoApp, Dataset};
use serde_json::{Value, json};

/// The binary under test.
pub fn gatewright() -> PathBuf {
    env!("CARGO_BIN_EXE_gatewright").into()
}

/// A gateway and its client.
pub struct Demo {
    pub running: Running,
    client: RunningService<RoleClient, ()>,
}

/// The demo's apps in code mode, set up by `config` (JSON of the `codecall` section).
pub async fn demo(config: Value) -> Demo {
    let dataset = Dataset::seeded();
    let builder = Builder::new("test", "1.0.0")
        .app("crm", Arc::new(LocalApp::start(DemoApp::crm(dataset.clone())).await.unwrap()))
        .app("billing", Arc::new(LocalApp::start(DemoApp::billing(dataset.clone())).await.unwrap()))
        .app("support", Arc::new(LocalApp::start(DemoApp::support(dataset)).await.unwrap()));
    start(builder, config).await
}

/// Builds, and connects a client.
pub async fn start(builder: Builder, config: Value) -> Demo {
    let config: CodeCallConfig = serde_json::from_value(config).unwrap();
    let worker = WorkerCommand { program: gatewright(), args: vec!["worker".into()] };
    let running = builder.code_mode(config).worker(worker).build().unwrap();
    let (client_end, server_end) = memory_transport();
    let server = running.gateway().session();
    tokio::spawn(async move {
        let running = server.serve(server_end).await.unwrap();
        let _ = running.waiting().await;
    });
    let client = ().serve(client_end).await.unwrap();
    Demo { running, client }
}

impl Demo {
    /// Calls any tool.
    pub async fn call(&self, name: &str, input: Value) -> CallToolResult {
        let Value::Object(input) = input else { panic!("the input is an object") };
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(input);
        self.client.peer().call_tool(params).await.unwrap()
    }

    /// Calls a meta-tool, and checks what holds for all of them: the body is the structured content, its text is the
    /// only item, and `isError` says what `status` says.
    pub async fn meta(&self, tool: &str, input: Value) -> Value {
        let result = self.call(&format!("codecall:{tool}"), input).await;
        let body = result.structured_content.clone().unwrap();
        let text = result.content[0].as_text().unwrap().text.clone();
        assert_eq!(result.content.len(), 1);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), body);
        let failed = body.get("status").is_some_and(|status| status != "ok");
        assert_eq!(result.is_error == Some(true), failed, "{body}");
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

    /// What `tools/list` shows.
    pub async fn listed(&self) -> Vec<Tool> {
        self.client.peer().list_all_tools().await.unwrap()
    }
}
