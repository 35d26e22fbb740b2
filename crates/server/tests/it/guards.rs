//! Host and Origin.

use serde_json::json;

use crate::support::{refused, start};

#[tokio::test]
async fn a_rebound_name_is_refused_and_the_answer_names_the_setting() {
    let rig = start(json!({})).await;
    let (status, _, text) = refused(rig.initialize().header("host", "evil.example")).await;
    assert_eq!(status, 403);
    assert!(text.contains("http.allowedHosts"), "{text}");
    let (status, _, text) = refused(rig.initialize().header("origin", "http://evil.example")).await;
    assert_eq!(status, 403);
    assert!(text.contains("http.allowedOrigins"), "{text}");
    assert_eq!(
        rig.initialize().header("origin", "http://localhost:5173").send().await.unwrap().status(),
        200
    );
}

#[tokio::test]
async fn what_the_configuration_allows_passes() {
    let rig = start(json!({
        "publicUrl": "https://mcp.acme.example",
        "allowedHosts": ["inner.example"], "allowedOrigins": ["https://app.example"],
    }))
    .await;
    let send = |host: &'static str, origin: &'static str| {
        let request = rig.initialize().header("host", host).header("origin", origin).send();
        async { request.await.unwrap().status().as_u16() }
    };
    assert_eq!(send("mcp.acme.example", "https://mcp.acme.example").await, 200);
    assert_eq!(send("inner.example:8080", "https://app.example").await, 200);
    assert_eq!(send("inner.example", "http://app.example").await, 403);
}

#[tokio::test]
async fn every_answer_forbids_sniffing_and_names_no_software() {
    let rig = start(json!({})).await;
    for request in [rig.initialize(), rig.post("x"), rig.http.get(format!("{}/nothing", rig.base))] {
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        assert!(!response.headers().contains_key("server"));
    }
    let stream = rig.initialize().send().await.unwrap();
    assert_eq!(stream.headers()["x-accel-buffering"], "no");
}

#[tokio::test]
async fn pages_of_configured_origins_may_read_answers_and_local_ones_may_not() {
    let rig = start(json!({"allowedOrigins": ["https://app.example"]})).await;
    let preflight = |origin: &'static str| {
        let request = rig.http.request(reqwest::Method::OPTIONS, &rig.url).header("origin", origin);
        request
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "content-type,mcp-session-id")
            .send()
    };
    let response = preflight("https://app.example").await.unwrap();
    assert_eq!(response.status(), 204);
    assert_eq!(response.headers()["access-control-allow-origin"], "https://app.example");
    assert_eq!(response.headers()["access-control-allow-headers"], "content-type,mcp-session-id");
    let local = preflight("http://localhost:5173").await.unwrap();
    assert!(!local.headers().contains_key("access-control-allow-origin"));

    let opened = rig.initialize().header("origin", "https://app.example").send().await.unwrap();
    assert_eq!(opened.headers()["access-control-allow-origin"], "https://app.example");
    assert!(opened.headers()["access-control-expose-headers"].to_str().unwrap().contains("Mcp-Session-Id"));
    let local = rig.initialize().header("origin", "http://localhost:5173").send().await.unwrap();
    assert!(!local.headers().contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn a_path_without_anything_names_the_endpoint() {
    let rig = start(json!({"path": "/tools/mcp"})).await;
    let response = rig.http.post(format!("{}/mcp", rig.base)).send().await.unwrap();
    assert_eq!(response.status(), 404);
    assert!(response.text().await.unwrap().contains("/tools/mcp"));
    assert_eq!(rig.initialize().send().await.unwrap().status(), 200);
}
