//! Pages of results, collected with one call.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gatewright_core::{AppFuture, InvokeError, PageGate, Paginate};
use gatewright_openapi::{
    Called, HttpApi, Location, Operation, OperationCall, Parameter, Reporter, Surroundings,
};
use http::Method;
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::{Value, json};

use crate::mock::{Mock, auth, code, json_reply, operation, parameter, raw, reply, text};

/// Lets so many pages through.
struct Gate(AtomicUsize);

impl PageGate for Gate {
    fn pass(&self, _: JsonObject) -> AppFuture<'_, Result<bool, InvokeError>> {
        let left = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        let refused = InvokeError::RateLimited { name: "op".into(), retry_after: Duration::from_secs(1) };
        Box::pin(async move { left.map(|_| true).map_err(|_| refused) })
    }
}

/// An operation with these parameters in the query.
fn listing(method: Method, parameters: &[&str]) -> Operation {
    let parameters = parameters.iter().map(|name| parameter(name, Location::Query)).collect();
    Operation { parameters, ..operation(method, "/things") }
}

async fn collect(
    api: &HttpApi,
    operation: &Operation,
    arguments: Value,
    max: usize,
    pages: usize,
) -> CallToolResult {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let call = OperationCall {
        operation,
        surroundings: &Surroundings::default(),
        arguments: &arguments,
        user: None,
        paginate: Some(Paginate { max, gate: Arc::new(Gate(AtomicUsize::new(pages))) }),
        room: None,
        reporter: Reporter::Nobody,
        trail: None,
    };
    match api.call(call).await {
        Called::Done(result) => result,
        Called::SignIn(_) => panic!("nobody signs in"),
    }
}

fn body(result: CallToolResult) -> Value {
    assert_eq!(result.is_error, Some(false), "{result:?}");
    result.structured_content.unwrap()
}

fn targets(mock: &Mock) -> Vec<String> {
    mock.requests().into_iter().map(|request| request.target).collect()
}

/// The value of a field of the query.
fn field(target: &str, name: &str) -> Option<String> {
    let query = target.split_once('?')?.1;
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
}

#[tokio::test]
async fn links_lead_from_page_to_page_with_the_credentials_in_the_query() {
    let mock = Mock::start(|request, before| match before {
        0 => json_reply(200, &json!([1, 2]))
            .header("link: </v1/things?page=2&key=x>; rel=\"next\", </v1/z>; rel=last"),
        1 => json_reply(200, &json!([3, 4])).header("link: <?page=3>; rel=next"),
        _ => json_reply(200, &json!([field(&request.target, "page")])).header("link: </v1/other>; rel=first"),
    })
    .await;
    let api = mock.api(|own| {
        own.auth = auth(json!({"type": "apiKey", "value": "k1-secret", "name": "key", "in": "query"}));
    });
    let result = collect(&api, &listing(Method::GET, &[]), json!({}), 100, 9).await;
    assert_eq!(text(&result), "5 items of 3 pages");
    assert_eq!(body(result), json!({"items": [1, 2, 3, 4, "3"], "hasMore": false, "pages": 3}));
    let expected =
        ["/v1/things?key=k1-secret", "/v1/things?page=2&key=k1-secret", "/v1/things?page=3&key=k1-secret"];
    assert_eq!(targets(&mock), expected);
}

#[tokio::test]
async fn of_an_address_with_another_path_or_other_arguments_only_the_page_is_taken() {
    for link in ["/v1/admin/keys?page=2", "/v1/things?page=2&tenant=other", "/v1/things/7?page=2"] {
        let header = format!("link: <{link}>; rel=next");
        let mock = Mock::start(move |_, before| match before {
            0 => json_reply(200, &json!([1])).header(&header),
            _ => json_reply(200, &json!([2])).header("link: </v1/things>; rel=first"),
        })
        .await;
        let api = mock.api(|_| {});
        let result = collect(&api, &listing(Method::GET, &["page"]), json!({}), 100, 9).await;
        assert_eq!(body(result)["items"], json!([1, 2]), "{link}");
        assert_eq!(targets(&mock), ["/v1/things", "/v1/things?page=2"], "{link}");
    }
    let mock = Mock::start(|_, _| {
        json_reply(200, &json!({"items": [1], "next": "/v1/admin/keys", "has_more": true}))
    })
    .await;
    let api = mock.api(|_| {});
    let result = body(collect(&api, &listing(Method::GET, &[]), json!({}), 100, 9).await);
    assert_eq!(result, json!({"items": [1], "hasMore": true, "pages": 1}));
    assert_eq!(targets(&mock), ["/v1/things"]);
}

#[tokio::test]
async fn pages_that_the_api_named_are_not_counted_again_after_the_last() {
    for (next, last) in [
        (json!([1, 2]), json!([3])),
        (json!({"items": [1, 2], "next_cursor": "c1"}), json!({"items": [3], "next_cursor": null})),
    ] {
        let by_link = next.is_array();
        let mock = Mock::start(move |request, before| match (before, field(&request.target, "page")) {
            (0, None) if by_link => json_reply(200, &next).header("link: <?page=2>; rel=next"),
            (0, None) => json_reply(200, &next),
            _ => json_reply(200, &last),
        })
        .await;
        let api = mock.api(|_| {});
        let listing = listing(Method::GET, &["page", "per_page", "cursor"]);
        let collected = body(collect(&api, &listing, json!({}), 100, 9).await);
        assert_eq!(collected, json!({"items": [1, 2, 3], "hasMore": false, "pages": 2}));
    }
}

#[tokio::test]
async fn a_link_to_another_host_or_path_is_not_followed() {
    let other = crate::mock::fine().await;
    for link in
        [format!("{}/v1/things?page=2", other.url), "/admin?page=2".to_owned(), "/v1/../admin".to_owned()]
    {
        let header = format!("link: <{link}>; rel=next");
        let mock = Mock::start(move |_, _| json_reply(200, &json!([1])).header(&header)).await;
        let api = mock.api(|own| own.auth = auth(json!({"type": "bearer", "token": "secret-token"})));
        let collected = body(collect(&api, &listing(Method::GET, &[]), json!({}), 100, 9).await);
        assert_eq!(collected, json!({"items": [1], "hasMore": true, "pages": 1}), "{link}");
        assert_eq!(mock.requests().len(), 1);
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn cursors_pages_and_offsets_are_arguments_of_the_next_call() {
    let api_of = |mock: &Mock| mock.api(|_| {});
    let slack = Mock::start(|request, _| {
        let next = match field(&request.target, "cursor").as_deref() {
            None => "b%3D=",
            _ => "",
        };
        json_reply(
            200,
            &json!({"ok": true, "members": [{"n": 1}], "response_metadata": {"next_cursor": next}}),
        )
    })
    .await;
    let operation = listing(Method::GET, &["cursor", "limit"]);
    let collected = body(collect(&api_of(&slack), &operation, json!({"limit": 1}), 100, 9).await);
    assert_eq!(collected, json!({"items": [{"n": 1}, {"n": 1}], "hasMore": false, "pages": 2}));
    assert_eq!(targets(&slack)[1], "/v1/things?cursor=b%253D%3D&limit=1");

    let numbered = Mock::start(|request, _| {
        let page: u64 = field(&request.target, "page").map_or(1, |page| page.parse().unwrap());
        json_reply(200, &if page < 4 { json!([page]) } else { json!([]) })
    })
    .await;
    let collected =
        body(collect(&api_of(&numbered), &listing(Method::GET, &["page"]), json!({"page": 2}), 100, 9).await);
    assert_eq!(collected, json!({"items": [2, 3], "hasMore": false, "pages": 3}));

    let offset = Mock::start(|request, _| {
        let from: u64 = field(&request.target, "offset").map_or(0, |from| from.parse().unwrap());
        json_reply(200, &json!({"total": 5, "values": (from..5).take(2).collect::<Vec<_>>()}))
    })
    .await;
    let collected =
        body(collect(&api_of(&offset), &listing(Method::GET, &["offset"]), json!({}), 100, 9).await);
    assert_eq!(collected, json!({"items": [0, 1, 2, 3, 4], "hasMore": false, "pages": 3}));
}

#[tokio::test]
async fn collecting_stops_at_max_and_says_that_there_is_more() {
    let mock = Mock::start(|request, _| {
        let from: u64 = field(&request.target, "offset").map_or(0, |from| from.parse().unwrap());
        json_reply(200, &json!({"total": 6, "items": [from, from + 1]}))
    })
    .await;
    let (api, operation) = (mock.api(|_| {}), listing(Method::GET, &["offset"]));
    for (max, items, more, pages) in [(3, 3, true, 2), (4, 4, true, 2), (6, 6, false, 3), (1, 1, true, 1)] {
        let collected = body(collect(&api, &operation, json!({}), max, 9).await);
        assert_eq!(collected["items"].as_array().unwrap().len(), items);
        assert_eq!((&collected["hasMore"], &collected["pages"]), (&json!(more), &json!(pages)), "{max}");
    }
}

#[tokio::test]
async fn a_cursor_that_comes_again_and_a_parameter_that_does_nothing_end_it() {
    let circle =
        Mock::start(|_, before| json_reply(200, &json!({"items": [before], "next_cursor": "same"}))).await;
    let operation = listing(Method::GET, &["cursor"]);
    let collected = body(collect(&circle.api(|_| {}), &operation, json!({}), 100, 90).await);
    assert_eq!(collected, json!({"items": [0, 1], "hasMore": true, "pages": 2}));
    let all_at_once = Mock::start(|_, _| json_reply(200, &json!([{"id": 1}, {"id": 2}]))).await;
    let operation = listing(Method::GET, &["page"]);
    let collected = body(collect(&all_at_once.api(|_| {}), &operation, json!({}), 100, 90).await);
    assert_eq!(collected, json!({"items": [{"id": 1}, {"id": 2}], "hasMore": false, "pages": 2}));
}

#[tokio::test]
async fn pages_end_with_the_bytes_of_one_answer_the_time_of_one_call_and_their_number() {
    let endless = |_: &crate::mock::Request, before: usize| {
        json_reply(200, &json!({"items": ["x".repeat(400), before], "next_cursor": before.to_string()}))
    };
    let operation = listing(Method::GET, &["cursor"]);
    let mock = Mock::start(endless).await;
    let api = mock.api(|own| own.max_response_bytes = 2_000);
    let collected = body(collect(&api, &operation, json!({}), 10_000, 900).await);
    assert_eq!((&collected["hasMore"], &collected["pages"]), (&json!(true), &json!(4)));
    let api = mock.api(|_| {});
    let collected = body(collect(&api, &operation, json!({}), 10_000, 900).await);
    assert_eq!((&collected["hasMore"], &collected["pages"]), (&json!(true), &json!(200)));
    let slow = Mock::start(move |request, before| match before {
        0..3 => endless(request, before),
        _ => raw("HTTP/1.1 200 OK\r\n").hanging(),
    })
    .await;
    let api = slow.api(|own| own.timeout = Duration::from_millis(500));
    let collected = body(collect(&api, &operation, json!({}), 10_000, 900).await);
    assert_eq!((&collected["hasMore"], &collected["pages"]), (&json!(true), &json!(3)));
}

#[tokio::test]
async fn failures_of_a_page_are_failures_of_the_call() {
    let mock = Mock::start(|_, before| match before {
        0 => json_reply(200, &json!({"items": [1], "next_cursor": "a"})),
        _ => json_reply(422, &json!({"message": "the cursor is old"})),
    })
    .await;
    let operation = listing(Method::GET, &["cursor"]);
    let result = collect(&mock.api(|_| {}), &operation, json!({}), 100, 9).await;
    assert_eq!(code(&result), "HTTP_422");
    assert!(text(&result).contains("the cursor is old"));
    let endless = Mock::start(|_, before| {
        json_reply(200, &json!({"items": [before], "next_cursor": before.to_string()}))
    })
    .await;
    let result = collect(&endless.api(|_| {}), &operation, json!({}), 100, 2).await;
    assert_eq!((code(&result), endless.requests().len()), ("RATE_LIMIT".into(), 3));
}

#[tokio::test]
async fn answers_without_a_list_and_operations_that_change_something_are_refused() {
    let mock = Mock::start(|request, _| match request.target.contains("text") {
        true => reply(200, "text/plain", "words"),
        false => json_reply(200, &json!({"id": 1, "tags": ["a"], "parts": ["b"]})),
    })
    .await;
    let api = mock.api(|_| {});
    for parameters in [&["page"][..], &["text"]] {
        let result = collect(&api, &listing(Method::GET, parameters), json!({"text": "1"}), 100, 9).await;
        assert_eq!(code(&result), "VALIDATION_ERROR");
        assert!(
            text(&result).contains("`paginate`") && text(&result).contains("one list"),
            "{}",
            text(&result)
        );
    }
    let sent = mock.requests().len();
    let result = collect(&api, &listing(Method::POST, &["page"]), json!({}), 100, 9).await;
    assert_eq!((code(&result), mock.requests().len()), ("VALIDATION_ERROR".into(), sent));
}

#[tokio::test]
async fn every_page_is_read_wherever_the_api_and_its_document_count_from() {
    for (counts_from, documented, says) in [
        (0, Some(0), ""),
        (0, None, "page"),
        (0, None, "number"),
        (1, None, ""),
        (1, Some(1), ""),
        // Unsigned integers are described so.
        (1, Some(0), ""),
        (1, Some(0), "page"),
        (1, Some(0), "has_more"),
        (1, Some(0), "total"),
        (0, Some(0), "total"),
        (1, None, "total"),
    ] {
        let mock = Mock::start(move |request, _| {
            let page: u64 =
                field(&request.target, "page").and_then(|page| page.parse().ok()).unwrap_or(counts_from);
            let first = 10 * page.saturating_sub(counts_from);
            let items: Vec<u64> = (first..(first + 10).min(25)).collect();
            let mut answer = json!({"items": items});
            match says {
                "" => {}
                "has_more" => answer[says] = json!(first + 10 < 25),
                "total" => answer[says] = json!(25),
                says => answer[says] = json!(page),
            }
            json_reply(200, &answer)
        })
        .await;
        let page = Parameter { first: documented, ..parameter("page", Location::Query) };
        let operation = Operation { parameters: [page].into(), ..operation(Method::GET, "/things") };
        let all = body(collect(&mock.api(|_| {}), &operation, json!({}), 100, 9).await);
        let expected: Vec<u64> = (0..25).collect();
        assert_eq!(all["items"], json!(expected), "{counts_from} {documented:?} {says}");
        assert_eq!(all["hasMore"], false, "{counts_from} {documented:?} {says}");
    }
}

#[tokio::test]
async fn a_page_that_comes_again_ends_and_says_so_if_the_api_says_that_there_are_more() {
    for (answer, is_more) in [
        (json!({"items": [1, 2]}), false),
        (json!({"items": [1, 2], "total": 25}), true),
        (json!({"items": [1, 2], "has_more": true}), true),
        (json!({"items": [1, 2], "last": false}), true),
        (json!({"items": [1, 2], "next_cursor": {"id": 2}}), true),
    ] {
        let again = answer.clone();
        let mock = Mock::start(move |_, _| json_reply(200, &again)).await;
        let parameters: &[&str] = if answer.get("next_cursor").is_some() { &[] } else { &["page"] };
        let all =
            body(collect(&mock.api(|_| {}), &listing(Method::GET, parameters), json!({}), 100, 9).await);
        assert_eq!((&all["items"], &all["hasMore"]), (&json!([1, 2]), &json!(is_more)), "{answer}");
    }
}

#[tokio::test]
async fn offsets_from_1_give_each_item_once() {
    for says in [false, true] {
        let mock = Mock::start(move |request, _| {
            let start =
                field(&request.target, "startIndex").and_then(|start| start.parse().ok()).unwrap_or(1_u64);
            let items: Vec<u64> = (start..start + 10).filter(|item| *item <= 25).collect();
            let mut answer = json!({"Resources": items, "totalResults": 25});
            if says {
                answer["startIndex"] = json!(start);
            }
            json_reply(200, &answer)
        })
        .await;
        let start = Parameter { first: (!says).then_some(1), ..parameter("startIndex", Location::Query) };
        let operation = Operation { parameters: [start].into(), ..operation(Method::GET, "/things") };
        let all = body(collect(&mock.api(|_| {}), &operation, json!({}), 100, 9).await);
        let expected: Vec<u64> = (1..=25).collect();
        assert_eq!((&all["items"], &all["hasMore"]), (&json!(expected), &json!(false)), "{says}");
    }
}
