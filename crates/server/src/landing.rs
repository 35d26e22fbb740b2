//! The page at `/`: what is served, and how to connect the common clients.
//!
//! Plain HTML; the one script adds buttons that copy. The instructions for clients come from `clients`. When requests need authentication it shows the name and the snippets only.

use std::sync::Arc;

use axum::{Router, body::Body, extract::State, routing::get};
use gatewright_core::{AppHealth, Revision};
use http::{HeaderMap, HeaderValue, Response, header};
use maud::{DOCTYPE, Markup, html};
use rmcp::ServerHandler;
use serde_json::json;
use url::Url;

use crate::{
    clients::{Client, Instruction, server_name},
    gate::RequestGate,
};

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Content of the page.
pub(crate) struct Page {
    pub(crate) gate: Arc<RequestGate>,
    pub(crate) public_url: Option<Url>,
    /// The base URL at the address that it listens on.
    pub(crate) origin: String,
    pub(crate) path: String,
}

/// The page, its style sheet and its script.
pub(crate) fn routes(page: Page) -> Router {
    Router::new()
        .route("/", get(show).with_state(Arc::new(page)))
        .route("/style.css", get(async || file("text/css; charset=utf-8", include_str!("landing.css"))))
        .route(
            "/landing.js",
            get(async || file("text/javascript; charset=utf-8", include_str!("landing.js"))),
        )
}

fn file(kind: &'static str, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

async fn show(State(page): State<Arc<Page>>, headers: HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::from(page.render(&headers).into_string()));
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

impl Page {
    /// The endpoint as whoever asks reaches it.
    fn endpoint(&self, headers: &HeaderMap) -> String {
        let plain = |host: &&str| host.chars().all(|c| c.is_ascii_alphanumeric() || ".-:[]".contains(c));
        let named = headers.get(header::HOST).and_then(|host| host.to_str().ok()).filter(plain);
        let base = match (&self.public_url, named) {
            (Some(url), _) => url.as_str().trim_end_matches('/').to_owned(),
            (None, Some(host)) => {
                let scheme = self.origin.split_once("://").map_or("http", |(scheme, _)| scheme);
                format!("{scheme}://{host}")
            }
            (None, None) => self.origin.clone(),
        };
        format!("{base}{}", self.path)
    }

    fn render(&self, headers: &HeaderMap) -> Markup {
        let info = self.gate.gateway.get_info().server_info;
        let open = self.gate.is_open_to_all();
        let endpoint = self.endpoint(headers);
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (info.name) }
                    link rel="stylesheet" href="/style.css";
                    script src="/landing.js" defer {}
                }
                body {
                    main {
                        header {
                            h1 { (info.name) @if open { " " small { (info.version) } } }
                            p { "An MCP server. Its endpoint is " code { (endpoint) } "." }
                        }
                        @if open { (self.apps()) }
                        h2 { "Connect" }
                        p { "On this machine, " code { "gatewright connect cursor" } " and the like change the client's file for you." }
                        @for instruction in instructions(&server_name(&info.name), &endpoint, open) {
                            h3 { (instruction.client) @if let Some(file) = &instruction.file { " (" code { (file) } ")" } }
                            pre tabindex="0" { code { (instruction.text) } }
                        }
                    }
                }
            }
        }
    }

    fn apps(&self) -> Markup {
        let snapshot = self.gate.gateway.registry().operator_snapshot();
        html! {
            h2 { "Apps" }
            @if snapshot.apps.is_empty() { p { "No apps are configured." } }
            @for app in &snapshot.apps {
                @let tools: Vec<_> = snapshot.tools.iter().filter(|tool| tool.app_id == app.id).collect();
                details {
                    summary {
                        strong { (app.id) } " "
                        @match app.app.health() {
                            AppHealth::Up => span.up { "up" },
                            AppHealth::Starting => span.starting { "starting" },
                            AppHealth::Down(why) => span.down { "down: " (why) },
                        }
                        " " span.count { (tools.len()) @if tools.len() == 1 { " tool" } @else { " tools" } }
                    }
                    ul {
                        @for tool in tools {
                            li {
                                code { (tool.tool.name) }
                                @if let Some(line) = tool.tool.description.as_deref().and_then(|d| d.lines().next()) {
                                    " " (line)
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Every client and what to paste there, and two programs to try the server with.
fn instructions(name: &str, endpoint: &str, open: bool) -> Vec<Instruction> {
    let listing = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/list",
        "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": Revision::LATEST.as_str(),
            "io.modelcontextprotocol/clientCapabilities": {},
        }},
    });
    let token = if open { "" } else { " \\\n  -H \"Authorization: Bearer $TOKEN\"" };
    let curl = format!(
        "curl {endpoint}{token} \\\n  -H 'Content-Type: application/json' \\\n  -H 'MCP-Protocol-Version: {}' -H 'Mcp-Method: \
         tools/list' \\\n  -d '{listing}'",
        Revision::LATEST.as_str()
    );
    let inspector = format!("npx @modelcontextprotocol/inspector --transport http --server-url {endpoint}");
    let clients = Client::ALL.into_iter().map(|client| client.instruction(name, endpoint));
    let programs = [("curl", curl), ("MCP Inspector", inspector)];
    clients.chain(programs.map(|(client, text)| Instruction { client, file: None, text })).collect()
}
