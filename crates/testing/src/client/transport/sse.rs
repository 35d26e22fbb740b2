//! The HTTP+SSE transport (2024-11-05): an event stream for incoming messages, one POST per outgoing message.

use std::sync::Mutex;

use async_trait::async_trait;
use futures::StreamExt;
use sse_stream::SseStream;
use tokio::{sync::oneshot, task::JoinHandle};

use super::{
    http::unreachable,
    message::{Incoming, MessageSender, Outgoing, SharedHeaders, Transport},
};
use crate::{
    base::{lock, net::direct_client, text::shorten},
    protocol::ClientError,
    shapes::{Rule, Violation},
};

pub(crate) struct SseTransport {
    client: reqwest::Client,
    post_to: String,
    token: Mutex<Option<String>>,
    extra: SharedHeaders,
    stream: JoinHandle<()>,
}

impl SseTransport {
    /// Opens the stream at `url` and waits for its `endpoint` event.
    pub(crate) async fn open(
        url: &str,
        token: Option<String>,
        extra: SharedHeaders,
        sender: MessageSender,
    ) -> Result<Self, ClientError> {
        let client =
            direct_client(url).map_err(|error| ClientError::Closed(format!("no HTTP client: {error}")))?;
        let mut request = client.get(url).header("accept", "text/event-stream");
        for (name, value) in &*lock(&extra) {
            request = request.header(name, value);
        }
        if let Some(token) = &token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let response = request.send().await.map_err(|error| unreachable(url, &error))?;
        if !response.status().is_success() {
            return Err(http_error(response).await);
        }
        let kind =
            response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.to_ascii_lowercase().starts_with("text/event-stream") {
            let problem =
                format!("the content type of the stream is `{}`, not `text/event-stream`", shorten(kind, 80));
            let violation = Violation::new(Rule::ContentType, "GET", "", problem);
            let _ = sender.send(Incoming::Violation(violation));
        }
        let (endpoint_sender, endpoint) = oneshot::channel();
        let stream = tokio::spawn(read_events(response, endpoint_sender, sender));
        let endpoint = endpoint.await.map_err(|_| {
            ClientError::Closed(format!("{url} sent no `endpoint` event; is it an SSE server?"))
        })?;
        let post_to = url::Url::parse(url)
            .and_then(|base| base.join(&endpoint))
            .map_err(|error| ClientError::Closed(format!("the endpoint `{endpoint}` is no URL: {error}")))?;
        Ok(Self { client, post_to: post_to.into(), token: Mutex::new(token), extra, stream })
    }
}

async fn http_error(response: reqwest::Response) -> ClientError {
    let status = response.status().as_u16();
    let challenge =
        response.headers().get("www-authenticate").and_then(|v| v.to_str().ok()).map(str::to_owned);
    let body = response.text().await.unwrap_or_default();
    match status {
        401 | 403 => ClientError::Refused { status, challenge, body },
        _ => ClientError::Http { status, body },
    }
}

async fn read_events(response: reqwest::Response, endpoint: oneshot::Sender<String>, sender: MessageSender) {
    let mut endpoint = Some(endpoint);
    let mut events = SseStream::from_bytes_stream(response.bytes_stream());
    while let Some(Ok(event)) = events.next().await {
        let Some(data) = event.data else { continue };
        if event.event.as_deref() == Some("endpoint") {
            if let Some(endpoint) = endpoint.take() {
                let _ = endpoint.send(data);
            }
            continue;
        }
        let incoming = serde_json::from_str(&data).map(Incoming::Message).unwrap_or(Incoming::NotJson(data));
        if sender.send(incoming).is_err() {
            return;
        }
    }
    let _ = sender.send(Incoming::Closed("the event stream ended".into()));
}

#[async_trait]
impl Transport for SseTransport {
    async fn send(&self, message: Outgoing) -> Result<(), ClientError> {
        let mut request = self.client.post(&self.post_to).header("content-type", "application/json");
        for (name, value) in &*lock(&self.extra) {
            request = request.header(name, value);
        }
        if let Some(token) = lock(&self.token).clone() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let response =
            request.body(message.text).send().await.map_err(|error| unreachable(&self.post_to, &error))?;
        if response.status().is_success() { Ok(()) } else { Err(http_error(response).await) }
    }

    fn set_token(&self, token: Option<String>) -> bool {
        *lock(&self.token) = token;
        true
    }

    fn session_id(&self) -> Option<String> {
        let url = url::Url::parse(&self.post_to).ok()?;
        let is_session = |name: &str| matches!(name, "sessionId" | "session_id");
        url.query_pairs().find(|(name, _)| is_session(name)).map(|(_, value)| value.into_owned())
    }

    async fn close(&self) {
        self.stream.abort();
    }
}

impl Drop for SseTransport {
    fn drop(&mut self) {
        self.stream.abort();
    }
}
