//! The MCP endpoint: what happens to a request before and after `rmcp` has it.
//!
//! Origin → room → authentication → body → scopes → `rmcp` → refusals as JSON-RPC. Host is checked for the whole server.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use futures::future::BoxFuture;
use gatewright_core::{Gateway, Principal, Scopes};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::Full;
use rmcp::{
    model::ProtocolVersion,
    transport::{StreamableHttpServerConfig, StreamableHttpService},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    auth::Authenticator,
    body::{self, Held, Unread},
    cluster::{Cluster, SESSION_ID},
    config::HttpConfig,
    guard::Guard,
    refusal,
    relay::Relay,
    sessions::{OwnedSessions, Owner, on_behalf_of},
};

const BOTH_KINDS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// What the endpoints of both transports share.
pub(crate) struct Door {
    pub(crate) gateway: Arc<Gateway>,
    guard: Arc<Guard>,
    authenticator: Option<Arc<dyn Authenticator>>,
    calls: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    /// Permits of `calls` and `streams`.
    room: (usize, usize),
    pub(crate) most_bytes: usize,
    pub(crate) body_time: Duration,
    /// Cancelled when shutdown begins: streams that only wait end.
    pub(crate) stopping: CancellationToken,
    /// Reads on refused bodies while their answers are sent.
    pub(crate) lingering: TaskTracker,
}

impl Door {
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        config: &HttpConfig,
        guard: Arc<Guard>,
        authenticator: Option<Arc<dyn Authenticator>>,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            gateway,
            guard,
            authenticator,
            calls: Arc::new(Semaphore::new(config.max_concurrency)),
            streams: Arc::new(Semaphore::new(config.max_streams)),
            room: (config.max_concurrency, config.max_streams),
            most_bytes: config.max_body_bytes,
            body_time: config.body_read_timeout,
            stopping,
            lingering: TaskTracker::new(),
        }
    }

    /// Requests that are worked on, and streams that are open.
    pub(crate) fn open(&self) -> (usize, usize) {
        let taken = |room: usize, left: &Semaphore| room.saturating_sub(left.available_permits());
        (taken(self.room.0, &self.calls), taken(self.room.1, &self.streams))
    }

    /// Whether nobody has to say who they are.
    pub(crate) fn is_open_to_all(&self) -> bool {
        self.authenticator.is_none()
    }

    /// Checks where the request comes from, makes room for it, and puts its [`Principal`] on it.
    pub(crate) async fn admit(
        &self,
        parts: &mut Parts,
        body: &mut Body,
        stream: bool,
    ) -> Result<(OwnedSemaphorePermit, Owner), Response<Body>> {
        self.guard.origin(&parts.headers).map_err(|why| refusal::unwelcome(&why))?;
        let principal = match &self.authenticator {
            None => Principal::local(),
            Some(authenticator) => match authenticator.authenticate(parts).await {
                Ok(principal) => principal,
                Err(refused) => {
                    let request = body::peek(std::mem::take(body)).await;
                    return Err(refusal::by_authenticator(refused, &request).await);
                }
            },
        };
        let owner = Owner::of(&principal);
        parts.extensions.insert(principal);
        // Last: whoever is still to be told apart, which may take a question to a provider, keeps nobody's place.
        let permit = self.room(stream)?;
        Ok((permit, owner))
    }

    /// Makes room for a request.
    pub(crate) fn room(&self, stream: bool) -> Result<OwnedSemaphorePermit, Response<Body>> {
        let (room, full) = match stream {
            true => (&self.streams, "too many streams are open; `http.maxStreams` is the limit"),
            false => (&self.calls, "too many requests at once; `http.maxConcurrency` is the limit"),
        };
        room.clone().try_acquire_owned().map_err(|_| refusal::busy(full))
    }

    /// Done when a stream that `parts` opened must end with its caller's token.
    pub(crate) fn until_ended(&self, parts: &Parts) -> BoxFuture<'static, ()> {
        match &self.authenticator {
            Some(authenticator) => authenticator.until_ended(parts),
            None => Box::pin(std::future::pending()),
        }
    }

    /// Reads a message and refuses a request whose scopes its caller lacks.
    pub(crate) async fn message(&self, parts: &Parts, body: Body) -> Result<Bytes, Response<Body>> {
        if body::is_declared_too_long(&body, self.most_bytes) {
            self.lingering.spawn(body::linger(body));
            return Err(refusal::unread(Unread::TooLong, self.most_bytes));
        }
        let message = body::read(body, self.most_bytes, self.body_time)
            .await
            .map_err(|why| refusal::unread(why, self.most_bytes))?;
        if let Some(authenticator) = &self.authenticator
            && let Some(principal) = parts.extensions.get::<Principal>()
            && principal.scopes != Scopes::All
        {
            let missing = self.gateway.missing_scopes(principal, &message).await;
            if !missing.is_empty() {
                tracing::info!(missing = missing.join(" "), "a request was refused for its caller's scopes");
                let refused = authenticator.insufficient_scope(&missing);
                return Err(refusal::by_authenticator(refused, &message).await);
            }
        }
        Ok(message)
    }
}

/// The Streamable HTTP endpoint.
pub(crate) struct Endpoint {
    door: Arc<Door>,
    service: StreamableHttpService<Gateway, OwnedSessions>,
    pub(crate) sessions: Arc<OwnedSessions>,
    with_sessions: bool,
    others: Option<Others>,
}

/// The other instances.
#[derive(Clone)]
pub(crate) struct Others {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) relay: Arc<Relay>,
}

impl Endpoint {
    pub(crate) fn door(&self) -> &Door {
        &self.door
    }

    pub(crate) fn new(
        door: Arc<Door>,
        config: &HttpConfig,
        others: Option<Others>,
        end: CancellationToken,
    ) -> Self {
        let cluster = others.as_ref().map(|others| others.cluster.clone());
        let sessions = Arc::new(OwnedSessions::new(config.max_sessions, config.session_idle, cluster));
        // Host, Origin and the body's length are checked before `rmcp` sees the request.
        let settings = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(config.max_body_bytes)
            .with_sse_keep_alive(Some(config.keep_alive))
            .with_legacy_session_mode(config.sessions)
            .with_json_response(config.json_response)
            .with_cancellation_token(end);
        let gateway = door.gateway.clone();
        let service = StreamableHttpService::new(move || Ok(gateway.session()), sessions.clone(), settings);
        Self { door, service, sessions, with_sessions: config.sessions, others }
    }
}

/// Serves one request of the MCP endpoint.
pub(crate) async fn serve(endpoint: &Endpoint, request: Request<Body>) -> Response<Body> {
    match answer(endpoint, request).await {
        Ok(response) | Err(response) => response,
    }
}

async fn answer(endpoint: &Endpoint, request: Request<Body>) -> Result<Response<Body>, Response<Body>> {
    let (mut parts, mut body) = request.into_parts();
    let is_get = parts.method == Method::GET;
    let modern = is_modern(&parts.headers);
    // `rmcp` refuses a request of this era whose header does not name its method.
    let listens =
        modern && parts.headers.get("mcp-method").is_some_and(|name| name == "subscriptions/listen");
    let only_waits = is_get || listens;
    let (permit, owner) = endpoint.door.admit(&mut parts, &mut body, only_waits).await?;
    let until = match (is_get, only_waits) {
        (true, _) => Some(stream_end(endpoint, endpoint.door.until_ended(&parts))),
        // What listens is ended by `rmcp` when the server stops.
        (false, true) => Some(endpoint.door.until_ended(&parts)),
        (false, false) => None,
    };
    let place = Place { permit, until };
    accept_anything(&mut parts.headers);
    let message = match parts.method {
        Method::POST => {
            if !is_json(&parts.headers) {
                return Err(refusal::wrong_content_type());
            }
            endpoint.door.message(&parts, body).await?
        }
        _ => Bytes::new(),
    };

    if let Some(others) = endpoint.others.as_ref().filter(|_| !modern)
        && let Some(home) = others.cluster.elsewhere(&parts.headers)
    {
        return Ok(place.hold(others.relay.pass_on(home, &parts, message).await));
    }
    here(endpoint, parts, message, place, owner).await
}

/// The place that a request takes until its answer is sent, and the end of an answer that is a stream.
struct Place {
    permit: OwnedSemaphorePermit,
    until: Option<BoxFuture<'static, ()>>,
}

impl Place {
    fn hold(self, response: Response<Body>) -> Response<Body> {
        response.map(|body| {
            let held = Held::new(body, self.permit);
            match self.until {
                Some(end) => held.until(end).into_body(),
                None => held.into_body(),
            }
        })
    }
}

/// Done when a stream of the older era must end: with `ended`, or when shutdown begins.
fn stream_end(endpoint: &Endpoint, ended: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
    let stopping = endpoint.door.stopping.clone();
    Box::pin(async move {
        tokio::select! {
            () = stopping.cancelled() => {}
            () = ended => {}
        }
    })
}

/// Serves a request that another instance admitted, of a session that is held here.
pub(crate) async fn serve_here(
    endpoint: &Endpoint,
    parts: Parts,
    message: Bytes,
    permit: OwnedSemaphorePermit,
) -> Response<Body> {
    let Some(owner) = parts.extensions.get::<Principal>().map(Owner::of) else {
        return refusal::session_not_found();
    };
    // The other instance knows the token, and ends the stream with it.
    let until = (parts.method == Method::GET).then(|| stream_end(endpoint, Box::pin(std::future::pending())));
    match here(endpoint, parts, message, Place { permit, until }, owner).await {
        Ok(response) | Err(response) => response,
    }
}

async fn here(
    endpoint: &Endpoint,
    parts: Parts,
    message: Bytes,
    place: Place,
    owner: Owner,
) -> Result<Response<Body>, Response<Body>> {
    let modern = is_modern(&parts.headers);
    let ends_session = parts.method == Method::DELETE;
    if ends_session
        && endpoint.with_sessions
        && let Some(id) = parts.headers.get(SESSION_ID).and_then(|id| id.to_str().ok())
        && !endpoint.sessions.belongs(id, &owner)
    {
        return Err(refusal::session_not_found());
    }
    let request = Request::from_parts(parts, Full::new(message.clone()));
    // In a box: it takes 6 KB, and every future around it would hold and move three of them.
    let (response, met_the_cap) = on_behalf_of(owner, Box::pin(endpoint.service.handle(request))).await;
    if met_the_cap {
        return Err(refusal::too_many_sessions());
    }
    let (mut parts, body) = response.into_parts();
    if parts.status == StatusCode::METHOD_NOT_ALLOWED && endpoint.with_sessions && !modern {
        parts.headers.insert(header::ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
    }
    if ends_session && parts.status == StatusCode::ACCEPTED {
        // The session is gone when this is sent; clients take 202 for a failure.
        parts.status = StatusCode::NO_CONTENT;
    }
    if refusal::is_plain(&parts) {
        return Err(refusal::translate(parts, body, &message).await);
    }
    Ok(place.hold(Response::from_parts(parts, Body::new(body))))
}

/// Whether the request says it is of the era without sessions. Versions are dates: they compare as text.
fn is_modern(headers: &HeaderMap) -> bool {
    let version = headers.get("mcp-protocol-version").and_then(|value| value.to_str().ok());
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Clients that take anything, or do not say, take what MCP sends.
fn accept_anything(headers: &mut HeaderMap) {
    let anything = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains("*/*"));
    let mut accepted = headers.get_all(header::ACCEPT).iter();
    if !headers.contains_key(header::ACCEPT) || accepted.any(anything) {
        headers.insert(header::ACCEPT, BOTH_KINDS);
    }
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}
