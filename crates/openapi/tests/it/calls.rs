//! Requests of calls, and results of ordinary answers.

use std::{
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gatewright_core::ProgressSink;
use gatewright_openapi::{
    Body, BodyArguments, BodyField, BodyKind, FieldEncoding, Location, Media, Operation, PathPart, Reporter,
    ResponseShape, Server, ServerVariable, StatusCodes, Style, Success, Surroundings,
};
use http::Method;
use serde_json::{Value, json};

use crate::mock::{
    Mock, block, call, call_in, call_reporting, code, fine, json_reply, operation, parameter, raw, reply,
    text,
};

fn with_body(media_type: &str, kind: BodyKind, arguments: BodyArguments) -> Operation {
    let body = Body { media_type: media_type.into(), kind, arguments, required: false };
    Operation { body: Some(body), ..operation(Method::POST, "/things") }
}

fn field(name: &str) -> BodyField {
    let encoding = FieldEncoding {
        content_type: None,
        style: Some(Style::Form),
        explode: true,
        allow_reserved: false,
        file: false,
        members: Box::default(),
    };
    BodyField { argument: name.into(), name: name.into(), encoding }
}

#[tokio::test]
async fn parameters_go_to_their_places() {
    let mock = fine().await;
    let api = mock.api(|config| {
        config.headers.insert("X-Team".into(), gatewright_core::Secret::new("a"));
    });
    let operation = Operation {
        path: [
            PathPart::Literal("/users/".into()),
            PathPart::Parameter(0),
            PathPart::Literal("/files".into()),
        ]
        .into(),
        parameters: [
            parameter("id", Location::Path),
            parameter("tags", Location::Query),
            parameter("X-Trace", Location::Header),
            parameter("Host", Location::Header),
            parameter("X-Team", Location::Header),
            parameter("theme", Location::Cookie),
        ]
        .into(),
        ..operation(Method::GET, "")
    };
    let arguments = json!({"id": "a/b?c#d", "tags": ["x&y", "z"], "X-Trace": ["1", "2"], "Host": "evil", "X-Team": "b", "theme": "dark; a=b"});
    let result = call(&api, &operation, arguments).await;
    assert_eq!(result.is_error, Some(false));
    let seen = mock.last();
    assert_eq!((&*seen.method, &*seen.target), ("GET", "/v1/users/a%2Fb%3Fc%23d/files?tags=x%26y&tags=z"));
    assert_eq!(seen.header("x-trace"), Some("1,2"));
    assert_eq!(seen.header("cookie"), Some("theme=dark%3B%20a%3Db"));
    assert_eq!(seen.header("x-team"), Some("a"), "the operator's header stays");
    assert!(mock.url.ends_with(seen.header("host").unwrap()));
    assert!(seen.header("user-agent").unwrap().starts_with("gatewright/"));

    for (arguments, word) in [
        (json!({}), "`id` is required"),
        (json!({"id": ".."}), "`id` must not have"),
        (json!({"id": ""}), "`id` must not be empty"),
        (json!({"id": "1", "X-Trace": "a\r\nX-Admin: 1"}), "`X-Trace` has characters"),
    ] {
        let result = call(&api, &operation, arguments).await;
        assert_eq!(code(&result), "VALIDATION_ERROR");
        assert!(text(&result).contains(word), "{}", text(&result));
    }
    assert_eq!(mock.requests().len(), 1, "nothing was sent");
}

#[tokio::test]
async fn a_query_can_be_one_parameter() {
    let mock = fine().await;
    let api = mock.api(|_| {});
    let mut whole = parameter("q", Location::QueryString);
    whole.content = Some("application/x-www-form-urlencoded".into());
    let operation = Operation { parameters: [whole].into(), ..operation(Method::GET, "/search") };
    call(&api, &operation, json!({"q": {"a": "1&2", "b": ["x", "y"]}})).await;
    assert_eq!(mock.last().target, "/v1/search?a=1%262&b=x&b=y");
}

#[tokio::test]
async fn bodies_are_written_in_their_types() {
    let mock = fine().await;
    let api = mock.api(|_| {});
    let open = |fields: &[&str]| BodyArguments::Fields {
        fields: fields.iter().map(|name| field(name)).collect(),
        open: true,
    };

    let mut own = with_body("application/json", BodyKind::Json, open(&["name"]));
    own.parameters = [parameter("dry", Location::Query)].into();
    call(&api, &own, json!({"dry": true, "extra": [1], "name": null})).await;
    let seen = mock.last();
    assert_eq!((seen.json(), &*seen.target), (json!({"name": null, "extra": [1]}), "/v1/things?dry=true"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    call(&api, &own, json!({"dry": true})).await;
    assert_eq!((mock.last().body.len(), mock.last().header("content-type")), (0, None));

    call(
        &api,
        &with_body("application/json", BodyKind::Json, BodyArguments::Whole("body".into())),
        json!({"body": [1, 2]}),
    )
    .await;
    assert_eq!(mock.last().json(), json!([1, 2]));
    let lines = with_body("application/x-ndjson", BodyKind::JsonLines, BodyArguments::Whole("body".into()));
    call(&api, &lines, json!({"body": [{"a": 1}, 2]})).await;
    assert_eq!(mock.last().text(), "{\"a\":1}\n2\n");

    let form = with_body("application/x-www-form-urlencoded", BodyKind::Form, open(&["tags", "at"]));
    call(&api, &form, json!({"tags": ["a b", "c"], "at": {"x": 1}, "more": "é&"})).await;
    assert_eq!(mock.last().text(), "tags=a%20b&tags=c&x=1&more=%C3%A9%26");

    let plain = with_body("text/csv", BodyKind::Text, BodyArguments::Whole("body".into()));
    call(&api, &plain, json!({"body": "a,b\r\n"})).await;
    assert_eq!(
        (mock.last().text(), mock.last().header("content-type").unwrap().to_owned()),
        ("a,b\r\n".into(), "text/csv".into())
    );

    let binary = with_body("application/octet-stream", BodyKind::Binary, BodyArguments::Whole("body".into()));
    call(&api, &binary, json!({"body": "data:image/png;base64,AAEC"})).await;
    assert_eq!(
        (mock.last().body, mock.last().header("content-type").unwrap().to_owned()),
        (vec![0, 1, 2], "image/png".into())
    );
    let result = call(&api, &binary, json!({"body": "file:///etc/passwd"})).await;
    assert_eq!(code(&result), "VALIDATION_ERROR");
}

#[tokio::test]
async fn multipart_bodies_have_files_texts_and_json() {
    let mock = fine().await;
    let api = mock.api(|_| {});
    let mut file = field("photo");
    file.encoding.file = true;
    file.encoding.content_type = Some("image/png, image/jpeg".into());
    let fields = [file, field("title"), field("meta"), field("tags")].into();
    let upload =
        with_body("multipart/form-data", BodyKind::Multipart, BodyArguments::Fields { fields, open: false });
    let arguments = json!({
        "photo": ["AAEC", "data:image/jpeg;name=b.jpg;base64,/w=="],
        "title": "x\r\n--evil",
        "meta": {"a": 1},
        "tags": ["t1", "t2"],
        "ignored": 1,
    });
    let result = call(&api, &upload, arguments).await;
    assert_eq!(result.is_error, Some(false));
    let seen = mock.last();
    let kind = seen.header("content-type").unwrap();
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
    let body = seen.text();
    for part in [
        "Content-Disposition: form-data; name=\"photo\"; filename=\"photo\"\r\nContent-Type: image/png\r\n\r\n\u{0}\u{1}\u{2}\r\n",
        "Content-Disposition: form-data; name=\"photo\"; filename=\"b.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n",
        "Content-Disposition: form-data; name=\"title\"\r\n\r\nx\r\n--evil\r\n",
        "Content-Disposition: form-data; name=\"meta\"\r\nContent-Type: application/json\r\n\r\n{\"a\":1}\r\n",
        "Content-Disposition: form-data; name=\"tags\"\r\n\r\nt1\r\n",
    ] {
        assert!(body.contains(part), "{part}\n{body}");
    }
    assert_eq!(body.matches(&format!("--{boundary}\r\n")).count(), 6);
    assert!(body.ends_with(&format!("--{boundary}--\r\n")) && !body.contains("ignored"));
}

#[tokio::test]
async fn answers_become_content_of_their_kind() {
    let mock = Mock::start(|request, _| match request.target.rsplit('/').next().unwrap() {
        "object" => json_reply(200, &json!({"a": 1})),
        "list" => reply(200, "application/hal+json; charset=utf-8", "[1, 2]"),
        "none" => raw("HTTP/1.1 204 No Content\r\n\r\n"),
        "made" => raw(
            "HTTP/1.1 201 Created\r\nlocation: https://h/things/7?key=secret\r\ncontent-length: 0\r\n\r\n",
        ),
        "text" => reply(200, "text/plain", "hi"),
        "latin" => reply(200, "text/plain; charset=ISO-8859-1", [0x67, 0xfc]),
        "png" => reply(200, "image/png", [0, 1]),
        "wav" => reply(200, "audio/wav", [0, 1]),
        "pdf" => reply(200, "application/pdf", [0, 1]),
        "untyped" => raw("HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n").with("{\"a\": 2}"),
        other => panic!("{other}"),
    })
    .await;
    let api = mock.api(|_| {});
    let get = async |name: &str, shape| {
        let operation = Operation { shape, ..operation(Method::GET, &format!("/{name}")) };
        call(&api, &operation, json!({})).await
    };
    let structured = async |name: &str, shape| get(name, shape).await.structured_content;
    use ResponseShape::{Object, Unknown, Wrapped};
    assert_eq!(structured("object", Object).await, Some(json!({"a": 1})));
    assert_eq!(structured("object", Unknown).await, Some(json!({"a": 1})));
    assert_eq!(structured("object", Wrapped).await, Some(json!({"result": {"a": 1}})));
    assert_eq!(structured("list", Wrapped).await, Some(json!({"result": [1, 2]})));
    assert_eq!(structured("list", Unknown).await, Some(json!({"result": [1, 2]})));
    assert_eq!(structured("untyped", Unknown).await, Some(json!({"a": 2})));
    assert_eq!(text(&get("list", Unknown).await), "[1, 2]");
    assert_eq!(structured("none", Unknown).await, None);
    assert_eq!(structured("none", Wrapped).await, Some(json!({"result": null})));
    assert!(text(&get("none", Unknown).await).contains("204"));
    let made = text(&get("made", Unknown).await);
    assert!(made.contains("(Location: /things/7)") && !made.contains("secret"), "{made}");
    assert_eq!((text(&get("text", Unknown).await), structured("text", Unknown).await), ("hi".into(), None));
    assert_eq!(structured("text", Wrapped).await, Some(json!({"result": "hi"})));
    assert_eq!(text(&get("latin", Unknown).await), "gü");
    assert_eq!(
        block(&get("png", Unknown).await),
        json!({"type": "image", "data": "AAE=", "mimeType": "image/png"})
    );
    assert_eq!(
        block(&get("wav", Unknown).await),
        json!({"type": "audio", "data": "AAE=", "mimeType": "audio/wav"})
    );
    assert_eq!(
        block(&get("pdf", Unknown).await),
        json!({"type": "resource", "resource": {"uri": "http-answer:op", "mimeType": "application/pdf", "blob": "AAE="}})
    );
}

#[tokio::test]
async fn the_server_is_that_of_the_document_or_base_url() {
    let mock = fine().await;
    let server = |url: &str| {
        let region = ServerVariable {
            name: "region".into(),
            default: "eu".into(),
            allowed: ["eu".into(), "us".into()].into(),
        };
        Arc::from([Server { url: url.into(), variables: [region].into() }])
    };
    let own = |url: &str| Operation { servers: server(url), ..operation(Method::GET, "/x") };
    let without = mock.api(|config| config.base_url = None);
    call(&without, &own(&format!("{}/{{region}}/", mock.url)), json!({})).await;
    assert_eq!(mock.last().target, "/eu/x");
    let in_us = mock.api(|config| {
        config.base_url = None;
        config.server_variables = [("region".to_owned(), "us".to_owned())].into();
    });
    let here = Surroundings {
        document: Some(format!("{}/docs/api.yaml", mock.url).parse().unwrap()),
        ..Surroundings::default()
    };
    call_in(&in_us, &own("../{region}"), &here, json!({})).await;
    assert_eq!(mock.last().target, "/us/x");
    call_in(&without, &operation(Method::GET, "/y"), &here, json!({})).await;
    assert_eq!(mock.last().target, "/y", "without servers, the root of the document's host");
    let elsewhere = mock.api(|_| {});
    call(&elsewhere, &own("https://api.example.com"), json!({})).await;
    assert_eq!(mock.last().target, "/v1/x", "`baseUrl` replaces the servers of the document");
    let result = call(&without, &own("/v3"), json!({})).await;
    assert_eq!(code(&result), "OPENAPI_NO_SERVER");
    let nowhere = mock.api(|config| {
        config.base_url = None;
        config.server_variables = [("region".to_owned(), "mars".to_owned())].into();
    });
    assert!(
        text(&call(&nowhere, &own("https://{region}.example.com"), json!({})).await)
            .contains("must be one of eu, us")
    );
}

#[tokio::test]
async fn accept_names_the_types_of_the_document() {
    let mock = fine().await;
    let media = |kind: &str| Media { media_type: kind.into(), stream: false };
    let responses =
        [Success { status: StatusCodes::Range, media: [media("application/pdf"), media("text/csv")].into() }];
    let operation = Operation { responses: responses.into(), ..operation(Method::GET, "/x") };
    call(&mock.api(|_| {}), &operation, json!({})).await;
    assert_eq!(mock.last().header("accept"), Some("application/pdf, text/csv, */*;q=0.1"));
    assert_eq!(mock.last().header("accept-encoding"), Some("identity"));
}

#[tokio::test]
async fn an_answer_of_another_kind_than_text_that_repeats_a_credential_is_not_passed_on() {
    const TOKEN: &str = "token-1234567";
    let mock = Mock::start(|request, _| match request.target.rsplit('/').next().unwrap() {
        "pdf" => reply(200, "application/pdf", format!("%PDF {TOKEN}")),
        "type" => reply(200, &format!("image/{TOKEN}"), "x"),
        "place" => reply(201, "text/plain", "").header(&format!("location: /things/{TOKEN}")),
        "wide" => reply(
            200,
            "text/plain; charset=utf-16",
            TOKEN.chars().flat_map(|c| [c, '\0']).collect::<String>(),
        ),
        other => panic!("{other}"),
    })
    .await;
    let api = mock.api(|config| config.auth = crate::mock::auth(json!({"type": "bearer", "token": TOKEN})));
    for path in ["pdf", "type", "place", "wide"] {
        let result = call(&api, &operation(Method::GET, &format!("/{path}")), json!({})).await;
        let shown = serde_json::to_string(&result).unwrap();
        let is_refused = matches!(path, "pdf" | "wide");
        assert_eq!(result.is_error == Some(true), is_refused, "{shown}");
        assert!(!shown.contains(TOKEN) && !shown.contains("JVBERi"), "{shown}");
        assert_eq!(shown.contains("repeats a credential"), is_refused, "{shown}");
    }
}

#[tokio::test]
async fn problems_of_the_api_are_errors_with_a_message_and_without_secrets() {
    let mock = Mock::start(|request, _| match request.target.rsplit('/').next().unwrap() {
        "problem" => reply(
            403,
            "application/problem+json",
            r#"{"type": "https://example.com/credit", "title": "Out of credit", "detail": "Balance of token-1234567 is 30", "access_token": "abc"}"#,
        ),
        "html" => reply(502, "text/html", "<html><body>nginx</body></html>"),
        "busy" => reply(429, "text/plain", "slow down").header("retry-after: 90"),
        "text" => reply(400, "text/plain", "bad id\u{7}"),
        other => panic!("{other}"),
    })
    .await;
    let api = mock
        .api(|config| config.auth = crate::mock::auth(json!({"type": "bearer", "token": "token-1234567"})));
    let get = async |name: &str| call(&api, &operation(Method::GET, &format!("/{name}")), json!({})).await;
    let problem = get("problem").await;
    assert_eq!(code(&problem), "HTTP_403");
    assert_eq!(
        text(&problem),
        "the API answered with HTTP 403 (Forbidden): Out of credit: Balance of [redacted] is 30; the credentials of the gateway do not allow this"
    );
    let body = problem.structured_content.unwrap();
    assert_eq!(body["status"], 403);
    assert_eq!(body["problem"]["type"], "https://example.com/credit");
    assert_eq!(body["problem"]["access_token"], "[redacted]");
    assert_eq!(text(&get("html").await), "the API answered with HTTP 502 (Bad Gateway); try again later");
    let busy = get("busy").await;
    assert_eq!(
        (code(&busy), busy.structured_content.unwrap()["retryAfterSeconds"].clone()),
        ("RATE_LIMIT".into(), json!(90))
    );
    assert!(text(&get("text").await).contains("bad id "));
}

#[tokio::test]
async fn busy_servers_are_asked_again_for_idempotent_methods_only() {
    let mock = Mock::start(|request, before| match (&*request.method, before) {
        ("GET", 0) => reply(503, "text/plain", "").header("retry-after: 0"),
        ("GET", 1) => reply(429, "text/plain", ""),
        ("GET", _) => json_reply(200, &json!({"tries": before + 1})),
        _ => reply(503, "text/plain", "").header("retry-after: 0"),
    })
    .await;
    let api = mock.api(|_| {});
    let result = call(&api, &operation(Method::GET, "/x"), json!({})).await;
    assert_eq!(result.structured_content, Some(json!({"tries": 3})));
    let result = call(&api, &operation(Method::POST, "/x"), json!({})).await;
    assert_eq!((code(&result), mock.requests().len()), ("HTTP_503".into(), 4));
    let never = mock.api(|config| config.max_retries = 0);
    let result = call(&never, &operation(Method::DELETE, "/x"), json!({})).await;
    assert_eq!((code(&result), mock.requests().len()), ("HTTP_503".into(), 5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn an_api_has_no_more_open_calls_than_max_concurrency() {
    let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (seen, both) = (most.clone(), Barrier::new(2));
    let mock = Mock::start(move |_, _| {
        seen.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // Two calls are open at one time, or nothing goes on. A task that this thread was about to run is left to others meanwhile.
        tokio::task::block_in_place(|| both.wait());
        open.fetch_sub(1, Ordering::SeqCst);
        json_reply(200, &json!({}))
    })
    .await;
    let api = Arc::new(mock.api(|config| config.max_concurrency = 2));
    let calls = (0..6).map(|_| {
        let api = api.clone();
        tokio::spawn(async move { call(&api, &operation(Method::GET, "/x"), json!({})).await.is_error })
    });
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap(), Some(false));
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn sequences_are_arrays_whose_items_are_reported_as_they_come() {
    let mock = Mock::start(|request, _| match request.target.rsplit('/').next().unwrap() {
        "events" => raw("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            .with("data: {\"n\": 1}\n\n")
            .with("event: end\ndata: [DONE]\n\n"),
        "lines" => reply(200, "application/x-ndjson", "{\"n\": 1}\n{\"n\": 2}\n"),
        "endless" => {
            raw("HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\n\r\n").with("1\n2\n").hanging()
        }
        other => panic!("{other}"),
    })
    .await;
    let api = mock.api(|config| config.timeout = Duration::from_millis(1500));
    let heard: Arc<Mutex<Vec<(f64, String)>>> = Arc::default();
    let sink = ProgressSink::new({
        let heard = heard.clone();
        move |progress| {
            heard.lock().unwrap().push((progress.progress, progress.message.unwrap_or_default()));
            Box::pin(async {})
        }
    });
    let get = async |name: &str| {
        let operation = operation(Method::GET, &format!("/{name}"));
        call_reporting(&api, &operation, &Surroundings::default(), json!({}), Reporter::Sink(&sink)).await
    };
    let events = get("events").await;
    assert_eq!(
        events.structured_content,
        Some(json!({"result": [{"data": {"n": 1}}, {"event": "end", "data": "[DONE]"}]}))
    );
    assert_eq!(
        *heard.lock().unwrap(),
        [(1.0, r#"{"data":{"n":1}}"#.to_owned()), (2.0, r#"{"event":"end","data":"[DONE]"}"#.to_owned())]
    );
    assert_eq!(get("lines").await.structured_content, Some(json!({"result": [{"n": 1}, {"n": 2}]})));
    let endless = get("endless").await;
    assert_eq!(endless.structured_content, Some(json!({"result": [1, 2]})));
    assert!(
        serde_json::to_value(&endless.content[1]).unwrap()["text"]
            .as_str()
            .unwrap()
            .contains("did not end in time")
    );
    let _: Value = block(&endless);
}

#[tokio::test]
async fn a_byte_order_mark_before_json_is_ignored() {
    let mock = Mock::start(|_, _| reply(200, "application/json", "\u{feff}{\"a\": 1}")).await;
    let result = call(&mock.api(|_| {}), &operation(Method::GET, "/x"), json!({})).await;
    assert_eq!(result.structured_content, Some(json!({"a": 1})));
}
