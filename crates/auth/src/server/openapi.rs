//! The description of the endpoints, for tools (OpenAPI 3.1).

use axum::response::{IntoResponse, Response};
use http::header;

/// The document. It is served at `/oauth/openapi.json`.
pub const OPENAPI: &str = include_str!("../../openapi.json");

pub(super) async fn endpoint() -> Response {
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "public, max-age=300")], OPENAPI)
        .into_response()
}
