//! Access to the listener: allowed host names, and the token.

use std::net::IpAddr;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{Html, IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use gatewright_pages::{Frame, Width};
use http::{HeaderMap, HeaderValue, StatusCode, header, uri::Authority};
use maud::html;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

use super::connections::Trusted;

/// Checks of every request.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) token: Option<SecretString>,
    pub(crate) allowed_hosts: Vec<String>,
}

/// Passes a request on, or rejects it. `/healthz` needs no token: a probe has none.
pub(crate) async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    if !guard.is_host_allowed(request.headers()) {
        let message = "the Host header names another host; reach the listener by its address, or list the name in `admin.allowedHosts`";
        return refusal(StatusCode::MISDIRECTED_REQUEST, "Another host", message, request.headers());
    }
    if request.uri().path() != "/healthz" && !guard.is_authorized(request.headers()) {
        if request.headers().contains_key(header::AUTHORIZATION) {
            tracing::warn!(path = request.uri().path(), "the admin listener was presented a wrong token");
        }
        let realm = HeaderValue::from_static("Basic realm=\"gatewright admin\", charset=\"UTF-8\"");
        let mut response =
            refusal(StatusCode::UNAUTHORIZED, "Sign in", "show `admin.token`", request.headers());
        response.headers_mut().insert(header::WWW_AUTHENTICATE, realm);
        return response;
    }
    if guard.token.is_some()
        && request.uri().path() != "/healthz"
        && let Some(trusted) = request.extensions().get::<Trusted>()
    {
        trusted.set();
    }
    next.run(request).await
}

/// The reason: as a page for browsers, else as text.
fn refusal(status: StatusCode, title: &'static str, why: &'static str, headers: &HeaderMap) -> Response {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !accepts.contains("text/html") {
        return (status, why).into_response();
    }
    let (first, rest) = why.split_at(1);
    let body = html! { h1 { (title) } p { (first.to_uppercase()) (rest) "." } };
    let frame = Frame { title, width: Width::Slim, body, footer: None, script: None };
    let headers = [
        (header::CONTENT_SECURITY_POLICY, frame.policy("'none'")),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    (status, headers, Html(frame.html())).into_response()
}

impl Guard {
    fn is_host_allowed(&self, headers: &HeaderMap) -> bool {
        let text = headers.get(header::HOST).and_then(|value| value.to_str().ok());
        let Some(authority) = text.and_then(|text| text.parse::<Authority>().ok()) else { return false };
        let host = authority.host().trim_matches(['[', ']']);
        // A page cannot make a browser send an address it did not connect to; a name it can.
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<IpAddr>().is_ok()
            || self.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
    }

    fn is_authorized(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let presented =
            headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(secret);
        // Digests are compared: how long that takes says nothing about the secret.
        presented.is_some_and(|presented| Sha256::digest(presented) == Sha256::digest(token.expose_secret()))
    }
}

/// The secret in an `Authorization` header: a bearer token, or the password of any user.
fn secret(value: &str) -> Option<String> {
    let (scheme, rest) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
    Some(text.split_once(':')?.1.to_owned())
}
