//! The limits on one message of a server: its bytes, and its keys and values.
//!
//! A value of a few bytes takes hundreds in memory, so that the length of a message alone does not bound what it takes to parse it.

use std::sync::Arc;

use gatewright_core::{Unreadable, count_values};
use rmcp::{
    ErrorData,
    model::{RequestId, ServerJsonRpcMessage},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{json, value::RawValue};
use sse_stream::Sse;

use crate::{failure::failed, result_kinds::set_apart};

/// Bytes of the longest message for each key or value that a message may have.
const BYTES_PER_VALUE: usize = 32;
/// Keys and values that a message may have, however short the longest one is.
const LEAST_VALUES: usize = 10_000;
/// Bytes of the id of a request, at most.
const MOST_ID: usize = 256;

/// The limits on each message of one app.
#[derive(Debug, Clone)]
pub(crate) struct MessageLimit {
    id: Arc<str>,
    longest: usize,
}

impl MessageLimit {
    /// Limits of the app of this id, whose `maxMessageBytes` is `longest`.
    pub(crate) fn new(id: impl Into<Arc<str>>, longest: usize) -> Self {
        Self { id: id.into(), longest }
    }

    /// Bytes of the longest message.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    fn most_values(&self) -> usize {
        (self.longest / BYTES_PER_VALUE).max(LEAST_VALUES)
    }

    /// Checks that a message may be parsed: it has few enough keys and values, and none that is reserved. One that may not is logged.
    pub(crate) fn check(&self, json: &[u8]) -> Result<(), Unreadable> {
        let most = self.most_values();
        count_values(json, most).map(drop).inspect_err(|why| match why {
            Unreadable::TooMany => tracing::warn!(app.id = %self.id, limit = most,
                "an app sent a message of too many keys and values; see `maxMessageBytes`"),
            Unreadable::ReservedKey => {
                tracing::warn!(app.id = %self.id, "a message of an app was skipped: {why}")
            }
        })
    }

    /// The event, if its message may be parsed; else one with an error in place of an answer, or without a message. A result of several
    /// kinds is set apart.
    pub(crate) fn apply(&self, mut event: Sse) -> Sse {
        event.data = event.data.and_then(|data| match self.check(data.as_bytes()) {
            Ok(()) => Some(set_apart(data.as_bytes()).map_or(data, |apart| apart.to_string())),
            Err(why) => serde_json::to_string(&self.instead(data.as_bytes(), why)?).ok(),
        });
        event
    }

    /// An error in place of an answer that is not parsed; `None` for another message.
    pub(crate) fn instead(&self, json: &[u8], why: Unreadable) -> Option<ServerJsonRpcMessage> {
        answered_id(json).map(|id| ServerJsonRpcMessage::error(self.unreadable(why), Some(id)))
    }

    /// The error in place of an answer that is not parsed.
    pub(crate) fn unreadable(&self, why: Unreadable) -> ErrorData {
        match why {
            Unreadable::TooMany => self.too_many_values(),
            Unreadable::ReservedKey => failed(
                format!("the answer of the server behind `{}` cannot be read: {why}", self.id),
                "UPSTREAM_BAD_ANSWER",
            ),
        }
    }

    /// The error in place of an answer of too many bytes.
    pub(crate) fn too_long(&self) -> ErrorData {
        let Self { id, longest } = self;
        ErrorData::internal_error(
            format!(
                "the answer of the server behind `{id}` is longer than {longest} bytes; ask it for less, or raise \
                 `maxMessageBytes` of the app"
            ),
            Some(json!({"code": "UPSTREAM_TOO_LARGE", "maxMessageBytes": longest})),
        )
    }

    /// The error in place of an answer of too many keys and values.
    fn too_many_values(&self) -> ErrorData {
        let (Self { id, longest }, most) = (self, self.most_values());
        ErrorData::internal_error(
            format!(
                "the answer of the server behind `{id}` has more than {most} keys and values; ask it for less, or raise \
                 `maxMessageBytes` of the app, which allows one for each {BYTES_PER_VALUE} bytes"
            ),
            Some(json!({"code": "UPSTREAM_TOO_LARGE", "maxMessageBytes": longest, "maxValues": most})),
        )
    }
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
    use super::*;

    #[test]
    fn two_million_empty_objects_are_over_the_default_limit_and_a_hundred_thousand_numbers_are_not() {
        let limit = MessageLimit::new("a", 16 << 20);
        let answer = |items: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"a":[{items}0]}}}}"#);
        assert_eq!(limit.check(answer(&"1.5,".repeat(100_000)).as_bytes()), Ok(()));
        let empty = answer(&"{},".repeat(2_000_000));
        let why = limit.check(empty.as_bytes()).unwrap_err();
        let Some(ServerJsonRpcMessage::Error(instead)) = limit.instead(empty.as_bytes(), why) else {
            panic!("no error")
        };
        assert_eq!(instead.id, Some(RequestId::Number(7)));
        let text = instead.error.message;
        assert!(text.contains("524288 keys and values") && text.contains("`maxMessageBytes`"), "{text}");
    }

    #[test]
    fn an_answer_with_a_reserved_key_becomes_an_error() {
        let limit = MessageLimit::new("a", 1024);
        let data = r#"{"jsonrpc":"2.0","id":7,"result":{"a":{"$serde_json::private::RawValue":"1"}}}"#;
        let event = limit.apply(Sse { data: Some(data.to_owned()), ..Sse::default() });
        let message: serde_json::Value = serde_json::from_str(&event.data.unwrap()).unwrap();
        assert_eq!(
            (&message["id"], &message["error"]["data"]["code"]),
            (&json!(7), &json!("UPSTREAM_BAD_ANSWER"))
        );
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
        let limit = MessageLimit::new("a", 1024);
        let event = |data: String| Sse { data: Some(data), id: Some("e".to_owned()), ..Sse::default() };
        let note = event(format!(r#"{{"method":"n","params":[{}0]}}"#, "0,".repeat(LEAST_VALUES)));
        let kept = limit.apply(note);
        assert_eq!((kept.id.as_deref(), kept.data), (Some("e"), None));
        let short = r#"{"method":"n"}"#.to_owned();
        assert_eq!(limit.apply(event(short.clone())).data, Some(short));
    }
}
