//! HTTP mocks: sequences, near misses, conditions on query and form, network failures, scopes, servers on this machine.

use std::time::Duration;

use gatewright_testing::{HttpMockOptions, NetworkFailure, Regex, http_mock, http_response};
use serde_json::json;

#[tokio::test]
async fn a_sequence_answers_in_order_and_repeats_its_last_answer() {
    let http = http_mock::interceptor().unwrap();
    let busy = http_response::error(503, "busy");
    http.mock(HttpMockOptions::sequence("https://a.example/", [busy, json!("done").into()]));
    let client = http.client().unwrap();
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(client.get("https://a.example/").send().await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [503, 200, 200]);
}

#[tokio::test]
async fn query_and_form_match_whatever_their_order_and_encoding() {
    let http = http_mock::interceptor().unwrap();
    http.mock(
        HttpMockOptions::new("https://a.example/x", json!("it"))
            .query("city", "S\u{e3}o Paulo")
            .query("unit", Regex::new("^c").unwrap())
            .body_form("amount", "1+1=2"),
    );
    let client = http.client().unwrap();
    let post = |query: &str, body: &'static str| {
        let request = client.post(format!("https://a.example/x?{query}")).body(body);
        async move { request.send().await.unwrap().status().as_u16() }
    };
    assert_eq!(post("unit=celsius&city=S%C3%A3o+Paulo", "x=1&amount=1%2B1%3D2").await, 200);
    assert_eq!(post("unit=kelvin&city=S%C3%A3o+Paulo", "amount=1%2B1%3D2").await, 599);
    assert_eq!(post("unit=celsius&city=S%C3%A3o+Paulo", "amount=3").await, 599);
}

#[tokio::test]
async fn an_unmatched_call_names_the_nearest_mock_and_the_difference() {
    let http = http_mock::interceptor().unwrap();
    http.mock(HttpMockOptions::new("https://far.example/", json!(0)));
    http.mock(
        HttpMockOptions::new("https://a.example/orders", json!(1))
            .method("POST")
            .query("city", "Oslo")
            .header("x-api-key", "right-key-1")
            .body_json(json!({"items": [{"id": 1}]})),
    );
    let once = http.mock(HttpMockOptions::new("https://b.example/", json!(2)).times(1));
    let client = http.client().unwrap();
    let request = client.put("https://a.example/orders?city=Bergen").header("x-api-key", "wrong-key-2");
    let text = request.body("{\"items\": [{\"id\": 2}]}").send().await.unwrap().text().await.unwrap();
    for part in [
        "nearest mock: POST https://a.example/orders",
        "method: expected POST, is PUT",
        "query `city`: expected \"Oslo\", is \"Bergen\"",
        "header `x-api-key`",
        "body: $.items[0].id: expected 1, is 2",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("wrong-key-2"), "{text}");
    let text = client.get("https://a.example/order").send().await.unwrap().text().await.unwrap();
    assert!(text.contains("URL: expected https://a.example/orders, is https://a.example/order"), "{text}");
    client.get("https://b.example/").send().await.unwrap();
    assert_eq!(once.call_count(), 1);
    let text = client.get("https://b.example/").send().await.unwrap().text().await.unwrap();
    assert!(text.contains("it has answered 1 of 1 times"), "{text}");
    let text = client.get("https://unknown.example/").send().await.unwrap().text().await.unwrap();
    assert!(!text.contains("nearest"), "{text}");
    let report = http.check_done().unwrap_err().to_string();
    assert!(report.contains("method: expected POST, is PUT"), "{report}");
}

#[tokio::test]
async fn secrets_of_an_unmatched_call_are_not_reported() {
    let http = http_mock::interceptor().unwrap();
    let request =
        http.client().unwrap().post("https://a.example/?api_key=k-123&q=2").body("{\"password\":\"p-456\"}");
    let text = request.send().await.unwrap().text().await.unwrap();
    let report = http.check_done().unwrap_err().to_string();
    for text in [text, report] {
        assert!(text.contains("api_key=[redacted]&q=2"), "{text}");
        assert!(!text.contains("k-123") && !text.contains("p-456"), "{text}");
    }
}

#[tokio::test]
async fn network_failures_look_like_those_of_a_network() {
    let http = http_mock::interceptor().unwrap();
    for (scheme, kind) in [
        ("http", "closed"),
        ("https", "closed"),
        ("http", "reset"),
        ("https", "reset"),
        ("https", "refused"),
        ("http", "refused"),
    ] {
        let failure = match kind {
            "closed" => NetworkFailure::Closed,
            "reset" => NetworkFailure::Reset,
            _ => NetworkFailure::Refused,
        };
        let url = format!("{scheme}://{kind}.example/");
        http.any(url.as_str(), http_response::failed(failure));
        let error = http.client().unwrap().get(&url).send().await.unwrap_err();
        let mut causes = error.to_string();
        let mut cause: &dyn std::error::Error = &error;
        while let Some(next) = cause.source() {
            causes.push_str(&format!(": {next}"));
            cause = next;
        }
        assert_eq!(causes.to_lowercase().contains("reset"), kind == "reset", "{scheme} {kind}: {causes}");
        if scheme == "https" {
            assert_eq!(error.is_connect(), kind == "refused", "{kind}: {causes}");
        }
    }
    http.any("https://hanging.example/", http_response::failed(NetworkFailure::Timeout));
    let request = http.client().unwrap().get("https://hanging.example/").timeout(Duration::from_millis(100));
    assert!(request.send().await.unwrap_err().is_timeout());
}

#[tokio::test]
async fn the_mocks_of_a_scope_come_first_and_end_with_it() {
    let http = http_mock::interceptor().unwrap();
    http.any("https://a.example/", json!("everyone"));
    let client = http.client().unwrap();
    let get = async || client.get("https://a.example/").send().await.unwrap().text().await.unwrap();
    assert_eq!(get().await, "\"everyone\"");
    let scope = http.scope([HttpMockOptions::new("https://a.example/", json!("one test")).times(1)]);
    let own = scope.handles().remove(0);
    assert_eq!(get().await, "\"one test\"");
    assert_eq!(get().await, "\"everyone\"");
    client.get("https://b.example/").send().await.unwrap();
    assert_eq!((own.call_count(), scope.calls().len(), scope.unmatched().len()), (1, 3, 1));
    scope.mock(HttpMockOptions::new("https://a.example/", json!("again")));
    drop(scope);
    assert_eq!(get().await, "\"everyone\"");
}

#[tokio::test]
async fn a_server_on_this_machine_is_mocked_when_a_mock_names_it_and_others_are_reached() {
    let real = http_mock::interceptor().unwrap();
    real.any("/real", http_response::text("the real one"));
    let http = http_mock::interceptor().unwrap();
    let direct = |http: &gatewright_testing::HttpMock| {
        http.child_env().into_iter().find(|(name, _)| name == "NO_PROXY").unwrap().1
    };
    assert_eq!(direct(&http), "localhost,127.0.0.1,::1");
    http.any("http://localhost:4711/", json!({"mocked": true}));
    assert_eq!(direct(&http), "");
    let run = async |url: &str| {
        let mut command = tokio::process::Command::new("curl");
        command.args(["-sS", url]).envs(http.child_env());
        String::from_utf8(command.output().await.unwrap().stdout).unwrap()
    };
    assert_eq!(run("http://localhost:4711/x").await, "{\"mocked\":true}");
    assert_eq!(run(&format!("{}/real", real.proxy_url())).await, "the real one");
    assert!(http.unmatched().is_empty());
}
