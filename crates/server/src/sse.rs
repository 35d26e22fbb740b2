//! The HTTP+SSE transport of MCP 2024-11-05: one stream for what the server says, POSTs for what the client says.
//!
//! Off by default (`http.legacySse`). It gets the same guards and caps as the endpoint of today, and its sessions belong to
//! the principal that opened the stream. A session lives as long as its stream.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use gatewright_core::{AccessMode, Claimant, Era, Gateway, Share, off_thread};
use http::{HeaderValue, Request, Response, StatusCode, header};
use rmcp::{
    RoleServer, ServiceExt,
    model::{ClientJsonRpcMessage, GetExtensions, JsonRpcMessage, ServerJsonRpcMessage},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde::Deserialize;
use serde_json::json;
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior},
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use crate::{
    body::GuardedBody,
    gate::{RequestGate, listens},
    in_flight::{InFlight, Tracked},
    mcp::is_json,
    paths::{MESSAGES, McpPaths},
    refusal,
    session_room::{SessionPlace, SessionRoom},
    sessions::Owner,
    unsent::{self, UnsentBudget, for_caller},
};

/// Messages that wait on their way through one session, each way.
const ROOM: usize = 64;
/// Bytes that an event counts besides its text, while it waits.
const OVERHEAD: usize = 1024;

struct Session {
    owner: Owner,
    inbox: mpsc::Sender<ClientJsonRpcMessage>,
    /// Number of requests of the client that are not answered yet.
    unanswered: Arc<AtomicUsize>,
    in_flight: InFlight,
    /// Asked for on `/sse`.
    mode: Option<AccessMode>,
}

type Sessions = Mutex<HashMap<String, Arc<Session>>>;

/// The two paths of the transport.
pub(crate) struct SseEndpoint {
    gate: Arc<RequestGate>,
    room: Arc<SessionRoom>,
    keep_alive: Duration,
    paths: Arc<McpPaths>,
    sessions: Arc<Sessions>,
    pub(crate) tasks: TaskTracker,
}

impl SseEndpoint {
    pub(crate) fn new(
        gate: Arc<RequestGate>,
        room: Arc<SessionRoom>,
        keep_alive: Duration,
        paths: Arc<McpPaths>,
    ) -> Self {
        Self { gate, room, keep_alive, paths, sessions: Arc::default(), tasks: TaskTracker::new() }
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a session when its stream is gone.
struct EndOfSession {
    id: String,
    sessions: Arc<Sessions>,
    _stop: DropGuard,
    _place: SessionPlace,
}

impl Drop for EndOfSession {
    fn drop(&mut self) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// `GET /sse`: opens a session and streams what the server says.
pub(crate) async fn open(State(endpoint): State<Arc<SseEndpoint>>, request: Request<Body>) -> Response<Body> {
    let (mut parts, mut body) = request.into_parts();
    let Some(path) = endpoint.paths.find(parts.uri.path()) else {
        return refusal::nothing_here(endpoint.paths.main());
    };
    let (permit, owner) = match endpoint.gate.admit(&mut parts, &mut body, true).await {
        Ok(admitted) => admitted,
        Err(refused) => return refused,
    };
    let Ok(id) = unguessable() else { return refusal::busy("no session id can be made; try again") };
    let (inbox, from_client) = mpsc::channel(ROOM);
    let (to_client, outbox) = mpsc::channel(ROOM);
    let caller = Arc::new(endpoint.gate.claimant(&parts));
    let (in_flight, mode) = (InFlight::default(), parts.extensions.get::<AccessMode>().copied());
    let session =
        Arc::new(Session { owner, inbox, unanswered: Arc::default(), in_flight: in_flight.clone(), mode });
    let unanswered = session.unanswered.clone();
    let place = match endpoint.room.take(Claimant::clone(&caller)) {
        Ok(place) => place,
        Err(why) => return refusal::no_room(why),
    };
    endpoint.sessions().insert(id.clone(), session);
    let stop = CancellationToken::new();
    let end = EndOfSession {
        id: id.clone(),
        sessions: endpoint.sessions.clone(),
        _stop: stop.clone().drop_guard(),
        _place: place,
    };
    let unsent = Unsent { budget: endpoint.gate.unsent.clone(), caller: caller.clone(), stop: stop.clone() };
    let inner = SseTransport { from_client, to_client: Some(to_client), unsent };
    let transport = Tracked { inner, in_flight, kept: None };
    endpoint.tasks.spawn(serve(endpoint.gate.gateway.session(), transport, stop));

    let below = path.endpoint.map(|name| format!("/{name}")).unwrap_or_default();
    let first = format!("event: endpoint\ndata: {MESSAGES}{below}?sessionId={id}\n\n");
    let stream = events(first, outbox, unanswered, endpoint.gate.stopping.clone(), endpoint.keep_alive);
    let body =
        GuardedBody::new(Body::from_stream(stream), (permit, end)).until(endpoint.gate.until_ended(&parts));
    let body = body.into_body();
    let mut response = Response::new(body);
    for_caller(&mut response, caller);
    for (name, value) in [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn serve(gateway: Gateway, transport: Tracked<SseTransport>, stop: CancellationToken) {
    match gateway.serve_with_ct(transport, stop).await {
        Ok(running) => {
            let _ = running.waiting().await;
        }
        Err(error) => tracing::debug!(%error, "a session ended before it was initialized"),
    }
}

/// The bytes of the stream. At shutdown it ends as soon as every request is answered.
fn events(
    first: String,
    outbox: mpsc::Receiver<Event>,
    unanswered: Arc<AtomicUsize>,
    stopping: CancellationToken,
    keep_alive: Duration,
) -> impl futures::Stream<Item = Result<Bytes, std::convert::Infallible>> {
    let mut ticks = tokio::time::interval_at(Instant::now() + keep_alive, keep_alive);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    futures::stream::unfold((Some(first), outbox, ticks), move |(first, mut outbox, mut ticks)| {
        let (unanswered, stopping) = (unanswered.clone(), stopping.clone());
        async move {
            let mut event = first;
            while event.is_none() {
                let ending = stopping.is_cancelled();
                if ending && unanswered.load(Ordering::Acquire) == 0 {
                    return None;
                }
                tokio::select! {
                    biased;
                    // Its room is free for the body, which counts it from here on.
                    said = outbox.recv() => event = Some(said?.text),
                    () = stopping.cancelled(), if !ending => {}
                    _ = ticks.tick() => event = Some(": still here\n\n".to_owned()),
                }
            }
            let event = event?;
            if event.starts_with(ANSWER) {
                unanswered.fetch_sub(1, Ordering::AcqRel);
            }
            Some((Ok(Bytes::from(event)), (None, outbox, ticks)))
        }
    })
}

/// Beginning of an event that answers a request; other messages have no space after the colon. Both are sound (HTML, server-
/// sent events: one leading space of a value is dropped).
const ANSWER: &str = "event: message";
const OTHER: &str = "event:message";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Address {
    session_id: String,
}

/// `POST /messages?sessionId=…`: what the client says.
pub(crate) async fn say(
    State(endpoint): State<Arc<SseEndpoint>>,
    address: Result<Query<Address>, QueryRejection>,
    request: Request<Body>,
) -> Response<Body> {
    let (mut parts, mut body) = request.into_parts();
    if endpoint.paths.find(parts.uri.path()).is_none() {
        return refusal::nothing_here(endpoint.paths.main());
    }
    let (permit, owner) = match endpoint.gate.admit(&mut parts, &mut body, false).await {
        Ok(admitted) => admitted,
        Err(refused) => return refused,
    };
    let session =
        address.ok().and_then(|Query(address)| endpoint.sessions().get(&address.session_id).cloned());
    let Some(session) = session.filter(|session| session.owner == owner) else {
        return refusal::session_not_found();
    };
    if let Some(mode) = session.mode {
        parts.extensions.insert(mode);
    }
    if !is_json(&parts.headers) {
        return refusal::wrong_content_type();
    }
    let listens = listens(Era::of_headers(&parts.headers), &parts.headers);
    let bytes = match endpoint.gate.message(&parts, body, listens).await {
        Ok(message) => message.into_call(&mut parts),
        Err(refused) => return refused,
    };
    let body = bytes.clone();
    let read = off_thread(bytes.len(), move || {
        serde_json::from_slice::<ClientJsonRpcMessage>(&body).map_err(|_| refusal::not_a_message(&body))
    });
    let mut message = match read.await {
        Ok(message) => message,
        Err(refused) => return refused,
    };
    // First: whoever leaves while it waits has sent nothing.
    let Ok(inbox) = session.inbox.reserve().await else { return refusal::session_not_found() };
    if let Err(refused) = session.in_flight.receive(&message, Some(Arc::new(permit))) {
        return refusal::invalid(&bytes, &refused);
    }
    match &mut message {
        JsonRpcMessage::Request(request) => {
            session.unanswered.fetch_add(1, Ordering::AcqRel);
            request.request.extensions_mut().insert(parts);
        }
        JsonRpcMessage::Notification(notification) => {
            notification.notification.extensions_mut().insert(parts);
        }
        _ => {}
    }
    inbox.send(message);
    let mut response = Response::new(Body::from("Accepted"));
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// An event that waits for its stream.
struct Event {
    text: String,
    _room: Share,
}

/// Room for the events of a session that its client has not read.
#[derive(Clone)]
struct Unsent {
    budget: Arc<UnsentBudget>,
    caller: Arc<Claimant>,
    /// Ends the session.
    stop: CancellationToken,
}

impl Unsent {
    /// The event of `message`, or of an error in place of an answer that finds no room. A session in which something else finds none ends.
    fn event(&self, message: &ServerJsonRpcMessage) -> std::io::Result<Event> {
        let (event, id) = match message {
            JsonRpcMessage::Response(answer) => (ANSWER, Some(&answer.id)),
            JsonRpcMessage::Error(error) => (ANSWER, error.id.as_ref()),
            _ => (OTHER, None),
        };
        let counted = |text: String| {
            let bytes = text.len();
            let room = self.budget.take(&self.caller, bytes + OVERHEAD);
            room.map(|room| Event { text, _room: room }).map_err(|why| (bytes, why))
        };
        let text = format!("{event}\ndata: {}\n\n", serde_json::to_string(message)?);
        let (bytes, why) = match counted(text) {
            Ok(event) => return Ok(event),
            Err(refused) => refused,
        };
        let error = id.map(|id| refusal::dropped(json!(id), &unsent::reason(bytes, why)));
        let instead = error.and_then(|error| counted(format!("{event}\ndata: {error}\n\n")).ok());
        instead.ok_or_else(|| {
            tracing::info!(
                "a session whose client does not read it is ended; `http.maxUnsentMib` is the limit"
            );
            self.stop.cancel();
            std::io::ErrorKind::QuotaExceeded.into()
        })
    }
}

struct SseTransport {
    from_client: mpsc::Receiver<ClientJsonRpcMessage>,
    to_client: Option<mpsc::Sender<Event>>,
    unsent: Unsent,
}

impl Transport<RoleServer> for SseTransport {
    type Error = std::io::Error;

    fn name() -> Cow<'static, str> {
        "sse".into()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = std::io::Result<()>> + Send + 'static {
        let (to_client, unsent) = (self.to_client.clone(), self.unsent.clone());
        async move {
            let event = unsent.event(&message)?;
            drop(message);
            let gone = std::io::ErrorKind::NotConnected;
            to_client.ok_or(gone)?.send(event).await.map_err(|_| gone.into())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.from_client.recv().await
    }

    async fn close(&mut self) -> std::io::Result<()> {
        self.to_client = None;
        self.from_client.close();
        Ok(())
    }
}

/// 128 random bits as text.
fn unguessable() -> Result<String, getrandom::Error> {
    let mut random = [0u8; 16];
    getrandom::fill(&mut random)?;
    Ok(HEXLOWER.encode(&random))
}
