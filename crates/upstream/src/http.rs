//! Servers behind a URL: Streamable HTTP, and the older HTTP+SSE transport (MCP 2024-11-05).

use std::{borrow::Cow, collections::HashMap, future::Future, sync::Arc, time::Duration};

use futures::StreamExt as _;
use gatewright_core::{ConnectionThread, DownReason, off_thread};
use http::{HeaderName, HeaderValue};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::{
        StreamableHttpClientTransport, Transport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    UpstreamConfig,
    arriving::Arriving,
    event_stream::{Events, StreamRequest},
    failure,
    http_client::UpstreamHttpClient,
    http_error::{PostError, RequestError, chain},
    message_limit::MessageLimit,
    open_calls::OpenCalls,
    redactor::Redactor,
    sse_posts::Posts,
    task_tools::TaskTools,
};

/// Time for which an unused connection is kept. Servers such as uvicorn and Node close theirs after 5 s, and a call that is sent at that
/// moment fails.
const IDLE_FOR: Duration = Duration::from_secs(4);

/// The HTTP client of one upstream. It follows no redirect: a redirect could carry credentials to another host.
///
/// With the thread that drives the connections of the app `id`.
pub(crate) fn client(
    id: &Arc<str>,
    config: &UpstreamConfig,
) -> Result<(reqwest::Client, ConnectionThread), String> {
    let mut client = reqwest::Client::builder()
        .connect_timeout(config.connect_timeout)
        .pool_idle_timeout(IDLE_FOR)
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true);
    if config.url.as_deref().is_some_and(|url| url.starts_with("http://")) {
        // Small images have no CA certificates, and nothing here needs them.
        client = client.tls_certs_only([]);
    }
    let client = client.build().map_err(|error| {
        let why = RequestError::from(error);
        format!("the HTTP client cannot be made: {why}; install `ca-certificates`, or name a file with SSL_CERT_FILE")
    })?;
    let connections =
        ConnectionThread::of_app(id).map_err(|error| format!("a thread cannot be started: {error}"))?;
    Ok((client, connections))
}

/// Requests beside calls, of which [`UpstreamConfig::max_concurrency`] may be open: pings, lists, cancellations, answers, and resources that are followed again. They
/// wait for no call: a server that is not asked whether it is there would be taken for one that does not answer.
const OWN_REQUESTS: usize = 64;

/// A Streamable HTTP transport.
pub(crate) fn streamable(
    client: UpstreamHttpClient,
    config: &UpstreamConfig,
    headers: HashMap<HeaderName, HeaderValue>,
) -> StreamableHttpClientTransport<UpstreamHttpClient> {
    let url = config.url.clone().unwrap_or_default();
    let mut transport = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(headers);
    transport.max_concurrent_requests = config.max_concurrency.saturating_add(OWN_REQUESTS);
    transport.max_sse_event_size = config.max_message_bytes;
    StreamableHttpClientTransport::with_client(client, transport)
}

/// The older transport: one long GET for what the server says, a POST for each message to it.
#[derive(Debug)]
pub(crate) struct SseTransport {
    posts: Posts,
    messages: mpsc::Receiver<ServerJsonRpcMessage>,
    _reader: AbortOnDropHandle<()>,
}

impl SseTransport {
    /// Opens the stream and waits for the `endpoint` event.
    pub(crate) async fn connect(
        id: &str,
        (client, connections): (reqwest::Client, ConnectionThread),
        config: &UpstreamConfig,
        headers: HashMap<HeaderName, HeaderValue>,
        task_tools: Arc<TaskTools>,
        calls: Arc<OpenCalls>,
        redactor: &Redactor,
    ) -> Result<Self, DownReason> {
        let base = url::Url::parse(config.url.as_deref().unwrap_or_default()).map_err(|e| e.to_string())?;
        let opening = |error| {
            failure::of_http(&error, redactor)
                .map_summary(|why| format!("its event stream cannot be opened: {why}"))
        };
        let request = StreamRequest { uri: base.as_str(), ..StreamRequest::default() };
        let arriving = Arriving::of_app(&id.into());
        let opened =
            request.open((&client, &connections), &headers, config.max_message_bytes, arriving).await;
        let mut events = opened.map_err(opening)?;
        let endpoint = endpoint(&base, &mut events)
            .await
            .map_err(|why| why.map_details(|details| redactor.line(details, 300)))?;
        let (sender, messages) = mpsc::channel(64);
        let limit = MessageLimit::new(id, config.max_message_bytes, calls);
        let reader: JoinHandle<()> =
            tokio::spawn(read(id.to_owned(), events, limit, sender, task_tools, redactor.clone()));
        let posts = Posts::new((client, connections), endpoint, headers.into_iter().collect());
        Ok(Self { posts, messages, _reader: AbortOnDropHandle::new(reader) })
    }
}

/// The address the server wants messages at. It must be on the host we connected to: credentials go there.
async fn endpoint(base: &url::Url, events: &mut Events) -> Result<url::Url, DownReason> {
    while let Some(event) = events.next().await {
        let event =
            event.map_err(|error| DownReason::from("its event stream broke").with_details(&chain(&error)))?;
        if event.event.as_deref() != Some("endpoint") {
            continue;
        }
        let endpoint = base
            .join(event.data.as_deref().unwrap_or_default().trim())
            .map_err(|error| format!("it named an endpoint that is no address: {error}"))?;
        if endpoint.origin() != base.origin() {
            return Err(
                "it named an endpoint on another host; messages and credentials are not sent there".into()
            );
        }
        return Ok(endpoint);
    }
    Err("its event stream ended before it named an endpoint; is `type: sse` right for this server?".into())
}

async fn read(
    id: String,
    mut events: Events,
    limit: MessageLimit,
    messages: mpsc::Sender<ServerJsonRpcMessage>,
    task_tools: Arc<TaskTools>,
    redactor: Redactor,
) {
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(app.id = %id, error = chain(&error), "the event stream of an app broke");
                return;
            }
        };
        if !matches!(event.event.as_deref(), None | Some("message" | "")) {
            continue;
        }
        let (of_event, task_tools) = (limit.clone(), task_tools.clone());
        let parsed = off_thread(event.data.as_ref().map_or(0, String::len), move || {
            let data = of_event.apply(event).data.filter(|data| !data.trim().is_empty())?;
            let message = serde_json::from_str(&data);
            if let Ok(message) = &message {
                task_tools.note(message, data.as_bytes());
            }
            Some(message)
        });
        let Some(message) = parsed.await else { continue };
        match message {
            Ok(message) => {
                if messages.send(message).await.is_err() {
                    return;
                }
            }
            Err(error) if limit.may_log() => {
                let error = redactor.line(&error.to_string(), 300);
                tracing::warn!(app.id = %id, error, "an app sent an event that is not MCP; it is skipped");
            }
            Err(_) => {}
        }
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = PostError;

    fn name() -> Cow<'static, str> {
        "sse".into()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), PostError>> + Send + 'static {
        self.posts.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let message = self.messages.recv().await?;
        self.posts.received(&message);
        Some(message)
    }

    async fn close(&mut self) -> Result<(), PostError> {
        self.messages.close();
        Ok(())
    }
}
