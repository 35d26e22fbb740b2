//! The POST of Streamable HTTP, whose answers are limited before they are parsed.
//!
//! It does what rmcp's own client does, which parses a JSON answer of any number of values.

use std::collections::HashMap;

use bytes::Bytes;
use gatewright_core::{LineRoom as _, off_thread, read_json};
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use http_body_util::Full;
use reqwest::{Body, Response};
use rmcp::{
    ErrorData,
    model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, RequestId, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpError,
        StreamableHttpPostResponse,
    },
};

use crate::{
    arriving::Arriving,
    event_stream::{events, give_way},
    http_client::UpstreamHttpClient,
    http_error::{Failed, HttpError, RequestError},
    message_limit::MessageLimit,
    result_kinds::set_apart,
};

/// Bytes of the body of an error, at most.
const MOST_OF_ERROR: usize = 64 << 10;
/// Characters of an answer that is not MCP which its error repeats.
const MOST_REPEATED: usize = 256;
/// Bytes of a message that is too long to be kept while its answer takes long.
const LONG: usize = 64 << 10;
pub(crate) const SESSION: &str = "mcp-session-id";

/// Parts of a message that are needed once it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    /// Its id, if it is a request.
    pub(crate) request: Option<RequestId>,
    is_discovery: bool,
}

impl Sent {
    pub(crate) fn of(message: &ClientJsonRpcMessage) -> Self {
        let JsonRpcMessage::Request(request) = message else {
            return Self { request: None, is_discovery: false };
        };
        let is_discovery = matches!(request.request, ClientRequest::DiscoverRequest(_));
        Self { request: Some(request.id.clone()), is_discovery }
    }
}

pub(crate) type Headers = HashMap<HeaderName, HeaderValue>;

impl UpstreamHttpClient {
    /// Posts the text of a message and reads the answer. An answer of too many keys and values to a request becomes an error.
    pub(crate) async fn post(
        &self,
        uri: &str,
        (text, sent): (Bytes, &Sent),
        session: Option<&str>,
        auth: Option<&str>,
        headers: &Headers,
        limit: &MessageLimit,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let mut request = self.inner.post(uri).header(ACCEPT, "text/event-stream, application/json");
        request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        if let Some(token) = auth {
            request = request.bearer_auth(token);
        }
        // A short body is kept, for a connection that ends before the server looked at it. Of a long one, nothing is kept once it is sent.
        let body = if text.len() > LONG { Body::wrap(Full::new(text)) } else { text.into() };
        let sending = request.header(CONTENT_TYPE, "application/json").body(body).send();
        let response = self.connections.drive(sending).await.map_err(RequestError::from)?;
        let status = response.status();
        if let Some(challenge) = challenge(&response) {
            return Err(challenge);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return refused(response, sent, session.is_some()).await;
        }
        let is_request = sent.request.is_some();
        if !is_request && response.content_length() == Some(0) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = header(&response, SESSION);
        match header(&response, CONTENT_TYPE.as_str()) {
            Some(kind) if kind.starts_with("text/event-stream") => {
                let events = events(response, limit.longest(), Arriving::of_app(&self.id));
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            Some(kind) if kind.starts_with("application/json") => {
                let mut arriving = Arriving::of_app(&self.id);
                let parsed = match read(response, limit.longest(), |bytes| arriving.set(bytes)).await? {
                    Some(body) => self.parse(body, sent, limit).await,
                    None => Ok(ServerJsonRpcMessage::error(limit.no_memory(), sent.request.clone())),
                };
                match parsed {
                    Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
                    Err(_) if !is_request => Ok(StreamableHttpPostResponse::Accepted),
                    Err(why) => Err(Failed::Client(HttpError::NotMcp(why))),
                }
            }
            kind => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }

    /// Parses the JSON answer to what was `sent`, a long one on a thread for such work.
    async fn parse(
        &self,
        body: Vec<u8>,
        sent: &Sent,
        limit: &MessageLimit,
    ) -> Result<ServerJsonRpcMessage, String> {
        let (limit, task_tools) = (limit.clone(), self.task_tools.clone());
        let request = sent.request.clone();
        off_thread(body.len(), move || {
            if let Err(error) = limit.check(&body) {
                return Ok(ServerJsonRpcMessage::error(error, request));
            }
            if let Some(Ok(message)) = set_apart(&body).map(serde_json::from_value) {
                task_tools.read(&body);
                return Ok(message);
            }
            let message = serde_json::from_slice(&body).map_err(|error| {
                let start: String = String::from_utf8_lossy(&body[..body.len().min(4 * MOST_REPEATED)])
                    .chars()
                    .take(MOST_REPEATED)
                    .collect();
                format!("{error}: {start}")
            })?;
            task_tools.note(&message, &body);
            Ok(message)
        })
        .await
    }
}

pub(crate) fn header(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The error for a response that wants another token.
pub(crate) fn challenge(response: &Response) -> Option<Failed> {
    let challenge = || header(response, WWW_AUTHENTICATE.as_str());
    match response.status() {
        StatusCode::UNAUTHORIZED => {
            challenge().map(|text| StreamableHttpError::AuthRequired(AuthRequiredError::new(text)))
        }
        StatusCode::FORBIDDEN => challenge()
            .map(|text| StreamableHttpError::InsufficientScope(InsufficientScopeError::new(text, None))),
        _ => None,
    }
}

/// The meaning of a response that is no success. A JSON-RPC error in it reaches the caller.
async fn refused(
    response: Response,
    sent: &Sent,
    has_session: bool,
) -> Result<StreamableHttpPostResponse, Failed> {
    let status = response.status();
    let session = header(&response, SESSION);
    let is_json =
        header(&response, CONTENT_TYPE.as_str()).is_some_and(|kind| kind.starts_with("application/json"));
    let failed = (status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error())
        .then(|| HttpStatusError::new(status.as_u16(), header(&response, RETRY_AFTER.as_str())));
    if let Some(failed) = failed {
        if !is_json || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(failed.into());
        }
        return match read_short(response).await.ok().and_then(|body| json_rpc_error(&body)) {
            Some(error) => Ok(StreamableHttpPostResponse::Json(error, session)),
            None => Err(failed.into()),
        };
    }
    let body = read_short(response).await?;
    let text = || String::from_utf8_lossy(&body).into_owned();
    let unexpected = || Failed::Client(HttpError::Status(status, text()));
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Err(unexpected());
    }
    let error = json_rpc_error(&body);
    // A server of the older era refuses the question with any status and id.
    if sent.is_discovery && !has_session && status.is_client_error() {
        let error = match error {
            Some(JsonRpcMessage::Error(error)) => error.error,
            _ => ErrorData::invalid_request(
                format!("server/discover was refused with HTTP {status}: {}", text()),
                None,
            ),
        };
        let answer = ServerJsonRpcMessage::error(error, sent.request.clone());
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    match error.filter(|_| is_json) {
        Some(error) => Ok(StreamableHttpPostResponse::Json(error, session)),
        None => Err(unexpected()),
    }
}

fn json_rpc_error(body: &[u8]) -> Option<ServerJsonRpcMessage> {
    read_json(body).ok().filter(|message| matches!(message, JsonRpcMessage::Error(_)))
}

/// Reads the body of an error.
async fn read_short(response: Response) -> Result<Vec<u8>, Failed> {
    read(response, MOST_OF_ERROR, |_| true).await.map(Option::unwrap_or_default)
}

/// Reads a body of at most `longest` bytes; `None` if there is no room for one of a length.
async fn read(
    mut response: Response,
    longest: usize,
    mut has_room: impl FnMut(usize) -> bool,
) -> Result<Option<Vec<u8>>, Failed> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(RequestError::from)? {
        give_way(chunk.len()).await;
        let length = body.len() + chunk.len();
        if length > longest {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: longest });
        }
        if !has_room(length) {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn data_of_an_error_with_the_reserved_key_is_not_built() {
        let error = |data: Value| {
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no", "data": data}})
                .to_string()
        };
        let nested = (0..10).fold(json!(1), |inner, _| {
            let deep = format!("{}{inner}{}", "[".repeat(100), "]".repeat(100));
            json!({"$serde_json::private::RawValue": deep})
        });
        assert!(json_rpc_error(error(json!({"a": 1})).as_bytes()).is_some());
        assert!(json_rpc_error(error(nested).as_bytes()).is_none());
    }
}
