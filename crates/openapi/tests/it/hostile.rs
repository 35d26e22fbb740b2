//! Answers and addresses that mean harm.

use std::time::{Duration, Instant};

use gatewright_openapi::{HttpApi, OpenapiConfig, Operation, ResponseShape};
use http::Method;
use serde_json::json;

use crate::mock::{Mock, call, code, fine, json_reply, operation, raw, reply, text};

#[tokio::test]
async fn answers_over_the_limit_are_not_read_on() {
    let mock = Mock::start(|request, _| match request.target.rsplit('/').next().unwrap() {
        "said" => {
            raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n")
                .hanging()
        }
        "flood" => (0..100)
            .fold(raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"), |reply, _| {
                reply.with("[".repeat(50_000))
            })
            .hanging(),
        "events" => (0..100)
            .fold(raw("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"), |reply, _| {
                reply.with("data: ".repeat(10_000))
            })
            .hanging(),
        "values" => reply(200, "application/json", format!("[{}1]", "1,".repeat(20_000))),
        "deep" => reply(200, "application/json", "[".repeat(20_000)),
        "error" => reply(500, "application/json", format!("{{\"message\": \"{}\"}}", "x".repeat(5_000_000))),
        other => panic!("{other}"),
    })
    .await;
    let api = mock.api(|config| {
        config.max_response_bytes = 100_000;
        config.max_retries = 0;
    });
    let start = Instant::now();
    for (name, expected) in [
        ("said", "UPSTREAM_TOO_LARGE"),
        ("flood", "UPSTREAM_TOO_LARGE"),
        ("events", "UPSTREAM_TOO_LARGE"),
        ("values", "UPSTREAM_BAD_ANSWER"),
        ("deep", "UPSTREAM_BAD_ANSWER"),
        ("error", "HTTP_500"),
    ] {
        let result = call(&api, &operation(Method::GET, &format!("/{name}")), json!({})).await;
        assert_eq!(code(&result), expected, "{name}");
        assert!(text(&result).len() < 4_000, "{name}");
    }
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn answers_that_are_not_what_they_say_are_errors() {
    let mock = Mock::start(|request, _| match request.target.rsplit('/').next().unwrap() {
        "html" => reply(200, "application/json", "<html>"),
        "gzip" => reply(200, "application/json", [0x1f, 0x8b, 8, 0]).header("content-encoding: gzip"),
        "cut" => raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n")
            .with("{\"a\":"),
        "reserved" => reply(200, "application/json", r#"{"$serde_json::private::RawValue": "[[["}"#),
        "twice" => reply(200, "application/json", [0x1f, 0x8b, 8, 0]).header("content-encoding: gzip, br"),
        "unknown" => reply(200, "application/json", "{}").header("content-encoding: x-bomb"),
        "utf8" => reply(200, "application/json", b"{\"a\": \"\xff\xfe\"}"),
        "half" => reply(200, "application/json", r#"{"a": [1, 2"#),
        "noise" => raw("NOISE\r\n\r\n"),
        "negative" => {
            raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: -5\r\n\r\n").with("{}")
        }
        "chunk" => {
            raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
                .with("ZZ\r\n{}\r\n")
        }
        "headers" => (0..2_000).fold(reply(200, "application/json", "{}"), |reply, at| {
            reply.header(&format!("x-{at}: {}", "h".repeat(200)))
        }),
        "part" => {
            raw("HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n")
                .with("4\r\n1\n2\n\r\n")
        }
        "lines" => reply(200, "application/x-ndjson", "{}\n<html>\n"),
        "wrong" => json_reply(200, &json!([1])),
        other => panic!("{other}"),
    })
    .await;
    let api = mock.api(|config| config.max_retries = 0);
    for (name, expected) in [
        ("html", "UPSTREAM_BAD_ANSWER"),
        ("gzip", "UPSTREAM_BAD_ANSWER"),
        ("twice", "UPSTREAM_BAD_ANSWER"),
        ("unknown", "UPSTREAM_BAD_ANSWER"),
        ("utf8", "UPSTREAM_BAD_ANSWER"),
        ("half", "UPSTREAM_BAD_ANSWER"),
        ("negative", "UPSTREAM_UNREACHABLE"),
        ("chunk", "UPSTREAM_UNREACHABLE"),
        ("headers", "UPSTREAM_UNREACHABLE"),
        ("cut", "UPSTREAM_UNREACHABLE"),
        ("reserved", "UPSTREAM_BAD_ANSWER"),
        ("noise", "UPSTREAM_UNREACHABLE"),
        ("lines", "UPSTREAM_BAD_ANSWER"),
        ("part", "UPSTREAM_UNREACHABLE"),
    ] {
        let result = call(&api, &operation(Method::GET, &format!("/{name}")), json!({})).await;
        assert_eq!(code(&result), expected, "{name}");
        assert!(!text(&result).contains("127.0.0.1"), "{}", text(&result));
    }
    let wrong = Operation { shape: ResponseShape::Object, ..operation(Method::GET, "/wrong") };
    let result = call(&api, &wrong, json!({})).await;
    assert_eq!(
        result.structured_content,
        Some(json!({"result": [1]})),
        "an array is no object, whatever the document says"
    );
}

#[tokio::test]
async fn a_body_where_none_may_be_is_not_the_answer_of_the_next_call() {
    let smuggled = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nsmuggled";
    let mock = Mock::start(move |request, _| match request.target.rsplit('/').next().unwrap() {
        "gone" => raw(format!("HTTP/1.1 204 No Content\r\ncontent-length: {}\r\n\r\n", smuggled.len()))
            .with(smuggled),
        _ => reply(200, "text/plain", "own"),
    })
    .await;
    let api = mock.api(|_| {});
    for _ in 0..3 {
        let result = call(&api, &operation(Method::GET, "/gone"), json!({})).await;
        assert_eq!(text(&result), "HTTP 204 No Content: done, without content");
        assert_eq!(text(&call(&api, &operation(Method::GET, "/next"), json!({})).await), "own");
    }
}

#[tokio::test]
async fn text_that_is_no_utf8_is_read_with_marks_in_its_place() {
    let mock = Mock::start(|_, _| reply(200, "text/plain; charset=utf-8", b"a\xffb")).await;
    let result = call(&mock.api(|_| {}), &operation(Method::GET, "/x"), json!({})).await;
    assert_eq!((result.is_error, text(&result)), (Some(false), "a\u{fffd}b".to_owned()));
}

#[tokio::test]
async fn a_slow_answer_is_whole_and_a_call_that_is_given_up_ends() {
    let mock = Mock::start(|request, _| match request.target.rsplit('/').next().unwrap() {
        "slow" => raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5\r\n\r\n")
            .with("[1")
            .with(",2]")
            .slowly(Duration::from_millis(100)),
        _ => raw("HTTP/1.1 200 OK\r\n").hanging(),
    })
    .await;
    let api = mock.api(|config| config.max_concurrency = 1);
    let operation_without_answer = operation(Method::GET, "/never");
    let never = call(&api, &operation_without_answer, json!({}));
    assert!(tokio::time::timeout(Duration::from_millis(300), never).await.is_err());
    let result = call(&api, &operation(Method::GET, "/slow"), json!({})).await;
    assert_eq!(
        result.structured_content,
        Some(json!({"result": [1, 2]})),
        "the place of the other call is free"
    );
}

#[tokio::test]
async fn redirects_without_end_and_to_other_schemes_are_errors() {
    let mock = Mock::start(|request, _| match request.target.rsplit('/').next().unwrap() {
        "loop" => reply(302, "text/plain", "").header("location: /v1/loop"),
        "file" => reply(302, "text/plain", "").header("location: file:///etc/passwd"),
        "nothing" => reply(302, "text/plain", ""),
        other => panic!("{other}"),
    })
    .await;
    let api = mock.api(|_| {});
    let get = async |name: &str| call(&api, &operation(Method::GET, &format!("/{name}")), json!({})).await;
    let result = get("loop").await;
    assert_eq!((code(&result), mock.requests().len()), ("UPSTREAM_BAD_ANSWER".into(), 5));
    assert_eq!(code(&get("file").await), "ADDRESS_REFUSED");
    assert_eq!(code(&get("nothing").await), "HTTP_302");
}

#[tokio::test]
async fn private_addresses_need_leave() {
    let mock = fine().await;
    for url in [
        mock.url.clone(),
        "https://localhost/".into(),
        "https://169.254.169.254/".into(),
        "https://[::1]/".into(),
        "http://93.184.215.14/".into(),
    ] {
        let config = OpenapiConfig { base_url: Some(url.clone()), ..OpenapiConfig::new("a.yaml") };
        let result = call(&HttpApi::new(config).unwrap(), &operation(Method::GET, "/x"), json!({})).await;
        assert_eq!(code(&result), "ADDRESS_REFUSED", "{url}");
        assert!(text(&result).contains("allowPrivate"));
    }
    assert!(mock.requests().is_empty());
}

#[tokio::test]
async fn nobody_there_is_an_error_without_the_address() {
    let config = OpenapiConfig {
        base_url: Some("http://127.0.0.1:1/key-in-path".into()),
        allow_private: true,
        max_retries: 1,
        ..OpenapiConfig::new("a.yaml")
    };
    let result = call(&HttpApi::new(config).unwrap(), &operation(Method::POST, "/x"), json!({})).await;
    assert_eq!(code(&result), "UPSTREAM_UNREACHABLE");
    assert_eq!(text(&result), "the API cannot be reached: connection refused; try again later");
}
