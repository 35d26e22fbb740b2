//! Metrics of the real binary for refused requests, and for stores and key sets that do not respond.

use std::sync::LazyLock;

use reqwest::{Client, Method, Response};
use serde_json::json;

use crate::admin::{Admin, start};

const OPEN: &str = "apps:\n  crm: { builtin: crm }\nadmin: { port: 0, console: false }\n";

async fn metrics(admin: &Admin) -> String {
    admin.get("/metrics").await.1
}

fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
    line.unwrap_or_else(|| panic!("{series} in {text}")).rsplit(' ').next().unwrap().parse().unwrap()
}

fn answers(text: &str, method: &str, route: &str, status: u16) -> u64 {
    let series = format!(
        "gatewright_http_responses_total{{http_request_method=\"{method}\",http_response_status_code=\"{status}\",http_route=\"{route}\"}}"
    );
    value(text, &series) as u64
}

/// One for all: making one takes longer than what it sends.
static CLIENT: LazyLock<Client> =
    LazyLock::new(|| Client::builder().pool_max_idle_per_host(0).build().unwrap());

async fn send(admin: &Admin, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let url = format!("http://{}{path}", admin.server.address);
    let mut request = CLIENT.request(Method::from_bytes(method.as_bytes()).unwrap(), url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.to_owned()).send().await.unwrap()
}

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn what_is_refused_before_a_method_of_mcp_is_known_is_counted_by_route_and_status() {
    let limits = "http: { maxBodyBytes: 1000, maxSessions: 1 }\n";
    let admin = start(&format!("{OPEN}{limits}"));
    send(&admin, "POST", "/mcp", &[JSON], "{").await;
    send(&admin, "POST", "/mcp", &[("content-type", "text/plain")], "{}").await;
    send(&admin, "POST", "/mcp", &[JSON], &"x".repeat(1_001)).await;
    send(&admin, "POST", "/mcp", &[JSON, ("origin", "https://evil.example")], "{}").await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    send(&admin, "POST", "/mcp", &[JSON, ("mcp-session-id", "unknown")], &ping).await;
    let client = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}).to_string();
    let first = send(&admin, "POST", "/mcp", &[JSON], &hello).await;
    assert_eq!(first.status().as_u16(), 200);
    let full = send(&admin, "POST", "/mcp", &[JSON], &hello).await;
    assert_eq!((full.status().as_u16(), full.headers()["retry-after"].as_bytes()), (503, &b"1"[..]));
    let text = metrics(&admin).await;
    for status in [400, 415, 413, 403, 404, 503] {
        assert_eq!(answers(&text, "POST", "/mcp", status), 1, "{status}: {text}");
    }
    assert!((value(&text, "gatewright_sessions_open") - 1.0).abs() < f64::EPSILON);
    assert!(value(&text, "gatewright_http_requests_open").abs() < f64::EPSILON);
}

#[tokio::test]
async fn methods_and_paths_that_clients_make_up_make_no_series() {
    let admin = start(OPEN);
    for n in 0..50 {
        send(&admin, &format!("VERB{n}"), "/mcp", &[], "").await;
        send(&admin, "GET", &format!("/made/up/{n}"), &[], "").await;
        send(&admin, &format!("VERB{n}"), &format!("/healthz{n}"), &[], "").await;
        let method = json!({"jsonrpc": "2.0", "id": n, "method": format!("made/up{n}")}).to_string();
        send(&admin, "POST", "/mcp", &[JSON, ("mcp-protocol-version", "2026-07-28")], &method).await;
        let call = json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": format!("made:up{n}"), "arguments": {}}});
        send(&admin, "POST", "/mcp", &[JSON], &call.to_string()).await;
    }
    send(&admin, "GET", "/healthz", &[], "").await;
    let text = metrics(&admin).await;
    assert_eq!(answers(&text, "GET", "/healthz", 200), 1);
    assert_eq!(answers(&text, "GET", "_OTHER", 404), 50);
    let series = text.lines().filter(|line| !line.starts_with('#')).count();
    assert!(series < 120, "{series} series: {text}");
    assert!(!text.contains("VERB") && !text.contains("made"), "{text}");
}

#[tokio::test]
async fn a_file_that_is_refused_and_keys_that_wait_for_a_restart_are_told() {
    let admin = start(&format!("{OPEN}pageSize: 5\n"));
    let told = async || {
        let text = metrics(&admin).await;
        ["generation", "refused", "restart_pending"]
            .map(|name| value(&text, &format!("gatewright_config_{name}")) as u64)
    };
    assert_eq!(told().await, [1, 0, 0]);
    for (config, said, expected) in [
        (format!("{OPEN}pageSize: none\n"), "is invalid, nothing changes", [1, 1, 0]),
        (format!("{OPEN}pageSize: 6\ntoolNames: underscore\n"), "was reloaded", [2, 0, 2]),
        (format!("{OPEN}pageSize: 5\n"), "was reloaded", [3, 0, 0]),
    ] {
        admin.server.replace(&config);
        admin.server.hang_up();
        admin.server.says(said);
        assert_eq!(told().await, expected, "{config}");
    }
}

#[tokio::test]
async fn every_family_has_a_help_and_a_type_and_comes_once() {
    let admin = start(&format!("{OPEN}auth: {{ mode: orchestrated }}\n"));
    send(&admin, "GET", "/healthz", &[], "").await;
    let text = metrics(&admin).await;
    let mut seen = std::collections::BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with("# TYPE ")) {
        let name = line.split(' ').nth(2).unwrap();
        assert!(seen.insert(name), "{name} comes twice");
        assert!(text.contains(&format!("# HELP {name} ")), "{name} has no help");
    }
    for name in
        ["process_resident_memory_bytes", "gatewright_auth_issue_seconds", "gatewright_config_generation"]
    {
        assert!(seen.contains(name), "{name}");
    }
}

#[tokio::test]
async fn a_provider_whose_keys_cannot_be_had_is_no_failure_of_the_token_store() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = nobody.local_addr().unwrap().port();
    drop(nobody);
    let auth = format!(
        "auth: {{ mode: transparent, expectedAudience: api, provider: {{ url: \"http://127.0.0.1:{port}\", allowPrivate: true }} }}\n"
    );
    let admin = start(&format!("{OPEN}{auth}"));
    // Everything about it is right but the signature, which nobody can check.
    let encoded = |part: serde_json::Value| {
        base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, part.to_string())
    };
    let header = encoded(serde_json::json!({"alg": "RS256", "kid": "a", "typ": "at+jwt"}));
    let claims = encoded(serde_json::json!({
        "iss": format!("http://127.0.0.1:{port}"), "aud": "api", "sub": "ada", "iat": 1_700_000_000, "exp": 4_000_000_000_u64,
    }));
    let token = format!("Bearer {header}.{claims}.AAAA");
    let refused = send(&admin, "POST", "/mcp", &[JSON, ("authorization", &token)], "{}").await;
    assert_eq!(
        (refused.status().as_u16(), refused.headers().get("retry-after").map(|value| value.as_bytes())),
        (503, Some(&b"5"[..]))
    );
    let text = metrics(&admin).await;
    assert!(value(&text, "gatewright_auth_jwks_errors_total") >= 1.0, "{text}");
    assert!(value(&text, "gatewright_auth_store_errors_total").abs() < f64::EPSILON, "{text}");
}
