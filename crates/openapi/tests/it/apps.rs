//! Apps and their documents: what replaces a document, and what stays open.

use std::time::Duration;

use gatewright_core::App;
use gatewright_openapi::{OpenapiApp, OpenapiConfig, check};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::mpsc,
};

use crate::mock::{Mock, auth, json_reply, raw, reply};

fn document(server: &Value) -> Value {
    json!({"openapi": "3.1.0", "servers": [server], "paths": {"/a": {"get": {"operationId": "a"}}}})
}

fn config(url: &str) -> OpenapiConfig {
    OpenapiConfig {
        allow_private: true,
        refresh: Duration::from_secs(1),
        ..OpenapiConfig::new(format!("{url}/doc"))
    }
}

#[tokio::test]
async fn a_document_whose_server_variables_multiply_does_not_replace_the_last_good_one() {
    let (asked, mut was_asked) = mpsc::unbounded_channel();
    let mock = Mock::start(move |_, before| {
        asked.send(()).unwrap();
        let bomb = json!({
            "url": format!("https://a.example/{}", "{a}".repeat(30)),
            "variables": {"a": {"default": "x".repeat(8_000)}},
        });
        let good = json!({"url": "https://a.example"});
        json_reply(200, &document(if before == 0 { &good } else { &bomb }))
    })
    .await;
    let app = OpenapiApp::start("x", config(&mock.url));
    for _ in 0..3 {
        was_asked.recv().await.unwrap();
    }
    assert_eq!(app.catalog().tools.len(), 1, "after the second document");
}

#[tokio::test]
async fn documents_on_the_same_host_are_read_with_it_and_no_others() {
    let elsewhere = Mock::start(|_, _| json_reply(200, &json!({"Secret": {"type": "string"}}))).await;
    let other = format!("{}/other.json#/Secret", elsewhere.url);
    let mock = Mock::start(move |request, _| match &*request.target {
        "/api/doc" => json_reply(
            200,
            &json!({
                "openapi": "3.1.0", "servers": [{"url": "https://a.example"}],
                "paths": {"/a": {"post": {"operationId": "a", "requestBody": {"content": {"application/json": {"schema": {
                    "type": "object", "properties": {"near": {"$ref": "parts/near.yaml#/Near"}, "far": {"$ref": other}},
                }}}}}}},
            }),
        ),
        "/api/parts/near.yaml" => reply(200, "text/yaml", "Near: { $ref: '../third.json' }"),
        "/api/third.json" => json_reply(200, &json!({"type": "integer", "minimum": 3})),
        other => panic!("{other}"),
    })
    .await;
    let app = OpenapiApp::start(
        "x",
        OpenapiConfig { openapi: format!("{}/api/doc", mock.url), ..config(&mock.url) },
    );
    let mut events = app.events();
    while app.catalog().tools.is_empty() {
        events.recv().await.unwrap();
    }
    let input = json!(app.catalog().tools[0].input_schema);
    assert_eq!(
        (&input["properties"]["near"]["type"], &input["properties"]["near"]["minimum"]),
        (&json!("integer"), &json!(3)),
        "{input:#}"
    );
    assert!(!input.to_string().contains("string"), "{input:#}");
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn an_app_that_was_shut_down_keeps_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = OpenapiApp::start("x", config(&url));
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = [0; 4096];
    assert!(stream.read(&mut request).await.unwrap() > 0);
    let body = document(&json!({"url": "https://a.example"})).to_string();
    let mut events = app.events();
    let head =
        format!("HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    while app.catalog().tools.is_empty() {
        events.recv().await.unwrap();
    }
    app.shutdown().await;
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read(&mut request)).await;
    assert_eq!(read.expect("the connection is closed").unwrap_or(0), 0);
    assert_eq!(app.catalog().tools.len(), 1, "the app itself is kept");
}

#[tokio::test]
async fn a_first_document_that_has_not_changed_is_none() {
    let mock = Mock::start(move |_, _| raw("HTTP/1.1 304 Not Modified\r\n\r\n")).await;
    let report = check(&config(&mock.url)).await;
    assert!(report.problems[0].problem.contains("HTTP 304"), "{:?}", report.problems);
}

#[tokio::test]
async fn a_document_that_does_not_end_is_given_up_after_connect_timeout() {
    let head = "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    let mock = Mock::start(move |_, _| raw(head).hanging()).await;
    let report =
        check(&OpenapiConfig { connect_timeout: Duration::from_millis(300), ..config(&mock.url) }).await;
    assert!(report.problems[0].problem.contains("no answer in time"), "{:?}", report.problems);
}

#[tokio::test]
async fn a_token_endpoint_elsewhere_is_a_problem_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("api.json");
    let mut described = document(&json!({"url": "https://api.example"}));
    described["components"] = json!({"securitySchemes": {"Login": {
        "type": "oauth2",
        "flows": {"clientCredentials": {"tokenUrl": "https://evil.example/token", "scopes": {}}}
    }}});
    std::fs::write(&file, described.to_string()).unwrap();
    let client = json!({"type": "clientCredentials", "clientId": "me", "clientSecret": "hush-hush"});
    let own = |base: &str, auth_of: Value| OpenapiConfig {
        base_url: Some(base.into()),
        auth: auth(auth_of),
        ..OpenapiConfig::new(file.to_string_lossy())
    };
    let report = check(&own("https://api.example/v2", client.clone())).await;
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    assert_eq!(report.problems[0].path, "auth.tokenUrl");
    assert!(report.problems[0].problem.contains("https://evil.example"));
    let report = check(&own("https://api.example/v2", json!({"Login": client}))).await;
    assert_eq!(report.problems[0].path, "auth.Login.tokenUrl");
    assert!(check(&own("https://evil.example/v2", client)).await.problems.is_empty());
}
