//! Routes of the authorization server, and the faults of their responses.

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderName, HeaderValue, Method, StatusCode},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};

use super::{
    authorize,
    fault::{Endpoint, Fault},
    metadata, register,
    response::error_response,
    state::SharedIssuer,
    token_endpoint, token_state,
};
use crate::base::lock;

pub(super) fn routes(issuer: SharedIssuer) -> Router {
    // As of a real server: endpoints that take no cookie are open to scripts of any origin.
    let cross_origin = Router::new()
        .route("/.well-known/openid-configuration", get(metadata::metadata))
        .route("/.well-known/oauth-authorization-server", get(metadata::metadata))
        .route("/.well-known/jwks.json", get(metadata::keys))
        .route("/oauth/token", post(token_endpoint::token))
        .route("/oauth/revoke", post(token_state::revoke))
        .route("/oauth/register", post(register::register))
        .layer(middleware::from_fn(allow_origins));
    Router::new()
        .route("/oauth/authorize", get(authorize::authorize).post(authorize::submit))
        .route("/oauth/authorize/submit", post(authorize::submit))
        .route("/oauth/introspect", post(token_state::introspect))
        .route("/userinfo", get(token_state::userinfo).post(token_state::userinfo))
        .merge(cross_origin)
        .layer(middleware::from_fn_with_state(issuer.clone(), apply_faults))
        .with_state(issuer)
}

/// Lets browsers of any origin use an endpoint (CORS).
async fn allow_origins(request: Request, next: Next) -> Response {
    let is_preflight = request.method() == Method::OPTIONS;
    let mut response =
        if is_preflight { StatusCode::NO_CONTENT.into_response() } else { next.run(request).await };
    let mut set = |name: &'static str, value: &'static str| {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    };
    set("access-control-allow-origin", "*");
    set("access-control-expose-headers", "www-authenticate, dpop-nonce, retry-after");
    if is_preflight {
        set("access-control-allow-methods", "GET, POST");
        set("access-control-allow-headers", "authorization, content-type, dpop, mcp-protocol-version");
    }
    response
}

async fn apply_faults(State(issuer): State<SharedIssuer>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let endpoint = match path.as_str() {
        "/.well-known/jwks.json" => Endpoint::Jwks,
        "/oauth/token" => Endpoint::Token,
        "/oauth/revoke" => Endpoint::Revoke,
        "/oauth/introspect" => Endpoint::Introspect,
        "/oauth/register" => Endpoint::Register,
        "/userinfo" => Endpoint::Userinfo,
        path if path.starts_with("/oauth/authorize") => Endpoint::Authorize,
        _ => Endpoint::Metadata,
    };
    let fault = {
        let mut issuer = lock(&issuer);
        let line = format!("{} {path}", request.method());
        if issuer.options.debug {
            eprintln!("[mock oauth] {line}");
        }
        issuer.requests.push(line);
        issuer.take_fault(endpoint)
    };
    match fault {
        Some(Fault::Slow(delay)) => tokio::time::sleep(delay).await,
        Some(Fault::Status(status)) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return error_response(status, "server_error", "broken on purpose");
        }
        // The authorization endpoint first checks where the error may be sent.
        Some(Fault::Error(error)) if endpoint == Endpoint::Authorize => {
            request.extensions_mut().insert(authorize::ForcedError(error));
        }
        Some(Fault::Error(error)) => {
            return error_response(StatusCode::BAD_REQUEST, &error, "broken on purpose");
        }
        Some(Fault::Garbage) => return "<html>not what you asked for".into_response(),
        _ => {}
    }
    next.run(request).await
}
