//! An MCP server that demands a token of each user and keeps everything it is sent, for tests of what the gateway sends.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use gatewright::server::axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use gatewright_testing::{MockOAuthServer, MockOAuthServerOptions, MockTestUser, TokenFactory};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::gate::{Answer, Gate, Person};

/// The gateway's name at the authorization server, which registers nobody by itself.
pub const CLIENT: &str = "the-gateway";
pub const CLIENT_SECRET: &str = "what-the-gateway-shows-there-0123456789";

#[derive(Default)]
struct Kept {
    base: String,
    issuer: String,
    /// Headers and body of each request, as text.
    requests: Vec<String>,
    /// Tokens that were shown.
    tokens: HashSet<String>,
    revoked: HashSet<String>,
}

type Shared = Arc<Mutex<Kept>>;

/// The server, and the authorization server that its tokens are from.
pub struct Notes {
    pub provider: MockOAuthServer,
    kept: Shared,
}

impl Notes {
    pub async fn start() -> Self {
        let options = MockOAuthServerOptions {
            auto_approve: true,
            client_id: Some(CLIENT.into()),
            client_secret: Some(CLIENT_SECRET.into()),
            valid_redirect_uris: ["http://127.0.0.1:*", "https://gate.example"]
                .map(|origin| format!("{origin}/oauth/connect/*/callback"))
                .to_vec(),
            ..MockOAuthServerOptions::default()
        };
        let mut provider = MockOAuthServer::new(TokenFactory::default(), options);
        let issuer = provider.start().await.unwrap().issuer;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let kept = Arc::new(Mutex::new(Kept { base, issuer, ..Kept::default() }));
        let router = Router::new()
            .route("/.well-known/oauth-protected-resource/mcp", get(metadata))
            .route("/mcp", post(message))
            .with_state(kept.clone());
        tokio::spawn(async move { gatewright::server::axum::serve(listener, router).await });
        Self { provider, kept }
    }

    /// The app as it is configured.
    pub fn app(&self) -> Value {
        let url = format!("{}/mcp", self.kept.lock().unwrap().base);
        let auth =
            json!({"type": "oauth", "allowPrivate": true, "clientId": CLIENT, "clientSecret": CLIENT_SECRET});
        json!({"url": url, "auth": auth})
    }

    /// Everything that was sent to the server.
    pub fn requests(&self) -> String {
        self.kept.lock().unwrap().requests.join("\n")
    }

    /// Every token that was shown to it.
    pub fn tokens(&self) -> HashSet<String> {
        self.kept.lock().unwrap().tokens.clone()
    }

    /// Refuses the tokens that were shown until now.
    pub fn revoke(&self) {
        let mut kept = self.kept.lock().unwrap();
        let shown = kept.tokens.clone();
        kept.revoked.extend(shown);
    }

    /// Number of token requests.
    pub fn grants(&self) -> usize {
        self.provider.requests().iter().filter(|line| *line == "POST /oauth/token").count()
    }

    /// Opens the address that a user was given, as that user, who is `sub` over there.
    pub async fn connect(&self, gate: &Gate, person: &mut Person, address: &str, sub: &str) -> Answer {
        self.provider.set_test_user(MockTestUser::new(sub));
        let answer = person.open(gate, address).await;
        let away = person.finish(gate, answer).await;
        assert!(away.as_str().starts_with(&self.provider.info().issuer), "{away}");
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let answer = client.get(away).send().await.unwrap();
        let back = Url::parse(answer.headers()["location"].to_str().unwrap()).unwrap();
        let done = person.open(gate, back.as_str()).await;
        assert_eq!(done.status, 200, "{}", done.body);
        done
    }
}

async fn metadata(State(kept): State<Shared>) -> Response {
    let kept = kept.lock().unwrap();
    let resource = format!("{}/mcp", kept.base);
    Json(json!({"resource": resource, "authorization_servers": [kept.issuer], "scopes_supported": ["read"]}))
        .into_response()
}

async fn message(State(kept): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let text = String::from_utf8_lossy(&body).into_owned();
    let bearer = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let token = bearer.strip_prefix("Bearer ").unwrap_or_default().to_owned();
    let claims = TokenFactory::unverified_claims(&token);
    {
        let mut kept = kept.lock().unwrap();
        kept.requests.push(format!("{headers:?}\n{text}"));
        let resource = format!("{}/mcp", kept.base);
        let known = claims["iss"] == json!(kept.issuer) && claims["aud"] == json!(resource);
        if !known || kept.revoked.contains(&token) {
            let challenge = format!(
                "Bearer resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"",
                kept.base
            );
            return (StatusCode::UNAUTHORIZED, [("www-authenticate", challenge)]).into_response();
        }
        kept.tokens.insert(token);
    }
    let asked: Value = serde_json::from_str(&text).unwrap_or_default();
    // A diarist has things of their own there.
    let tool = json!({"name": "whoami", "description": "Tells who the token is about.", "inputSchema": {"type": "object"}});
    let diarist = claims["sub"].as_str().and_then(|sub| sub.strip_prefix("diarist-"));
    let mut capabilities = json!({"tools": {}});
    let mut tools = vec![tool];
    if let Some(name) = diarist {
        capabilities = json!({"tools": {}, "resources": {}, "prompts": {}});
        let description = format!("The diary of somebody, written by {name} only");
        tools.push(json!({"name": format!("diary_of_{name}"), "description": description, "inputSchema": {"type": "object"}}));
    }
    let of = |name: &str| name.replace('X', diarist.unwrap_or_default());
    let result = match asked["method"].as_str().unwrap_or_default() {
        "resources/list" => json!({"resources": [{"uri": of("notes://X/page"), "name": "page"}]}),
        "resources/templates/list" => {
            json!({"resourceTemplates": [{"uriTemplate": of("notes://X/{day}"), "name": "day"}]})
        }
        "prompts/list" => json!({"prompts": [{"name": of("prompt_of_X")}]}),
        "resources/read" => {
            json!({"contents": [{"uri": asked["params"]["uri"], "text": of("written by X only")}]})
        }
        "initialize" => {
            json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "notes", "version": "1"}})
        }
        "ping" => json!({}),
        "tools/list" => json!({"tools": tools}),
        "tools/call" => {
            json!({"content": [{"type": "text", "text": claims["sub"]}], "structuredContent": {"sub": claims["sub"]}})
        }
        _ if asked.get("id").is_none() => return StatusCode::ACCEPTED.into_response(),
        other => {
            let error = json!({"code": -32601, "message": format!("no method {other}")});
            return Json(json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).into_response();
        }
    };
    Json(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).into_response()
}
