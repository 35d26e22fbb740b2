//! `auth: { type: oauth }` of an OpenAPI app with the real binary: each user calls the API with a token of their own.

use std::sync::{Arc, Mutex};

use gatewright::server::axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
    routing::get,
};
use gatewright_testing::{MockOAuthServer, MockOAuthServerOptions, MockTestUser, TokenFactory};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    gate::{Gate, Site, config},
    upstream_tokens::{User, call, sign_in},
};

const SECRET: &str = "what-the-gateway-shows-there-0123456789";

/// Tokens that were shown, and those that count no more.
type Tokens = Arc<Mutex<(Vec<String>, Vec<String>)>>;

/// An API, and the authorization server that its document names.
struct Api {
    provider: MockOAuthServer,
    folder: tempfile::TempDir,
    tokens: Tokens,
}

impl Api {
    async fn start() -> Self {
        Self::knowing(Some("the-gateway")).await
    }

    /// An API whose authorization server knows this client, and those that register themselves.
    async fn knowing(client: Option<&str>) -> Self {
        let options = MockOAuthServerOptions {
            auto_approve: true,
            client_id: client.map(Into::into),
            client_secret: client.map(|_| SECRET.into()),
            valid_redirect_uris: vec!["http://127.0.0.1:*/oauth/connect/*/callback".into()],
            ..MockOAuthServerOptions::default()
        };
        let mut provider = MockOAuthServer::new(TokenFactory::default(), options);
        let issuer = provider.start().await.unwrap().issuer;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let tokens = Tokens::default();
        let router = Router::new()
            .route("/v1/me", get(whoami))
            .route("/v1/notes", get(whoami).post(whoami))
            .with_state(tokens.clone());
        tokio::spawn(async move { gatewright::server::axum::serve(listener, router).await });
        let folder = tempfile::tempdir().unwrap();
        let operation = |id: &str, scopes: &str| {
            json!({"operationId": id, "security": [{"login": scopes.split(' ').collect::<Vec<_>>()}],
                "responses": {"200": {"description": "ok"}}})
        };
        let document = json!({
            "openapi": "3.1.0", "info": {"title": "Notes", "version": "1"}, "servers": [{"url": format!("{url}/v1")}],
            "paths": {
                "/me": {"get": operation("whoami", "profile")},
                "/notes": {"get": operation("listNotes", "profile"), "post": operation("addNote", "profile notes:write")},
            },
            "components": {"securitySchemes": {"login": {"type": "oauth2", "flows": {"authorizationCode": {
                "authorizationUrl": format!("{issuer}/oauth/authorize"), "tokenUrl": format!("{issuer}/oauth/token"),
                "scopes": {"profile": "", "notes:write": ""},
            }}}}},
        });
        std::fs::write(folder.path().join("notes.json"), document.to_string()).unwrap();
        Self { provider, folder, tokens }
    }

    fn config(&self) -> Value {
        let mut all = config(json!({}));
        all["apps"]["notes"] = json!({
            "openapi": self.folder.path().join("notes.json"), "allowPrivate": true,
            "auth": {"type": "oauth", "clientId": "the-gateway", "clientSecret": SECRET},
        });
        let mut bob = all["auth"]["local"]["users"][0].clone();
        bob["username"] = json!("bob");
        all["auth"]["local"]["users"].as_array_mut().unwrap().push(bob);
        all
    }

    /// Opens the address that a user was given, as that user, who is `sub` over there. Returns the scopes that were asked for.
    async fn connect(&self, gate: &Gate, user: &mut User, address: &str, sub: &str) -> String {
        self.provider.set_test_user(MockTestUser::new(sub));
        let answer = user.person.open(gate, address).await;
        let away = user.person.finish(gate, answer).await;
        let pairs: std::collections::HashMap<_, _> = away.query_pairs().into_owned().collect();
        assert!(!pairs.contains_key("resource") && pairs["code_challenge_method"] == "S256", "{away}");
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let answer = client.get(away).send().await.unwrap();
        let back = Url::parse(answer.headers()["location"].to_str().unwrap()).unwrap();
        let done = user.person.open(gate, back.as_str()).await;
        assert_eq!(done.status, 200, "{}", done.body);
        pairs["scope"].clone()
    }

    /// Refuses the tokens that were shown until now.
    fn revoke(&self) {
        let mut tokens = self.tokens.lock().unwrap();
        let (shown, revoked) = &mut *tokens;
        revoked.append(shown);
    }
}

async fn whoami(State(tokens): State<Tokens>, headers: HeaderMap) -> Response {
    let bearer = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let token = bearer.strip_prefix("Bearer ").unwrap_or_default().to_owned();
    let claims = TokenFactory::unverified_claims(&token);
    let mut tokens = tokens.lock().unwrap();
    if claims["sub"].is_null() || tokens.1.contains(&token) {
        return (StatusCode::UNAUTHORIZED, "who is it?").into_response();
    }
    tokens.0.push(token);
    Json(json!({"sub": claims["sub"]})).into_response()
}

/// Calls a tool of the app, as a client without URL elicitation.
async fn ask(gate: &Gate, user: &User, tool: &str) -> Value {
    let answer = call(gate, &user.token, &format!("notes:{tool}"), json!({}), json!({}), json!({})).await;
    answer.json()["result"].clone()
}

fn address(asked: &Value) -> String {
    assert_eq!(asked["_meta"]["code"], "AUTHORIZATION_REQUIRED", "{asked}");
    asked["_meta"]["url"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn each_user_signs_in_at_the_server_of_the_document_once_for_each_set_of_scopes() {
    let api = Api::start().await;
    let site = Site::start(&api.config());
    let gate = site.gate();
    let (mut ada, mut bob) = (sign_in(&gate, "ada").await, sign_in(&gate, "bob").await);
    let url = address(&ask(&gate, &ada, "whoami").await);
    assert_eq!(api.connect(&gate, &mut ada, &url, "ada-over-there").await, "profile");
    assert_eq!(ask(&gate, &ada, "whoami").await["structuredContent"], json!({"sub": "ada-over-there"}));
    assert_eq!(ask(&gate, &ada, "listNotes").await["structuredContent"], json!({"sub": "ada-over-there"}));
    let url = address(&ask(&gate, &bob, "whoami").await);
    api.connect(&gate, &mut bob, &url, "bob-over-there").await;
    assert_eq!(ask(&gate, &bob, "whoami").await["structuredContent"], json!({"sub": "bob-over-there"}));
    // An operation that needs more scopes asks for them beside those of before.
    let url = address(&ask(&gate, &ada, "addNote").await);
    assert_eq!(api.connect(&gate, &mut ada, &url, "ada-over-there").await, "profile notes:write");
    assert_eq!(ask(&gate, &ada, "addNote").await["structuredContent"], json!({"sub": "ada-over-there"}));
    // In scripts, too, and at once.
    let script =
        "return await Promise.all([1, 2, 3].map(() => callTool('notes:whoami', {}).then((me) => me.sub)))";
    for (user, sub) in [(&ada, "ada-over-there"), (&bob, "bob-over-there")] {
        let ran = gate.call(Some(&user.token), "codecall:execute", json!({"script": script})).await;
        assert_eq!(ran["result"], json!([sub, sub, sub]), "{ran}");
    }
    let robot = gate.machine_token("robot", "crm:read").await;
    let refused = call(&gate, &robot, "notes:whoami", json!({}), json!({}), json!({})).await.body;
    assert!(refused.contains("user who signed in") && !refused.contains("over-there"), "{refused}");
    // The gateway's own tokens stay here.
    assert!(api.tokens.lock().unwrap().0.iter().all(|token| *token != ada.token && *token != bob.token));
}

#[tokio::test]
async fn with_nothing_but_the_type_the_gateway_registers_itself_at_the_server_of_the_document() {
    let api = Api::knowing(None).await;
    let mut config = api.config();
    config["apps"]["notes"]["auth"] = json!({"type": "oauth"});
    let site = Site::start(&config);
    let gate = site.gate();
    let mut ada = sign_in(&gate, "ada").await;
    let url = address(&ask(&gate, &ada, "whoami").await);
    api.connect(&gate, &mut ada, &url, "ada-over-there").await;
    assert_eq!(ask(&gate, &ada, "whoami").await["structuredContent"], json!({"sub": "ada-over-there"}));
    let requests = api.provider.requests();
    let registered = requests.iter().filter(|request| request.as_str() == "POST /oauth/register").count();
    assert_eq!(registered, 1, "{requests:?}");
}

#[tokio::test]
async fn without_a_way_to_register_the_error_names_the_missing_key_and_the_redirect_uri() {
    let api = Api::start().await;
    // The server that the document names has no metadata: it answers 404 to everything.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let login = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { gatewright::server::axum::serve(listener, Router::new()).await });
    let mut config = api.config();
    config["apps"]["notes"]["auth"] = json!({
        "type": "oauth", "authorizationUrl": format!("{login}/authorize"), "tokenUrl": format!("{login}/token"),
    });
    let site = Site::start(&config);
    let gate = site.gate();
    let ada = sign_in(&gate, "ada").await;
    let refused = ask(&gate, &ada, "whoami").await;
    let told = &refused["structuredContent"];
    assert_eq!(told["code"], "UPSTREAM_AUTHORIZATION", "{refused}");
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("set `apps.notes.auth.clientId`"), "{message}");
    assert!(message.contains(&format!("{}/oauth/connect/", gate.public)), "{message}");
}

#[tokio::test]
async fn a_token_that_the_api_refuses_is_refreshed_and_the_user_is_asked_when_that_is_refused_too() {
    let api = Api::start().await;
    let site = Site::start(&api.config());
    let gate = site.gate();
    let mut ada = sign_in(&gate, "ada").await;
    let url = address(&ask(&gate, &ada, "whoami").await);
    api.connect(&gate, &mut ada, &url, "ada-over-there").await;
    ask(&gate, &ada, "whoami").await;
    api.revoke();
    assert_eq!(ask(&gate, &ada, "whoami").await["structuredContent"], json!({"sub": "ada-over-there"}));
    api.revoke();
    api.provider.clear_stored_tokens();
    address(&ask(&gate, &ada, "whoami").await);
}

#[tokio::test]
async fn a_client_that_takes_addresses_is_asked_for_them() {
    let api = Api::start().await;
    let site = Site::start(&api.config());
    let gate = site.gate();
    let mut ada = sign_in(&gate, "ada").await;
    let takes_urls = json!({"elicitation": {"url": {}}});
    let asked =
        call(&gate, &ada.token, "notes:whoami", json!({}), takes_urls.clone(), json!({})).await.json();
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let (key, question) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let url = question["params"]["url"].as_str().unwrap();
    api.connect(&gate, &mut ada, url, "ada-over-there").await;
    let mut more = json!({"inputResponses": {key: {"action": "accept"}}});
    if let Some(state) = result.get("requestState") {
        more["requestState"] = state.clone();
    }
    let done = call(&gate, &ada.token, "notes:whoami", json!({}), takes_urls, more).await.json();
    assert_eq!(done["result"]["structuredContent"], json!({"sub": "ada-over-there"}), "{done}");
}
