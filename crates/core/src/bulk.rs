//! Work on large values, kept off the threads that serve requests.

use std::{
    num::NonZeroUsize,
    pin::Pin,
    sync::LazyLock,
    task::{Context, Poll, Waker},
};

use rmcp::model::JsonObject;
use serde_json::Value;
use tokio::sync::Semaphore;

/// Longest JSON text, in bytes, that is read or written on a thread that serves requests.
const QUICK_BYTES: usize = 64 * 1024;
/// Most members and items of a value that is looked at on a thread that serves requests.
const QUICK_VALUES: usize = 2_000;

/// Room for work on threads of its own: more of it than there are processors is no sooner done, and takes memory meanwhile.
static LONG_WORK: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(2, NonZeroUsize::get)));

/// Runs `work` on a JSON text of `bytes` bytes: at once when it is short, else on a thread for such work, once there is room.
///
/// # Panics
/// `work` panics.
pub async fn off_thread<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    if bytes <= QUICK_BYTES {
        return work();
    }
    // The semaphore is never closed.
    let _room = LONG_WORK.acquire().await;
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

/// The size of a value as [`off_thread`] wants it: a value of many small parts counts as a long text. Looks at no more parts
/// than that takes.
pub fn bulk(value: &Value) -> usize {
    let (mut left, mut bytes) = (QUICK_VALUES, 0);
    count(value, &mut left, &mut bytes);
    if left == 0 { usize::MAX } else { bytes }
}

/// The same for an object.
pub fn bulk_of(object: &JsonObject) -> usize {
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
