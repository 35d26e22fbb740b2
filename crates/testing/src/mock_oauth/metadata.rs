//! Metadata, key set and user info.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::Response,
};
use serde_json::json;

use super::{
    response::{error_response, json_response},
    state::SharedIssuer,
};
use crate::{
    base::{lock, unix_now},
    token::jwks,
};

pub(super) async fn metadata(State(issuer): State<SharedIssuer>) -> Response {
    let issuer = lock(&issuer);
    let (base, advertised) = (issuer.factory.get_issuer().to_owned(), issuer.advertised());
    let auth_methods = match issuer.options.client_secret {
        Some(_) => json!(["client_secret_basic", "client_secret_post"]),
        None => json!(["none", "client_secret_basic", "client_secret_post"]),
    };
    let mut document = json!({
            "issuer": advertised,
            "authorization_endpoint": format!("{base}/oauth/authorize"),
            "token_endpoint": format!("{base}/oauth/token"),
            "registration_endpoint": format!("{base}/oauth/register"),
            "userinfo_endpoint": format!("{base}/userinfo"),
            "jwks_uri": format!("{base}/.well-known/jwks.json"),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token", "anonymous"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": auth_methods,
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "scopes_supported": ["openid", "profile", "email", "read", "write"],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": true,
    });
    if !issuer.options.protected_resources.is_empty() {
        document["protected_resources"] = json!(issuer.options.protected_resources);
    }
    json_response(StatusCode::OK, &document)
}

pub(super) async fn keys(State(issuer): State<SharedIssuer>) -> Response {
    let issuer = lock(&issuer);
    let keys: Vec<_> = issuer.published.iter().map(AsRef::as_ref).collect();
    json_response(StatusCode::OK, &jwks(&keys))
}

pub(super) async fn userinfo(State(issuer): State<SharedIssuer>, headers: HeaderMap) -> Response {
    let token = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    let issuer = lock(&issuer);
    let claims = token.and_then(|token| issuer.published.iter().find_map(|key| key.verified(token)));
    match claims {
        Some(mut claims) if claims["exp"].as_i64().is_some_and(|expires| expires > unix_now()) => {
            if let Some(claims) = claims.as_object_mut() {
                for claim in ["iss", "aud", "iat", "exp", "jti", "client_id", "scope"] {
                    claims.shift_remove(claim);
                }
            }
            json_response(StatusCode::OK, &claims)
        }
        _ => {
            let mut response = error_response(StatusCode::UNAUTHORIZED, "invalid_token", "no such token");
            let challenge = header::HeaderValue::from_static("Bearer error=\"invalid_token\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
            response
        }
    }
}
