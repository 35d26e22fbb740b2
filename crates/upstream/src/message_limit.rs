//! The limits on one message of a server: its bytes, and its keys and values.
//!
//! A value of a few bytes takes hundreds in memory, so that the length of a message alone does not bound what it takes to parse it.

use std::sync::Arc;

use gatewright_core::{FreeMemory, Unreadable, measure};
use rmcp::{
    ErrorData,
    model::{RequestId, ServerJsonRpcMessage},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{json, value::RawValue};
use sse_stream::Sse;

use crate::{failure::failed, open_calls::OpenCalls, result_kinds::set_apart};

/// Bytes of the longest message for each key or value that a message may have.
const BYTES_PER_VALUE: usize = 32;
/// Keys and values that a message may have, however short the longest one is. A request or notification of a server has no more: it takes part of no
/// caller's room.
const LEAST_VALUES: usize = 10_000;
/// Bytes of a message that takes little memory whatever is in it.
const SHORT: usize = 4 * 1024;
/// Bytes of the id of a request, at most.
const MOST_ID: usize = 256;

/// The limits on each message of one app.
#[derive(Debug, Clone)]
pub(crate) struct MessageLimit {
    id: Arc<str>,
    longest: usize,
    calls: Arc<OpenCalls>,
}

impl MessageLimit {
    /// Limits of the app of this id, whose `maxMessageBytes` is `longest`. Answers to `calls` have the room of their calls.
    pub(crate) fn new(id: impl Into<Arc<str>>, longest: usize, calls: Arc<OpenCalls>) -> Self {
        Self { id: id.into(), longest, calls }
    }

    /// Bytes of the longest message.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Returns `true` if the log may have a line now about a message that is skipped.
    pub(crate) fn may_log(&self) -> bool {
        self.calls.skipped.is_due()
    }

    fn most_values(&self) -> usize {
        (self.longest / BYTES_PER_VALUE).max(LEAST_VALUES)
    }

    /// Checks that a message may be parsed. Takes room for the answer to a call until the call is over.
    ///
    /// # Errors
    /// It has too many keys and values or one that is reserved, or the system has no memory left for it, which is logged, or its call has no
    /// room for what they take.
    pub(crate) fn check(&self, json: &[u8]) -> Result<(), ErrorData> {
        let is_short = json.len() <= SHORT;
        let most = if is_short || !has_method(json) { self.most_values() } else { LEAST_VALUES };
        let measured = measure(json, most).map_err(|why| self.unreadable(why, most))?;
        if is_short {
            return Ok(());
        }
        let bytes = measured.bytes_of_message();
        let answered = answered_id(json);
        let of_call = |id: &RequestId| self.calls.reserve(id, bytes);
        let is_answer = answered.is_some();
        let room = match answered.as_ref().and_then(of_call) {
            Some(room) => room,
            None if (!is_answer || self.calls.reserve_list(&self.id, bytes))
                && FreeMemory::of_system().has(bytes) =>
            {
                Ok(())
            }
            None => {
                if self.may_log() {
                    tracing::warn!(app.id = %self.id, bytes, "a message of an app was skipped: not as much memory is left");
                }
                Err(format!(
                    "a message of the app `{}` would take {bytes} bytes of memory, and not as much is left",
                    self.id
                ))
            }
        };
        room.map_err(|why| ErrorData::internal_error(why, Some(json!({"code": "UPSTREAM_TOO_LARGE"}))))
    }

    /// The event, if its message may be parsed; else one with an error in place of an answer, or without a message. A result of several
    /// kinds is set apart.
    pub(crate) fn apply(&self, mut event: Sse) -> Sse {
        event.data = event.data.and_then(|data| match self.check(data.as_bytes()) {
            Ok(()) => Some(set_apart(data.as_bytes()).map_or(data, |apart| apart.to_string())),
            Err(error) => serde_json::to_string(&instead(data.as_bytes(), error)?).ok(),
        });
        event
    }

    /// The error in place of an answer that is not parsed.
    fn unreadable(&self, why: Unreadable, limit: usize) -> ErrorData {
        match why {
            Unreadable::TooMany => {
                if self.may_log() {
                    tracing::warn!(app.id = %self.id, limit,
                        "an app sent a message of too many keys and values; see `maxMessageBytes`");
                }
                self.too_many_values()
            }
            why => {
                if self.may_log() {
                    tracing::warn!(app.id = %self.id, "a message of an app was skipped: {why}");
                }
                failed(
                    format!("the answer of the server behind `{}` cannot be read: {why}", self.id),
                    "UPSTREAM_BAD_ANSWER",
                )
            }
        }
    }

    /// The error in place of an answer of too many bytes.
    pub(crate) fn too_long(&self) -> ErrorData {
        let Self { id, longest, .. } = self;
        ErrorData::internal_error(
            format!(
                "the answer of the server behind `{id}` is longer than {longest} bytes; ask it for less, or raise \
                 `maxMessageBytes` of the app"
            ),
            Some(json!({"code": "UPSTREAM_TOO_LARGE", "maxMessageBytes": longest})),
        )
    }

    /// The error in place of an answer for which there was no memory while it arrived.
    pub(crate) fn no_memory(&self) -> ErrorData {
        ErrorData::internal_error(
            format!(
                "the answer of the server behind `{}` was dropped: long messages of the app that are still arriving take the memory for them. What \
                 was asked may have been done; try again later",
                self.id
            ),
            Some(json!({"code": "UPSTREAM_TOO_LARGE"})),
        )
    }

    /// The error in place of an answer of too many keys and values.
    fn too_many_values(&self) -> ErrorData {
        let (Self { id, longest, .. }, most) = (self, self.most_values());
        ErrorData::internal_error(
            format!(
                "the answer of the server behind `{id}` has more than {most} keys and values; ask it for less, or raise \
                 `maxMessageBytes` of the app, which allows one for each {BYTES_PER_VALUE} bytes"
            ),
            Some(json!({"code": "UPSTREAM_TOO_LARGE", "maxMessageBytes": longest, "maxValues": most})),
        )
    }
}

/// `error` in place of an answer; `None` for another message.
pub(crate) fn instead(json: &[u8], error: ErrorData) -> Option<ServerJsonRpcMessage> {
    answered_id(json).map(|id| ServerJsonRpcMessage::error(error, Some(id)))
}

/// Returns `true` for a request or a notification.
fn has_method(json: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Asks {
        #[expect(dead_code, reason = "it need only be there")]
        method: IgnoredAny,
    }
    serde_json::from_slice::<Asks>(json).is_ok()
}

/// The id of the request that a message answers. Builds nothing but the id.
fn answered_id(json: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Answer<'m> {
        #[serde(borrow)]
        id: &'m RawValue,
        #[serde(default)]
        method: Option<IgnoredAny>,
    }
    let Answer { id, method: None } = serde_json::from_slice(json).ok()? else { return None };
    if id.get().len() <= MOST_ID { serde_json::from_str(id.get()).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn two_million_empty_objects_are_over_the_default_limit_and_a_hundred_thousand_numbers_are_not() {
        let limit = MessageLimit::new("a", 16 << 20, Arc::default());
        let answer = |items: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"a":[{items}0]}}}}"#);
        assert!(limit.check(answer(&"1.5,".repeat(100_000)).as_bytes()).is_ok());
        let empty = answer(&"{},".repeat(2_000_000));
        let error = limit.check(empty.as_bytes()).unwrap_err();
        let Some(ServerJsonRpcMessage::Error(instead)) = instead(empty.as_bytes(), error) else {
            panic!("no error")
        };
        assert_eq!(instead.id, Some(RequestId::Number(7)));
        let text = instead.error.message;
        assert!(text.contains("524288 keys and values") && text.contains("`maxMessageBytes`"), "{text}");
    }

    #[test]
    fn what_a_server_asks_or_tells_of_itself_has_ten_thousand_values() {
        let limit = MessageLimit::new("a", 16 << 20, Arc::default());
        let many = "[],".repeat(LEAST_VALUES);
        for json in [
            format!(r#"{{"method":"notifications/progress","params":{{"_meta":{{"a":[{many}0]}}}}}}"#),
            format!(r#"{{"params":{{"_meta":{{"a":[{many}0]}}}},"id":1,"method":"roots/list"}}"#),
        ] {
            assert!(limit.check(json.as_bytes()).is_err());
        }
        assert!(limit.check(format!(r#"{{"id":1,"result":{{"method":[{many}0]}}}}"#).as_bytes()).is_ok());
        let long = "x".repeat(100_000);
        assert!(limit.check(format!(r#"{{"method":"m","params":{{"a":"{long}"}}}}"#).as_bytes()).is_ok());
    }

    #[test]
    fn an_answer_with_a_reserved_key_becomes_an_error() {
        let limit = MessageLimit::new("a", 1024, Arc::default());
        let data = r#"{"jsonrpc":"2.0","id":7,"result":{"a":{"$serde_json::private::RawValue":"1"}}}"#;
        let event = limit.apply(Sse { data: Some(data.to_owned()), ..Sse::default() });
        let message: serde_json::Value = serde_json::from_str(&event.data.unwrap()).unwrap();
        assert_eq!(
            (&message["id"], &message["error"]["data"]["code"]),
            (&json!(7), &json!("UPSTREAM_BAD_ANSWER"))
        );
    }

    #[test]
    fn a_flood_of_messages_that_are_skipped_is_logged_in_one_line() {
        let lines = Arc::new(AtomicUsize::new(0));
        let log = CountedLines(lines.clone());
        let subscriber = tracing_subscriber::fmt().with_writer(move || log.clone()).finish();
        let _log = tracing::subscriber::set_default(subscriber);
        let calls = Arc::<OpenCalls>::default();
        for _ in 0..500 {
            // One for each request, as over HTTP.
            let limit = MessageLimit::new("a", 1024, calls.clone());
            assert!(limit.check(br#"{"a":{"$serde_json::private::RawValue":"1"}}"#).is_err());
            assert!(limit.check(format!("[{}0]", "0,".repeat(LEAST_VALUES)).as_bytes()).is_err());
        }
        assert_eq!(lines.load(Ordering::Relaxed), 1);
    }

    #[derive(Clone)]
    struct CountedLines(Arc<AtomicUsize>);

    impl std::io::Write for CountedLines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.fetch_add(bytes.iter().filter(|byte| **byte == b'\n').count(), Ordering::Relaxed);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn only_answers_get_an_error_in_their_place() {
        for (json, id) in [
            (r#"{"result":{},"id":8}"#, Some(RequestId::Number(8))),
            (r#"{"error":{},"id":"b"}"#, Some(RequestId::String("b".into()))),
            (r#"{"method":"ping","id":8}"#, None),
            (r#"{"result":{}}"#, None),
            (r#"{"result":{},"id":[{},{}]}"#, None),
            ("{", None),
        ] {
            assert_eq!(answered_id(json.as_bytes()), id, "{json}");
        }
    }

    #[test]
    fn an_event_over_the_limit_keeps_its_own_id_and_loses_its_message() {
        let limit = MessageLimit::new("a", 1024, Arc::default());
        let event = |data: String| Sse { data: Some(data), id: Some("e".to_owned()), ..Sse::default() };
        let note = event(format!(r#"{{"method":"n","params":[{}0]}}"#, "0,".repeat(LEAST_VALUES)));
        let kept = limit.apply(note);
        assert_eq!((kept.id.as_deref(), kept.data), (Some("e"), None));
        let short = r#"{"method":"n"}"#.to_owned();
        assert_eq!(limit.apply(event(short.clone())).data, Some(short));
    }
}
