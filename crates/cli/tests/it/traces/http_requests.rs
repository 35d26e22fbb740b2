//! HTTP requests to the API of an OpenAPI app, as spans below the calls.

use gatewright::server::axum::{extract::State, response::IntoResponse as _, routing::get};

use super::*;

/// `traceparent` headers, in the order they came.
type Heard = Arc<Mutex<Vec<String>>>;

/// An API that is busy at first, and knows no order 404.
async fn orders(
    State(heard): State<Heard>,
    headers: HeaderMap,
    uri: axum::http::Uri,
) -> axum::response::Response {
    let mut heard = heard.lock().unwrap();
    heard.push(headers["traceparent"].to_str().unwrap().to_owned());
    assert_eq!(headers["tracestate"], "vendor=7");
    match (heard.len(), uri.path()) {
        (1, _) => (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "0")]).into_response(),
        (_, "/v1/orders/404") => StatusCode::NOT_FOUND.into_response(),
        _ => Json(json!({"id": "7"})).into_response(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_an_api_are_spans_below_their_calls_without_arguments() {
    let (collector, heard) = (Collector::start(200).await, Heard::default());
    let routes = Router::new().route("/v1/orders/{id}", get(orders)).with_state(heard.clone());
    let api = listen(routes).await;
    let folder = tempfile::tempdir().unwrap();
    let parameter = json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}});
    let document = json!({
        "openapi": "3.1.0", "info": {"title": "Shop", "version": "1"},
        "paths": {"/orders/{id}": {"get": {"operationId": "getOrder", "summary": "Get an order",
            "parameters": [parameter], "responses": {"200": {"description": "ok"}}}}},
    });
    let path = folder.path().join("shop.json");
    std::fs::write(&path, document.to_string()).unwrap();
    let app = json!({"openapi": path, "baseUrl": format!("{api}/v1"), "allowPrivate": true});
    let mut served = Served::start(
        &format!(
            "apps: {}\ntelemetry: {{ otlp: {{ endpoint: \"{}\" }} }}\n",
            json!({"shop": app}),
            collector.url
        ),
        &["--no-watch"],
    );
    let session = Session::open(&served).await;
    let script = "const order = await callTool('shop:getOrder', {id: 'private-7'});
        await callTool('shop:getOrder', {id: '404'}, {throwOnError: false});
        return order;";
    let meta = json!({"traceparent": above("01"), "tracestate": "vendor=7"});
    let body = session.run(script, meta, &[]).await;
    assert_eq!(body["status"], "ok", "{body}");
    served.terminate();

    let calls: Vec<Span> =
        collector.calls().into_iter().filter(|span| span.name == "tools/call shop:getOrder").collect();
    let requests: Vec<Span> =
        collector.spans().into_iter().filter(|span| span.name == "GET /orders/{id}").collect();
    assert_eq!((calls.len(), requests.len()), (2, 3));
    let above: Vec<_> = requests.iter().map(|span| &span.parent_span_id).collect();
    assert_eq!(above, [&calls[0].span_id, &calls[0].span_id, &calls[1].span_id]);
    assert!(requests.iter().all(|span| hex(&span.trace_id) == TRACE && span.kind() == SpanKind::Client));
    let told: Vec<String> =
        requests.iter().map(|span| format!("00-{TRACE}-{}-01", hex(&span.span_id))).collect();
    assert_eq!(*heard.lock().unwrap(), told, "the API hears of the span of its request");
    for (at, (status, failure, resends)) in
        [("503", Some("503"), None), ("200", None, Some("1")), ("404", Some("404"), None)]
            .into_iter()
            .enumerate()
    {
        let all = about(&requests[at]);
        let value = |key: &str| all.get(key).map(String::as_str);
        assert_eq!(value("http.request.method"), Some("GET"));
        assert_eq!(value("url.template"), Some("/orders/{id}"));
        assert_eq!(value("server.address"), Some("127.0.0.1"));
        assert!(api.ends_with(&format!(":{}", value("server.port").unwrap())));
        assert_eq!(value("http.response.status_code"), Some(status));
        assert_eq!((value("error.type"), value("http.request.resend_count")), (failure, resends));
        assert_eq!(requests[at].status.is_some(), failure.is_some());
    }
    assert!(!format!("{:?}", collector.spans()).contains("private-7"));
}
