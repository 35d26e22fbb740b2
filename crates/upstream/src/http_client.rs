//! The HTTP client of Streamable HTTP, with two additions: an answer over the limit fails its own call, and the token of a user goes with
//! every request.
//!
//! Without the first, the transport ends as a whole, and every other call of the server with it. A token that the server refuses is
//! exchanged once for another one before the request fails.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::{StreamExt as _, TryFutureExt as _};
use gatewright_core::ConnectionThread;
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, JsonRpcMessage, RequestId,
        ServerJsonRpcMessage,
    },
    transport::streamable_http_client::{
        StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::{Error as SseError, Sse};

use crate::{
    arriving::Arriving,
    event_stream::{Events, NO_ROOM, StreamRequest, TOO_LONG},
    failure::failed,
    http_error::{Failed, HttpError, chain, without_url},
    message_limit::MessageLimit,
    open_calls::OpenCalls,
    post::{Headers, Sent},
    sessions::Sessions,
    task_tools::TaskTools,
    user::User,
};

/// Bytes of a message where rmcp names no limit.
const LONGEST: usize = 16 << 20;

/// A `reqwest` client for the app of this id.
#[derive(Debug, Clone)]
pub(crate) struct UpstreamHttpClient {
    pub(crate) id: Arc<str>,
    pub(crate) inner: reqwest::Client,
    pub(crate) connections: ConnectionThread,
    /// Whose token goes with the requests.
    pub(crate) user: Option<User>,
    pub(crate) task_tools: Arc<TaskTools>,
    pub(crate) calls: Arc<OpenCalls>,
    pub(crate) sessions: Sessions,
}

impl UpstreamHttpClient {
    /// Sends with the user's token, and again with another one when the server refuses it.
    async fn with_token<T, F: Future<Output = Result<T, Failed>>>(
        &self,
        auth: Option<String>,
        send: impl Fn(Option<String>) -> F,
    ) -> Result<T, Failed> {
        let Some(User { principal, credentials }) = &self.user else { return send(auth).await };
        let lost = |why: String| Failed::Client(HttpError::NoToken(why));
        let missing = || lost("its user has not authorized the gateway".to_owned());
        let token = credentials.bearer(&self.id, principal, &[]).await.map_err(lost)?.ok_or_else(missing)?;
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

/// The JSON answer to a request, or an error in its place, so that nobody waits for one that never comes.
fn answer_to(id: &str, answer: ServerJsonRpcMessage, request: RequestId) -> ServerJsonRpcMessage {
    match answer {
        JsonRpcMessage::Response(response) if response.id == request => JsonRpcMessage::Response(response),
        // A server that could not read the request does not know its id.
        JsonRpcMessage::Error(error) => ServerJsonRpcMessage::error(error.error, Some(request)),
        _ => bad_answer(id, "with a message that is no answer to the request", request),
    }
}

fn bad_answer(id: &str, how: &str, request: RequestId) -> ServerJsonRpcMessage {
    let message = format!("the server behind `{id}` answered a request {how}");
    ServerJsonRpcMessage::error(failed(message, "UPSTREAM_BAD_ANSWER"), Some(request))
}

impl StreamableHttpClient for UpstreamHttpClient {
    type Error = HttpError;

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
        let sent = Sent::of(&message);
        let lists_tools = matches!(&message, JsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::ListToolsRequest(_)));
        let is_initialized = matches!(&message, JsonRpcMessage::Notification(notification)
            if matches!(notification.notification, ClientNotification::InitializedNotification(_)));
        let text = Mutex::new(Some(Bytes::from(serde_json::to_vec(&message)?)));
        drop(message);
        let has_user = self.user.is_some();
        // Only a request with the token of a user is sent again, if that is refused: others are not kept while they are on their way.
        let text = || {
            let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
            if has_user { text.clone() } else { text.take() }.unwrap_or_default()
        };
        let limit = MessageLimit::new(self.id.clone(), longest, self.calls.clone());
        let posting = self.with_token(auth, |auth| {
            let (uri, sent, session, headers) = (&uri, &sent, session.as_deref(), &headers);
            let (text, limit) = (text(), &limit);
            async move { self.post(uri, (text, sent), session, auth.as_deref(), headers, limit).await }
        });
        let posted = posting.await;
        if is_initialized && posted.is_ok() {
            self.sessions.began();
        }
        let Some(request) = sent.request else {
            // Nothing answers an answer or a notification. Streams that a server opens for them would stay open, each with a connection.
            return posted.map(|answer| match answer {
                StreamableHttpPostResponse::Sse(..) => StreamableHttpPostResponse::Accepted,
                other => other,
            });
        };
        match posted {
            Err(StreamableHttpError::ResponseBodyTooLarge { .. }) => {
                let instead = ServerJsonRpcMessage::error(limit.too_long(), Some(request));
                Ok(StreamableHttpPostResponse::Json(instead, None))
            }
            Ok(StreamableHttpPostResponse::Sse(events, session)) => {
                let events = events.map(move |event| {
                    let why = match &event {
                        Err(error) if chain(error).contains(TOO_LONG) => Some(limit.too_long()),
                        Err(error) if chain(error).contains(NO_ROOM) => Some(limit.no_memory()),
                        _ => None,
                    };
                    let Some(why) = why else { return event.map(|event| limit.apply(event)) };
                    let instead = ServerJsonRpcMessage::error(why, Some(request.clone()));
                    let data = serde_json::to_string(&instead).ok();
                    Ok(Sse { data, ..Sse::default() })
                });
                let events = if lists_tools { self.noting(events.boxed()) } else { events.boxed() };
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            Ok(StreamableHttpPostResponse::Accepted) => {
                Ok(StreamableHttpPostResponse::Json(bad_answer(&self.id, "without an answer", request), None))
            }
            Ok(StreamableHttpPostResponse::Json(answer, session)) => {
                Ok(StreamableHttpPostResponse::Json(answer_to(&self.id, answer, request), session))
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
            let deleting = self.inner.delete_session(uri.clone(), session.clone(), auth, headers.clone());
            self.connections.drive(deleting.map_err(without_url))
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
            let (uri, session, last, headers) = (&uri, session.as_deref(), last.as_deref(), &headers);
            async move {
                let request = StreamRequest { uri, session, last, token: auth.as_deref() };
                let arriving = Arriving::of_app(&self.id);
                request.open((&self.inner, &self.connections), headers, longest, arriving).await
            }
        });
        let limit = MessageLimit::new(self.id.clone(), longest, self.calls.clone());
        Ok(getting.await?.map(move |event| event.map(|event| limit.apply(event))).boxed())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_json_answer_that_is_none_to_its_request_is_an_error_of_the_request() {
        let to_seven = |answer: Value| {
            let answer = serde_json::from_value(answer).unwrap();
            serde_json::to_value(answer_to("a", answer, RequestId::Number(7))).unwrap()
        };
        let own = json!({"jsonrpc": "2.0", "id": 7, "result": {"content": []}});
        assert_eq!(to_seven(own.clone())["result"], own["result"]);
        let unread =
            to_seven(json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "no"}}));
        assert_eq!((&unread["id"], &unread["error"]["code"]), (&json!(7), &json!(-32700)));
        for other in [
            json!({"jsonrpc": "2.0", "id": 8, "result": {}}),
            json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}),
            json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}),
        ] {
            let error = to_seven(other);
            assert_eq!(
                (&error["id"], &error["error"]["data"]["code"]),
                (&json!(7), &json!("UPSTREAM_BAD_ANSWER"))
            );
        }
    }
}
