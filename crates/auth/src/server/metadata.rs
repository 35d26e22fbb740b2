//! What clients discover: server metadata (RFC 8414), resource metadata (RFC 9728) and the public keys.

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    response::{IntoResponse, Response},
    routing::get,
};
use http::header;
use serde_json::{Value, json};
use url::Url;

use super::{Core, authorize::PROMPTS};
use crate::{ceiling::STANDARD, clients::AuthMethod};

/// How long metadata and keys may be kept; shorter than a new key is published before it signs.
const KEEP: &str = "public, max-age=300";

/// Algorithms of assertions that clients prove themselves with (`private_key_jwt`).
const ASSERTIONS: [&str; 4] = ["RS256", "PS256", "ES256", "EdDSA"];

/// Claims of ID tokens and of `userinfo`.
const CLAIMS: [&str; 11] = [
    "iss",
    "sub",
    "aud",
    "exp",
    "iat",
    "auth_time",
    "nonce",
    "at_hash",
    "name",
    "preferred_username",
    "email",
];

fn kept(body: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, KEEP)], body).into_response()
}

pub(super) async fn jwks(State(core): State<Arc<Core>>) -> Response {
    kept(core.ring.snapshot().await.jwks().to_string())
}

async fn server(State(core): State<Arc<Core>>) -> Response {
    kept(core.server_metadata().await.to_string())
}

async fn resource(State(core): State<Arc<Core>>) -> Response {
    kept(core.resource_metadata().to_string())
}

/// The well-known paths: at the root and with the path of the issuer or resource inserted.
pub(super) fn routes(core: &Core) -> Router<Arc<Core>> {
    let path = |text: &str| {
        Url::parse(text).map(|url| url.path().trim_end_matches('/').to_owned()).unwrap_or_default()
    };
    let (issuer, protected) = (path(&core.deployment.public_url), path(&core.deployment.resource));
    let mut routes = Router::new();
    for name in ["oauth-authorization-server", "openid-configuration"] {
        routes = routes.route(&format!("/.well-known/{name}"), get(server));
        if !issuer.is_empty() {
            routes = routes.route(&format!("/.well-known/{name}{issuer}"), get(server));
        }
        // Clients that hold the resource for the issuer, as older MCP clients do.
        if !protected.is_empty() && protected != issuer {
            routes = routes.route(&format!("/.well-known/{name}{protected}"), get(server));
        }
    }
    if !issuer.is_empty() {
        routes = routes.route(&format!("{issuer}/.well-known/openid-configuration"), get(server));
    }
    routes = routes.route("/.well-known/oauth-protected-resource", get(resource));
    if !protected.is_empty() {
        routes = routes.route(&format!("/.well-known/oauth-protected-resource{protected}"), get(resource));
    }
    routes
}

impl Core {
    /// The algorithms that the published keys sign with, those that sign next included.
    pub(super) async fn algorithms(&self) -> Vec<String> {
        let ring = self.ring.snapshot().await;
        let mut held: Vec<String> = ring.keys().iter().map(|key| key.alg.clone()).collect();
        held.sort();
        held.dedup();
        held
    }

    pub(crate) async fn server_metadata(&self) -> Value {
        let config = &self.config;
        let mut grants = vec!["authorization_code", "client_credentials"];
        if config.refresh.enabled {
            grants.push("refresh_token");
        }
        if config.allow_default_public {
            grants.push("anonymous");
        }
        let mut scopes: Vec<&str> = config.scopes.keys().map(String::as_str).collect();
        let about_users =
            STANDARD.into_iter().filter(|scope| config.refresh.enabled || *scope != "offline_access");
        scopes.extend(about_users.filter(|scope| !config.scopes.contains_key(*scope)));
        let mut body = json!({
            "issuer": self.deployment.public_url,
            "authorization_endpoint": self.url("/oauth/authorize"),
            "token_endpoint": self.url("/oauth/token"),
            "revocation_endpoint": self.url("/oauth/revoke"),
            "introspection_endpoint": self.url("/oauth/introspect"),
            "userinfo_endpoint": self.url("/oauth/userinfo"),
            "end_session_endpoint": self.url("/oauth/logout"),
            "pushed_authorization_request_endpoint": self.url("/oauth/par"),
            "require_pushed_authorization_requests": config.require_par,
            "jwks_uri": self.url("/.well-known/jwks.json"),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": grants,
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": self.algorithms().await,
            "claim_types_supported": ["normal"],
            "claims_supported": CLAIMS,
            "claims_parameter_supported": false,
            "display_values_supported": ["page"],
            "ui_locales_supported": ["en"],
            "code_challenge_methods_supported": ["S256"],
            "scopes_supported": scopes,
            "prompt_values_supported": PROMPTS,
            "token_endpoint_auth_methods_supported": AuthMethod::ALL,
            "token_endpoint_auth_signing_alg_values_supported": ASSERTIONS,
            "revocation_endpoint_auth_methods_supported": AuthMethod::ALL,
            "revocation_endpoint_auth_signing_alg_values_supported": ASSERTIONS,
            "introspection_endpoint_auth_methods_supported": &AuthMethod::ALL[1..],
            "introspection_endpoint_auth_signing_alg_values_supported": ASSERTIONS,
            "dpop_signing_alg_values_supported": ["ES256", "EdDSA", "RS256", "PS256"],
            "authorization_response_iss_parameter_supported": true,
            "request_parameter_supported": false,
            "request_uri_parameter_supported": false,
            "require_request_uri_registration": false,
        });
        if config.cimd.enabled {
            body["client_id_metadata_document_supported"] = json!(true);
        }
        if config.dcr_enabled {
            body["registration_endpoint"] = json!(self.url("/oauth/register"));
        }
        body
    }

    pub(crate) fn resource_metadata(&self) -> Value {
        json!({
            "resource": self.deployment.resource,
            "authorization_servers": [self.deployment.public_url],
            "scopes_supported": self.config.scopes.keys().collect::<Vec<_>>(),
            "bearer_methods_supported": ["header"],
            "dpop_signing_alg_values_supported": ["ES256", "EdDSA", "RS256", "PS256"],
            "resource_name": self.deployment.name,
        })
    }
}
