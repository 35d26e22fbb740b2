//! `rateLimits`, over HTTP: by one process, and by two that share a Redis.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use futures::future::join_all;
use gatewright::rmcp::{
    RoleClient, ServiceExt as _,
    model::CallToolRequestParams,
    service::RunningService,
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Value, json};

use crate::served::Served;

async fn client(server: &Served) -> RunningService<RoleClient, ()> {
    let transport = StreamableHttpClientTransport::from_uri(format!("http://{}/mcp", server.address));
    ().serve(transport).await.unwrap()
}

async fn call(client: &RunningService<RoleClient, ()>, tool: &str, input: Value) -> Value {
    let Value::Object(input) = input else { panic!("the input is an object") };
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(input);
    client.peer().call_tool(params).await.unwrap().structured_content.unwrap()
}

fn rules(rules: &str) -> String {
    format!("apps:\n  crm: {{ builtin: crm }}\nrateLimits:\n{rules}")
}

#[tokio::test]
async fn a_meta_tool_over_its_limit_answers_rate_limit_with_the_seconds_to_wait() {
    let server = Served::start(&rules("  - { tool: \"codecall:search\", limit: 2, window: 1m }\n"), &[]);
    let client = client(&server).await;
    for _ in 0..2 {
        assert!(call(&client, "codecall:search", json!({"query": "users"})).await["tools"].is_array());
    }
    let refused = call(&client, "codecall:search", json!({"query": "users"})).await;
    assert_eq!(refused["error"]["code"], "RATE_LIMIT");
    assert!((1..=60).contains(&refused["error"]["retryAfterSeconds"].as_u64().unwrap()), "{refused}");
    let other = call(&client, "codecall:describe", json!({"toolNames": ["crm:users_list"]})).await;
    assert_eq!(other["tools"][0]["name"], "crm:users_list");
}

#[tokio::test]
async fn calls_inside_a_script_are_counted_like_any_other() {
    let server = Served::start(&rules("  - { tool: \"crm:users_list\", limit: 3, window: 1m }\n"), &[]);
    let client = client(&server).await;
    let script = "const seen = []; for (let i = 0; i < 4; i++) { \
                  const one = await callTool('crm:users_list', {limit: 1}, {throwOnError: false}); \
                  seen.push(one.success ? 'ok' : one.error.code); } return seen;";
    let body = call(&client, "codecall:execute", json!({"script": script})).await;
    assert_eq!(body["result"], json!(["ok", "ok", "ok", "RATE_LIMIT"]), "{body}");
    let invoked = call(&client, "codecall:invoke", json!({"tool": "crm:users_list", "input": {}})).await;
    assert_eq!(invoked["error"]["code"], "RATE_LIMIT", "{invoked}");
    assert!((1..=60).contains(&invoked["error"]["retryAfterSeconds"].as_u64().unwrap()), "{invoked}");
    let uncaught = json!({"script": "return await callTool('crm:users_list', {})"});
    let ended = call(&client, "codecall:execute", uncaught).await;
    assert_eq!((&ended["status"], &ended["error"]["code"]), (&json!("tool_error"), &json!("RATE_LIMIT")));
    assert!((1..=60).contains(&ended["error"]["retryAfterSeconds"].as_u64().unwrap()), "{ended}");
}

#[tokio::test]
async fn a_changed_limit_holds_without_a_restart() {
    let server = Served::start(&rules("  - { tool: \"codecall:search\", limit: 1, window: 1h }\n"), &[]);
    let client = client(&server).await;
    let search = async || call(&client, "codecall:search", json!({"query": "users"})).await;
    assert!(search().await["tools"].is_array());
    assert_eq!(search().await["error"]["code"], "RATE_LIMIT");
    server.replace(&rules("  - { tool: \"codecall:search\", limit: 5, window: 1h }\n"));
    server.hang_up();
    server.says("was reloaded");
    assert!(search().await["tools"].is_array());
}

struct Redis {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Redis {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"])
            .arg(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed by scripts/test");
        let deadline = Instant::now() + Duration::from_secs(20);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "redis-server listens");
            std::thread::yield_now();
        }
        Self { child, port, _folder: folder }
    }
}

#[tokio::test]
async fn two_processes_on_one_redis_let_exactly_the_limit_pass() {
    let redis = Redis::start();
    let config = format!(
        "{}auth:\n  mode: orchestrated\n  allowDefaultPublic: true\n  anonymousScopes: [\"*\"]\n  tokenStorage:\n    type: redis\n    config: {{ host: 127.0.0.1, port: {} }}\n",
        rules("  - { tool: \"codecall:search\", limit: 40, window: 1h }\n"),
        redis.port
    );
    let servers = [Served::start(&config, &[]), Served::start(&config, &[])];
    let clients = join_all(servers.iter().map(client)).await;
    let calls = (0..100).map(|n| call(&clients[n % 2], "codecall:search", json!({"query": "users"})));
    let answers = join_all(calls).await;
    let passed = answers.iter().filter(|body| body["tools"].is_array()).count();
    let refused = answers.iter().filter(|body| body["error"]["code"] == "RATE_LIMIT").count();
    assert_eq!((passed, refused), (40, 60));
}

#[tokio::test]
async fn rules_that_a_reload_brings_are_shared_too_whatever_the_mode() {
    let redis = Redis::start();
    let store =
        format!("tokenStorage: {{ type: redis, config: {{ host: 127.0.0.1, port: {} }} }}", redis.port);
    for mode in ["public", "orchestrated, allowDefaultPublic: true, anonymousScopes: [\"*\"]"] {
        let without = format!("apps:\n  crm: {{ builtin: crm }}\nauth: {{ mode: {mode}, {store} }}\n");
        let limit = if mode == "public" { 4 } else { 6 };
        let with =
            format!("{without}rateLimits: [{{ tool: \"codecall:search\", limit: {limit}, window: 1h }}]\n");
        let servers = [Served::start(&without, &[]), Served::start(&without, &[])];
        let clients = join_all(servers.iter().map(client)).await;
        for server in &servers {
            server.replace(&with);
            server.hang_up();
            server.says("was reloaded");
        }
        let calls = (0..20).map(|n| call(&clients[n % 2], "codecall:search", json!({"query": "users"})));
        let passed = join_all(calls).await.iter().filter(|body| body["tools"].is_array()).count();
        assert_eq!(passed, limit, "{mode}");
    }
}

#[tokio::test]
async fn a_store_that_is_not_there_is_no_obstacle_where_nothing_uses_it_and_is_one_for_rules() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let store = format!(
        "auth: {{ mode: public, tokenStorage: {{ type: redis, config: {{ host: 127.0.0.1, port: {port} }} }} }}\n"
    );
    let without = format!("apps:\n  crm: {{ builtin: crm }}\n{store}");
    drop(Served::start(&without, &[]));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gatewright.yaml");
    std::fs::write(&file, format!("{without}rateLimits: [{{ tool: \"*\", limit: 1, window: 1h }}]\n"))
        .unwrap();
    let output = Command::new(crate::support::gatewright())
        .args(["serve", "--port", "0", "--config"])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("`rateLimits` are counted in `auth.tokenStorage`"),
        "{said}"
    );
}

#[tokio::test]
async fn a_rule_that_covers_nothing_is_refused_or_told() {
    let good = rules("  - { tool: \"codecall:search\", limit: 1, window: 1h }\n");
    let server = Served::start(&good, &["--no-watch"]);
    server.replace(&rules("  - { tool: codecall_search, limit: 1, window: 1h }\n"));
    server.hang_up();
    server.says("is invalid, nothing changes");
    let line = server.says("`codecall_search` is not the name of a tool; write `<app>:<tool>`");
    assert!(line.contains("rateLimits.0.tool"), "{line}");
    server.replace(&rules("  - { tool: \"crn:*\", limit: 1, window: 1h }\n"));
    server.hang_up();
    server.says("there is no app `crn`, so this limits nothing; did you mean `crm`?");
}

#[tokio::test]
async fn a_redis_that_ends_makes_an_instance_count_for_itself() {
    let redis = Redis::start();
    let config = format!(
        "{}auth:\n  mode: orchestrated\n  allowDefaultPublic: true\n  anonymousScopes: [\"*\"]\n  tokenStorage:\n    type: redis\n    config: {{ host: 127.0.0.1, port: {} }}\n",
        rules("  - { tool: \"codecall:search\", limit: 2, window: 1h }\n"),
        redis.port
    );
    let server = Served::start(&config, &[]);
    let client = client(&server).await;
    let search = async || call(&client, "codecall:search", json!({"query": "users"})).await;
    assert!(search().await["tools"].is_array());
    drop(redis);
    let answers = [search().await, search().await, search().await];
    server.says("rate limits are counted by this instance alone");
    assert!(answers[..2].iter().all(|body| body["tools"].is_array()), "{answers:?}");
    assert_eq!(answers[2]["error"]["code"], "RATE_LIMIT");
}

/// Calls `codecall:search` as a client behind proxies would; whether it passed.
async fn search_from(server: &Served, forwarded: &[&str]) -> bool {
    let headers = forwarded.iter().map(|value| ("x-forwarded-for".parse().unwrap(), value.parse().unwrap()));
    let http = reqwest::Client::builder().default_headers(headers.collect()).build().unwrap();
    let config = StreamableHttpClientTransportConfig::with_uri(format!("http://{}/mcp", server.address));
    let client = ().serve(StreamableHttpClientTransport::with_client(http, config)).await.unwrap();
    call(&client, "codecall:search", json!({"query": "users"})).await["tools"].is_array()
}

#[tokio::test]
async fn callers_behind_a_trusted_proxy_are_told_apart_and_cannot_choose_their_address() {
    let limits = rules("  - { tool: \"codecall:search\", limit: 1, window: 1h }\n");
    let server =
        Served::start(&format!("http: {{ trustedProxies: [127.0.0.1, 10.0.0.0/8] }}\n{limits}"), &[]);
    assert!(search_from(&server, &["198.51.100.1"]).await);
    assert!(!search_from(&server, &["198.51.100.1"]).await);
    assert!(search_from(&server, &["198.51.100.2, 10.0.0.7"]).await, "another caller, by two proxies");
    assert!(
        !search_from(&server, &["203.0.113.99, 198.51.100.2"]).await,
        "what it wrote itself is not looked at"
    );
    assert!(!search_from(&server, &["203.0.113.99, 198.51.100.1, 10.0.0.7"]).await);
}

#[tokio::test]
async fn without_trusted_proxies_the_header_says_nothing() {
    let limits = rules("  - { tool: \"codecall:search\", limit: 1, window: 1h }\n");
    let server = Served::start(&limits, &[]);
    assert!(search_from(&server, &["198.51.100.1"]).await);
    assert!(!search_from(&server, &["198.51.100.2"]).await);
}
