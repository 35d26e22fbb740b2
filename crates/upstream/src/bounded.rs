//! The HTTP client of Streamable HTTP, with one addition: an answer over the limit fails its own call.
//!
//! Without it the transport ends as a whole, and every other call of the server with it.

use std::{collections::HashMap, sync::Arc};

use futures::{StreamExt as _, stream::BoxStream};
use http::{HeaderName, HeaderValue};
use rmcp::{
    model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::{Error as SseError, Sse};

use crate::{http::chain, stdio::too_long};

/// A `reqwest` client for the app of this id.
#[derive(Debug, Clone)]
pub(crate) struct BoundedClient {
    pub(crate) id: Arc<str>,
    pub(crate) inner: reqwest::Client,
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
        self.inner.post_message(uri, message, session, auth, headers).await
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
        let request = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let posting =
            self.inner.post_message_with_max_sse_event_size(uri, message, session, auth, headers, longest);
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
        self.inner.delete_session(uri, session, auth, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failed> {
        self.inner.get_stream(uri, session, last, auth, headers).await
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
        self.inner.get_stream_with_max_sse_event_size(uri, session, last, auth, headers, longest).await
    }
}
