//! Discovery: authorization server metadata (RFC 8414), protected resource metadata (RFC 9728) and the public keys.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::get,
};
use gatewright_core::Endpoint;
use http::{StatusCode, header};
use serde_json::{Value, json};
use url::Url;

use super::{authorize::PROMPTS, services::Services};
use crate::{clients::AuthMethod, scopes::USER_SCOPES};

/// `Cache-Control` of metadata and keys: shorter than the time for which a new key is published before it signs.
const CACHE_CONTROL: &str = "public, max-age=300";

/// Algorithms of client assertions (`private_key_jwt`).
const ASSERTION_ALGORITHMS: [&str; 4] = ["RS256", "PS256", "ES256", "EdDSA"];

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

fn cacheable(body: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, CACHE_CONTROL)], body)
        .into_response()
}

pub(super) async fn jwks(State(services): State<Arc<Services>>) -> Response {
    cacheable(services.tokens.keys.snapshot().await.jwks().to_string())
}

async fn server(State(services): State<Arc<Services>>) -> Response {
    cacheable(server_metadata(&services).await.to_string())
}

async fn server_of_endpoint(State(services): State<Arc<Services>>, Path(name): Path<String>) -> Response {
    match services.ctx.deployment.endpoints.get(&name) {
        Some(_) => cacheable(server_metadata(&services).await.to_string()),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn resource(State(services): State<Arc<Services>>) -> Response {
    cacheable(resource_metadata(&services, None).to_string())
}

async fn resource_of_endpoint(State(services): State<Arc<Services>>, Path(name): Path<String>) -> Response {
    match services.ctx.deployment.endpoints.get(&name) {
        Some(endpoint) => cacheable(resource_metadata(&services, Some(&endpoint)).to_string()),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Returns the routes of the well-known paths: at the root, and with the path of the issuer or resource inserted.
pub(super) fn routes(services: &Services) -> Router<Arc<Services>> {
    let deployment = &services.ctx.deployment;
    let path = |text: &str| {
        Url::parse(text).map(|url| url.path().trim_end_matches('/').to_owned()).unwrap_or_default()
    };
    let (issuer, protected) = (path(&deployment.public_url), path(&deployment.resource));
    let mut routes = Router::new();
    for name in ["oauth-authorization-server", "openid-configuration"] {
        routes = routes.route(&format!("/.well-known/{name}"), get(server));
        if !issuer.is_empty() {
            routes = routes.route(&format!("/.well-known/{name}{issuer}"), get(server));
        }
        // Older MCP clients take the resource for the issuer.
        if !protected.is_empty() && protected != issuer {
            routes = routes.route(&format!("/.well-known/{name}{protected}"), get(server));
        }
        let below = format!("/.well-known/{name}{protected}/{{endpoint}}");
        routes = routes.route(&below, get(server_of_endpoint));
    }
    if !issuer.is_empty() {
        routes = routes.route(&format!("{issuer}/.well-known/openid-configuration"), get(server));
    }
    routes = routes.route("/.well-known/oauth-protected-resource", get(resource));
    if !protected.is_empty() {
        routes = routes.route(&format!("/.well-known/oauth-protected-resource{protected}"), get(resource));
    }
    let below = format!("/.well-known/oauth-protected-resource{protected}/{{endpoint}}");
    routes.route(&below, get(resource_of_endpoint))
}

async fn server_metadata(services: &Services) -> Value {
    let ctx = &services.ctx;
    let config = &ctx.config;
    let mut grants = vec!["authorization_code", "client_credentials"];
    if config.refresh.enabled {
        grants.push("refresh_token");
    }
    if config.allow_default_public {
        grants.push("anonymous");
    }
    let mut scopes: Vec<&str> = config.scopes.keys().map(String::as_str).collect();
    let about_users =
        USER_SCOPES.into_iter().filter(|scope| config.refresh.enabled || *scope != "offline_access");
    scopes.extend(about_users.filter(|scope| !config.scopes.contains_key(*scope)));
    let mut body = json!({
        "issuer": ctx.deployment.public_url,
        "authorization_endpoint": ctx.url("/oauth/authorize"),
        "token_endpoint": ctx.url("/oauth/token"),
        "revocation_endpoint": ctx.url("/oauth/revoke"),
        "introspection_endpoint": ctx.url("/oauth/introspect"),
        "userinfo_endpoint": ctx.url("/oauth/userinfo"),
        "end_session_endpoint": ctx.url("/oauth/logout"),
        "pushed_authorization_request_endpoint": ctx.url("/oauth/par"),
        "require_pushed_authorization_requests": config.require_par,
        "jwks_uri": ctx.url("/.well-known/jwks.json"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": grants,
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": services.tokens.keys.snapshot().await.algorithms(),
        "claim_types_supported": ["normal"],
        "claims_supported": CLAIMS,
        "claims_parameter_supported": false,
        "display_values_supported": ["page"],
        "ui_locales_supported": ["en"],
        "code_challenge_methods_supported": ["S256"],
        "scopes_supported": scopes,
        "prompt_values_supported": PROMPTS,
        "token_endpoint_auth_methods_supported": AuthMethod::ALL,
        "token_endpoint_auth_signing_alg_values_supported": ASSERTION_ALGORITHMS,
        "revocation_endpoint_auth_methods_supported": AuthMethod::ALL,
        "revocation_endpoint_auth_signing_alg_values_supported": ASSERTION_ALGORITHMS,
        "introspection_endpoint_auth_methods_supported": &AuthMethod::ALL[1..],
        "introspection_endpoint_auth_signing_alg_values_supported": ASSERTION_ALGORITHMS,
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
        body["registration_endpoint"] = json!(ctx.url("/oauth/register"));
    }
    body
}

/// The metadata of an endpoint; `None` is the main one.
fn resource_metadata(services: &Services, endpoint: Option<&Endpoint>) -> Value {
    let ctx = &services.ctx;
    let title = endpoint.and_then(|endpoint| endpoint.config.title.as_ref());
    json!({
        "resource": ctx.deployment.resource_of(endpoint.map(|endpoint| &*endpoint.name)),
        "authorization_servers": [ctx.deployment.public_url],
        "scopes_supported": ctx.config.scopes.keys().collect::<Vec<_>>(),
        "bearer_methods_supported": ["header"],
        "dpop_signing_alg_values_supported": ["ES256", "EdDSA", "RS256", "PS256"],
        "resource_name": title.unwrap_or(&ctx.deployment.name),
    })
}
