//! Live updates over server-sent events.

use std::time::Duration;

use axum::body::Body;
use http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::support::{Site, execution, site};

async fn open(site: &Site, last: Option<&str>) -> http::Response<Body> {
    let mut request = Request::get("/console/live").header(header::HOST, "localhost");
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    site.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

async fn until(body: &mut Body, expected: &str) -> String {
    let mut text = String::new();
    let read = async {
        while !text.contains(expected) {
            let frame = body.frame().await.expect("the stream goes on").unwrap();
            text.push_str(std::str::from_utf8(frame.data_ref().expect("data")).unwrap());
        }
    };
    tokio::time::timeout(Duration::from_secs(10), read).await.expect("it comes in time");
    text
}

#[tokio::test]
async fn a_new_execution_is_told_at_once_and_a_missed_one_after_a_reconnect() {
    let site = site().await;
    let response = open(&site, None).await;
    assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
    let mut body = response.into_body();
    site.history.record(&execution("first\rsecond"));
    let text = until(&mut body, "\n\n").await;
    assert!(
        text.contains("event: run") && text.contains("id: 1") && text.contains("<li data-id=\"1\">"),
        "{text}"
    );
    drop(body);

    site.history.record(&execution("missed"));
    let text = until(&mut open(&site, Some("1")).await.into_body(), "missed").await;
    assert!(!text.contains("first"), "{text}");
}

#[tokio::test]
async fn an_app_that_comes_or_goes_is_told() {
    let site = site().await;
    let mut body = open(&site, None).await.into_body();
    site.running.gateway().registry().remove("evil");
    let text = until(&mut body, "</ul>").await;
    assert!(text.contains("event: apps") && text.contains("crm") && !text.contains("evil"), "{text}");
}

#[tokio::test]
async fn only_so_many_pages_follow_at_once() {
    let site = site().await;
    let mut streams = Vec::new();
    for _ in 0..32 {
        let response = open(&site, None).await;
        assert_eq!(response.status(), StatusCode::OK);
        streams.push(response);
    }
    assert_eq!(open(&site, None).await.status(), StatusCode::SERVICE_UNAVAILABLE);
    streams.pop();
    assert_eq!(open(&site, None).await.status(), StatusCode::OK);
}
