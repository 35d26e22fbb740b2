//! Dynamic client registration (RFC 7591): what the official SDKs do when they were given no client.

use axum::{Json, extract::State as Extracted, http::StatusCode, response::Response};
use serde_json::{Map, Value, json};
use url::Url;

use super::{
    Shared,
    endpoints::{answer, refusal},
};
use crate::{lock, random_text, token::now};

/// Takes every client whose redirect URIs the server allows. When the options name the one client there is, everybody becomes
/// that client, with its secret.
pub(super) async fn register(
    Extracted(state): Extracted<Shared>,
    Json(mut client): Json<Map<String, Value>>,
) -> Response {
    let state = lock(&state);
    let uris = client.get("redirect_uris").and_then(Value::as_array);
    let valid = |uri: &Value| {
        let text = uri.as_str().unwrap_or_default();
        Url::parse(text).is_ok_and(|parsed| state.may_redirect_to(text, &parsed))
    };
    if !uris.is_some_and(|uris| !uris.is_empty() && uris.iter().all(valid)) {
        let why = "`redirect_uris` must hold at least one, and only such as the server allows";
        return refusal(StatusCode::BAD_REQUEST, "invalid_redirect_uri", why);
    }
    let method = client.entry("token_endpoint_auth_method").or_insert_with(|| "client_secret_basic".into());
    if method != "none" {
        let secret = state.options.client_secret.clone().unwrap_or_else(random_text);
        client.insert("client_secret".into(), secret.into());
        client.insert("client_secret_expires_at".into(), 0.into());
    }
    let id = state.options.client_id.clone().unwrap_or_else(|| format!("client-{}", random_text()));
    client.insert("client_id".into(), id.into());
    client.insert("client_id_issued_at".into(), now().into());
    client.entry("grant_types").or_insert_with(|| json!(["authorization_code"]));
    client.entry("response_types").or_insert_with(|| json!(["code"]));
    answer(StatusCode::CREATED, &Value::Object(client))
}
