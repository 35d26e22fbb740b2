//! The page at `/`: what is served, and how to connect the common clients.
//!
//! Plain HTML without scripts. When requests need authentication it shows the name and the snippets only.

use std::sync::Arc;

use axum::{Router, body::Body, extract::State, routing::get};
use gatewright_core::{AppHealth, Revision};
use http::{HeaderMap, HeaderValue, Response, header};
use maud::{DOCTYPE, Markup, html};
use rmcp::ServerHandler;
use serde_json::json;
use url::Url;

use crate::gate::RequestGate;

const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Content of the page.
pub(crate) struct Page {
    pub(crate) gate: Arc<RequestGate>,
    pub(crate) public_url: Option<Url>,
    /// The base URL at the address that it listens on.
    pub(crate) origin: String,
    pub(crate) path: String,
}

/// The page and its style sheet.
pub(crate) fn routes(page: Page) -> Router {
    Router::new().route("/", get(show).with_state(Arc::new(page))).route("/style.css", get(style))
}

async fn style() -> Response<Body> {
    let mut response = Response::new(Body::from(include_str!("landing.css")));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/css; charset=utf-8"));
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
                }
                body {
                    main {
                        header {
                            h1 { (info.name) @if open { " " small { (info.version) } } }
                            p { "An MCP server. Its endpoint is " code { (endpoint) } "." }
                        }
                        @if open { (self.apps()) }
                        h2 { "Connect" }
                        @for (client, snippet) in snippets(&info.name, &endpoint, open) {
                            h3 { (client) }
                            pre tabindex="0" { code { (snippet) } }
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

/// A client and what to paste there.
fn snippets(name: &str, endpoint: &str, open: bool) -> [(&'static str, String); 6] {
    let sound = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = name.chars().map(sound).collect();
    let pretty = |value: serde_json::Value| serde_json::to_string_pretty(&value).unwrap_or_default();
    let vscode = json!({"name": name, "type": "http", "url": endpoint});
    let listing = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/list",
        "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": Revision::LATEST.as_str(),
            "io.modelcontextprotocol/clientCapabilities": {},
        }},
    });
    let token = if open { "" } else { " \\\n  -H \"Authorization: Bearer $TOKEN\"" };
    [
        ("Claude Code", format!("claude mcp add --transport http {name} {endpoint}")),
        ("Cursor (mcp.json)", pretty(json!({"mcpServers": {&name: {"url": endpoint}}}))),
        (
            "Claude Desktop (claude_desktop_config.json)",
            pretty(
                json!({"mcpServers": {&name: {"command": "npx", "args": ["-y", "mcp-remote", endpoint]}}}),
            ),
        ),
        ("VS Code", format!("code --add-mcp '{vscode}'")),
        (
            "curl",
            format!(
                "curl {endpoint}{token} \\\n  -H 'Content-Type: application/json' \\\n  -H 'MCP-Protocol-Version: \
                 {}' -H 'Mcp-Method: tools/list' \\\n  -d '{listing}'",
                Revision::LATEST.as_str()
            ),
        ),
        (
            "MCP Inspector",
            format!("npx @modelcontextprotocol/inspector --transport http --server-url {endpoint}"),
        ),
    ]
}
