//! The page at `/`: what is served, and how to connect the common clients.
//!
//! `gatewright-pages` has its look; the one script adds buttons that copy. The instructions for clients come from `clients`. When requests
//! need authentication it shows the name and the snippets only.

use std::{collections::HashMap, sync::Arc};

use axum::{Router, body::Body, extract::State, routing::get};
use gatewright_core::{AppHealth, Revision, ToolEntry};
use gatewright_pages::{Frame, Inline, Width, breakable};
use http::{HeaderMap, HeaderValue, Response, header};
use maud::{Markup, html};
use rmcp::ServerHandler;
use serde_json::json;
use url::Url;

use crate::{
    clients::{Client, Instruction, server_name},
    gate::RequestGate,
    paths::McpPaths,
};

static SCRIPT: Inline = Inline::new(include_str!("landing.js"));

/// Tools of an app that are named. The rest is counted.
const MOST_TOOLS: usize = 50;

/// Content of the page.
pub(crate) struct Page {
    pub(crate) gate: Arc<RequestGate>,
    pub(crate) public_url: Option<Url>,
    /// The base URL at the address that it listens on.
    pub(crate) origin: String,
    pub(crate) paths: Arc<McpPaths>,
}

/// The page.
pub(crate) fn routes(page: Page) -> Router {
    Router::new().route("/", get(show).with_state(Arc::new(page)))
}

async fn show(State(page): State<Arc<Page>>, headers: HeaderMap) -> Response<Body> {
    let name = page.gate.gateway.get_info().server_info.name;
    let body = page.render(&headers);
    let frame = Frame { title: &name, width: Width::Wide, body, footer: None, script: Some(&SCRIPT) };
    let policy = HeaderValue::try_from(frame.policy("'none'")).expect("a policy is ASCII");
    let mut response = Response::new(Body::from(frame.html()));
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

impl Page {
    /// The address of the server as whoever asks reaches it.
    fn base(&self, headers: &HeaderMap) -> String {
        let plain = |host: &&str| host.chars().all(|c| c.is_ascii_alphanumeric() || ".-:[]".contains(c));
        let named = headers.get(header::HOST).and_then(|host| host.to_str().ok()).filter(plain);
        match (&self.public_url, named) {
            (Some(url), _) => url.as_str().trim_end_matches('/').to_owned(),
            (None, Some(host)) => {
                let scheme = self.origin.split_once("://").map_or("http", |(scheme, _)| scheme);
                format!("{scheme}://{host}")
            }
            (None, None) => self.origin.clone(),
        }
    }

    fn render(&self, headers: &HeaderMap) -> Markup {
        let info = self.gate.gateway.get_info().server_info;
        let open = self.gate.is_open_to_all();
        let base = self.base(headers);
        let endpoint = format!("{base}{}", self.paths.main());
        html! {
            h1 { (breakable(&info.name)) @if open { " " span.tag { (info.version) } } }
            p.soft { "An MCP server. Its endpoint:" }
            (snippet(&endpoint))
            @if open { (self.endpoints(&base)) (self.apps()) }
            section {
                h2 { "Connect" }
                p.soft { "On this machine, " code { "gatewright connect cursor" } " and the like change the client's file for you." }
                div.group.offer {
                    @for instruction in instructions(&server_name(&info.name), &endpoint, open) {
                        details name="client" {
                            summary { (instruction.client) }
                            div {
                                @if let Some(file) = &instruction.file { p.hint { "In " code { (breakable(file)) } } }
                                (snippet(&instruction.text))
                            }
                        }
                    }
                }
            }
        }
    }

    /// The endpoints beside the main one.
    fn endpoints(&self, base: &str) -> Markup {
        let endpoints = self.paths.all();
        html! {
            @if !endpoints.is_empty() {
                section {
                    h2 { "Endpoints" }
                    p.soft { "Each offers a part of the tools:" }
                    ul.tools {
                        @for (name, path) in &endpoints {
                            li { code.name { (name) } p.hint { (breakable(&format!("{base}{path}"))) } }
                        }
                    }
                }
            }
        }
    }

    fn apps(&self) -> Markup {
        let snapshot = self.gate.gateway.registry().operator_snapshot();
        let mut tools: HashMap<&str, Vec<&ToolEntry>> = HashMap::new();
        for tool in &snapshot.tools {
            tools.entry(&*tool.app_id).or_default().push(tool);
        }
        html! {
            section {
                h2 { "Apps" }
                @if snapshot.apps.is_empty() { p.soft { "No apps are configured." } }
                div.group { @for app in &snapshot.apps {
                    @let tools = tools.get(&*app.id).map(Vec::as_slice).unwrap_or_default();
                    details {
                        summary {
                            span { (breakable(&app.id)) }
                            @match app.app.health() {
                                AppHealth::Up => span.status.ok { "up" },
                                AppHealth::Starting => span.status { "starting" },
                                AppHealth::Down(_) => span.status.bad { "down" },
                            }
                            span.soft { (tools.len()) @if tools.len() == 1 { " tool" } @else { " tools" } }
                        }
                        @if let AppHealth::Down(why) = app.app.health() { p.error { "down: " (why) } }
                        ul.tools {
                            @for tool in tools.iter().take(MOST_TOOLS) { (listed(tool)) }
                            @if tools.len() > MOST_TOOLS { li.soft { "and " (tools.len() - MOST_TOOLS) " more" } }
                        }
                    }
                } }
            }
        }
    }
}

fn listed(tool: &ToolEntry) -> Markup {
    html! {
        li {
            code.name { (breakable(&tool.tool.name)) }
            @if let Some(line) = tool.tool.description.as_deref().and_then(|text| text.lines().next()) {
                p.hint { (line) }
            }
        }
    }
}

/// Text to copy.
fn snippet(text: &str) -> Markup {
    html! { div.snippet { pre tabindex="0" { code { (text) } } } }
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
