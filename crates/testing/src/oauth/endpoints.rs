//! Routes, metadata, keys and user info.

use axum::{
    Router,
    body::Body,
    extract::{Request, State as Extracted},
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};

use super::{Endpoint, Fault, Shared, State, authorize, grants, pause, register};
use crate::{lock, token::jwks};

pub(super) fn routes(state: Shared) -> Router {
    Router::new()
        .route("/.well-known/openid-configuration", get(metadata))
        .route("/.well-known/oauth-authorization-server", get(metadata))
        .route("/.well-known/jwks.json", get(keys))
        .route("/oauth/authorize", get(authorize::ask).post(authorize::submit))
        .route("/oauth/authorize/submit", post(authorize::submit))
        .route("/oauth/token", post(grants::token))
        .route("/oauth/register", post(register::register))
        .route("/userinfo", get(userinfo).post(userinfo))
        .layer(middleware::from_fn_with_state(state.clone(), faulty))
        .with_state(state)
}

impl State {
    /// The issuer to show: its own, or the wrong one a test wants.
    pub(super) fn issuer(&self) -> String {
        let wrong = self.faults.iter().rev().find_map(|(_, fault, _)| match fault {
            Fault::WrongIssuer(issuer) => Some(issuer.clone()),
            _ => None,
        });
        wrong.unwrap_or_else(|| self.factory.get_issuer().to_owned())
    }

    pub(super) fn has_fault(&self, wanted: &Fault) -> bool {
        self.faults.iter().any(|(_, fault, _)| fault == wanted)
    }

    pub(super) fn wrong_audience(&self) -> Option<String> {
        self.faults.iter().rev().find_map(|(_, fault, _)| match fault {
            Fault::WrongAudience(audience) => Some(audience.clone()),
            _ => None,
        })
    }

    /// Uses up one fault of an endpoint that breaks its answer.
    fn take_fault(&mut self, endpoint: Endpoint) -> Option<Fault> {
        let breaks = |fault: &Fault| matches!(fault, Fault::Slow(_) | Fault::Status(_) | Fault::Garbage);
        let at = self.faults.iter().rposition(|(of, fault, times)| {
            (*of == endpoint || *of == Endpoint::All) && breaks(fault) && *times != Some(0)
        })?;
        let (_, fault, times) = &mut self.faults[at];
        *times = times.map(|times| times - 1);
        Some(fault.clone())
    }
}

async fn faulty(Extracted(state): Extracted<Shared>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let endpoint = match path.as_str() {
        "/.well-known/jwks.json" => Endpoint::Jwks,
        "/oauth/token" => Endpoint::Token,
        "/oauth/register" => Endpoint::Register,
        "/userinfo" => Endpoint::Userinfo,
        path if path.starts_with("/oauth/authorize") => Endpoint::Authorize,
        _ => Endpoint::Metadata,
    };
    let fault = {
        let mut state = lock(&state);
        let line = format!("{} {path}", request.method());
        if state.options.debug {
            eprintln!("[mock oauth] {line}");
        }
        state.requests.push(line);
        state.take_fault(endpoint)
    };
    match fault {
        Some(Fault::Slow(delay)) => pause(delay).await,
        Some(Fault::Status(status)) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return refusal(status, "server_error", "broken on purpose");
        }
        Some(Fault::Garbage) => return "<html>not what you asked for".into_response(),
        _ => {}
    }
    next.run(request).await
}

pub(super) fn answer(status: StatusCode, body: &Value) -> Response {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CACHE_CONTROL, "no-store")
        .body(Body::from(body.to_string()))
        .expect("the headers are valid")
}

pub(super) fn refusal(status: StatusCode, error: &str, description: &str) -> Response {
    answer(status, &json!({"error": error, "error_description": description}))
}

async fn metadata(Extracted(state): Extracted<Shared>) -> Response {
    let state = lock(&state);
    let (base, issuer) = (state.factory.get_issuer().to_owned(), state.issuer());
    let auth_methods = match state.options.client_secret {
        Some(_) => json!(["client_secret_basic", "client_secret_post"]),
        None => json!(["none", "client_secret_basic", "client_secret_post"]),
    };
    let mut document = json!({
            "issuer": issuer,
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
    if !state.options.protected_resources.is_empty() {
        document["protected_resources"] = json!(state.options.protected_resources);
    }
    answer(StatusCode::OK, &document)
}

async fn keys(Extracted(state): Extracted<Shared>) -> Response {
    let state = lock(&state);
    let keys: Vec<_> = state.published.iter().map(AsRef::as_ref).collect();
    answer(StatusCode::OK, &jwks(&keys))
}

async fn userinfo(Extracted(state): Extracted<Shared>, headers: HeaderMap) -> Response {
    let token = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    let state = lock(&state);
    let claims = token.and_then(|token| state.published.iter().find_map(|key| key.verified(token)));
    match claims {
        Some(mut claims) if claims["exp"].as_i64().is_some_and(|expires| expires > crate::token::now()) => {
            if let Some(claims) = claims.as_object_mut() {
                for technical in ["iss", "aud", "iat", "exp", "jti", "client_id", "scope"] {
                    claims.shift_remove(technical);
                }
            }
            answer(StatusCode::OK, &claims)
        }
        _ => {
            let mut response = refusal(StatusCode::UNAUTHORIZED, "invalid_token", "no such token");
            let challenge = header::HeaderValue::from_static("Bearer error=\"invalid_token\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
            response
        }
    }
}
