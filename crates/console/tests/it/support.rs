//! A console for the demo's apps and one hostile app.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use axum::{Router, body::Body};
use gatewright::{
    Builder, CodeCallConfig, LocalApp, Principal, Running,
    rmcp::model::{CallToolResult, ContentBlock},
};
use gatewright_console::{Console, ConsoleOptions, ExecutionHistory};
use gatewright_core::{Arrival, Ending, Execution};
use gatewright_demo::{App as DemoApp, Dataset};
use gatewright_testing::ToolServer;
use http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::json;
use tower::ServiceExt;

/// Hostile text, for every place where a server can put text.
pub const HOSTILE: &str = "\"'><img src=x onerror=alert(1)><script>alert(2)</script></textarea>\u{202e}";
/// The same for names of tools, of which those that reorder text are left out.
pub const HOSTILE_NAME: &str = "\"'><img src=x onerror=alert(1)><script>alert(2)</script></textarea>";

/// An app that answers with hostile text, and remembers who called.
#[derive(Clone, Default)]
pub struct Hostile {
    pub callers: Arc<Mutex<Vec<Principal>>>,
}

impl Hostile {
    fn server(&self) -> ToolServer {
        let hostile = json!({"type": "object", "description": HOSTILE, "properties": {
            HOSTILE: {"type": "string", "description": HOSTILE, "default": HOSTILE},
            "choice": {"enum": [HOSTILE, "plain"], "description": HOSTILE},
        }});
        let plain = json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 5}}});
        let tools = json!([
            {"name": HOSTILE_NAME, "description": HOSTILE, "inputSchema": hostile},
            {"name": "fail", "description": "Fails", "inputSchema": plain},
            {"name": "rows", "description": "Rows", "inputSchema": plain},
            {"name": "drop", "description": "Drops", "inputSchema": plain, "annotations": {"destructiveHint": true}},
        ]);
        let callers = self.callers.clone();
        ToolServer::new(tools, move |call, context| {
            callers.lock().unwrap().push(Principal::of(&context).cloned().unwrap());
            let content = vec![ContentBlock::text(HOSTILE)];
            let result = match &*call.name {
                "rows" => CallToolResult::structured(
                    json!({"rows": [{"first_field": HOSTILE}, {"first_field": "x"}], "counts": {HOSTILE: 1}}),
                ),
                "fail" => CallToolResult::error(content),
                _ => CallToolResult::success(content),
            };
            async move { Ok(result) }
        })
    }
}

/// A console, and the gateway behind it.
pub struct Site {
    pub running: Running,
    pub history: Arc<ExecutionHistory>,
    pub hostile: Hostile,
    router: Router,
}

/// An answer.
#[derive(Debug)]
pub struct Page {
    pub status: StatusCode,
    pub headers: http::HeaderMap,
    pub text: String,
}

pub async fn site() -> Site {
    site_with(ConsoleOptions::default()).await
}

pub async fn site_with(options: ConsoleOptions) -> Site {
    let (dataset, hostile) = (Dataset::seeded(), Hostile::default());
    let config: CodeCallConfig =
        serde_json::from_value(json!({"worker": {"adapter": "in_process"}})).unwrap();
    let history = ExecutionHistory::keeping(500, true);
    let running = Builder::new(HOSTILE, "1.0.0")
        .app("crm", Arc::new(LocalApp::start(DemoApp::crm(dataset)).await.unwrap()))
        .app("evil", Arc::new(LocalApp::start(hostile.server()).await.unwrap()))
        .code_mode(config)
        .observer(history.clone())
        .build()
        .unwrap();
    let console =
        Console::new(running.gateway().clone(), running.code_call().cloned(), history.clone(), options);
    Site { router: console.router(), running, history, hostile }
}

impl Site {
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Sends a GET request like a browser on this machine.
    pub async fn get(&self, path: &str) -> Page {
        self.send(Request::get(path).header(header::HOST, "localhost:9464").body(Body::empty()).unwrap())
            .await
    }

    /// Sends a form from a page of the console, with its token.
    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let page = self.get(path).await.text;
        let token =
            page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        let mut fields = fields.to_vec();
        fields.push(("csrf", &token));
        self.post_bare(path, &fields).await
    }

    /// Sends a form as it is.
    pub async fn post_bare(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let request = Request::post(path)
            .header(header::HOST, "localhost:9464")
            .header(header::ORIGIN, "http://localhost:9464")
            .header("sec-fetch-site", "same-origin");
        self.send(form(request, fields)).await
    }

    pub async fn send(&self, request: Request<Body>) -> Page {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        Page { status: parts.status, headers: parts.headers, text }
    }
}

pub fn form(request: http::request::Builder, fields: &[(&str, &str)]) -> Request<Body> {
    let body: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    request
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(body.join("&")))
        .unwrap()
}

pub fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Fails if the page has markup from untrusted text, or characters that hide or reorder text.
pub fn assert_clean(page: &Page) {
    let lower = page.text.to_lowercase();
    for bad in ["<img", "<script>", "onerror=alert(1)>"] {
        assert!(!lower.contains(bad), "{bad} in {}", page.text);
    }
    assert_eq!(lower.matches("<textarea").count(), lower.matches("</textarea").count());
    // A form gives back what was typed as it was typed, and names its fields as the schema does.
    let attributes: Vec<&str> = page.text.split('"').step_by(2).collect();
    let shown: Vec<String> = attributes
        .concat()
        .split("<textarea")
        .map(|part| part.split_once("</textarea>").map_or(part, |(_, after)| after).to_owned())
        .collect();
    assert!(!shown.concat().contains('\u{202e}'), "{}", page.text);
}

/// An execution of the tool `name` by `alice`.
pub fn execution(name: &str) -> Execution {
    Execution {
        id: 0,
        tool: name.into(),
        is_meta: false,
        is_known: true,
        principal: Principal { subject: "alice".into(), ..Principal::local() },
        address: None,
        plan: None,
        started: SystemTime::now(),
        duration: Duration::from_millis(3),
        ending: Ending::OK,
        bytes: None,
        script: None,
        arguments: None,
        calls: Vec::new(),
        more_calls: 0,
        exchanges: Vec::new(),
        trace: None,
        arrival: Arrival::default(),
    }
}
