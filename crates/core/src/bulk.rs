//! Work on large values, kept off the threads that serve requests.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
};

use rmcp::model::JsonObject;
use serde::{Deserialize, de::Error as _};
use serde_json::Value;

/// Longest JSON text, in bytes, that is read or written on a thread that serves requests.
const QUICK_BYTES: usize = 64 * 1024;
/// Most members and items of a value that is looked at on a thread that serves requests.
const QUICK_VALUES: usize = 2_000;

/// Runs `work` on a JSON text of `bytes` bytes: at once when it is short, else on a thread for such work.
///
/// # Panics
/// `work` panics.
pub async fn off_thread<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    if bytes <= QUICK_BYTES {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => unreachable!("the task is never cancelled, and the runtime outlives its requests"),
        },
    }
}

/// Awaits `future`, which reads a JSON text of `bytes` bytes when it is first polled: a long one on a thread for such work.
///
/// # Panics
/// `future` panics.
pub async fn begin_off_thread<F>(bytes: usize, mut future: Pin<Box<F>>) -> F::Output
where
    F: Future<Output: Send> + Send + 'static,
{
    if bytes <= QUICK_BYTES {
        return future.await;
    }
    let span = tracing::Span::current();
    let (future, first) = off_thread(bytes, move || {
        // Whatever wakes it later is registered by the next poll, which is the first on the task itself.
        let first = span.in_scope(|| future.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        (future, first)
    })
    .await;
    match first {
        Poll::Ready(output) => output,
        Poll::Pending => future.await,
    }
}

/// The key to which `serde_json` gives a meaning of its own: the text beside it is read as JSON in place of the object, as deep
/// again as a whole text may be.
const RESERVED_KEY: &str = "$serde_json::private::RawValue";
/// Most bytes of the reserved key in a JSON text, each of its characters escaped.
const LONGEST_SPELLING: usize = 6 * RESERVED_KEY.len();

/// Why nothing is built from a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It has more keys and values than the limit.
    #[error("the JSON has too many keys and values")]
    TooMany,
    /// An object has a key with a private meaning of `serde_json`.
    #[error("the JSON has an object with the key `{RESERVED_KEY}`, which is reserved: choose another name")]
    ReservedKey,
}

/// Counts the values and the keys of a JSON text in one pass, before anything is built from it. An empty array or object counts as
/// two. A text that is not JSON has a count as well: its structural characters outside strings.
///
/// # Errors
/// There are more than `most`, which ends the pass, or a key is reserved.
pub fn count_values(json: &[u8], most: usize) -> Result<usize, Unreadable> {
    let (mut count, mut bytes, mut last) = (1usize, json.iter(), &json[..0]);
    while let Some(byte) = bytes.next() {
        match byte {
            b':' if is_reserved(last) => return Err(Unreadable::ReservedKey),
            b'{' | b'[' | b',' | b':' => count += 1,
            b'"' => last = string(&mut bytes),
            _ => continue,
        }
        if count > most {
            return Err(Unreadable::TooMany);
        }
    }
    Ok(count)
}

/// Reads a JSON text that a stranger chose: a script, an upstream or another server.
///
/// # Errors
/// The text is not a `T`, or a key is reserved.
pub fn read_json<'t, T: Deserialize<'t>>(text: &'t (impl AsRef<[u8]> + ?Sized)) -> serde_json::Result<T> {
    count_values(text.as_ref(), usize::MAX).map_err(serde_json::Error::custom)?;
    serde_json::from_slice(text.as_ref())
}

/// Takes the rest of a string with its closing quote, and returns what stands in it.
fn string<'j>(bytes: &mut std::slice::Iter<'j, u8>) -> &'j [u8] {
    let text = bytes.as_slice();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return &text[..text.len() - bytes.as_slice().len() - 1],
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
    text
}

/// Returns `true` if a string of a JSON text is the reserved key, whatever the spelling.
fn is_reserved(string: &[u8]) -> bool {
    if string == RESERVED_KEY.as_bytes() {
        return true;
    }
    if !(RESERVED_KEY.len()..=LONGEST_SPELLING).contains(&string.len()) || !string.contains(&b'\\') {
        return false;
    }
    let quoted = [b"\"", string, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).is_ok_and(|text| text == RESERVED_KEY)
}

/// The size of a value as [`off_thread`] wants it: a value of many small parts counts as a long text. Looks at no more parts
/// than that takes.
pub fn bulk(value: &Value) -> usize {
    let (mut left, mut bytes) = (QUICK_VALUES, 0);
    count(value, &mut left, &mut bytes);
    if left == 0 { usize::MAX } else { bytes }
}

/// The same for an object.
pub(crate) fn bulk_of(object: &JsonObject) -> usize {
    let (mut left, mut bytes) = (QUICK_VALUES, 0);
    for (name, member) in object {
        bytes += name.len();
        count(member, &mut left, &mut bytes);
    }
    if left == 0 { usize::MAX } else { bytes }
}

fn count(value: &Value, left: &mut usize, bytes: &mut usize) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    match value {
        Value::String(text) => *bytes = bytes.saturating_add(text.len()),
        Value::Array(items) => items.iter().for_each(|item| count(item, left, bytes)),
        Value::Object(members) => members.iter().for_each(|(name, member)| {
            *bytes = bytes.saturating_add(name.len());
            count(member, left, bytes);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn many_small_values_and_one_long_text_are_bulky_and_ordinary_arguments_are_not() {
        assert!(bulk(&json!({"id": 7, "names": ["a", "b"]})) < 100);
        assert!(bulk(&json!(vec![json!({}); QUICK_VALUES])) > QUICK_BYTES);
        assert!(bulk(&json!("x".repeat(QUICK_BYTES + 1))) > QUICK_BYTES);
    }

    #[test]
    fn keys_and_values_are_counted_and_what_stands_in_strings_is_not() {
        let count = |text: &str| count_values(text.as_bytes(), 100);
        for (text, values) in [
            ("7", 1),
            (r#"{"a":1}"#, 3),
            (r#"{"a":1,"b":[1,2,3]}"#, 8),
            ("[1,2,3]", 4),
            ("[[],{}]", 5),
            (r#""{[,:\",:{\\""#, 1),
            (r#"["a,b\"c",":"]"#, 3),
            (r#"{"a:b"#, 2),
            ("", 1),
        ] {
            assert_eq!(count(text), Ok(values), "{text}");
        }
        assert_eq!(count(&",".repeat(99)), Ok(100));
        assert_eq!(count(&",".repeat(100)), Err(Unreadable::TooMany));
    }

    #[test]
    fn the_reserved_key_is_refused_in_every_spelling_and_accepted_where_it_is_no_key() {
        let reserved = [
            r#"{"$serde_json::private::RawValue":"1"}"#,
            r#"[{"a":{"$serde_json::private::RawValue" : "1"}}]"#,
            r#"{"\u0024serde_json::private::\u0052awValue":"1"}"#,
            r#"{"a":1,"$serde_json::private::RawValue":2}"#,
        ];
        for text in reserved {
            assert_eq!(count_values(text.as_bytes(), 100), Err(Unreadable::ReservedKey), "{text}");
            let refused = read_json::<Value>(text).unwrap_err().to_string();
            assert!(refused.contains("choose another name"), "{refused}");
        }
        for text in [
            r#"["$serde_json::private::RawValue"]"#,
            r#"{"a":"$serde_json::private::RawValue","b":1}"#,
            r#"{"$serde_json::private::RawValue2":"1"}"#,
            r#"{"text":"{\"$serde_json::private::RawValue\":\"1\"}"}"#,
        ] {
            assert_eq!(read_json::<Value>(text).unwrap().to_string(), text);
        }
    }

    #[tokio::test]
    async fn a_future_that_reads_a_long_text_begins_on_another_thread_and_goes_on_here() {
        // Waits for nothing at its first poll: whoever polls it again is there.
        let threads = || {
            let mut first = None;
            std::future::poll_fn(move |_| {
                let now = std::thread::current().id();
                let before = first.replace(now);
                before.map_or(Poll::Pending, |before| Poll::Ready((before, now)))
            })
        };
        let here = std::thread::current().id();
        let (first, then) = begin_off_thread(QUICK_BYTES + 1, Box::pin(threads())).await;
        assert!(first != here && then == here);
        let short = async { std::thread::current().id() };
        assert_eq!(begin_off_thread(QUICK_BYTES, Box::pin(short)).await, here);
    }

    #[tokio::test]
    async fn long_work_leaves_the_thread_that_serves_requests() {
        let here = std::thread::current().id();
        assert_eq!(off_thread(QUICK_BYTES, || std::thread::current().id()).await, here);
        assert_ne!(off_thread(QUICK_BYTES + 1, || std::thread::current().id()).await, here);
    }
}
