//! Serves an app behind the built-in authorization server, with a rate limit, an audit file, metrics and the console.
//!
//! `cargo run -p gatewright --features guard --example guarded` prints where it serves, and the first login.

use std::{error::Error, sync::Arc, time::Duration};

use gatewright::{
    AdminConfig, AuditConfig, AuthConfig, Guard, GuardConfig, GuardedServer, LocalApp, RateLimitRule,
    Running, auth::config::Mode, rmcp,
};
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

/// The parts around the gateway. `auth` and the other sections have the fields of the configuration file.
pub(crate) fn config() -> GuardConfig {
    let minute = Duration::from_secs(60);
    GuardConfig {
        auth: AuthConfig { mode: Mode::Orchestrated, ..Default::default() },
        rate_limits: vec![RateLimitRule { tool: "greeter:*".into(), limit: 3, window: minute }],
        audit: AuditConfig { file: Some("audit.jsonl".into()), ..Default::default() },
        admin: Some(AdminConfig::default()),
        ..GuardConfig::new("hello", "1.0.0")
    }
}

/// Starts the app, the gateway and the listeners.
pub(crate) async fn start(config: GuardConfig) -> Result<(GuardedServer, Running), Box<dyn Error>> {
    let (guard, builder) = Guard::open(config).await?;
    let running = builder.app("greeter", Arc::new(LocalApp::start(Greeter).await?)).build()?;
    let server = guard.bind(&running).await?;
    Ok((server, running))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (server, running) = start(config()).await?;
    println!("serving on http://{}/mcp", server.local_addr());
    if let Some(first) = server.authorization_server().and_then(|auth| auth.first_user()) {
        println!("sign in as {} with the password {}", first.username, first.expose_password());
    }
    server.run_until_ctrl_c().await?;
    running.stop().await;
    Ok(())
}
