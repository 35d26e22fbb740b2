//! Metadata and key set.

use axum::{extract::State, http::StatusCode, response::Response};
use serde_json::json;

use super::{response::json_response, state::SharedIssuer};
use crate::{base::lock, token::jwks};

/// Algorithms of proofs of possession and of client assertions.
const PROOF_ALGORITHMS: [&str; 9] =
    ["ES256", "ES384", "EdDSA", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512"];

pub(super) async fn metadata(State(issuer): State<SharedIssuer>) -> Response {
    let issuer = lock(&issuer);
    let (base, advertised) = (issuer.factory.get_issuer().to_owned(), issuer.advertised());
    let auth_methods = json!(["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]);
    let confidential = json!(["client_secret_basic", "client_secret_post", "private_key_jwt"]);
    let mut document = json!({
            "issuer": advertised,
            "authorization_endpoint": format!("{base}/oauth/authorize"),
            "token_endpoint": format!("{base}/oauth/token"),
            "registration_endpoint": format!("{base}/oauth/register"),
            "userinfo_endpoint": format!("{base}/userinfo"),
            "jwks_uri": format!("{base}/.well-known/jwks.json"),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "revocation_endpoint": format!("{base}/oauth/revoke"),
            "introspection_endpoint": format!("{base}/oauth/introspect"),
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials", "anonymous"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": auth_methods,
            "token_endpoint_auth_signing_alg_values_supported": PROOF_ALGORITHMS,
            "revocation_endpoint_auth_methods_supported": auth_methods,
            "introspection_endpoint_auth_methods_supported": confidential,
            "dpop_signing_alg_values_supported": PROOF_ALGORITHMS,
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [issuer.factory.key().algorithm().name()],
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
