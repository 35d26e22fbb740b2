//! Spans that wait to be sent, in batches.

use std::{
    collections::VecDeque,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

/// Requests that wait to be sent; more are dropped.
const WAITING: usize = 2_048;
/// Spans that wait to be sent; requests beyond are dropped. An execution has up to 1,001.
const WAITING_SPANS: usize = 32_768;
/// Requests sent at once: what OpenTelemetry's own exporters send.
const BATCH: usize = 512;
/// Bytes of spans sent at once, but for one request that alone is more: half of what collectors take by default.
const BATCH_BYTES: usize = 2 * 1024 * 1024;

/// The spans of some requests, each written as a field of a protobuf message.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    requests: usize,
    spans: usize,
}

impl Batch {
    pub(crate) fn spans(&self) -> &[u8] {
        &self.bytes
    }

    fn takes(&self, bytes: usize) -> bool {
        self.requests < BATCH && (self.requests == 0 || self.bytes.len() + bytes <= BATCH_BYTES)
    }
}

/// Batches in the order they were begun; the last one is open.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    full: VecDeque<Batch>,
    open: Batch,
    requests: usize,
    spans: usize,
    is_closed: bool,
}

impl Waiting {
    fn has_room(&self, spans: usize) -> bool {
        !self.is_closed && self.requests < WAITING && self.spans + spans <= WAITING_SPANS
    }
}

impl Queue {
    /// Returns true if a request with this many spans would be kept.
    pub(crate) fn has_room(&self, spans: usize) -> bool {
        self.lock().has_room(spans)
    }

    /// Keeps the spans of one request, when there is room.
    pub(crate) fn push(&self, bytes: &[u8], spans: usize) -> bool {
        let mut waiting = self.lock();
        if !waiting.has_room(spans) {
            return false;
        }
        let is_full = !waiting.open.takes(bytes.len());
        if is_full {
            let full = mem::take(&mut waiting.open);
            waiting.full.push_back(full);
        }
        let is_first = waiting.open.requests == 0;
        waiting.open.bytes.extend(bytes);
        waiting.open.requests += 1;
        waiting.open.spans += spans;
        waiting.requests += 1;
        waiting.spans += spans;
        drop(waiting);
        // The task that sends sleeps through all others.
        if is_full || is_first {
            self.changed.notify_one();
        }
        true
    }

    /// Waits for the first of a batch, or for a full one. May return without.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns true if a batch is full.
    pub(crate) fn has_full(&self) -> bool {
        !self.lock().full.is_empty()
    }

    /// Returns true if nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().requests == 0
    }

    /// The oldest batch, full or not.
    pub(crate) fn take(&self) -> Option<Batch> {
        let mut waiting = self.lock();
        let batch = waiting.full.pop_front().unwrap_or_else(|| mem::take(&mut waiting.open));
        waiting.requests -= batch.requests;
        waiting.spans -= batch.spans;
        (batch.requests > 0).then_some(batch)
    }

    /// Drops everything that comes from now on.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
    }

    /// Returns true if nothing more is taken.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_full_by_requests_or_by_bytes() {
        let by_requests = Queue::default();
        for _ in 0..=BATCH {
            assert!(by_requests.push(b"x", 1));
        }
        assert_eq!(by_requests.take().map(|batch| batch.requests), Some(BATCH));
        assert_eq!(by_requests.take().map(|batch| batch.requests), Some(1));
        assert!(by_requests.take().is_none() && by_requests.is_empty());

        let by_bytes = Queue::default();
        for _ in 0..5 {
            assert!(by_bytes.push(&vec![0; BATCH_BYTES / 4], 1));
        }
        assert!(by_bytes.has_full());
        assert_eq!(by_bytes.take().map(|batch| batch.bytes.len()), Some(BATCH_BYTES));
        assert!(by_bytes.push(&vec![0; 2 * BATCH_BYTES], 1), "one that is more goes alone");
        assert_eq!(by_bytes.take().map(|batch| batch.requests), Some(1));
        assert_eq!(by_bytes.take().map(|batch| batch.bytes.len()), Some(2 * BATCH_BYTES));
    }

    #[test]
    fn what_waits_is_bounded_and_makes_room_again() {
        let queue = Queue::default();
        assert_eq!((0..3_000).filter(|_| queue.push(b"x", 1)).count(), WAITING);
        assert!(!queue.has_room(1));
        assert!(queue.take().is_some() && queue.has_room(1));
        queue.close();
        assert!(!queue.push(b"x", 1), "a queue that is closed takes nothing");
    }
}
