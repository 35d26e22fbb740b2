//! Dynamic client registration (RFC 7591), which the official SDKs use unless a client is configured.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use gatewright_core::read_unique;
use serde_json::{Value, json};
use url::Url;

use super::{
    clients::{AuthMethod, KnownClient, media_type},
    response::{error_response, json_response},
    state::SharedIssuer,
};
use crate::base::{lock, text::random_text, unix_now};

/// Registers every client with valid redirect URIs. If the options name a client, the response is that client, with its secret.
pub(super) async fn register(
    State(issuer): State<SharedIssuer>,
    headers: HeaderMap,
    body: String,
) -> Response {
    let invalid = |problem: &str| error_response(StatusCode::BAD_REQUEST, "invalid_client_metadata", problem);
    if media_type(&headers) != "application/json" {
        return invalid("the body must be application/json");
    }
    let Ok(Value::Object(mut client)) = read_unique(body.as_bytes()) else {
        return invalid("the body must be a JSON object that names no member twice");
    };
    let mut issuer = lock(&issuer);
    let uris = client.get("redirect_uris").and_then(Value::as_array);
    let valid = |uri: &Value| {
        let text = uri.as_str().unwrap_or_default();
        Url::parse(text)
            .is_ok_and(|parsed| parsed.fragment().is_none() && issuer.may_redirect_to(text, &parsed))
    };
    if !uris.is_some_and(|uris| !uris.is_empty() && uris.iter().all(valid)) {
        let description = "`redirect_uris` must hold at least one, and only such as the server allows";
        return error_response(StatusCode::BAD_REQUEST, "invalid_redirect_uri", description);
    }
    let method = client.entry("token_endpoint_auth_method").or_insert_with(|| "client_secret_basic".into());
    if method == "client_secret_basic" || method == "client_secret_post" {
        let secret = issuer.options.client_secret.clone().unwrap_or_else(random_text);
        client.insert("client_secret".into(), secret.into());
        client.insert("client_secret_expires_at".into(), 0.into());
    }
    let id = issuer.options.client_id.clone().unwrap_or_else(|| format!("client-{}", random_text()));
    let known = match KnownClient::from_metadata(&id, &client, AuthMethod::Basic) {
        Ok(known) => known,
        Err(problem) => return invalid(&problem),
    };
    // It would give anyone tokens without a user.
    if known.grants.is_some() && known.may("client_credentials") {
        return invalid("`client_credentials` is not open to clients that register themselves");
    }
    issuer.registered.insert(id.clone(), known);
    client.insert("client_id".into(), id.into());
    client.insert("client_id_issued_at".into(), unix_now().into());
    client.entry("grant_types").or_insert_with(|| json!(["authorization_code"]));
    client.entry("response_types").or_insert_with(|| json!(["code"]));
    client.entry("dpop_bound_access_tokens").or_insert(false.into());
    json_response(StatusCode::CREATED, &Value::Object(client))
}
