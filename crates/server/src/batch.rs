//! Batches of messages in one POST: MCP 2025-03-26 alone has them.
//!
//! Each message is served as if it had come alone. The answers come on one stream, in the order in which they are ready.

use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::value::RawValue;

/// Messages of a batch, at most.
const MOST_MESSAGES: usize = 100;

/// Returns `true` if `body` begins as a batch does.
pub(crate) fn is_batch(body: &[u8]) -> bool {
    body.trim_ascii_start().first() == Some(&b'[')
}

/// The messages of a batch.
///
/// # Errors
/// The reason why it is none that is served.
pub(crate) fn messages(body: &[u8]) -> Result<Vec<&RawValue>, String> {
    let messages: Vec<&RawValue> = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    match messages.len() {
        0 => Err("the batch is empty".to_owned()),
        1..=MOST_MESSAGES => Ok(messages),
        many => Err(format!("a batch may hold {MOST_MESSAGES} messages; this one holds {many}")),
    }
}

/// One answer out of those to the messages of a batch. Notifications have none.
pub(crate) fn answer(answers: impl IntoIterator<Item = Response<Body>>) -> Response<Body> {
    let answers = answers.into_iter().filter(|answer| answer.status() != StatusCode::ACCEPTED);
    let events: stream::SelectAll<Events> = answers.map(events).collect();
    if events.is_empty() {
        let mut accepted = Response::new(Body::empty());
        *accepted.status_mut() = StatusCode::ACCEPTED;
        return accepted;
    }
    let mut response = Response::new(Body::from_stream(events));
    for (name, value) in [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

type Events = stream::BoxStream<'static, Result<Bytes, axum::Error>>;

/// The events of an answer; JSON becomes one event. Each piece of a stream that `rmcp` sends is a whole event.
fn events(answer: Response<Body>) -> Events {
    let is_stream =
        answer.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
    let body = answer.into_body();
    if is_stream {
        return body.into_data_stream().boxed();
    }
    let event = async move {
        let json = axum::body::to_bytes(body, usize::MAX).await?;
        Ok(Bytes::from([b"data: ", &*json, b"\n\n"].concat()))
    };
    stream::once(event).boxed()
}
