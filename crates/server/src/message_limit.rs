//! The number of keys and values in a message, limited before anything is built from it.
//!
//! A value of a few bytes takes hundreds in memory, and `rmcp` reads a message several times to find out its kind: the length of
//! a body alone bounds neither.

use std::borrow::Cow;

use gatewright_core::{Unreadable, count_values, measure};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::batch;

/// Keys and values of a message besides the arguments of a tool call, at most.
const MOST_BESIDES_ARGUMENTS: usize = 10_000;
/// Bytes of `_meta` of a `subscriptions/listen`, which is kept as long as its stream, at most.
const MOST_META: usize = 16 * 1024;
/// Copies of the `_meta` of a request: in its context, and in those of what it makes the gateway do.
const COPIES_OF_META: u64 = 2;
/// Bytes of the longest body for each key or value that a body may have.
const BYTES_PER_VALUE: usize = 16;
/// Bytes of an id or a progress token, at most: they are kept as long as their request, and repeated in what answers it.
const MOST_ID: usize = 1024;

/// A member of a message that is repeated in others, and is too long for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is longer than {MOST_ID} bytes, or is named twice; it is repeated in answers and notifications: send a short one"
)]
pub(crate) struct TooLongId(&'static str);

/// Why a body is not read further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverLimit {
    /// It has more keys and values than this.
    Body(usize),
    /// A message has more than this besides the arguments of a tool call.
    Message(usize),
    /// `_meta` of a `subscriptions/listen` is longer than this.
    Meta(usize),
    /// A message has an id or a progress token that is too long.
    Id(TooLongId),
    /// It is long, and not JSON.
    NotJson,
    /// It has an integer of so many digits, which does not fit 64 bits.
    Integer(usize),
    /// It cannot be read, whatever its size.
    Unreadable(Unreadable),
}

/// Keys and values that a body may have where it may be `most_bytes` long.
fn most_values(most_bytes: usize) -> usize {
    (most_bytes / BYTES_PER_VALUE).max(MOST_BESIDES_ARGUMENTS)
}

/// Checks the number of keys and values in a body: one message or a batch. Returns the bytes that they take in memory.
pub(crate) fn check(body: &[u8], most_bytes: usize) -> Result<u64, OverLimit> {
    let most = most_values(most_bytes);
    let measured = measure(body, most).map_err(|why| match why {
        Unreadable::TooMany => OverLimit::Body(most),
        why => OverLimit::Unreadable(why),
    })?;
    let copies = check_ids(body).map_err(OverLimit::Id)?;
    let bytes = measured.bytes_of_message().saturating_add(copies);
    if let Some(digits) = measured.rounded_integer {
        return Err(OverLimit::Integer(digits));
    }
    let has_few = |message: &[u8], count: usize| -> Result<(), OverLimit> {
        let besides = count - of_arguments(message, most)?.min(count);
        match besides <= MOST_BESIDES_ARGUMENTS {
            true => Ok(()),
            false => Err(OverLimit::Message(MOST_BESIDES_ARGUMENTS)),
        }
    };
    let count = measured.values;
    if count <= MOST_BESIDES_ARGUMENTS {
        return Ok(bytes);
    }
    if !batch::is_batch(body) {
        return has_few(body, count).map(|()| bytes);
    }
    let messages = batch::messages(body).map_err(|_| OverLimit::Message(MOST_BESIDES_ARGUMENTS))?;
    messages
        .into_iter()
        .map(|message| message.get().as_bytes())
        .try_for_each(|message| has_few(message, count_values(message, most).unwrap_or(count)))?;
    Ok(bytes)
}

/// Checks the ids and progress tokens of the messages in a body or a line. What is not JSON is refused by those who read it. Returns the bytes that
/// copies of their `_meta` take in memory, while their requests are worked on.
///
/// # Errors
/// One is longer than [`MOST_ID`], or cannot be found because there are two.
pub(crate) fn check_ids(body: &[u8]) -> Result<u64, TooLongId> {
    if body.len() <= MOST_ID {
        return Ok(0);
    }
    if !batch::is_batch(body) {
        return check_ids_of(body);
    }
    // What cannot be taken apart is not served.
    let messages = batch::messages(body).unwrap_or_default();
    messages.into_iter().map(|message| check_ids_of(message.get().as_bytes())).sum()
}

fn check_ids_of(message: &[u8]) -> Result<u64, TooLongId> {
    #[derive(Default, Deserialize)]
    struct Message<'m> {
        #[serde(borrow)]
        id: Option<&'m RawValue>,
        #[serde(borrow)]
        params: Option<&'m RawValue>,
    }
    #[derive(Default, Deserialize)]
    struct Params<'m> {
        #[serde(borrow, rename = "requestId")]
        request: Option<&'m RawValue>,
        #[serde(borrow, rename = "_meta")]
        meta: Option<&'m RawValue>,
    }
    #[derive(Default, Deserialize)]
    struct Meta<'m> {
        #[serde(borrow, rename = "progressToken")]
        token: Option<&'m RawValue>,
    }
    let Message { id, params } = members(message, "id")?;
    let Params { request, meta } = of_value(params, "requestId")?;
    let Meta { token } = of_value(meta, "progressToken")?;
    for (name, value) in [("id", id), ("requestId", request), ("progressToken", token)] {
        if value.is_some_and(|value| value.get().len() > MOST_ID) {
            return Err(TooLongId(name));
        }
    }
    let of_meta = meta.and_then(|meta| measure(meta.get().as_bytes(), usize::MAX).ok());
    Ok(of_meta.map_or(0, |measured| measured.bytes.saturating_mul(COPIES_OF_META)))
}

fn of_value<'m, T: Deserialize<'m> + Default>(
    value: Option<&'m RawValue>,
    wanted: &'static str,
) -> Result<T, TooLongId> {
    value.map_or_else(|| Ok(T::default()), |value| members(value.get().as_bytes(), wanted))
}

/// The members of a JSON object by which `wanted` is found; none of anything else.
fn members<'m, T: Deserialize<'m> + Default>(json: &'m [u8], wanted: &'static str) -> Result<T, TooLongId> {
    if !json.trim_ascii_start().starts_with(b"{") {
        return Ok(T::default());
    }
    match serde_json::from_slice(json) {
        Ok(members) => Ok(members),
        // A member is there twice: any value may stand in each.
        Err(error) if error.is_data() => Err(TooLongId(wanted)),
        Err(_) => Ok(T::default()),
    }
}

/// Checks what the stream of a `subscriptions/listen` would keep besides its subscriptions.
pub(crate) fn check_listen(body: &[u8]) -> Result<(), OverLimit> {
    #[derive(Deserialize)]
    struct Listen<'m> {
        #[serde(borrow)]
        params: Params<'m>,
    }
    #[derive(Deserialize)]
    struct Params<'m> {
        #[serde(borrow, rename = "_meta")]
        meta: Option<&'m RawValue>,
    }
    if body.len() <= MOST_META {
        return Ok(());
    }
    let listen: Result<Listen<'_>, _> = serde_json::from_slice(body);
    // One that names `_meta` twice is refused, too.
    let is_short =
        listen.is_ok_and(|listen| listen.params.meta.is_none_or(|meta| meta.get().len() <= MOST_META));
    if is_short { Ok(()) } else { Err(OverLimit::Meta(MOST_META)) }
}

#[derive(Deserialize)]
struct Message<'m> {
    #[serde(borrow)]
    method: Cow<'m, str>,
    #[serde(borrow)]
    params: Params<'m>,
}

#[derive(Deserialize)]
struct Params<'m> {
    #[serde(borrow)]
    arguments: Option<&'m RawValue>,
}

/// Keys and values of the arguments, if `message` calls a tool.
fn of_arguments(message: &[u8], most: usize) -> Result<usize, OverLimit> {
    match serde_json::from_slice::<Message<'_>>(message) {
        Ok(Message { method, params: Params { arguments: Some(arguments) } }) if method == "tools/call" => {
            Ok(count_values(arguments.get().as_bytes(), most).unwrap_or_default())
        }
        Err(error) if !error.is_data() => Err(OverLimit::NotJson),
        Ok(_) | Err(_) => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST_BYTES: usize = 4 * 1024 * 1024;

    fn call(params: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
    }

    fn numbers(count: usize) -> String {
        format!("[0{}]", ",0".repeat(count - 1))
    }

    #[test]
    fn only_the_arguments_of_a_tool_call_may_have_many_values() {
        let (many, few) = (numbers(50_000), numbers(5_000));
        let over = Err(OverLimit::Message(10_000));
        for (body, expected) in [
            (call(&format!(r#"{{"name":"t","arguments":{{"a":{many}}}}}"#)), Ok(())),
            (call(&format!(r#"{{"name":"t","\u0061rguments":{{"a":{many}}}}}"#)), Ok(())),
            (call(&format!(r#"{{"name":"t","arguments":{{"a":{many}}},"_meta":{{"a":{few}}}}}"#)), Ok(())),
            (call(&format!(r#"{{"name":"t","arguments":{{"a":{many}}},"_meta":{{"a":{many}}}}}"#)), over),
            (call(&format!(r#"{{"name":"t","arguments":{{}},"arguments":{{"a":{many}}}}}"#)), over),
            (call(&format!(r#"{{"arguments":{{"a":{many}}}}}"#)).replace("tools/call", "ping"), over),
            (format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"arguments":{many}}}}}"#), over),
            (call(&format!(r#"{{"name":"t","arguments":{{"a":{many}}}"#)), Err(OverLimit::NotJson)),
            (
                call(&format!(r#"{{"name":"t","arguments":{}}}"#, numbers(300_000))),
                Err(OverLimit::Body(262_144)),
            ),
        ] {
            assert_eq!(check(body.as_bytes(), MOST_BYTES).map(drop), expected, "{}", &body[..90]);
        }
    }

    #[test]
    fn ids_and_tokens_that_are_kept_and_repeated_are_short() {
        let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
        let named = |id: &str, method: &str, params: &str| {
            format!(r#"{{"jsonrpc":"2.0","\u0069d":{id},"method":"{method}","params":{params}}}"#)
        };
        let with_token = |token: &str| format!(r#"{{"name":"t","_meta":{{"progressToken":{token}}}}}"#);
        let long = Err(OverLimit::Id(TooLongId("id")));
        let long_of = |name| Err(OverLimit::Id(TooLongId(name)));
        let padding = text(2_000);
        for (body, expected) in [
            (named(&text(1_022), "ping", &format!(r#"{{"a":{padding}}}"#)), Ok(())),
            (named(&text(1_023), "ping", "{}"), long),
            (named(&text(4_000_000), "subscriptions/listen", "{}"), long),
            (named(&format!("[{}]", numbers(1_000)), "ping", "[]"), long),
            (named("1", "tools/call", &with_token(&text(1_022))), Ok(())),
            (named("1", "tools/call", &with_token(&text(1_023))), long_of("progressToken")),
            (named("1", "x", &format!(r#"{{"requestId":{}}}"#, text(1_023))), long_of("requestId")),
            (named("1", "x", &format!(r#"{{"requestId":1,"requestId":{padding}}}"#)), long_of("requestId")),
            (format!(r#"{{"id":1,"method":{padding},"id":2}}"#), long),
            (format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, text(2_000)), long),
            // Members of other places, and what is no request at all.
            (named("1", "tools/call", &format!(r#"{{"arguments":{{"id":{padding}}}}}"#)), Ok(())),
            (named("1", "x", &padding), Ok(())),
            (named("1", "x", &format!(r#"{{"_meta":[{padding}]}}"#)), Ok(())),
            (format!(r#"{{"id":{padding}"#), Ok(())),
        ] {
            assert_eq!(check(body.as_bytes(), MOST_BYTES).map(drop), expected, "{}", &body[..40]);
            if expected == long {
                let batch = format!(r#"[{{"jsonrpc":"2.0","id":1,"method":"ping"}},{body}]"#);
                assert_eq!(check(batch.as_bytes(), MOST_BYTES).map(drop), long, "{}", &batch[..90]);
            }
        }
    }

    #[test]
    fn a_reserved_key_is_refused_wherever_it_stands() {
        let body = call(r#"{"name":"t","arguments":{"a":[{"$serde_json::private::RawValue":"1"}]}}"#);
        for body in [body.clone(), format!("[{body}]")] {
            assert_eq!(
                check(body.as_bytes(), MOST_BYTES),
                Err(OverLimit::Unreadable(Unreadable::ReservedKey))
            );
        }
    }

    #[test]
    fn integers_that_would_be_rounded_are_refused_and_all_others_are_not() {
        for (number, digits) in [
            ("12345678901234567890123", Some(23)),
            ("18446744073709551616", Some(20)),
            ("-9223372036854775809", Some(19)),
            ("18446744073709551615", None),
            ("-9223372036854775808", None),
            ("1234567890123456789.5", None),
            ("123456789012345678901e5", None),
            (r#""12345678901234567890123""#, None),
            (r#""\"12345678901234567890123""#, None),
        ] {
            let body = call(&format!(r#"{{"name":"t","arguments":{{"a":[1,{number}]}}}}"#));
            let expected = digits.map_or(Ok(()), |digits| Err(OverLimit::Integer(digits)));
            assert_eq!(check(body.as_bytes(), MOST_BYTES).map(drop), expected, "{number}");
        }
    }

    #[test]
    fn each_message_of_a_batch_has_the_limit_of_its_own_kind() {
        let large = call(&format!(r#"{{"name":"t","arguments":{{"a":{}}}}}"#, numbers(50_000)));
        let ping = |values| {
            format!(
                r#"{{"jsonrpc":"2.0","id":2,"method":"ping","params":{{"_meta":{{"a":{}}}}}}}"#,
                numbers(values)
            )
        };
        let check = |messages: &[String]| check(format!("[{}]", messages.join(",")).as_bytes(), MOST_BYTES);
        assert_eq!(check(&[large.clone(), ping(100), large.clone()]).map(drop), Ok(()));
        assert_eq!(check(&[ping(9_000), ping(9_000)]).map(drop), Ok(()));
        assert_eq!(check(&[large, ping(20_000)]), Err(OverLimit::Message(10_000)));
    }

    #[test]
    fn a_server_that_takes_longer_bodies_takes_more_values() {
        assert_eq!(most_values(64 << 20), 4 << 20);
        assert_eq!(most_values(1), MOST_BESIDES_ARGUMENTS);
    }
}
