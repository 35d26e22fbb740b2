//! Cassettes of HTTP calls.

use std::path::Path;

use gatewright_testing::{HttpMock, RecordMode, RecordOptions, Redaction, http_mock, http_response};
use serde_json::{Value, json};

use crate::support::written;

#[tokio::test]
async fn a_cassette_is_recorded_once_and_replayed_without_a_network() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("api.json");
    let real = http_mock::interceptor().unwrap();
    real.any("/login", json!({"access_token": "very secret", "user": "ada"}));
    let url = format!("{}/login?api_key=hidden", real.proxy_url());
    let ask = |http: HttpMock| {
        let url = url.clone();
        async move {
            let request =
                http.client().unwrap().post(url).header("authorization", "Bearer x").body("password=p&n=1");
            request.send().await.unwrap()
        }
    };
    {
        let http = http_mock::interceptor().unwrap();
        http.record(&file).unwrap();
        assert!(ask(http.clone()).await.text().await.unwrap().contains("very secret"));
    }
    let cassette = written(&file).await;
    for secret in ["very secret", "hidden", "Bearer x", "password=p"] {
        assert!(!cassette.contains(secret), "{cassette}");
    }
    drop(real);
    let http = http_mock::interceptor().unwrap();
    http.record(&file).unwrap();
    let text = ask(http.clone()).await.text().await.unwrap();
    assert!(text.contains("\"user\":\"ada\"") && text.contains("[redacted]"), "{text}");
    assert_eq!(ask(http).await.status(), 599);
}

#[tokio::test]
async fn a_broken_cassette_is_reported_with_advice() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bad.json");
    std::fs::write(&file, "{").unwrap();
    let error = http_mock::interceptor().unwrap().record(&file).unwrap_err().to_string();
    assert!(error.contains("bad.json cannot be used") && error.contains("delete it"), "{error}");
}

/// A server on this machine that answers every call with `answer`, and its URL.
fn service(answer: Value) -> (HttpMock, String) {
    let real = http_mock::interceptor().unwrap();
    real.any("/", answer);
    let url = real.proxy_url();
    (real, url)
}

fn recording(file: &Path, options: RecordOptions) -> HttpMock {
    let http = http_mock::interceptor().unwrap();
    http.record_with(file, options).unwrap();
    http
}

async fn get(http: &HttpMock, url: String) -> (u16, String) {
    let response = http.client().unwrap().get(url).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn only_secrets_are_redacted_and_the_rest_is_replayed_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("api.json");
    let answer = json!({"usage": {"total_tokens": 17, "prompt_tokens": 5}, "nextPageToken": "p-2", "tokenizer": "bpe",
        "note": "call https://a.example/?api_key=k-4711-x&q=1", "nested": "{\"client_secret\": \"cs-1\", \"n\": 1}",
        "echo": "you sent tok-8812-abc"});
    let (_real, base) = service(answer.clone());
    {
        let http = recording(&file, RecordOptions::default());
        let request = http.client().unwrap().post(format!("{base}/x?q=a&access_token=tok-8812-abc"));
        let text =
            request.body("{\"password\":\"hunter2\",\"n\":1}").send().await.unwrap().text().await.unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), answer);
    }
    let cassette = written(&file).await;
    for secret in ["k-4711-x", "cs-1", "tok-8812-abc", "hunter2"] {
        assert!(!cassette.contains(secret), "{secret}: {cassette}");
    }
    for kept in ["total_tokens\\\":17", "nextPageToken\\\":\\\"p-2", "tokenizer", "q=1"] {
        assert!(cassette.contains(kept), "{kept}: {cassette}");
    }
    // Another secret replays the same answer, anything else does not.
    let http = recording(&file, RecordOptions { mode: RecordMode::None, ..RecordOptions::default() });
    let ask = async |query: &str, body: &'static str| {
        let request = http.client().unwrap().post(format!("{base}/x?{query}")).body(body);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    assert_eq!(ask("q=b&access_token=other", "{\"password\":\"hunter2\",\"n\":1}").await.0, 599);
    assert_eq!(ask("q=a&access_token=other", "{\"password\":\"x\",\"n\":2}").await.0, 599);
    let (status, text) = ask("q=a&access_token=other", "{\"n\": 1, \"password\": \"another\"}").await;
    assert_eq!(status, 200);
    let text: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(text["usage"]["total_tokens"], 17);
    assert_eq!(text["echo"], "you sent [redacted]");
}

#[tokio::test]
async fn further_places_are_redacted_and_a_name_can_be_kept() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("api.json");
    let (_real, base) =
        service(json!({"users": [{"pin": "9137-5"}], "token": "word", "seen": "9137-5, tenant-77"}));
    let redaction = Redaction {
        json: vec!["/users/*/pin".into()],
        query: vec!["tenant".into()],
        keep: vec!["token".into()],
        ..Redaction::default()
    };
    {
        let http = recording(&file, RecordOptions { redaction, ..RecordOptions::default() });
        assert_eq!(get(&http, format!("{base}/?tenant=tenant-77")).await.0, 200);
    }
    let cassette = written(&file).await;
    assert!(!cassette.contains("9137-5") && !cassette.contains("tenant-77"), "{cassette}");
    assert!(cassette.contains("word"), "{cassette}");
}

#[tokio::test]
async fn modes_replay_only_or_record_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("api.json");
    let http = http_mock::interceptor().unwrap();
    let none = RecordOptions { mode: RecordMode::None, ..RecordOptions::default() };
    let error = http.record_with(&file, none).unwrap_err().to_string();
    assert!(error.contains("does not exist") && error.contains("mode `new`"), "{error}");
    for version in [1, 2] {
        let (_real, base) = service(json!({"version": version}));
        let all = RecordOptions { mode: RecordMode::All, ..RecordOptions::default() };
        let http = recording(&file, all);
        assert_eq!(get(&http, format!("{base}/x")).await.1, format!("{{\"version\":{version}}}"));
        drop(http);
        let wanted = format!("{{\\\"version\\\":{version}}}");
        while !written(&file).await.contains(&wanted) {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_test_that_panics_leaves_the_cassette_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("api.json");
    let (_real, base) = service(json!(1));
    let (target, url) = (file.clone(), format!("{base}/x"));
    let run = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let http = recording(&target, RecordOptions::default());
            assert_eq!(get(&http, url).await.0, 200);
            panic!("the test fails");
        });
    });
    assert!(run.await.unwrap_err().is_panic());
    assert!(!file.exists());
}

#[tokio::test]
async fn compressed_answers_are_not_recorded_and_none_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("api.json");
    let real = http_mock::interceptor().unwrap();
    real.any("/zip", http_response::text("zipped").header("content-encoding", "gzip"));
    let http = recording(&file, RecordOptions::default());
    let request = http.client().unwrap().get(format!("{}/zip", real.proxy_url()));
    let response = request.header("accept-encoding", "gzip").send().await.unwrap();
    assert_eq!(response.status(), 502);
    assert!(http.unreachable()[0].contains("compressed (gzip)"), "{:?}", http.unreachable());
    assert_eq!(real.calls()[0].header("accept-encoding"), None);
}
