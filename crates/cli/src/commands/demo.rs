//! `gatewright demo`: a complete server with sample apps, and a tour of commands to paste.

use std::{net::TcpListener, process::ExitCode};

use data_encoding::HEXLOWER;
use gatewright::AdminConfig;
use gatewright_auth::{
    AuthConfig, Entropy as _, SystemEntropy,
    config::{ClientConfig, LocalConfig, LoginMethod, Mode},
};
use gatewright_codecall::CodeCallConfig;
use gatewright_core::Revision;
use gatewright_server::HttpConfig;
use indexmap::IndexMap;

use crate::{
    args::DemoArgs,
    config::{AppConfig, Builtin, Config},
    output::outln,
    signals::stop_signal,
    wire::{apps::AppStarter, gateway, guard},
};

/// The configuration of the demo, on `port` of the loopback interface.
pub fn config(port: u16) -> Config {
    let mut config = Config::default();
    config.info.name = "gatewright-demo".to_owned();
    config.http.port = port;
    config.http.landing = Some(true);
    config.codecall = CodeCallConfig::default();
    config.apps = IndexMap::from([
        ("crm".to_owned(), AppConfig::builtin(Builtin::Crm)),
        ("billing".to_owned(), AppConfig::builtin(Builtin::Billing)),
        ("support".to_owned(), AppConfig::builtin(Builtin::Support)),
    ]);
    config
}

/// Client id of the tour.
const TOUR_CLIENT: &str = "tour";

/// Authentication of the demo: any user name can log in, any client can register, and `secret` is that of the tour. Loopback only.
fn auth(secret: &str) -> AuthConfig {
    let scopes = ["crm", "billing", "support"].into_iter().flat_map(|app| {
        [("read", "Read"), ("write", "Create and change"), ("delete", "Delete")]
            .map(|(scope, verb)| (format!("{app}:{scope}"), format!("{verb} what is in {app}")))
    });
    AuthConfig {
        mode: Mode::Orchestrated,
        local: LocalConfig { login: LoginMethod::Demo, ..LocalConfig::default() },
        dcr_enabled: true,
        clients: vec![ClientConfig {
            client_id: TOUR_CLIENT.to_owned(),
            name: Some("The tour".to_owned()),
            client_secret: Some(secret.into()),
            token_endpoint_auth_method: Some("client_secret_post".to_owned()),
            grant_types: Some(vec!["client_credentials".to_owned()]),
            ..ClientConfig::default()
        }],
        scopes: scopes.collect(),
        ..AuthConfig::default()
    }
}

/// Serves the demo until it is stopped.
pub async fn run(args: DemoArgs) -> anyhow::Result<ExitCode> {
    let mut config = config(args.port);
    if let Some(path) = args.plans {
        config.apps.insert("plans".to_owned(), AppConfig::plans(path.into()));
    }
    // Generated for each run, and usable only on the loopback interface of this machine.
    let secret = args.auth.then(random_secret);
    if let Some(secret) = &secret {
        config.auth = auth(secret);
    }
    config.admin = Some(AdminConfig { port: console_port(args.port), ..AdminConfig::default() });
    let stop = stop_signal()?;
    guard::check_address(&config)?;
    let (guard, builder) = guard::open(&config, None).await?;
    let starter = AppStarter::new(guard.user_tokens().clone());
    let running = gateway::start_with(&config, &starter, builder, &[]).await?;
    let server = guard::listen(guard, &running).await?;
    let tools = running.gateway().registry().operator_snapshot().tools.len();
    let base = format!("http://{}", server.local_addr());
    let console = server.admin_addr().map(|address| format!("http://{address}/console"));
    let tour = tour(&base, &config.http.path, console.as_deref(), tools, secret.as_deref());
    // The reader of standard output may be gone; the server continues.
    let _ = outln!("{tour}");
    server.serve(stop).await;
    running.stop().await;
    Ok(ExitCode::SUCCESS)
}

/// The usual port of the console beside the usual port of the demo, unless it is taken. Any other demo may be one of several:
/// its console takes a free port.
fn console_port(of_demo: u16) -> u16 {
    let usual = AdminConfig::default();
    let is_first = of_demo == HttpConfig::default().port;
    let is_free = is_first && TcpListener::bind((usual.host, usual.port)).is_ok();
    if is_free { usual.port } else { 0 }
}

fn random_secret() -> String {
    let mut bytes = [0; 24];
    SystemEntropy.fill(&mut bytes);
    HEXLOWER.encode(&bytes)
}

/// The path of this program, if it is one that was built in a checkout.
fn own_path() -> Option<String> {
    let path = std::env::current_exe().ok()?;
    path.iter().any(|part| part == "target").then(|| path.display().to_string())
}

/// Lines to paste. With `secret`, they get a token first.
fn tour(base: &str, path: &str, console: Option<&str>, tools: usize, secret: Option<&str>) -> String {
    let console = console.map(|url| format!("\n  Console        {url}")).unwrap_or_default();
    let (url, revision) = (format!("{base}{path}"), Revision::LATEST.as_str());
    let (token, bearer) = match secret {
        None => (String::new(), ""),
        Some(secret) => (
            format!(
                r#"
  # Get a token; it expires after 15 minutes, then paste this again
  export GATEWRIGHT_TOKEN=$(curl -s {base}/oauth/token -d grant_type=client_credentials -d client_id={TOUR_CLIENT} \
    -d client_secret={secret} | sed 's/.*"access_token":"\([^"]*\)".*/\1/')
"#
            ),
            " -H \"authorization: Bearer $GATEWRIGHT_TOKEN\"",
        ),
    };
    let own = own_path()
        .map(|path| format!("`gatewright` is not on the path? Write `{path}`. "))
        .unwrap_or_default();
    format!(
        r#"
Gatewright is serving {tools} tools of three sample apps (crm, billing, support) in code mode.

  MCP endpoint   {url}
  Web page       {base}/{console}

Paste these lines into another terminal:
{token}
  # Find a tool in plain words
  gatewright tools search --url {url} "which customers have unpaid invoices"

  # Read its schema and examples
  gatewright tools describe --url {url} crm:users_list

  # Call one tool
  gatewright tools call --url {url} crm:users_list '{{"limit": 3}}'

  # Run one plan over two apps
  echo 'const users = await callTool("crm:users_list", {{limit: 3}});
  const tickets = await callTool("support:tickets_list", {{}});
  return {{users, tickets}};' | gatewright tools run --url {url} -

  # The same with curl
  curl -s {url}{bearer} -H 'content-type: application/json' -H 'accept: application/json, text/event-stream' \
    -H 'mcp-protocol-version: {revision}' -H 'mcp-method: tools/list' -d '{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{revision}","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}'

  # Connect Claude Code
  claude mcp add --transport http gatewright {url}

{own}Ctrl-C stops the demo.
"#
    )
}
