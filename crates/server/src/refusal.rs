//! Refusals as JSON-RPC errors with the right HTTP status, and `rmcp`'s plain-text ones made so.

use axum::body::Body;
use bytes::Bytes;
use gatewright_core::{AuthRefusal, NoShare, Revision, read_json};
use http::{HeaderValue, Response, StatusCode, header, response::Parts};
use http_body_util::BodyExt;
use rmcp::model::{ErrorCode, ErrorData};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

use crate::{
    batch,
    body::BodyError,
    host_and_origin::{HeaderError, SourceError},
    message_limit::OverLimit,
    mode::BadMode,
};

/// "Unauthorized" (contract: JSON-RPC error codes).
const UNAUTHORIZED: i32 = -32001;
/// Code of the SDKs for a refusal of the transport that has no code of its own.
pub(crate) const TRANSPORT: i32 = -32000;

/// An answer of JSON with a status.
pub(crate) fn json(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A JSON-RPC error. The id is `null` when the request's could not be read.
pub(crate) fn rpc(
    status: StatusCode,
    id: Value,
    code: i32,
    message: &str,
    data: Option<Value>,
) -> Response<Body> {
    tracing::info!(http.status = status.as_u16(), error.code = code, message, "a request was refused");
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = data;
    }
    json(status, &json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

fn transport(status: StatusCode, message: &str) -> Response<Body> {
    rpc(status, Value::Null, TRANSPORT, message, None)
}

pub(crate) fn unwelcome(why: &SourceError) -> Response<Body> {
    match why {
        SourceError::NoHost => transport(StatusCode::BAD_REQUEST, "the request names no Host"),
        SourceError::Host(host) => transport(
            StatusCode::FORBIDDEN,
            &format!(
                "Host `{host}` is not allowed; if it is yours, add it to `http.allowedHosts` or set `http.publicUrl`"
            ),
        ),
        SourceError::Origin(origin) => transport(
            StatusCode::FORBIDDEN,
            &format!("Origin `{origin}` is not allowed; if it is yours, add it to `http.allowedOrigins`"),
        ),
    }
}

/// The answer to headers that could be read in two ways. The connection closes: where the body ends is not certain.
pub(crate) fn ambiguous(why: HeaderError) -> Response<Body> {
    let mut response = match why {
        HeaderError::Repeated(name) => {
            let code = if name.starts_with("mcp-") { ErrorCode::HEADER_MISMATCH.0 } else { TRANSPORT };
            let message = format!("the header `{name}` is sent more than once; send it once");
            rpc(StatusCode::BAD_REQUEST, Value::Null, code, &message, None)
        }
        HeaderError::TransferCoding => transport(
            StatusCode::NOT_IMPLEMENTED,
            "Transfer-Encoding must be `chunked`, once; no other transfer coding is supported",
        ),
    };
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The answer to a request that asks for an access mode that is none.
pub(crate) fn bad_mode(_: BadMode) -> Response<Body> {
    transport(
        StatusCode::BAD_REQUEST,
        "`?mode=` and the header `Gatewright-Mode` take `direct` or `code`, and must not differ",
    )
}

/// The answer to a request over plain HTTP where only HTTPS will do: a JSON-RPC error, or one of OAuth (RFC 6749 §5.2).
pub(crate) fn plain_http(is_mcp: bool) -> Response<Body> {
    let message = "this server is reached over HTTPS only: use its https address; if a proxy ends TLS in front of it, the proxy must send \
                   `X-Forwarded-Proto: https` and be listed in `http.trustedProxies`";
    if is_mcp {
        return transport(StatusCode::FORBIDDEN, message);
    }
    tracing::info!(http.status = 403, message, "a request was refused");
    json(StatusCode::FORBIDDEN, &json!({"error": "invalid_request", "error_description": message}))
}

pub(crate) fn busy(what: &str) -> Response<Body> {
    let mut response = transport(StatusCode::SERVICE_UNAVAILABLE, what);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// The answer to a caller that has its share, while there is room for others.
fn too_many(message: &str, retry_after: &'static str) -> Response<Body> {
    let mut response = transport(StatusCode::TOO_MANY_REQUESTS, message);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(retry_after));
    response
}

/// The error in place of an answer that was dropped.
pub(crate) fn dropped(id: Value, why: &str) -> Value {
    tracing::info!(why, "an answer was dropped");
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": TRANSPORT, "message": why}})
}

/// The answer to a caller that has too many answers to read.
pub(crate) fn unread_answers() -> Response<Body> {
    too_many(
        "this caller, or its network, has its share of the answers that are not read yet; read the answers to open requests first: \
         `http.maxUnsentMib` is the limit",
        "1",
    )
}

pub(crate) fn no_room(why: NoShare) -> Response<Body> {
    match why {
        NoShare::Room => busy(
            "too many sessions are open; `http.maxSessions`, and what the machine or container has left, is the limit",
        ),
        NoShare::Share => too_many(
            "this caller, or its network, has its share of the sessions; end those that are not used (DELETE), or wait until they do: \
             `http.maxSessionsPerCaller` is the limit",
            "10",
        ),
    }
}

pub(crate) fn no_room_for_request(why: NoShare) -> Response<Body> {
    match why {
        NoShare::Room => busy("too many requests at once; `http.maxConcurrency` is the limit"),
        NoShare::Share => too_many(
            "this caller, or its network, has its share of the requests that are worked on; wait until one is answered: a caller may have as \
             many as `http.maxConcurrency` leaves free for others",
            "1",
        ),
    }
}

/// The refusal of a request to a route that does not speak MCP (RFC 6749 §5.2 has no error for it; §4.1.2.1 has).
pub(crate) fn no_memory_beside(why: NoShare) -> Response<Body> {
    let (status, message) = match why {
        NoShare::Room => (StatusCode::SERVICE_UNAVAILABLE, "requests take too much memory; try again"),
        NoShare::Share => (
            StatusCode::TOO_MANY_REQUESTS,
            "this caller, or its network, has its share of the memory for requests; wait until one is answered",
        ),
    };
    tracing::info!(http.status = status.as_u16(), message, "a request was refused");
    let body = json!({"error": "temporarily_unavailable", "error_description": message});
    let mut response = json(status, &body);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// The answer to a request that takes more memory than there is.
pub(crate) fn no_room_in_memory(why: NoShare) -> Response<Body> {
    match why {
        NoShare::Room => busy(
            "requests take too much memory; `http.maxRequestMib`, and what the machine or container has left, is the limit",
        ),
        NoShare::Share => too_many(
            "this caller, or its network, has its share of the memory for requests; wait until one is answered, or send less at once: a caller \
             may have a quarter of what `http.maxRequestMib` leaves free",
            "1",
        ),
    }
}

pub(crate) fn no_room_for_stream(why: NoShare) -> Response<Body> {
    match why {
        NoShare::Room => busy(
            "too many streams are open; `http.maxStreams`, and what the machine or container has left, is the limit",
        ),
        NoShare::Share => too_many(
            "this caller, or its network, has its share of the streams; close those that are not used: a caller may have a quarter of what \
             `http.maxStreams` leaves free",
            "10",
        ),
    }
}

pub(crate) fn session_not_found() -> Response<Body> {
    no_such_session(Value::Null)
}

fn no_such_session(id: Value) -> Response<Body> {
    let message = "session not found; send `initialize` again";
    rpc(StatusCode::NOT_FOUND, id, TRANSPORT, message, None)
}

/// The refusal of an authenticator as a JSON-RPC error. Its status and headers stay, its body becomes `data`.
pub(crate) fn by_authenticator(refused: AuthRefusal, request: &[u8]) -> Response<Body> {
    let (parts, body) = refused.into_parts();
    let data: Option<Value> = read_json(&body).ok();
    let (code, what) = match parts.status {
        StatusCode::UNAUTHORIZED => (UNAUTHORIZED, "Unauthorized"),
        StatusCode::FORBIDDEN => (UNAUTHORIZED, "Forbidden"),
        _ => (TRANSPORT, "the caller cannot be checked"),
    };
    let why = data.as_ref().and_then(|data| data["error_description"].as_str());
    let message = why.map_or_else(|| what.to_owned(), |why| format!("{what}: {why}"));
    let made = rpc(parts.status, id_of(request), code, &message, data);
    instead(parts, made)
}

/// An answer with the body of `made` and the status and headers of `parts`.
fn instead(mut parts: Parts, made: Response<Body>) -> Response<Body> {
    let (made, body) = made.into_parts();
    for name in [header::CONTENT_TYPE, header::RETRY_AFTER] {
        if let Some(value) = made.headers.get(&name) {
            parts.headers.insert(name, value.clone());
        }
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, body)
}

/// A request of a session or call that another instance holds cannot be passed on; nothing was done.
pub(crate) fn no_channel() -> Response<Body> {
    busy(
        "the instance that holds this session or call cannot be reached at the moment, because Redis does not answer; try again",
    )
}

/// Another instance had the request and did not answer it whole.
pub(crate) fn broke_off(request: &[u8]) -> Response<Body> {
    let message = "the instance that holds this session or call broke off; what was asked may have been done";
    rpc(StatusCode::BAD_GATEWAY, id_of(request), ErrorCode::INTERNAL_ERROR.0, message, None)
}

/// The answer to a request that was open when the server ended.
fn stopped(id: Value) -> Response<Body> {
    let message = "the server was stopped before the request was answered; what was asked may have been done";
    let mut response = rpc(StatusCode::SERVICE_UNAVAILABLE, id, TRANSPORT, message, None);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

pub(crate) fn wrong_content_type() -> Response<Body> {
    transport(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json")
}

pub(crate) fn unread(why: BodyError, most: usize) -> Response<Body> {
    match why {
        BodyError::TooLong => {
            let message = format!("the body is longer than {most} bytes; `http.maxBodyBytes` is the limit");
            let mut response = transport(StatusCode::PAYLOAD_TOO_LARGE, &message);
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            response
        }
        BodyError::NoRoom(why) => no_room_in_memory(why),
        BodyError::TooSlow => transport(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"),
        BodyError::Broken => transport(StatusCode::BAD_REQUEST, "the body could not be read"),
    }
}

/// The answer to a body that is compressed (RFC 9110 §15.5.16).
pub(crate) fn encoded() -> Response<Body> {
    let message = "Invalid Request: a body with `Content-Encoding` is not read; send the JSON as it is, without that header";
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    let mut response = rpc(status, Value::Null, ErrorCode::INVALID_REQUEST.0, message, None);
    response.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The answer to a body with too many keys and values.
pub(crate) fn over_limit(why: OverLimit, body: &[u8]) -> Response<Body> {
    let message = match why {
        OverLimit::NotJson => return not_a_message(body),
        OverLimit::Unreadable(why) => return invalid_request(&why.to_string()),
        OverLimit::Id(why) => return invalid_request(&why.to_string()),
        OverLimit::Integer(digits) => {
            let message = format!(
                "an integer of {digits} digits does not fit 64 bits and would be rounded; send it as text"
            );
            return rpc(StatusCode::BAD_REQUEST, id_of(body), ErrorCode::INVALID_PARAMS.0, &message, None);
        }
        OverLimit::Body(most) => format!(
            "Invalid Request: the body has more than {most} keys and values; send less at once, or long data as one string. The limit is one \
             for 16 bytes of `http.maxBodyBytes`"
        ),
        OverLimit::Meta(most) => format!(
            "Invalid Request: `_meta` of `subscriptions/listen` may be {most} bytes long, because it is kept as long as the stream; send the \
             fields of the protocol only, without icons"
        ),
        OverLimit::Message(most) => format!(
            "Invalid Request: a message may have {most} keys and values besides the `arguments` of `tools/call`; this one has more: leave out \
             what the server does not need, such as entries of `_meta` and of capabilities"
        ),
    };
    rpc(StatusCode::PAYLOAD_TOO_LARGE, Value::Null, ErrorCode::INVALID_REQUEST.0, &message, None)
}

/// The answer for an unknown path.
pub(crate) fn nothing_here(endpoint: &str) -> Response<Body> {
    let message = format!("nothing is here; the MCP endpoint is `{endpoint}`");
    json(StatusCode::NOT_FOUND, &json!({"error": "not_found", "message": message}))
}

/// The `id` of a message, when it has a sound one.
fn id_of(message: &[u8]) -> Value {
    #[derive(Deserialize)]
    struct Id {
        id: Option<Value>,
    }
    // An array would be read as the fields of a struct.
    let is_object = message.trim_ascii_start().starts_with(b"{");
    let id = read_json::<Id>(message).ok().filter(|_| is_object).and_then(|peek| peek.id);
    id.filter(|id| id.is_string() || id.is_i64() || id.is_u64()).unwrap_or_default()
}

/// The answer to a body that is no JSON-RPC message: JSON-RPC 2.0 §5.1.
pub(crate) fn not_a_message(body: &[u8]) -> Response<Body> {
    let (code, message) = not_a_message_code(body);
    rpc(StatusCode::BAD_REQUEST, id_of(body), code, &message, None)
}

/// The answer to a message that its session cannot take.
pub(crate) fn invalid(request: &[u8], why: &ErrorData) -> Response<Body> {
    rpc(StatusCode::BAD_REQUEST, id_of(request), why.code.0, &why.message, None)
}

/// The answer to a body that is not served, with the reason.
pub(crate) fn invalid_request(why: &str) -> Response<Body> {
    let message = format!("Invalid Request: {why}");
    rpc(StatusCode::BAD_REQUEST, Value::Null, ErrorCode::INVALID_REQUEST.0, &message, None)
}

/// Code and text for bytes that are no JSON-RPC message.
pub(crate) fn not_a_message_code(body: &[u8]) -> (i32, String) {
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(body) {
        return (ErrorCode::PARSE_ERROR.0, format!("Parse error: {error}"));
    }
    let why = match batch::is_batch(body) {
        true => "batches are of MCP 2025-03-26 alone; send one message",
        false => "not a JSON-RPC 2.0 message",
    };
    (ErrorCode::INVALID_REQUEST.0, format!("Invalid Request: {why}"))
}

/// Returns `true` if `rmcp` answered with text where JSON is due.
pub(crate) fn is_plain(parts: &Parts) -> bool {
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    parts.status.as_u16() >= 400 && !kind.is_some_and(|kind| kind.starts_with("application/json"))
}

/// Makes a plain-text refusal of `rmcp` a JSON-RPC error. `request` is the body it answers. `is_stopping`: the server ends, and open requests with it.
pub(crate) async fn translate<B>(
    mut parts: Parts,
    body: B,
    request: &Bytes,
    is_stopping: bool,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes>,
{
    let text = match body.collect().await {
        Ok(collected) => String::from_utf8_lossy(&collected.to_bytes()).into_owned(),
        Err(_) => String::new(),
    };
    let answer = match parts.status {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => not_a_message(request),
        StatusCode::NOT_FOUND => no_such_session(id_of(request)),
        StatusCode::BAD_REQUEST if text.contains("MCP-Protocol-Version") => {
            let supported = Revision::ALL.map(Revision::as_str);
            let requested = text.rsplit(": ").next().unwrap_or_default();
            let data = json!({"supported": supported, "requested": requested});
            let code = ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0;
            rpc(parts.status, id_of(request), code, "unsupported MCP-Protocol-Version", Some(data))
        }
        StatusCode::BAD_REQUEST => {
            let message = text.trim_start_matches("Bad Request: ");
            rpc(parts.status, id_of(request), ErrorCode::INVALID_REQUEST.0, message, None)
        }
        status if status.is_server_error() && is_stopping => stopped(id_of(request)),
        status if status.is_server_error() => {
            rpc(status, id_of(request), ErrorCode::INTERNAL_ERROR.0, "Internal error", None)
        }
        status => transport(status, &text),
    };
    parts.status = answer.status();
    instead(parts, answer)
}
