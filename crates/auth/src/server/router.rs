//! The endpoints as a router.

use std::{sync::Arc, time::Instant};

use axum::{
    Router,
    body::Body,
    extract::State,
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use http::{HeaderValue, Method, Request, StatusCode, header};

use super::{
    account, authorize, consent, introspect, login, logout, metadata, openapi, par, passkeys,
    provider_callback, register, revoke, services::Services, token, userinfo,
};
use crate::web::responses::ProviderUnavailable;

/// Returns the router of `/oauth/*` and `/.well-known/*`.
pub(super) fn router(services: Arc<Services>) -> Router {
    let without_cookies = Router::new()
        .route("/oauth/token", post(token::endpoint))
        .route("/oauth/revoke", post(revoke::endpoint))
        .route("/oauth/register", post(register::register))
        .route("/oauth/register/{id}", get(register::read).put(register::replace).delete(register::delete))
        .route("/.well-known/jwks.json", get(metadata::jwks))
        .route("/oauth/openapi.json", get(openapi::endpoint))
        .layer(from_fn(cross_origin));
    let endpoints = Router::new()
        .route("/oauth/authorize", get(authorize::endpoint).post(authorize::endpoint))
        .route("/oauth/login", get(login::show).post(login::submit))
        .route("/oauth/login/passkey", post(passkeys::login::submit))
        .route("/oauth/account", get(account::show).post(account::change))
        .route("/oauth/enrol", get(passkeys::enrol::show).post(passkeys::enrol::finish))
        .route("/oauth/consent", get(login::show).post(consent::submit))
        .route("/oauth/callback", get(provider_callback::endpoint))
        .route("/oauth/par", post(par::endpoint))
        .route("/oauth/introspect", post(introspect::endpoint))
        .route("/oauth/userinfo", get(userinfo::endpoint).post(userinfo::endpoint))
        .route("/oauth/logout", get(logout::show).post(logout::submit))
        .merge(without_cookies);
    let all = below_issuer(&services.ctx.deployment.public_url, endpoints);
    all.merge(metadata::routes(&services).layer(from_fn(cross_origin)))
        .layer(from_fn_with_state(services.clone(), count))
        .with_state(services)
}

/// Returns routes at the root and below the issuer's path, for a proxy that does not remove it.
pub(crate) fn below_issuer<S: Clone + Send + Sync + 'static>(issuer: &str, routes: Router<S>) -> Router<S> {
    let path = url::Url::parse(issuer).map(|url| url.path().trim_end_matches('/').to_owned());
    match path {
        Ok(path) if !path.is_empty() => routes.clone().nest(&path, routes),
        _ => routes,
    }
}

/// Counts the outcome of a request.
async fn count(State(services): State<Arc<Services>>, request: Request<Body>, next: Next) -> Response {
    let (is_token, start) = (request.uri().path().ends_with("/oauth/token"), Instant::now());
    let response = next.run(request).await;
    let metrics = &services.ctx.metrics;
    match response.status() {
        StatusCode::SERVICE_UNAVAILABLE if response.extensions().get::<ProviderUnavailable>().is_none() => {
            metrics.store_failed();
        }
        StatusCode::OK if is_token => metrics.token_issued(start.elapsed()),
        status if is_token && status.is_client_error() => metrics.auth_failed(),
        _ => {}
    }
    response
}

/// Lets browsers of any origin use endpoints that take no cookie.
async fn cross_origin(request: Request<Body>, next: Next) -> Response {
    let is_preflight = request.method() == Method::OPTIONS;
    let mut response =
        if is_preflight { StatusCode::NO_CONTENT.into_response() } else { next.run(request).await };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("www-authenticate, dpop-nonce, retry-after"),
    );
    if is_preflight {
        headers
            .insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, PUT, DELETE"));
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static("authorization, content-type, dpop, mcp-protocol-version"),
        );
    }
    response
}
