//! The MCP endpoint: what happens to a request before and after `rmcp` has it.
//!
//! `gate` → `rmcp` → refusals as JSON-RPC. Requests of sessions and calls that another instance holds leave through `relay`.

use std::sync::Arc;

use axum::body::Body;
use futures::future::BoxFuture;
use gatewright_core::{AnswerRoom, Claimant, Era, Gateway, Principal, Revision, Share, begin_off_thread};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::Full;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use crate::{
    batch,
    batch_answers::BatchAnswers,
    body::GuardedBody,
    cluster::{Cluster, SESSION_ID},
    config::HttpConfig,
    gate::{RequestGate, listens},
    refusal,
    relay::{Gone, Relay, SessionHome, is_sent_on},
    request_memory::Message,
    session_room::SessionRoom,
    sessions::{OwnedSessions, Owner, on_behalf_of},
    unsent::for_caller,
};

pub(crate) const VERSION_HEADER: &str = "mcp-protocol-version";
pub(crate) const BOTH_KINDS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// The Streamable HTTP endpoint.
pub(crate) struct Endpoint {
    gate: Arc<RequestGate>,
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
    pub(crate) fn gate(&self) -> &RequestGate {
        &self.gate
    }

    pub(crate) fn new(
        gate: Arc<RequestGate>,
        config: &HttpConfig,
        others: Option<Others>,
        end: CancellationToken,
    ) -> Self {
        let cluster = others.as_ref().map(|others| others.cluster.clone());
        let room = SessionRoom::new(config);
        let sessions = OwnedSessions::new(room, config.session_idle, cluster);
        // Host, Origin and the body's length are checked before `rmcp` sees the request.
        let settings = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(config.max_body_bytes)
            .with_sse_keep_alive(Some(config.keep_alive))
            // `sessions` primes the streams of clients that know such events.
            .with_sse_retry(None)
            .with_legacy_session_mode(config.sessions)
            .with_json_response(config.json_response)
            .with_cancellation_token(end);
        let gateway = gate.gateway.clone();
        let service = StreamableHttpService::new(move || Ok(gateway.session()), sessions.clone(), settings);
        Self { gate, service, sessions, with_sessions: config.sessions, others }
    }
}

impl Endpoint {
    /// Returns `true` if a request with these headers may hold a batch: the session is of 2025-03-26, the one revision that has them.
    fn takes_batches(&self, headers: &HeaderMap) -> bool {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let revision = match (self.with_sessions, text(SESSION_ID), text(VERSION_HEADER)) {
            (true, id, _) => id.and_then(|id| self.sessions.revision(id)),
            (false, _, None) => Some(Revision::V2025_03_26),
            (false, _, Some(version)) => Revision::named(version),
        };
        revision == Some(Revision::V2025_03_26)
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
    let era = Era::of_headers(&parts.headers);
    let listens = listens(era, &parts.headers);
    let only_waits = is_get || listens;
    let (permit, owner) = endpoint.gate.admit(&mut parts, &mut body, only_waits).await?;
    let until = match (is_get, only_waits) {
        (true, _) => Some(stream_end(endpoint, endpoint.gate.until_ended(&parts))),
        // What listens is ended by `rmcp` when the server stops.
        (false, true) => Some(endpoint.gate.until_ended(&parts)),
        (false, false) => None,
    };
    let place = Place { permit: Arc::new(permit), more: Vec::new(), until, caller: None, answers: None };
    accept_anything(&mut parts.headers);
    let message = match parts.method {
        Method::POST => {
            if !is_json(&parts.headers) {
                return Err(refusal::wrong_content_type());
            }
            endpoint.gate.message(&parts, body, listens).await?
        }
        _ => Message::default(),
    };
    if only_waits {
        shorten(&mut parts);
    }

    if let Some(others) = &endpoint.others {
        let home = match era.is_stateless() {
            true => others.cluster.instance_of_call(message.text()).await,
            false => others.cluster.other_instance(&parts.headers),
        };
        if let Some(home) = home {
            let terms = endpoint.gate.work_terms(&parts).await;
            parts.extensions.insert(terms);
            match others.relay.pass_on(home, &parts, message.text().clone()).await {
                Ok(response) => return Ok(place.hold(response)),
                // A call is gone with its instance: this one says so.
                Err(Gone) if era.is_stateless() => {}
                Err(Gone) => return Ok(place.hold(refusal::session_not_found())),
            }
        }
    }
    here(endpoint, parts, message, place, owner).await
}

/// The place that a request takes until its answer is sent, and the end of an answer that is a stream.
struct Place {
    permit: Arc<Share>,
    /// Places of the further messages of a batch.
    more: Vec<Arc<Share>>,
    until: Option<BoxFuture<'static, ()>>,
    /// The caller of an answer that is made here.
    caller: Option<Arc<Claimant>>,
    /// The room of what apps answered. A response that is there whole needs it no more.
    answers: Option<AnswerRoom>,
}

impl Place {
    fn hold(self, mut response: Response<Body>) -> Response<Body> {
        if let Some(caller) = self.caller {
            for_caller(&mut response, caller);
        }
        response.map(|body| {
            let is_whole = http_body::Body::size_hint(&body).exact().is_some();
            let answers = self.answers.filter(|_| !is_whole);
            let guarded = GuardedBody::new(body, (self.permit, self.more, answers));
            match self.until {
                Some(end) => guarded.until(end).into_body(),
                None => guarded.into_body(),
            }
        })
    }
}

/// Done when a stream of the older era must end: with `ended`, or when shutdown begins.
fn stream_end(endpoint: &Endpoint, ended: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
    let stopping = endpoint.gate.stopping.clone();
    Box::pin(async move {
        tokio::select! {
            () = stopping.cancelled() => {}
            () = ended => {}
        }
    })
}

impl SessionHome for Endpoint {
    fn gate(&self) -> &RequestGate {
        &self.gate
    }

    fn serve(&self, parts: Parts, message: Message, permit: Share) -> BoxFuture<'_, Response<Body>> {
        Box::pin(async move {
            let Some(owner) = parts.extensions.get::<Principal>().map(Owner::of) else {
                return refusal::session_not_found();
            };
            // The other instance knows the token, and ends the stream with it.
            let until =
                (parts.method == Method::GET).then(|| stream_end(self, Box::pin(std::future::pending())));
            let place =
                Place { permit: Arc::new(permit), more: Vec::new(), until, caller: None, answers: None };
            match here(self, parts, message, place, owner).await {
                Ok(response) | Err(response) => response,
            }
        })
    }
}

async fn here(
    endpoint: &Endpoint,
    parts: Parts,
    message: Message,
    mut place: Place,
    owner: Owner,
) -> Result<Response<Body>, Response<Body>> {
    place.caller = parts.extensions.get::<Arc<Claimant>>().cloned();
    place.answers = parts.extensions.get::<AnswerRoom>().cloned();
    let ends_session = parts.method == Method::DELETE;
    if ends_session
        && endpoint.with_sessions
        && let Some(id) = parts.headers.get(SESSION_ID).and_then(|id| id.to_str().ok())
        && !endpoint.sessions.belongs(id, &owner)
    {
        return Err(refusal::session_not_found());
    }
    if batch::is_batch(message.text()) && endpoint.takes_batches(&parts.headers) {
        return many(endpoint, &parts, &message, place, &owner).await;
    }
    let is_stateless = Era::of_headers(&parts.headers).is_stateless();
    let mut answer = one(endpoint, parts, message, owner, place.permit.clone()).await;
    let (Ok(response) | Err(response)) = &mut answer;
    if response.status() == StatusCode::METHOD_NOT_ALLOWED && endpoint.with_sessions && !is_stateless {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
    }
    if ends_session && response.status() == StatusCode::ACCEPTED {
        // The session is gone when this is sent; clients take 202 for a failure.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    answer.map(|response| place.hold(response))
}

/// Serves the messages of a batch, each as if it had come alone.
async fn many(
    endpoint: &Endpoint,
    parts: &Parts,
    body: &Message,
    mut place: Place,
    owner: &Owner,
) -> Result<Response<Body>, Response<Body>> {
    let messages = batch::messages(body.text()).map_err(|why| refusal::invalid_request(&why))?;
    place.more = endpoint.gate.more_room(&place.permit, messages.len() - 1)?;
    // Each answer counts by itself, before it is one of the batch's.
    let caller = place.caller.take().unwrap_or_else(|| Arc::new(endpoint.gate.claimant(parts)));
    let mut answers = BatchAnswers::new(endpoint.gate.unsent.clone(), caller.clone());
    place.answers = None;
    for (message, permit) in messages.into_iter().zip(std::iter::once(&place.permit).chain(&place.more)) {
        let message = body.part(message.get().as_bytes());
        let (room, mut parts) = (endpoint.gate.answer_room(caller.clone()), parts.clone());
        parts.extensions.insert(room.clone());
        let (Ok(answer) | Err(answer)) = one(endpoint, parts, message, owner.clone(), permit.clone()).await;
        answers.add(answer, room);
    }
    Ok(place.hold(answers.into_response()))
}

/// Has `rmcp` serve one message, which has the place `permit`. Its refusals are made JSON-RPC errors.
async fn one(
    endpoint: &Endpoint,
    mut parts: Parts,
    message: Message,
    owner: Owner,
    permit: Arc<Share>,
) -> Result<Response<Body>, Response<Body>> {
    let opener = endpoint.gate.claimant(&parts);
    let message = message.into_call(&mut parts);
    let (service, bytes, stopping) =
        (endpoint.service.clone(), message.len(), endpoint.gate.stopping.clone());
    // In a box of its own: it takes 6 KB, and every future around it would hold and move three of them.
    let handled = Box::pin(async move {
        let request = Request::from_parts(parts, Full::new(message.clone()));
        let (parts, body) = service.handle(request).await.into_parts();
        match refusal::is_plain(&parts) {
            true => Err(refusal::translate(parts, body, &message, stopping.is_cancelled()).await),
            false => Ok(Response::from_parts(parts, Body::new(body))),
        }
    });
    match begin_off_thread(bytes, Box::pin(on_behalf_of(owner, opener, permit, handled))).await {
        (_, Some(why)) => Err(refusal::no_room(why)),
        (answer, None) => answer,
    }
}

/// Keeps of the head of a stream's request what it may need as long as it is open, and copies that: a head of any length would be kept with a part of it.
fn shorten(parts: &mut Parts) {
    let mut headers = HeaderMap::new();
    for (name, value) in parts.headers.iter().filter(|(name, _)| is_sent_on(name)) {
        if let Ok(copy) = HeaderValue::from_bytes(value.as_bytes()) {
            headers.append(name.clone(), copy);
        }
    }
    parts.headers = headers;
    parts.uri = parts.uri.path().parse().unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_stream_keeps_what_mcp_needs_and_nothing_of_what_it_came_with() {
        let long = "x".repeat(60_000);
        let request = Request::get(format!("/mcp?q={long}"))
            .header("x-filler", &long)
            .header("authorization", "Bearer x")
            .header("mcp-session-id", "7")
            .header("accept", "text/event-stream")
            .header("accept", "*/*");
        let mut parts = request.body(()).unwrap().into_parts().0;
        let before = parts.headers.clone();
        shorten(&mut parts);
        let names: Vec<_> = parts.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            (names.concat(), parts.uri.to_string()),
            ("mcp-session-idacceptaccept".into(), "/mcp".into())
        );
        let address = |headers: &HeaderMap| headers["mcp-session-id"].as_bytes().as_ptr();
        assert_ne!(address(&parts.headers), address(&before), "it is a copy");
    }
}
