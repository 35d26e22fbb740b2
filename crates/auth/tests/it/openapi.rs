//! The published description of the endpoints.

use axum::body::Body;
use http::{Method, Request};
use serde_json::{Value, json};

use crate::support::site::Site;

fn document() -> Value {
    serde_json::from_str(gatewright_auth::OPENAPI).unwrap()
}

#[tokio::test]
async fn every_described_operation_is_served() {
    let site = Site::with(json!({"dcrEnabled": true, "local": {"passkeys": {"enabled": true}}})).await;
    let document = document();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for name in operations.as_object().unwrap().keys().filter(|name| *name != "parameters") {
            let method = Method::from_bytes(name.to_uppercase().as_bytes()).unwrap();
            let request = Request::builder().method(method).uri(path.replace("{id}", "nobody"));
            let answer = site.send(request.body(Body::empty()).unwrap()).await;
            let described = &operations[name]["responses"];
            assert!(
                described.get(answer.status.as_str()).is_some(),
                "{name} {path} answers {}, which is not described",
                answer.status
            );
            assert!(![404, 405].contains(&answer.status.as_u16()), "{name} {path}: {}", answer.status);
        }
    }
}

#[tokio::test]
async fn every_endpoint_in_the_metadata_is_described() {
    let site = Site::with(json!({"dcrEnabled": true})).await;
    let document = document();
    let metadata = site.server_metadata().await;
    let issuer = metadata["issuer"].as_str().unwrap();
    for (name, value) in metadata.as_object().unwrap() {
        let Some(path) = value.as_str().and_then(|text| text.strip_prefix(issuer)) else { continue };
        assert!(path.is_empty() || document["paths"].get(path).is_some(), "{name} {path} is not described");
    }
}

#[tokio::test]
async fn the_description_is_served() {
    let site = Site::new().await;
    let answer = site.get("/oauth/openapi.json").await;
    assert_eq!(answer.json()["openapi"], "3.1.0");
}
