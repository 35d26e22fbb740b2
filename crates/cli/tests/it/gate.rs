//! Servers that require a login, started from the real binary, with their clients and users.
//!
//! A `Gate` is the public address that clients use: one instance responds behind it, or several in turn, as behind a load balancer.

mod log;
mod person;
mod site;

use std::sync::atomic::{AtomicUsize, Ordering};

pub use person::Person;
use reqwest::{Method, Url, header::HeaderMap};
use serde_json::{Value, json};
pub use site::{Site, config, feed, password_hash, secret};

use crate::leaks;

pub const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
pub const PASSWORD: &str = "correct horse battery staple";
pub const CALLBACK: &str = "http://127.0.0.1:49152/callback";

/// The server as clients see it.
pub struct Gate {
    pub public: String,
    instances: Vec<String>,
    turn: AtomicUsize,
    client: reqwest::Client,
}

/// A response with its complete body.
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answer {
    /// The body as JSON; the last message of a stream.
    pub fn json(&self) -> Value {
        let text = self
            .body
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("data: {").map(|rest| format!("{{{rest}")));
        let text = text.unwrap_or_else(|| self.body.clone());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.body))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}

impl Gate {
    pub fn new(public: &str, instances: Vec<String>) -> Self {
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { public: public.to_owned(), instances, turn: AtomicUsize::new(0), client }
    }

    /// The address of the MCP endpoint, as clients name it.
    pub fn resource(&self) -> String {
        format!("{}/mcp", self.public)
    }

    /// Sends a request to the next instance in turn, or to the one after it if that one is gone.
    pub async fn send(&self, method: Method, target: &str, headers: &[(&str, &str)], body: String) -> Answer {
        let path = target.strip_prefix(&self.public).unwrap_or(target);
        let public = Url::parse(&self.public).unwrap();
        let host = public.host_str().unwrap().to_owned()
            + &public.port().map(|port| format!(":{port}")).unwrap_or_default();
        for _ in 0..self.instances.len() {
            leaks::request(path, headers, &body);
            let instance = &self.instances[self.turn.fetch_add(1, Ordering::Relaxed) % self.instances.len()];
            let mut request = self.client.request(method.clone(), format!("{instance}{path}"));
            request = request
                .header("host", &host)
                .header("x-forwarded-for", "203.0.113.7")
                .header("x-forwarded-proto", public.scheme())
                .body(body.clone());
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            match request.send().await {
                Ok(answer) => {
                    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
                    let answer = Answer { status, headers, body: answer.text().await.unwrap() };
                    leaks::answer(&answer);
                    return answer;
                }
                Err(error) if error.is_connect() => continue,
                Err(error) => panic!("{error:?}"),
            }
        }
        panic!("no instance responds");
    }

    pub async fn get(&self, target: &str) -> Answer {
        self.send(Method::GET, target, &[], String::new()).await
    }

    pub async fn post_form(&self, target: &str, headers: &[(&str, &str)], fields: &[(&str, &str)]) -> Answer {
        let headers = [&[("content-type", "application/x-www-form-urlencoded")], headers].concat();
        self.send(Method::POST, target, &headers, form(fields)).await
    }

    /// A token request, by `app` unless `fields` name another client.
    pub async fn token(&self, fields: &[(&str, &str)]) -> Answer {
        let named = fields.iter().any(|(name, _)| *name == "client_id");
        let app: &[_] = if named { &[] } else { &[("client_id", "app")] };
        self.post_form("/oauth/token", &[], &[fields, app].concat()).await
    }

    /// A token of the client `id` of [`config`] for itself.
    pub async fn machine_token(&self, id: &str, scope: &str) -> String {
        let basic = format!("Basic {}", base64(&format!("{id}:{}", secret(id))));
        let fields = [("grant_type", "client_credentials"), ("scope", scope)];
        let answer = self.post_form("/oauth/token", &[("authorization", &basic)], &fields).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()["access_token"].as_str().unwrap().to_owned()
    }

    /// An MCP request of 2026-07-28, without a session.
    pub async fn mcp(&self, token: Option<&str>, method: &str, mut params: Value) -> Answer {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}
        });
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let bearer = token.map(|token| format!("Bearer {token}")).unwrap_or_default();
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
        ];
        headers.extend((!name.is_empty()).then_some(("mcp-name", name.as_str())));
        headers.extend(token.map(|_| ("authorization", bearer.as_str())));
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        self.send(Method::POST, "/mcp", &headers, body).await
    }

    /// The names in `tools/list`.
    pub async fn tools(&self, token: Option<&str>) -> Vec<String> {
        let answer = self.mcp(token, "tools/list", json!({})).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let listed = answer.json();
        let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}")).iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The structured content of the result of a tool.
    pub async fn call(&self, token: Option<&str>, tool: &str, input: Value) -> Value {
        let answer = self.mcp(token, "tools/call", json!({"name": tool, "arguments": input})).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()["result"]["structuredContent"].clone()
    }

    /// An authorization request of `client`.
    pub fn ask(&self, client: &str, redirect: &str, scope: &str) -> String {
        let resource = self.resource();
        let fields = [
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", redirect),
            ("scope", scope),
            ("resource", &resource),
            ("state", "a-state-of-the-client"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ];
        format!("{}/oauth/authorize?{}", self.public, form(&fields))
    }

    /// Exchanges a code of `client`.
    pub async fn redeem(&self, client: &str, redirect: &str, code: &str) -> Answer {
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("redirect_uri", redirect),
            ("code_verifier", VERIFIER),
            ("code", code),
        ];
        self.token(&fields).await
    }

    /// The whole login of `ada` for `app`, from the browser to the tokens.
    pub async fn log_in(&self, scope: &str) -> Value {
        let callback = Person::default().authorize(self, &self.ask("app", CALLBACK, scope)).await;
        let answer = self.redeem("app", CALLBACK, &parameter(&callback, "code")).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    }
}

/// Fields as a form or query.
pub fn form(fields: &[(&str, &str)]) -> String {
    Url::parse_with_params("http://x/", fields).unwrap().query().unwrap_or_default().to_owned()
}

/// A parameter of an address.
pub fn parameter(url: &Url, name: &str) -> String {
    let found = url.query_pairs().find(|(key, _)| key == name);
    found.unwrap_or_else(|| panic!("no {name}: {url}")).1.into_owned()
}

fn base64(text: &str) -> String {
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text)
}
