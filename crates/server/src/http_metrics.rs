//! Metrics of the HTTP server: every answer by route and status, and the server's load.
//!
//! Requests that are refused before their MCP method is known (for their caller, size or session) are counted only here.

use std::sync::Arc;

use axum::{
    extract::{MatchedPath, Request},
    middleware::Next,
    response::Response,
};
use http::{Method, StatusCode};

use crate::{connections::Places, mcp::Endpoint};

/// Name for routes and methods that are not the server's own.
const OTHER: &str = "_OTHER";

/// Hears of every answer: method, route and status, each from a bounded set.
pub(crate) type Answered = Arc<dyn Fn(&str, &str, StatusCode) + Send + Sync>;

/// The pattern of the route that answered.
#[derive(Clone)]
pub(crate) struct Route(MatchedPath);

impl Route {
    /// The route of an answer; `_OTHER` where none matched.
    pub(crate) fn of(extensions: &http::Extensions) -> &str {
        extensions.get::<Self>().map_or(OTHER, |route| route.0.as_str())
    }
}

/// Notes on an answer which route gave it.
pub(crate) async fn note_route(request: Request, next: Next) -> Response {
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    if let Some(matched) = matched {
        response.extensions_mut().insert(Route(matched));
    }
    response
}

/// The method, when it is one of HTTP's own (RFC 9110 §9.3): clients could make any number of others.
pub(crate) fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => OTHER,
    }
}

/// Reads the load of a server at any time.
#[derive(Clone)]
pub struct Occupancy {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) places: Arc<Places>,
}

impl std::fmt::Debug for Occupancy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Occupied { connections, requests, streams, sessions, request_bytes, unsent_bytes } = self.now();
        write!(
            f,
            "Occupancy({connections} connections, {requests} requests, {streams} streams, {sessions} sessions, {request_bytes} bytes of requests, {unsent_bytes} bytes unsent)"
        )
    }
}

/// Load of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Occupied {
    /// Open connections, of `http.maxConnections`.
    pub connections: usize,
    /// Requests that are worked on, of `http.maxConcurrency`.
    pub requests: usize,
    /// Open streams of notifications, of `http.maxStreams`.
    pub streams: usize,
    /// Sessions of the older era that this instance holds, of `http.maxSessions`.
    pub sessions: usize,
    /// Bytes of memory that requests over 16 KiB take, of `http.maxRequestMib`.
    pub request_bytes: usize,
    /// Bytes of answers over 16 KiB that clients have not taken, of `http.maxUnsentMib`.
    pub unsent_bytes: usize,
}

impl Occupancy {
    /// Reads the current load.
    pub fn now(&self) -> Occupied {
        let gate = self.endpoint.gate();
        let ((requests, streams), unsent_bytes) = (gate.open(), gate.unsent.taken());
        let request_bytes = gate.requests.taken();
        let (connections, sessions) = (self.places.open(), self.endpoint.sessions.open());
        Occupied { connections, requests, streams, sessions, request_bytes, unsent_bytes }
    }
}
