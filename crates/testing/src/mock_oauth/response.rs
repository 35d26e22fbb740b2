//! JSON responses of the endpoints.

use axum::{
    body::Body,
    http::{StatusCode, header},
    response::Response,
};
use serde_json::{Value, json};

/// A JSON response that is not cached (RFC 6749 §5.1).
pub(super) fn json_response(status: StatusCode, body: &Value) -> Response {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CACHE_CONTROL, "no-store")
        .body(Body::from(body.to_string()))
        .expect("the headers are valid")
}

/// An error response (RFC 6749 §5.2).
pub(super) fn error_response(status: StatusCode, error: &str, description: &str) -> Response {
    json_response(status, &json!({"error": error, "error_description": description}))
}
