//! The first step of every request: the checks of `host_and_origin`, the answers browsers need, and the headers of every response.
//!
//! A page of an origin that is configured (`http.allowedOrigins`, `http.publicUrl`) may read answers (CORS). Pages on
//! loopback may not unless they are listed: any local page could otherwise use a server that asks nobody who they are.

use std::sync::Arc;

use axum::body::Body;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};

use crate::{
    host_and_origin::{self, AllowedSources},
    paths::McpPaths,
    refusal,
};

/// The hosts and origins that are allowed, and the paths that speak MCP.
pub(crate) struct Edge {
    pub(crate) allowed: Arc<AllowedSources>,
    pub(crate) paths: Arc<McpPaths>,
    /// Nothing but the probes is answered over plain HTTP: passwords, codes and tokens must not be sent that way.
    pub(crate) https_only: bool,
}

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const EXPOSED: HeaderValue = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, Retry-After");
const PREFLIGHT_AGE: HeaderValue = HeaderValue::from_static("600");

/// Answers `request` itself, or lets `next` answer. `over_https` says whether its caller used HTTPS.
pub(crate) async fn pass<N, F>(
    edge: &Edge,
    request: Request<Body>,
    over_https: bool,
    next: N,
) -> Response<Body>
where
    N: FnOnce(Request<Body>) -> F,
    F: Future<Output = Response<Body>>,
{
    let path = request.uri().path();
    let is_probe = matches!(path, "/healthz" | "/readyz");
    if !is_probe && let Err(why) = edge.allowed.host(request.uri(), request.headers()) {
        return finish(refusal::unwelcome(&why));
    }
    if let Err(why) = host_and_origin::unambiguous(request.headers()) {
        return finish(refusal::ambiguous(why));
    }
    if edge.https_only && !over_https && !is_probe {
        let is_mcp = edge.paths.find(path).is_some();
        return finish(refusal::plain_http(is_mcp));
    }
    let reader = match request.headers().get(header::ORIGIN) {
        Some(origin) if edge.allowed.may_read(origin) && edge.paths.find(path).is_some() => origin.clone(),
        _ => return finish(next(request).await),
    };
    let mut response = match preflight(request.method(), request.headers()) {
        Some(response) => response,
        None => next(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, reader);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    finish(response)
}

/// The answer to a browser's question whether it may send what its page wants to (Fetch standard, CORS preflight).
fn preflight(method: &Method, headers: &HeaderMap) -> Option<Response<Body>> {
    if method != Method::OPTIONS || !headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let answer = response.headers_mut();
    answer.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    answer.insert(header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_AGE);
    if let Some(wanted) = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        answer.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    Some(response)
}

/// Has browsers use HTTPS for a year. Over plain HTTP it must not be said (RFC 6797 §7.2).
pub(crate) fn stay_with_https(response: &mut Response<Body>) {
    const ONE_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");
    response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, ONE_YEAR);
}

fn finish(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
