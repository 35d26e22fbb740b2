//! Messages that wait to be written to a server, bounded in bytes.
//!
//! A request that is cancelled before its first byte was written is taken out again, so that callers who leave do not fill the memory of
//! the gateway while a server does not read.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::{Notify, oneshot, watch},
};

use crate::{outgoing::cancelled, rare_line::RareLine};

/// Bytes that may wait for one server, the message under way included. A message that is alone may be of any length.
const MOST_BYTES: usize = 64 << 20;
/// Answers to the server's own requests that may wait for it.
const MOST_ANSWERS: usize = 256;
/// Bytes of the same. An answer that is alone may be of any length.
const MOST_ANSWER_BYTES: usize = 4 << 20;
/// Bytes that a message counts for besides its own.
const OVERHEAD: usize = 256;

type Written = oneshot::Sender<io::Result<()>>;

/// Why nothing can be written to a server any more, once that is so.
pub(crate) type InputLost = watch::Receiver<Option<Arc<str>>>;

/// A message that waits.
#[derive(Debug)]
struct Waiting {
    line: Vec<u8>,
    request: Option<RequestId>,
    is_answer: bool,
    written: Written,
}

impl Waiting {
    fn size(&self) -> usize {
        self.line.len() + OVERHEAD
    }
}

#[derive(Debug, Default)]
struct Queue {
    waiting: BTreeMap<u64, Waiting>,
    requests: HashMap<RequestId, u64>,
    next: u64,
    bytes: usize,
    answers: usize,
    answer_bytes: usize,
    closed: bool,
}

impl Queue {
    /// Returns `true` if an answer of `bytes` is one too many.
    fn is_full_of_answers(&self, bytes: usize) -> bool {
        self.answers >= MOST_ANSWERS || self.answers > 0 && self.answer_bytes + bytes > MOST_ANSWER_BYTES
    }

    /// Counts a message as one that waits, or no longer.
    fn count(&mut self, message: &Waiting, waits: bool) {
        let (answers, bytes) = if message.is_answer { (1, message.size()) } else { (0, 0) };
        if waits {
            self.bytes += message.size();
            (self.answers, self.answer_bytes) = (self.answers + answers, self.answer_bytes + bytes);
        } else {
            self.bytes = self.bytes.saturating_sub(message.size());
            (self.answers, self.answer_bytes) =
                (self.answers.saturating_sub(answers), self.answer_bytes.saturating_sub(bytes));
        }
    }

    fn take(&mut self, number: u64) -> Option<Waiting> {
        let taken = self.waiting.remove(&number)?;
        if let Some(id) = &taken.request {
            self.requests.remove(id);
        }
        Some(taken)
    }
}

/// The messages that wait for one server.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    id: Arc<str>,
    queue: Mutex<Queue>,
    changed: Notify,
    dropped: RareLine,
}

impl Outbox {
    /// An outbox of the app of this id.
    pub(super) fn new(id: &str) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// Queues a message. A cancellation of a request that still waits takes that one out instead. An answer to a server that asks more than it
    /// reads answers is dropped.
    pub(super) fn push(
        &self,
        message: &ClientJsonRpcMessage,
    ) -> io::Result<oneshot::Receiver<io::Result<()>>> {
        let (written, receiver) = oneshot::channel();
        if let Some(id) = cancelled(message)
            && self.withdraw(id)
        {
            let _ = written.send(Ok(()));
            return Ok(receiver);
        }
        let mut line = serde_json::to_vec(message).map_err(io::Error::other)?;
        line.push(b'\n');
        let request = match message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let is_answer = matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let new = Waiting { line, request, is_answer, written };
        let mut queue = self.lock();
        if queue.closed {
            return Err(closed());
        }
        if is_answer && queue.is_full_of_answers(new.size()) {
            drop(queue);
            if self.dropped.is_due() {
                tracing::warn!(app.id = %self.id, "an app asks more than it reads answers: some answers to its requests are dropped");
            }
            let _ = new.written.send(Ok(()));
            return Ok(receiver);
        }
        if queue.bytes > 0 && queue.bytes + new.size() > MOST_BYTES {
            let problem = format!(
                "the server reads its standard input too slowly, and {} bytes wait for it already",
                queue.bytes
            );
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, problem));
        }
        queue.count(&new, true);
        let number = queue.next;
        queue.next += 1;
        if let Some(id) = &new.request {
            queue.requests.insert(id.clone(), number);
        }
        queue.waiting.insert(number, new);
        drop(queue);
        self.changed.notify_one();
        Ok(receiver)
    }

    /// Takes no more messages.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Writes the messages until the outbox is closed or the server reads nothing for `longest`. `lost` gets the reason.
    pub(super) async fn write_to(
        &self,
        mut stdin: impl AsyncWrite + Unpin,
        longest: Duration,
        lost: watch::Sender<Option<Arc<str>>>,
    ) {
        while let Some(next) = self.next().await {
            let written = write(&mut stdin, &next.line, longest).await;
            self.lock().count(&next, false);
            let failed = written.as_ref().err().map(ToString::to_string);
            let _ = next.written.send(written);
            if let Some(why) = failed {
                self.drop_all();
                lost.send_replace(Some(why.into()));
                return;
            }
        }
    }

    async fn next(&self) -> Option<Waiting> {
        loop {
            {
                let mut queue = self.lock();
                if let Some(first) = queue.waiting.keys().next().copied() {
                    return queue.take(first);
                }
                if queue.closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    fn withdraw(&self, id: &RequestId) -> bool {
        let mut queue = self.lock();
        let Some(number) = queue.requests.get(id).copied() else { return false };
        let Some(taken) = queue.take(number) else { return false };
        queue.count(&taken, false);
        drop(queue);
        let _ = taken.written.send(Ok(()));
        true
    }

    /// Closes the outbox, and fails what waits.
    fn drop_all(&self) {
        let waiting = {
            let mut queue = self.lock();
            queue.closed = true;
            (queue.bytes, queue.answers, queue.answer_bytes) = (0, 0, 0);
            queue.requests.clear();
            std::mem::take(&mut queue.waiting)
        };
        for (_, message) in waiting {
            let _ = message.written.send(Err(closed()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the server's standard input is closed")
}

/// Writes a line. Fails once nothing of it was read for `longest`.
async fn write(stdin: &mut (impl AsyncWrite + Unpin), mut line: &[u8], longest: Duration) -> io::Result<()> {
    let stuck = |_| {
        let seconds = longest.as_secs();
        let problem = format!("it read nothing of its standard input for {seconds} s (`timeout` and 30 s)");
        io::Error::new(io::ErrorKind::TimedOut, problem)
    };
    let broken =
        |error: io::Error| io::Error::new(error.kind(), format!("it closed its standard input: {error}"));
    while !line.is_empty() {
        let count = tokio::time::timeout(longest, stdin.write(line)).await.map_err(stuck)?.map_err(broken)?;
        if count == 0 {
            return Err(broken(io::ErrorKind::WriteZero.into()));
        }
        line = &line[count..];
    }
    tokio::time::timeout(longest, stdin.flush()).await.map_err(stuck)?.map_err(broken)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};

    use super::*;

    const LONGEST: Duration = Duration::from_secs(90);

    fn message(value: Value) -> ClientJsonRpcMessage {
        serde_json::from_value(value).unwrap()
    }

    fn call(id: u32, bytes: usize) -> ClientJsonRpcMessage {
        let params = json!({"name": "a", "arguments": {"a": "x".repeat(bytes)}});
        message(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    }

    fn cancel(id: u32) -> ClientJsonRpcMessage {
        message(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
    }

    #[tokio::test]
    async fn a_cancelled_call_that_waits_leaves_the_outbox_and_one_under_way_is_written_whole() {
        let outbox = Arc::new(Outbox::default());
        let (server, stdin) = tokio::io::duplex(1024);
        let (lost, _) = watch::channel(None);
        let writing = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.write_to(stdin, LONGEST, lost).await }
        });
        let first = outbox.push(&call(0, 1_000_000)).unwrap();
        let mut lines = BufReader::with_capacity(16, server);
        lines.fill_buf().await.unwrap();
        // More than may wait, were they not taken out.
        for id in 1..200 {
            let waits = outbox.push(&call(id, 1_000_000)).unwrap();
            let cancelled = outbox.push(&cancel(id)).unwrap();
            assert!(waits.await.unwrap().is_ok() && cancelled.await.unwrap().is_ok());
        }
        assert!(outbox.lock().bytes < 1_100_000 && outbox.lock().requests.is_empty());
        drop(outbox.push(&cancel(0)).unwrap());
        outbox.close();
        let mut read = String::new();
        lines.read_to_string(&mut read).await.unwrap();
        let ids: Vec<Value> = read.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&ids[0]["id"], &ids[1]["params"]["requestId"], ids.len()), (&json!(0), &json!(0), 2));
        assert!(first.await.unwrap().is_ok());
        writing.await.unwrap();
        assert_eq!(outbox.lock().bytes, 0);
    }

    #[test]
    fn what_waits_is_bounded_in_bytes_and_a_message_alone_may_be_longer() {
        let outbox = Outbox::default();
        let alone = outbox.push(&call(0, MOST_BYTES + 1));
        assert!(alone.is_ok());
        let refused = outbox.push(&call(1, 10)).unwrap_err();
        assert!(refused.to_string().contains("wait for it already"), "{refused}");
        drop(outbox.push(&cancel(0)).unwrap());
        let room = (0..1_000).take_while(|id| outbox.push(&call(*id, 1 << 20)).is_ok()).count();
        assert_eq!(room, 63);
    }

    #[test]
    fn a_server_that_asks_and_does_not_read_has_few_answers_waiting_and_can_still_be_called() {
        let answer = |bytes: usize| {
            message(json!({"jsonrpc": "2.0", "id": "x".repeat(bytes), "result": {"resultType": "complete"}}))
        };
        let waiting = |outbox: &Outbox| outbox.lock().answers;
        for (bytes, expected) in [(900, MOST_ANSWERS), (100_000, 41), (5 << 20, 1)] {
            let outbox = Outbox::new("a");
            for _ in 0..300 {
                drop(outbox.push(&answer(bytes)).unwrap());
            }
            assert_eq!(waiting(&outbox), expected);
            assert!(outbox.push(&call(0, 1_000)).is_ok());
            drop(outbox.push(&cancel(0)).unwrap());
            let queue = outbox.lock();
            assert_eq!(queue.bytes, queue.answer_bytes);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_reads_slowly_is_kept_and_one_that_stops_is_given_up() {
        let outbox = Arc::new(Outbox::default());
        let (mut server, stdin) = tokio::io::duplex(1024);
        let (lost, mut given_up) = watch::channel(None);
        let writing = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.write_to(stdin, LONGEST, lost).await }
        });
        let slow = outbox.push(&call(0, 20_000)).unwrap();
        let mut part = [0; 1024];
        for _ in 0..9 {
            tokio::time::sleep(LONGEST - Duration::from_secs(1)).await;
            server.read_exact(&mut part).await.unwrap();
        }
        assert_eq!(*given_up.borrow(), None);
        let behind = outbox.push(&call(1, 10)).unwrap();
        let why = given_up.wait_for(Option::is_some).await.unwrap().clone().unwrap();
        assert!(why.contains("read nothing of its standard input for 90 s"), "{why}");
        assert!(slow.await.unwrap().is_err() && behind.await.unwrap().is_err());
        writing.await.unwrap();
        assert!(outbox.push(&call(2, 10)).is_err());
    }
}
