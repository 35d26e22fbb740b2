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
