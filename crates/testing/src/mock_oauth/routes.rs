//! Routes of the authorization server, and the faults of their responses.

use axum::{
    Router,
    extract::{Request, State},
    http::StatusCode,
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
    token_endpoint,
};
use crate::base::lock;

pub(super) fn routes(issuer: SharedIssuer) -> Router {
    Router::new()
        .route("/.well-known/openid-configuration", get(metadata::metadata))
        .route("/.well-known/oauth-authorization-server", get(metadata::metadata))
        .route("/.well-known/jwks.json", get(metadata::keys))
        .route("/oauth/authorize", get(authorize::authorize).post(authorize::submit))
        .route("/oauth/authorize/submit", post(authorize::submit))
        .route("/oauth/token", post(token_endpoint::token))
        .route("/oauth/register", post(register::register))
        .route("/userinfo", get(metadata::userinfo).post(metadata::userinfo))
        .layer(middleware::from_fn_with_state(issuer.clone(), apply_faults))
        .with_state(issuer)
}

async fn apply_faults(State(issuer): State<SharedIssuer>, request: Request, next: Next) -> Response {
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
        Some(Fault::Garbage) => return "<html>not what you asked for".into_response(),
        _ => {}
    }
    next.run(request).await
}
