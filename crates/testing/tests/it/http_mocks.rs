//! HTTP calls of child processes in several languages, and of this process.

use std::{process::Stdio, time::Duration};

use gatewright_testing::{HttpMock, HttpMockOptions, Regex, http_mock, http_response};
use serde_json::json;

/// Runs a program whose HTTP calls go to `http`, and returns its output.
async fn run(http: &HttpMock, program: &str, args: &[&str]) -> String {
    let mut command = tokio::process::Command::new(program);
    command.args(args).envs(http.child_env()).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(60), command.output()).await.unwrap().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {args:?}: {errors}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn client(name: &str) -> String {
    format!("{}/tests/clients/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Checks all HTTP clients of a program, with and without TLS.
async fn every_way(program: &str, script: &str, ways: &[&str]) {
    let http = http_mock::interceptor().unwrap();
    let secure = http.get("https://api.weather.example.com/v1", json!({"degrees": 21}));
    let plain = http.get("http://plain.example.com:8080/x", http_response::text("plain"));
    for way in ways {
        let said =
            run(&http, program, &[&client(script), way, "https://api.weather.example.com/v1?city=Oslo"])
                .await;
        assert_eq!(said, r#"200 {"degrees":21}"#, "{way}");
        let said = run(&http, program, &[&client(script), way, "http://plain.example.com:8080/x"]).await;
        assert_eq!(said, "200 plain", "{way}");
    }
    assert_eq!((secure.call_count(), plain.call_count()), (ways.len(), ways.len()));
    assert_eq!(secure.calls()[0].url, "https://api.weather.example.com/v1?city=Oslo");
    assert_eq!(http.unmatched(), []);
}

#[tokio::test]
async fn node_on_the_path() {
    every_way("node", "fetch.mjs", &["fetch", "get"]).await;
}

#[tokio::test]
async fn python_urllib() {
    every_way("python3", "fetch.py", &["urllib"]).await;
}

#[tokio::test]
#[ignore = "needs `tests/clients/.venv` with requests, httpx and aiohttp: see docs/testing/own-tests.md"]
async fn python_requests_httpx_and_aiohttp() {
    every_way(&client(".venv/bin/python"), "fetch.py", &["requests", "httpx", "aiohttp"]).await;
}

#[tokio::test]
#[ignore = "needs `npm install node@22` in `tests/clients`: see docs/testing/own-tests.md"]
async fn node_22() {
    every_way(&client("node_modules/.bin/node"), "fetch.mjs", &["fetch", "get"]).await;
}

#[tokio::test]
async fn curl() {
    let http = http_mock::interceptor().unwrap();
    http.post("https://api.example.com/things", http_response::json(json!({"ok": true})).status(201));
    let args = ["-sS", "-w", " %{http_code}", "-d", "{\"a\":1}", "https://api.example.com/things"];
    assert_eq!(run(&http, "curl", &args).await, "{\"ok\":true} 201");
    assert_eq!(http.calls()[0].json(), Some(json!({"a": 1})));
    assert_eq!(http.calls()[0].header("Content-Type"), Some("application/x-www-form-urlencoded"));
}

#[tokio::test]
async fn this_process() {
    let http = http_mock::interceptor().unwrap();
    http.get("https://api.example.com/", http_response::text("hello"));
    let answer = http.client().unwrap().get("https://api.example.com/").send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "hello");
}

#[tokio::test]
async fn an_unmatched_request_fails_and_is_named() {
    let http = http_mock::interceptor().unwrap();
    let client = http.client().unwrap();
    let answer = client.post("https://unknown.example/x").body("why").send().await.unwrap();
    assert_eq!(answer.status(), 599);
    assert!(answer.text().await.unwrap().contains("POST https://unknown.example/x why"));
    let problem = http.check_done().unwrap_err().to_string();
    assert!(problem.contains("no mock wants: POST https://unknown.example/x"), "{problem}");
}

#[tokio::test]
async fn mocks_match_by_method_header_and_body_and_respond_in_order() {
    let http = http_mock::interceptor().unwrap();
    let url = "https://api.example.com/orders";
    let once = http.mock(HttpMockOptions::new(url, http_response::server_error(None)).times(1));
    http.mock(
        HttpMockOptions::new(Regex::new(r"/orders$").unwrap(), http_response::text("rich"))
            .method("post")
            .header("x-tier", Regex::new("^g").unwrap())
            .body_json(json!({"items": [{"id": 1}]})),
    );
    http.mock(HttpMockOptions::with(url, |call| http_response::text(format!("{} it is", call.method))));
    let client = http.client().unwrap();
    let post = |tier: &'static str| {
        let body = json!({"items": [{"id": 1, "count": 2}], "note": "n"}).to_string();
        let request = client.post(url).header("x-tier", tier).body(body);
        async move { request.send().await.unwrap().text().await.unwrap() }
    };
    assert_eq!(post("gold").await, r#"{"error":"Internal Server Error"}"#);
    assert_eq!(post("gold").await, "rich");
    assert_eq!(post("silver").await, "POST it is");
    assert_eq!(once.call_count(), 1);
    assert!(http.is_done());
    http.assert_done();
}

#[tokio::test]
async fn pending_lists_mocks_with_uses_left() {
    let http = http_mock::interceptor().unwrap();
    let twice = http
        .mock(HttpMockOptions::new("https://a.example/", http_response::text("x")).method("GET").times(2));
    http.client().unwrap().get("https://a.example/").send().await.unwrap();
    twice.wait_for_calls(1, None).await.unwrap();
    let pending: Vec<String> = http.pending().iter().map(ToString::to_string).collect();
    assert_eq!(pending, ["GET https://a.example/"]);
    assert_eq!(http.check_done().unwrap_err().pending, ["GET https://a.example/ (used 1 of 2 times)"]);
    let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| http.assert_done())).unwrap_err();
    assert!(
        told.downcast::<String>().unwrap().contains("not used: GET https://a.example/ (used 1 of 2 times)")
    );
    let late = twice.wait_for_calls(2, Some(Duration::from_millis(20))).await.unwrap_err().to_string();
    assert!(late.contains("2 calls were wanted, 1 came"), "{late}");
}

#[tokio::test]
async fn responses_can_be_delayed_or_broken() {
    let http = http_mock::interceptor().unwrap();
    http.get("https://slow.example/", http_response::delayed(json!(1), 60_000));
    http.get("https://broken.example/", http_response::network_error());
    let client = http.client().unwrap();
    let slow = client.get("https://slow.example/").timeout(Duration::from_millis(100)).send().await;
    assert!(slow.unwrap_err().is_timeout());
    assert!(client.get("https://broken.example/").send().await.is_err());
}

#[tokio::test]
async fn passthrough_reaches_the_network_and_restore_removes_the_mocks() {
    let real = http_mock::interceptor().unwrap();
    real.any("/real", http_response::text("from the network"));
    let http = http_mock::interceptor().unwrap();
    let url = format!("{}/real", real.proxy_url());
    http.get(url.as_str(), http_response::text("mocked"));
    let client = http.client().unwrap();
    let get = || async { client.get(&url).send().await.unwrap().text().await.unwrap() };
    assert_eq!(get().await, "mocked");
    http.restore();
    assert_eq!(get().await, "from the network");
    http.clear();
    http.allow_passthrough(false);
    assert!(get().await.contains("no HTTP mock wants this request"));
}

#[tokio::test]
async fn pending_includes_unused_mocks_and_assert_done_requires_those_with_times() {
    let http = http_mock::interceptor().unwrap();
    let (used, unused) =
        (http.any("https://a.example/used", json!(1)), http.any("https://a.example/unused", json!(2)));
    http.client().unwrap().get("https://a.example/used").send().await.unwrap();
    used.wait_for_calls(1, None).await.unwrap();
    let pending = http.pending();
    assert_eq!(pending.len(), 1);
    assert_eq!((pending[0].call_count(), pending[0].to_string()), (0, unused.to_string()));
    assert!(http.is_done());
    http.assert_done();
}

#[tokio::test]
async fn the_shortcut_of_each_method_takes_options() {
    let http = http_mock::interceptor().unwrap();
    let url = "https://a.example/";
    let once = |options: HttpMockOptions| options.header("x-key", "k").times(1);
    http.get_with(url, json!("GET"), once);
    http.post_with(url, json!("POST"), once);
    http.put_with(url, json!("PUT"), once);
    http.patch_with(url, json!("PATCH"), once);
    http.delete_with(url, json!("DELETE"), once);
    http.any_with(url, json!("any"), |options| options.body_text("second").times(1));
    let client = http.client().unwrap();
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        let send = |key: &'static str, body: &'static str| {
            let request = client.request(method.parse().unwrap(), url).header("x-key", key).body(body);
            async move { request.send().await.unwrap() }
        };
        assert_eq!(send("other", "first").await.status(), 599, "{method}: the header is wanted");
        assert_eq!(send("k", "first").await.text().await.unwrap(), format!("\"{method}\""));
        assert_eq!(send("k", "first").await.status(), 599, "{method}: once");
    }
    let last = client.get(url).body("the second").send().await.unwrap();
    assert_eq!(last.text().await.unwrap(), "\"any\"");
    assert!(http.is_done() && http.pending().is_empty());
}
