//! Streamable HTTP, both eras: sessions up to 2025-11-25, stateless from 2026-07-28.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use async_trait::async_trait;
use futures::StreamExt;
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;
use sse_stream::SseStream;
use tokio::task::{AbortHandle, JoinSet};

use super::{Inbox, Incoming, Outgoing, Wire};
use crate::{ClientError, lock};

/// First revision without `initialize` and sessions.
pub(crate) const STATELESS: &str = "2026-07-28";

const BOTH_KINDS: &str = "application/json, text/event-stream";

#[derive(Debug, Clone, Default)]
struct Said {
    token: Option<String>,
    session: Option<String>,
    version: Option<String>,
}

#[derive(Clone)]
pub(crate) struct Endpoint {
    client: reqwest::Client,
    url: String,
    extra: Vec<(String, String)>,
}

pub(crate) struct HttpWire {
    endpoint: Endpoint,
    said: Mutex<Said>,
    inbox: Inbox,
    streams: Mutex<JoinSet<()>>,
    /// Streams that a request has for itself (2026-07-28), by its id.
    open: Mutex<HashMap<String, AbortHandle>>,
}

/// A client that goes straight to `url`, whatever proxy the machine has set.
pub(crate) fn direct_client(url: &str) -> Result<reqwest::Client, ClientError> {
    let mut client = reqwest::Client::builder().no_proxy();
    if url.starts_with("http://") {
        // Reading the system's roots takes tens of milliseconds, and nothing here needs them.
        client = client.tls_certs_only([]);
    }
    client.build().map_err(|error| ClientError::Closed(format!("no HTTP client: {error}")))
}

impl HttpWire {
    pub(crate) fn new(
        url: String,
        token: Option<String>,
        extra: Vec<(String, String)>,
        inbox: Inbox,
    ) -> Result<Self, ClientError> {
        let endpoint = Endpoint { client: direct_client(&url)?, url, extra };
        let said = Mutex::new(Said { token, ..Said::default() });
        Ok(Self { endpoint, said, inbox, streams: Mutex::default(), open: Mutex::default() })
    }
}

impl Endpoint {
    fn request(&self, method: Method, said: &Said) -> reqwest::RequestBuilder {
        let mut request = self.client.request(method, &self.url).header("accept", BOTH_KINDS);
        for (name, value) in &self.extra {
            request = request.header(name, value);
        }
        if let Some(token) = &said.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(session) = &said.session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(version) = &said.version {
            request = request.header("mcp-protocol-version", version);
        }
        request
    }

    /// Reads events until the stream ends, `answer` is among them, or the client is gone.
    async fn follow(self, said: Said, mut response: Response, answer: Option<Value>, inbox: Inbox) {
        let mut last_id: Option<String> = None;
        let mut retry = Duration::from_secs(1);
        loop {
            let mut events = SseStream::from_bytes_stream(response.bytes_stream());
            let mut why = "the event stream ended".to_owned();
            while let Some(event) = events.next().await {
                let event = match event {
                    Ok(event) => event,
                    Err(error) => {
                        why = format!("the event stream broke: {error}");
                        break;
                    }
                };
                last_id = event.id.or(last_id);
                retry = event.retry.map_or(retry, Duration::from_millis);
                let Some(data) = event.data.filter(|data| !data.is_empty()) else { continue };
                match serde_json::from_str::<Value>(&data) {
                    Err(_) => drop(inbox.send(Incoming::Garbage(data))),
                    Ok(message) => {
                        let answered = answer.is_some() && message.get("id") == answer.as_ref();
                        let is_answer = answered && message.get("method").is_none();
                        if inbox.send(Incoming::Message(message)).is_err() || is_answer {
                            return;
                        }
                    }
                }
            }
            // A stream with event ids can be taken up again where it ended (2025-11-25, resumability).
            let unanswered = |why| {
                if let Some(id) = &answer {
                    let _ = inbox.send(Incoming::Unanswered(id.clone(), why));
                }
            };
            let Some(id) = last_id.clone() else { return unanswered(why) };
            tokio::time::sleep(retry).await;
            let again = self.request(Method::GET, &said).header("last-event-id", id).send().await;
            response = match again {
                Ok(again) if again.status().is_success() && is_events(&again) => again,
                Ok(again) => {
                    return unanswered(format!("{why}, and resuming it gave HTTP {}", again.status()));
                }
                Err(error) => return unanswered(format!("{why}, and resuming it failed: {error}")),
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
    let mut causes = String::new();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        causes = cause.to_string();
        source = cause.source();
    }
    ClientError::Closed(format!("{url} cannot be reached: {causes}"))
}

#[async_trait]
impl Wire for HttpWire {
    async fn send(&self, message: Outgoing) -> Result<(), ClientError> {
        let mut said = lock(&self.said).clone();
        if message.method.as_deref() == Some("initialize") {
            (said.session, said.version) = (None, None);
        }
        let mut request =
            self.endpoint.request(Method::POST, &said).header("content-type", "application/json");
        if said.version.as_deref().is_some_and(|version| version >= STATELESS)
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
            lock(&self.said).session = header(&response, "mcp-session-id");
            said = lock(&self.said).clone();
        }
        if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
            let challenge = header(&response, "www-authenticate");
            let body = response.text().await.unwrap_or_default();
            return Err(ClientError::Refused { status: status.as_u16(), challenge, body });
        }
        if status.is_success() && is_events(&response) {
            let stateless = said.version.as_deref().is_some_and(|version| version >= STATELESS);
            let id = message.id.as_ref().filter(|_| stateless).map(ToString::to_string);
            let stream = self.endpoint.clone().follow(said, response, message.id, self.inbox.clone());
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
        let body = response
            .text()
            .await
            .map_err(|error| ClientError::Closed(format!("the answer broke off: {error}")))?;
        let json = serde_json::from_str::<Value>(&body).ok().filter(Value::is_object);
        match json {
            // The session is gone: say so, whatever the body says, so that the client can begin a new one.
            _ if status == StatusCode::NOT_FOUND && said.session.is_some() => {
                Err(ClientError::SessionGone { body })
            }
            Some(mut json) if json.get("jsonrpc").is_some() => {
                // Errors found before the body was read have no id; here it is known whose they are.
                if json.get("id").is_none_or(Value::is_null)
                    && let Some(id) = &message.id
                {
                    json["id"] = id.clone();
                }
                let _ = self.inbox.send(Incoming::Message(json));
                Ok(())
            }
            _ if status.is_success() && message.id.is_none() => Ok(()),
            _ => Err(ClientError::Http { status: status.as_u16(), body }),
        }
    }

    fn set_token(&self, token: Option<String>) -> bool {
        lock(&self.said).token = token;
        true
    }

    fn session_id(&self) -> Option<String> {
        lock(&self.said).session.clone()
    }

    async fn agreed(&self, version: &str) {
        let said = {
            let mut said = lock(&self.said);
            said.version = Some(version.to_owned());
            said.clone()
        };
        if version >= STATELESS || said.session.is_none() {
            return;
        }
        // The stream for what the server says by itself. Servers without one answer 405.
        let (endpoint, inbox) = (self.endpoint.clone(), self.inbox.clone());
        let opening = endpoint.request(Method::GET, &said).send();
        // Some servers send no headers before the first event; those streams are not waited for.
        if let Ok(Ok(response)) = tokio::time::timeout(Duration::from_secs(2), opening).await
            && response.status().is_success()
            && is_events(&response)
        {
            lock(&self.streams).spawn(async move { endpoint.follow(said, response, None, inbox).await });
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
        let said = lock(&self.said).clone();
        if said.session.is_some() {
            let _ = self.endpoint.request(Method::DELETE, &said).send().await;
            lock(&self.said).session = None;
        }
    }
}
