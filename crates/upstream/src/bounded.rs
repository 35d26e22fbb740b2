//! The HTTP client of Streamable HTTP, with two additions: an answer over the limit fails its own call, and the token of a user goes with
//! every request.
//!
//! Without the first, the transport ends as a whole, and every other call of the server with it. A token that the server refuses is
//! exchanged once for another one before the request fails.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::{StreamExt as _, stream::BoxStream};
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, RequestId, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::{Error as SseError, Sse, SseStream};

use crate::{failure::chain, stdio::too_long, task_tools::TaskTools, user::User};

/// A `reqwest` client for the app of this id.
#[derive(Debug, Clone)]
pub(crate) struct BoundedClient {
    pub(crate) id: Arc<str>,
    pub(crate) inner: reqwest::Client,
    /// Whose token goes with the requests.
    pub(crate) user: Option<User>,
    pub(crate) task_tools: Arc<TaskTools>,
}

impl BoundedClient {
    /// Sends with the user's token, and again with another one when the server refuses it.
    async fn with_token<T, F: Future<Output = Result<T, Failed>>>(
        &self,
        auth: Option<String>,
        send: impl Fn(Option<String>) -> F,
    ) -> Result<T, Failed> {
        let Some(User { principal, credentials }) = &self.user else { return send(auth).await };
        let lost = |why: String| StreamableHttpError::UnexpectedServerResponse(why.into());
        let missing = || lost("its user has not authorized the gateway".to_owned());
        let token = credentials.bearer(&self.id, principal).await.map_err(lost)?.ok_or_else(missing)?;
        match send(Some(token.expose().to_owned())).await {
            Err(StreamableHttpError::AuthRequired(_)) => {
                let other = credentials.refused(&self.id, principal, &token).await.map_err(lost)?;
                send(Some(other.ok_or_else(missing)?.expose().to_owned())).await
            }
            sent => sent,
        }
    }

    /// Posts a `tools/list` and reads of the answer what rmcp's types leave out. `None` for an answer without tools: rmcp is to ask again, and
    /// to judge it.
    async fn list_tools(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        auth: Option<&str>,
        headers: &Headers,
        longest: usize,
    ) -> Result<Option<StreamableHttpPostResponse>, Failed> {
        let mut request = self.inner.post(uri).header(ACCEPT, "text/event-stream, application/json");
        request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(token) = auth {
            request = request.bearer_auth(token);
        }
        let mut response = request.json(message).send().await?;
        let kind =
            response.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes().to_vec()).unwrap_or_default();
        if response.status() != StatusCode::OK {
            return Ok(None);
        }
        if kind.starts_with(b"text/event-stream") {
            let read = Arc::new(AtomicUsize::new(0));
            let bytes = response.bytes_stream().map({
                let read = read.clone();
                move |chunk| {
                    let chunk = chunk.map_err(io::Error::other)?;
                    match read.fetch_add(chunk.len(), Ordering::Relaxed).saturating_add(chunk.len()) > longest
                    {
                        true => Err(io::Error::other("the event exceeded the maximum size")),
                        false => Ok(chunk),
                    }
                }
            });
            let events =
                SseStream::from_bytes_stream(bytes).inspect(move |_| read.store(0, Ordering::Relaxed));
            return Ok(Some(StreamableHttpPostResponse::Sse(self.noting(events.boxed()), None)));
        }
        if !kind.starts_with(b"application/json") {
            return Ok(None);
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > longest {
                return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: longest });
            }
            body.extend_from_slice(&chunk);
        }
        let message = serde_json::from_slice(&body).ok();
        if let Some(message) = &message {
            self.task_tools.note(message, &body);
        }
        Ok(message.map(|message| StreamableHttpPostResponse::Json(message, None)))
    }

    /// The same events, whose lists of tools are read on the way.
    fn noting(&self, events: Events) -> Events {
        let task_tools = self.task_tools.clone();
        let note = move |event: &Result<Sse, SseError>| {
            if let Ok(Sse { data: Some(data), .. }) = event {
                task_tools.read(data.as_bytes());
            }
        };
        events.inspect(note).boxed()
    }
}

type Headers = HashMap<HeaderName, HeaderValue>;
type Failed = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

impl StreamableHttpClient for BoundedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        self.with_token(auth, |auth| {
            let (message, session) = (message.clone(), session.clone());
            self.inner.post_message(uri.clone(), message, session, auth, headers.clone())
        })
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
        longest: usize,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let (request, lists_tools) = match &message {
            JsonRpcMessage::Request(request) => {
                (Some(request.id.clone()), matches!(request.request, ClientRequest::ListToolsRequest(_)))
            }
            _ => (None, false),
        };
        let posting = self.with_token(auth, |auth| {
            let (uri, session) = (uri.clone(), session.clone());
            let (message, headers) = (message.clone(), headers.clone());
            async move {
                if lists_tools
                    && let Some(listed) = self
                        .list_tools(&uri, &message, session.as_deref(), auth.as_deref(), &headers, longest)
                        .await?
                {
                    return Ok(listed);
                }
                let inner = &self.inner;
                inner
                    .post_message_with_max_sse_event_size(uri, message, session, auth, headers, longest)
                    .await
            }
        });
        let Some(request) = request else { return posting.await };
        let instead = {
            let id = self.id.clone();
            move |limit: usize, request: &RequestId| {
                ServerJsonRpcMessage::error(too_long(&id, limit), Some(request.clone()))
            }
        };
        match posting.await {
            Err(StreamableHttpError::ResponseBodyTooLarge { max_size }) => {
                Ok(StreamableHttpPostResponse::Json(instead(max_size, &request), None))
            }
            Ok(StreamableHttpPostResponse::Sse(events, session)) => {
                let events = events.map(move |event| match event {
                    Err(error) if chain(&error).contains("exceeded the maximum size") => {
                        let message = serde_json::to_string(&instead(longest, &request)).unwrap_or_default();
                        Ok(Sse { data: Some(message), ..Sse::default() })
                    }
                    event => event,
                });
                Ok(StreamableHttpPostResponse::Sse(events.boxed(), session))
            }
            other => other,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        self.with_token(auth, |auth| {
            self.inner.delete_session(uri.clone(), session.clone(), auth, headers.clone())
        })
        .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failed> {
        self.with_token(auth, |auth| {
            self.inner.get_stream(uri.clone(), session.clone(), last.clone(), auth, headers.clone())
        })
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        auth: Option<String>,
        headers: Headers,
        longest: usize,
    ) -> Result<Events, Failed> {
        self.with_token(auth, |auth| {
            let (uri, session, last) = (uri.clone(), session.clone(), last.clone());
            self.inner.get_stream_with_max_sse_event_size(uri, session, last, auth, headers.clone(), longest)
        })
        .await
    }
}
