//! The example `guarded`, used by clients: with and without a token of its authorization server.

#[expect(dead_code, reason = "its `main` prints and waits for Ctrl-C")]
#[path = "../../examples/guarded.rs"]
mod example;

use std::path::Path;

use gatewright::{Running, auth::config::ClientConfig};
use gatewright_core::{Approval, ApprovalDuration, Approvals, Approver, Policies};
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const SECRET: &str = "a-secret-of-the-robot-0123456789";

/// The example on free ports, with a client that needs no browser.
struct Site {
    base: String,
    admin: String,
    http: Client,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    running: Running,
}

impl Site {
    async fn start(audit: &Path) -> Self {
        let mut config = example::config();
        config.http.port = 0;
        config.audit.file = Some(audit.to_owned());
        config.admin.as_mut().unwrap().port = 0;
        let robot: ClientConfig = serde_json::from_value(json!({
            "clientId": "robot", "clientSecret": SECRET, "tokenEndpointAuthMethod": "client_secret_post",
            "grantTypes": ["client_credentials"],
        }))
        .unwrap();
        config.auth.clients.push(robot);
        let (server, running) = example::start(config).await.unwrap();
        let base = format!("http://{}", server.local_addr());
        let admin = format!("http://{}", server.admin_addr().unwrap());
        let stop = CancellationToken::new();
        let serving = tokio::spawn(server.serve(stop.clone()));
        Self { base, admin, http: Client::new(), stop, serving, running }
    }

    async fn stop(self) {
        self.stop.cancel();
        self.serving.await.unwrap();
        self.running.stop().await;
    }

    async fn get(&self, url: &str) -> Response {
        self.http.get(url).send().await.unwrap()
    }

    /// Calls the tool `greeter:greet`, with `token` if there is one.
    async fn greet(&self, token: Option<&str>) -> Response {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        let params = json!({"name": "greeter:greet", "arguments": {"name": "Ada"}, "_meta": meta});
        let request = self
            .http
            .post(format!("{}/mcp", self.base))
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "greeter:greet")
            .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
        match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
        .send()
        .await
        .unwrap()
    }

    async fn token(&self) -> String {
        let form = format!("grant_type=client_credentials&client_id=robot&client_secret={SECRET}");
        let request = self.http.post(format!("{}/oauth/token", self.base));
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(form);
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        answer["access_token"].as_str().unwrap_or_else(|| panic!("no token: {answer}")).to_owned()
    }
}

#[tokio::test]
async fn a_call_without_a_token_is_refused_with_the_address_of_the_resource_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::start(&folder.path().join("audit.jsonl")).await;

    let refused = site.greet(None).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let challenge = refused.headers()["www-authenticate"].to_str().unwrap().to_owned();
    let address = challenge.split("resource_metadata=\"").nth(1).unwrap().split('"').next().unwrap();
    let metadata: Value = site.get(address).await.json().await.unwrap();
    assert_eq!(metadata["resource"], format!("{}/mcp", site.base));
    assert_eq!(metadata["authorization_servers"], json!([site.base]));
    site.stop().await;
}

#[tokio::test]
async fn a_token_of_the_built_in_server_opens_the_tool_until_the_rate_limit() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit.jsonl");
    let site = Site::start(&audit).await;

    let token = site.token().await;
    for _ in 0..3 {
        let answer = site.greet(Some(&token)).await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert!(answer.text().await.unwrap().contains("Hello, Ada!"));
    }
    let limited = site.greet(Some(&token)).await.text().await.unwrap();
    assert!(limited.contains("RATE_LIMIT"), "{limited}");

    let metrics = site.get(&format!("{}/metrics", site.admin)).await.text().await.unwrap();
    assert!(metrics.contains("mcp_server_operation_duration"), "{metrics}");
    let console = site.get(&format!("{}/console", site.admin)).await;
    assert_eq!(console.status(), StatusCode::OK);
    site.stop().await;

    let lines = std::fs::read_to_string(audit).unwrap();
    assert!(lines.contains("\"token.issued\"") && lines.contains("\"greeter:greet\""), "{lines}");
}

#[tokio::test]
async fn an_approval_has_a_page_and_each_step_is_an_audit_line() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit.jsonl");
    let site = Site::start(&audit).await;
    let approvals = Approvals { writes: Some(Approval::Ask), ..Approvals::default() };
    let gateway = site.running.gateway().clone();
    gateway.registry().set_policies(Some(Policies { engine: None, approvals }));

    let token = site.token().await;
    let page = format!("{}/oauth/account/approvals", site.base);
    let told = site.greet(Some(&token)).await.text().await.unwrap();
    assert!(told.contains("APPROVAL_REQUIRED") && told.contains(&page), "{told}");
    assert!(site.get(&page).await.text().await.unwrap().contains("password"), "it is behind the login");
    let (store, operator) = (gateway.invoker().approvals(), Approver::Operator("ops"));
    let id = store.list(operator).await.unwrap().remove(0).id;
    store.decide(&id, Some(ApprovalDuration::Once), operator).await.unwrap();
    let answer = site.greet(Some(&token)).await.text().await.unwrap();
    assert!(answer.contains("Hello, Ada!"), "{answer}");
    site.stop().await;

    let text = std::fs::read_to_string(audit).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let steps: Vec<Value> =
        lines.filter(|line| line["event"].as_str().unwrap().starts_with("approval.")).collect();
    let facts = |line: &Value| (line["event"].clone(), line["tool"].clone(), line["by"].clone());
    assert_eq!(
        steps.iter().map(facts).collect::<Vec<_>>(),
        [
            (json!("approval.asked"), json!("greeter:greet"), Value::Null),
            (json!("approval.approved"), json!("greeter:greet"), json!("ops")),
        ]
    );
    assert_eq!((&steps[1]["for"], &steps[1]["policy"]), (&json!("once"), &json!("approvals.writes")));
    assert!(
        steps
            .iter()
            .all(|line| line["call"].as_str().unwrap().len() == 64 && !line.to_string().contains("Ada"))
    );
}
