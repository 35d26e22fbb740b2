//! Serves an app in code mode: the program of `docs/quickstart/library.md`. `cargo run -p gatewright --example hello`
//!
//! A test compares it with the guide, and runs it.

use std::{error::Error, process::ExitCode, sync::Arc, time::Duration};

use gatewright::{AppOptions, Builder, CodeCallConfig, HttpConfig, LocalApp, rmcp};
use rmcp::{ServerHandler, handler::server::wrapper::Parameters, tool, tool_handler, tool_router};

#[derive(Clone, Default)]
struct Greeter;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

#[tool_router]
impl Greeter {
    #[tool(description = "Greets a person by name")]
    async fn greet(&self, Parameters(Name { name }): Parameters<Name>) -> String {
        format!("Hello, {name}!")
    }
}

#[tool_handler]
impl ServerHandler for Greeter {}

fn main() -> ExitCode {
    // Scripts run in sandboxed copies of this program: this must come before anything else.
    if gatewright::is_worker() {
        return gatewright::worker_main();
    }
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn serve() -> Result<(), Box<dyn Error>> {
    // The port is the argument, else 3000.
    let port = std::env::args().nth(1).map_or(Ok(3000), |port| port.parse())?;
    let options = AppOptions { timeout: Duration::from_secs(5), ..Default::default() };
    let running = Builder::new("hello", "1.0.0")
        .app_with("greeter", Arc::new(LocalApp::start(Greeter).await?), options)
        .code_mode(CodeCallConfig::default())
        .build()?;
    let server = running.http(HttpConfig { port, ..Default::default() }).bind().await?;
    println!("serving on http://{}/mcp", server.local_addr());
    server.run_until_ctrl_c().await?;
    running.stop().await;
    Ok(())
}
