//! Serves the console for the demo's apps and prints its address, for work on its pages.
#![expect(clippy::unwrap_used, reason = "an example ends at the first failure")]

use std::sync::Arc;

use gatewright::{Builder, CodeCallConfig, LocalApp};
use gatewright_console::{Console, ConsoleOptions, ExecutionHistory};
use gatewright_demo::{App as DemoApp, Dataset};

#[tokio::main]
async fn main() {
    let dataset = Dataset::seeded();
    let config: CodeCallConfig =
        serde_json::from_value(serde_json::json!({"worker": {"adapter": "in_process"}})).unwrap();
    let history = ExecutionHistory::new(500);
    let running = Builder::new("acme-tools", "1.0.0")
        .app("crm", Arc::new(LocalApp::start(DemoApp::crm(dataset.clone())).await.unwrap()))
        .app("billing", Arc::new(LocalApp::start(DemoApp::billing(dataset.clone())).await.unwrap()))
        .app("support", Arc::new(LocalApp::start(DemoApp::support(dataset)).await.unwrap()))
        .code_mode(config)
        .observer(history.clone())
        .build()
        .unwrap();
    let console = Console::new(
        running.gateway().clone(),
        running.code_call().cloned(),
        history,
        ConsoleOptions::default(),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}/console", listener.local_addr().unwrap());
    axum::serve(listener, console.router()).await.unwrap();
}
