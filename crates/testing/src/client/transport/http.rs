//! Streamable HTTP: with sessions up to 2025-11-25, stateless from 2026-07-28 on.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use async_trait::async_trait;
use futures::StreamExt;
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;
use sse_stream::SseStream;
use tokio::task::{AbortHandle, JoinSet};

use super::message::{Incoming, MessageSender, Outgoing, SharedHeaders, Transport, is_stateless};
use crate::{
    base::{
        lock,
        net::{direct_client, root_cause},
        text::shorten,
    },
    protocol::ClientError,
    shapes::{Rule, Violation},
};

const ACCEPT: &str = "application/json, text/event-stream";

/// State that goes into the headers of every request.
#[derive(Debug, Clone, Default)]
struct HeaderState {
    token: Option<String>,
    session: Option<String>,
    version: Option<String>,
}

/// The URL of the server, and the headers of the test.
#[derive(Clone)]
struct Endpoint {
    client: reqwest::Client,
    url: String,
    extra: SharedHeaders,
}

pub(crate) struct HttpTransport {
    endpoint: Endpoint,
    state: Mutex<HeaderState>,
    sender: MessageSender,
    streams: Mutex<JoinSet<()>>,
    /// Streams of single requests (2026-07-28), by id.
    open: Mutex<HashMap<String, AbortHandle>>,
}

impl HttpTransport {
    pub(crate) fn new(
        url: String,
        token: Option<String>,
        extra: SharedHeaders,
        sender: MessageSender,
    ) -> Result<Self, ClientError> {
        let endpoint = Endpoint {
            client: direct_client(&url)
                .map_err(|error| ClientError::Closed(format!("no HTTP client: {error}")))?,
            url,
            extra,
        };
        let state = Mutex::new(HeaderState { token, ..HeaderState::default() });
        Ok(Self { endpoint, state, sender, streams: Mutex::default(), open: Mutex::default() })
    }
}

impl HttpTransport {
    /// Reports an answer in JSON whose content type is not `application/json`.
    fn check_content_type(&self, found: Option<&str>, method: Option<&str>) {
        let kind = found.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let problem = match found {
                Some(found) => format!(
                    "the content type of the answer is `{}`, not `application/json`",
                    shorten(found, 80)
                ),
                None => "the answer has no content type; it is `application/json`".to_owned(),
            };
            let method = method.unwrap_or("response");
            let violation = Violation::new(Rule::ContentType, method, "", problem);
            let _ = self.sender.send(Incoming::Violation(violation));
        }
    }
}

impl Endpoint {
    fn request(&self, method: Method, state: &HeaderState) -> reqwest::RequestBuilder {
        let mut request = self.client.request(method, &self.url).header("accept", ACCEPT);
        for (name, value) in &*lock(&self.extra) {
            request = request.header(name, value);
        }
        if let Some(token) = &state.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(session) = &state.session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(version) = &state.version {
            request = request.header("mcp-protocol-version", version);
        }
        request
    }

    /// Reads events until the response to `request` arrives, the stream ends, or the client is gone.
    async fn read_events(
        self,
        state: HeaderState,
        mut response: Response,
        request: Option<Value>,
        sender: MessageSender,
    ) {
        let mut last_id: Option<String> = None;
        let mut retry = Duration::from_secs(1);
        loop {
            let mut events = SseStream::from_bytes_stream(response.bytes_stream());
            let mut reason = "the event stream ended".to_owned();
            let mut is_empty = true;
            while let Some(event) = events.next().await {
                let event = match event {
                    Ok(event) => event,
                    Err(error) => {
                        reason = format!("the event stream broke: {error}");
                        break;
                    }
                };
                is_empty = false;
                last_id = event.id.or(last_id);
                retry = event.retry.map_or(retry, Duration::from_millis);
                let Some(data) = event.data.filter(|data| !data.is_empty()) else { continue };
                match serde_json::from_str::<Value>(&data) {
                    Err(_) => drop(sender.send(Incoming::NotJson(data))),
                    Ok(message) => {
                        let same_id = request.is_some() && message.get("id") == request.as_ref();
                        let is_response = same_id && message.get("method").is_none();
                        if sender.send(Incoming::Message(message)).is_err() || is_response {
                            return;
                        }
                    }
                }
            }
            if is_empty && request.is_some() {
                reason.push_str(
                    " without an event: the answer came as `text/event-stream`; a body in JSON needs the content type `application/json`",
                );
            }
            // A stream with event ids can be resumed where it ended (2025-11-25, resumability).
            let no_response = |reason| {
                if let Some(id) = &request {
                    let _ = sender.send(Incoming::NoResponse(id.clone(), reason));
                }
            };
            let Some(id) = last_id.clone() else { return no_response(reason) };
            tokio::time::sleep(retry).await;
            let resumed = self.request(Method::GET, &state).header("last-event-id", id).send().await;
            response = match resumed {
                Ok(resumed) if resumed.status().is_success() && is_events(&resumed) => resumed,
                Ok(resumed) => {
                    return no_response(format!("{reason}, and resuming it gave HTTP {}", resumed.status()));
                }
                Err(error) => return no_response(format!("{reason}, and resuming it failed: {error}")),
            };
        }
    }
}

fn is_events(response: &Response) -> bool {
    header(response, "content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
}

fn header(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

pub(crate) fn unreachable(url: &str, error: &reqwest::Error) -> ClientError {
    ClientError::Closed(format!("{url} cannot be reached: {}", root_cause(error)))
}

#[async_trait]
impl Transport for HttpTransport {
    async fn send(&self, message: Outgoing) -> Result<(), ClientError> {
        let mut state = lock(&self.state).clone();
        if message.method.as_deref() == Some("initialize") {
            (state.session, state.version) = (None, None);
        }
        let mut request =
            self.endpoint.request(Method::POST, &state).header("content-type", "application/json");
        if state.version.as_deref().is_some_and(is_stateless)
            && let Some(method) = &message.method
        {
            request = request.header("mcp-method", method);
        }
        for (name, value) in &message.headers {
            request = request.header(name, value);
        }
        let response = request
            .body(message.text)
            .send()
            .await
            .map_err(|error| unreachable(&self.endpoint.url, &error))?;
        let status = response.status();
        if message.method.as_deref() == Some("initialize") && status.is_success() {
            lock(&self.state).session = header(&response, "mcp-session-id");
            state = lock(&self.state).clone();
        }
        if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
            let challenge = header(&response, "www-authenticate");
            let body = response.text().await.unwrap_or_default();
            return Err(ClientError::Refused { status: status.as_u16(), challenge, body });
        }
        if status.is_success() && is_events(&response) {
            let stateless = state.version.as_deref().is_some_and(is_stateless);
            let id = message.id.as_ref().filter(|_| stateless).map(ToString::to_string);
            let stream = self.endpoint.clone().read_events(state, response, message.id, self.sender.clone());
            let mut streams = lock(&self.streams);
            while streams.try_join_next().is_some() {}
            let handle = streams.spawn(stream);
            let mut open = lock(&self.open);
            open.retain(|_, stream| !stream.is_finished());
            if let Some(id) = id {
                open.insert(id, handle);
            }
            return Ok(());
        }
        let content_type = header(&response, "content-type");
        let body = response
            .text()
            .await
            .map_err(|error| ClientError::Closed(format!("the answer broke off: {error}")))?;
        let json = serde_json::from_str::<Value>(&body).ok().filter(Value::is_object);
        match json {
            // Whatever the body, so that the client starts a new session.
            _ if status == StatusCode::NOT_FOUND && state.session.is_some() => {
                Err(ClientError::SessionGone { body })
            }
            Some(mut json) if json.get("jsonrpc").is_some() => {
                if status.is_success() {
                    self.check_content_type(content_type.as_deref(), message.method.as_deref());
                }
                // An error found before the body was read has no id; it belongs to this request.
                if json.get("id").is_none_or(Value::is_null)
                    && let Some(id) = &message.id
                {
                    json["id"] = id.clone();
                }
                let _ = self.sender.send(Incoming::Message(json));
                Ok(())
            }
            _ if status.is_success() && message.id.is_none() => Ok(()),
            _ => Err(ClientError::Http { status: status.as_u16(), body }),
        }
    }

    fn set_token(&self, token: Option<String>) -> bool {
        lock(&self.state).token = token;
        true
    }

    fn session_id(&self) -> Option<String> {
        lock(&self.state).session.clone()
    }

    async fn negotiated(&self, version: &str) {
        let state = {
            let mut state = lock(&self.state);
            state.version = Some(version.to_owned());
            state.clone()
        };
        if is_stateless(version) || state.session.is_none() {
            return;
        }
        // The stream for messages that belong to no request. Servers without one respond with 405.
        let (endpoint, inbox) = (self.endpoint.clone(), self.sender.clone());
        let opening = endpoint.request(Method::GET, &state).send();
        // Some servers send no headers before the first event; such streams are given up.
        if let Ok(Ok(response)) = tokio::time::timeout(Duration::from_secs(2), opening).await
            && response.status().is_success()
            && is_events(&response)
        {
            lock(&self.streams)
                .spawn(async move { endpoint.read_events(state, response, None, inbox).await });
        }
    }

    fn is_http(&self) -> bool {
        true
    }

    fn cancel(&self, id: &Value) -> bool {
        let open = lock(&self.open).remove(&id.to_string());
        open.inspect(AbortHandle::abort).is_some()
    }

    async fn close(&self) {
        lock(&self.streams).abort_all();
        let state = lock(&self.state).clone();
        if state.session.is_some() {
            let _ = self.endpoint.request(Method::DELETE, &state).send().await;
            lock(&self.state).session = None;
        }
    }
}
