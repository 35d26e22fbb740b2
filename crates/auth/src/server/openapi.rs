//! The OpenAPI 3.1 document of the endpoints.

use axum::response::{IntoResponse, Response};
use http::header;

/// OpenAPI 3.1 document of the endpoints, served at `/oauth/openapi.json`.
pub const OPENAPI: &str = include_str!("../../openapi.json");

pub(super) async fn endpoint() -> Response {
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "public, max-age=300")], OPENAPI)
        .into_response()
}
