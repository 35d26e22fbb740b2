//! The HTTP client of Streamable HTTP, with two additions: an answer over the limit fails its own call, and the token of a user goes with
//! every request.
//!
//! Without the first, the transport ends as a whole, and every other call of the server with it. A token that the server refuses is
//! exchanged once for another one before the request fails.

use std::sync::Arc;

use futures::StreamExt as _;
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::{Error as SseError, Sse};

use crate::{
    failure::chain,
    message_limit::MessageLimit,
    post::{Events, Failed, Headers},
    task_tools::TaskTools,
    user::User,
};

/// Bytes of a message where rmcp names no limit.
const LONGEST: usize = 16 << 20;

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
        self.post_message_with_max_sse_event_size(uri, message, session, auth, headers, LONGEST).await
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
        let limit = MessageLimit::new(self.id.clone(), longest);
        let posting = self.with_token(auth, |auth| {
            let (uri, message, session, headers) = (&uri, &message, session.as_deref(), &headers);
            let limit = &limit;
            async move { self.post(uri, message, session, auth.as_deref(), headers, limit).await }
        });
        let posted = posting.await;
        let Some(request) = request else { return posted };
        match posted {
            Err(StreamableHttpError::ResponseBodyTooLarge { .. }) => {
                let instead = ServerJsonRpcMessage::error(limit.too_long(), Some(request));
                Ok(StreamableHttpPostResponse::Json(instead, None))
            }
            Ok(StreamableHttpPostResponse::Sse(events, session)) => {
                let events = events.map(move |event| match event {
                    Err(error) if chain(&error).contains("exceeded the maximum size") => {
                        let instead = ServerJsonRpcMessage::error(limit.too_long(), Some(request.clone()));
                        let data = serde_json::to_string(&instead).ok();
                        Ok(Sse { data, ..Sse::default() })
                    }
                    event => event.map(|event| limit.apply(event)),
                });
                let events = if lists_tools { self.noting(events.boxed()) } else { events.boxed() };
                Ok(StreamableHttpPostResponse::Sse(events, session))
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
        self.get_stream_with_max_sse_event_size(uri, session, last, auth, headers, LONGEST).await
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
        let getting = self.with_token(auth, |auth| {
            let (uri, session, last) = (uri.clone(), session.clone(), last.clone());
            self.inner.get_stream_with_max_sse_event_size(uri, session, last, auth, headers.clone(), longest)
        });
        let limit = MessageLimit::new(self.id.clone(), longest);
        Ok(getting.await?.map(move |event| event.map(|event| limit.apply(event))).boxed())
    }
}
