//! Answers for clients whose connection broke (MCP 2025-11-25, transports: resumability).
//!
//! `rmcp` replays the events of a request until it is answered. What comes after that is here: an answer is kept for
//! [`RESUME_TIME`] after it was sent, or was ready while its client was away, and a request whose client does not come back is cancelled.

use std::{
    collections::{HashMap, VecDeque},
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll},
    time::Duration,
};

use futures::{Stream, StreamExt as _};
use gatewright_core::{Claimant, Portion, Share, Shares};
use rmcp::{
    model::{
        CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, JsonRpcMessage, RequestId,
        ServerJsonRpcMessage,
    },
    transport::streamable_http_server::session::{
        ServerSseMessage, SessionId, SessionManager as _, local::LocalSessionManager,
    },
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::in_flight::InFlight;

/// Time after which clients are told to reconnect.
pub(crate) const RETRY: Duration = Duration::from_secs(1);
/// Time in which a client whose stream broke may resume it before the request counts as given up. Its answer is kept as long.
const RESUME_TIME: Duration = Duration::from_secs(5);
const _: () = assert!(RETRY.as_millis() * 3 <= RESUME_TIME.as_millis());

/// Bytes of all answers that are kept. What finds no room is not kept.
const MOST_BYTES: usize = 64 << 20;
/// Bytes of an answer that is kept though it was sent: few are asked for again.
const MOST_OF_SENT: usize = 256 << 10;
/// Bytes that an answer counts besides its text.
const OVERHEAD: usize = 1024;

pub(crate) type Events = Pin<Box<dyn Stream<Item = ServerSseMessage> + Send + Sync>>;

/// A request of a session, as its answer is resumed or given up.
pub(crate) struct Work {
    pub(crate) sessions: Weak<LocalSessionManager>,
    /// Id of the session as clients know it, and as `rmcp` does.
    pub(crate) session: (SessionId, SessionId),
    pub(crate) request: RequestId,
    pub(crate) in_flight: InFlight,
    pub(crate) caller: Claimant,
    /// Cancelled when its answer is kept, or finds no room.
    pub(crate) answered: CancellationToken,
}

impl Work {
    fn is_answer(&self, event: &ServerSseMessage) -> bool {
        event.message.as_deref().is_some_and(|message| answers(message, &self.request))
    }

    async fn cancel(&self) {
        let Some(sessions) = self.sessions.upgrade() else { return };
        let message = cancellation(self.request.clone(), "its client closed the connection");
        let _ = self.in_flight.receive(&message, None);
        // A session that has ended has no requests.
        let _ = sessions.accept_message(&self.session.1, message).await;
    }
}

/// The notification that cancels `request`.
pub(crate) fn cancellation(request: RequestId, why: &str) -> ClientJsonRpcMessage {
    let params = CancelledNotificationParam::new(Some(request), Some(why.to_owned()));
    ClientJsonRpcMessage::notification(CancelledNotification::new(params).into())
}

/// Returns `true` if `message` answers `request`.
pub(crate) fn answers(message: &ServerJsonRpcMessage, request: &RequestId) -> bool {
    match message {
        JsonRpcMessage::Response(response) => response.id == *request,
        JsonRpcMessage::Error(error) => error.id.as_ref() == Some(request),
        _ => false,
    }
}

enum Entry {
    /// Not answered yet.
    Open(Arc<Work>),
    Answered {
        event: ServerSseMessage,
        until: Instant,
        _room: Share,
    },
}

/// The requests of all sessions whose streams can be resumed, by session and number of the stream.
pub(crate) struct Resumptions {
    table: Mutex<Table>,
    room: Arc<Shares>,
}

#[derive(Default)]
struct Table {
    entries: HashMap<SessionId, HashMap<u64, Entry>>,
    /// Answers in the order in which they came. Some are gone already.
    answered: VecDeque<(Instant, SessionId, u64)>,
}

impl Resumptions {
    pub(crate) fn new() -> Arc<Self> {
        let room = Shares::new(MOST_BYTES, Portion::QuarterOfFree);
        Arc::new(Self { table: Mutex::default(), room })
    }

    /// The stream of the answer to a request, which can be resumed once its number is known from the event `first`.
    pub(crate) fn begin(
        self: &Arc<Self>,
        first: Option<&ServerSseMessage>,
        events: Events,
        work: Work,
    ) -> Events {
        let id = first.and_then(|event| event.event_id.as_deref());
        let Some((_, stream)) = id.and_then(place) else { return events };
        self.answering(stream, events, Arc::new(work))
    }

    /// The same for a stream that was resumed after the event `last`.
    pub(crate) fn again(self: &Arc<Self>, session: &SessionId, last: &str, events: Events) -> Events {
        let Some((_, stream)) = place(last) else { return events };
        let work = match self.lock().entries.get(session).and_then(|streams| streams.get(&stream)) {
            Some(Entry::Open(work)) => work.clone(),
            _ => return events,
        };
        self.answering(stream, events, work)
    }

    /// The answer that came after the event `last`, if it is kept. One that `rmcp` has just handed over is waited for.
    pub(crate) async fn answer(&self, session: &SessionId, last: &str) -> Option<ServerSseMessage> {
        let (_, stream) = place(last)?;
        let open = match self.lock().entries.get(session)?.get(&stream)? {
            Entry::Open(work) => Some(work.answered.clone()),
            Entry::Answered { .. } => None,
        };
        if let Some(answered) = open {
            tokio::time::timeout(RETRY, answered.cancelled()).await.ok()?;
        }
        self.kept(session, last)
    }

    fn kept(&self, session: &SessionId, last: &str) -> Option<ServerSseMessage> {
        let (index, stream) = place(last)?;
        let table = self.lock();
        let Entry::Answered { event, until, .. } = table.entries.get(session)?.get(&stream)? else {
            return None;
        };
        let (own, _) = place(event.event_id.as_deref()?)?;
        (own > index && *until > Instant::now()).then(|| event.clone())
    }

    /// Drops all of a session that has ended.
    pub(crate) fn forget(&self, session: &SessionId) {
        self.lock().entries.remove(session);
    }

    fn answering(self: &Arc<Self>, stream: u64, events: Events, work: Arc<Work>) -> Events {
        self.put(&work, stream, Entry::Open(work.clone()));
        let open = Open { resumptions: self.clone(), stream, work, answered: false, answer: None };
        Box::pin(Answering { events, open: Some(open) })
    }

    fn put(&self, work: &Work, stream: u64, entry: Entry) {
        self.lock().entries.entry(work.session.0.clone()).or_default().insert(stream, entry);
    }

    /// Keeps the answer to a request in place of its work, if it may be kept and there is room.
    fn keep(&self, work: &Work, stream: u64, answer: Option<Answer>) {
        let _answered = work.answered.clone().drop_guard();
        let now = Instant::now();
        let mut table = self.lock();
        table.drop_old(now);
        table.remove(&work.session.0, stream);
        let Some(Answer { event, bytes }) = answer else { return };
        let Ok(room) = self.room.take(work.caller.clone(), bytes + OVERHEAD) else { return };
        let (session, until) = (work.session.0.clone(), now + RESUME_TIME);
        table.answered.push_back((until, session.clone(), stream));
        let entry = Entry::Answered { event, until, _room: room };
        table.entries.entry(session).or_default().insert(stream, entry);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn drop_old(&mut self, now: Instant) {
        while let Some((_, session, stream)) = self.answered.pop_front_if(|(until, ..)| *until <= now) {
            let streams = self.entries.get(&session);
            if let Some(Entry::Answered { until, .. }) = streams.and_then(|streams| streams.get(&stream))
                && *until <= now
            {
                self.remove(&session, stream);
            }
        }
    }

    fn remove(&mut self, session: &SessionId, stream: u64) {
        let Some(streams) = self.entries.get_mut(session) else { return };
        streams.remove(&stream);
        if streams.is_empty() {
            self.entries.remove(session);
        }
    }
}

/// The index of an event, and the number of its stream.
fn place(id: &str) -> Option<(usize, u64)> {
    let (index, stream) = id.split_once('/')?;
    Some((index.parse().ok()?, stream.parse().ok()?))
}

/// Bytes of a message as JSON, if there are at most `most`.
fn length(message: &ServerJsonRpcMessage, most: usize) -> Option<usize> {
    struct Counted {
        left: usize,
    }

    impl io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.left = self.left.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut counted = Counted { left: most };
    serde_json::to_writer(&mut counted, message).ok()?;
    Some(most - counted.left)
}

/// The answer to one request. A client that leaves before its end, and does not come back in time, has cancelled the request.
struct Answering {
    events: Events,
    open: Option<Open>,
}

struct Open {
    resumptions: Arc<Resumptions>,
    stream: u64,
    work: Arc<Work>,
    answered: bool,
    /// The answer that was sent, if it is short enough to be kept.
    answer: Option<Answer>,
}

/// An answer that may be kept.
struct Answer {
    event: ServerSseMessage,
    bytes: usize,
}

impl Answer {
    /// The answer in `event`, if it has `most` bytes at most.
    fn of(event: &ServerSseMessage, most: usize) -> Option<Self> {
        let bytes = length(event.message.as_deref()?, most)?;
        Some(Self { event: event.clone(), bytes })
    }
}

impl Stream for Answering {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        let polled = self.events.as_mut().poll_next(context);
        match (&polled, &mut self.open) {
            (Poll::Ready(Some(event)), Some(open)) if open.work.is_answer(event) => {
                open.answered = true;
                // A long one would take several times its length until its client has read it.
                open.answer = Answer::of(event, MOST_OF_SENT);
            }
            // Without an answer, the client has another stream for it.
            (Poll::Ready(None), open) => {
                if let Some(open) = open.take() {
                    open.sent();
                }
            }
            _ => {}
        }
        polled
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let Some(open) = self.open.take() else { return };
        if open.answered {
            return open.sent();
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let events = std::mem::replace(&mut self.events, Box::pin(futures::stream::empty()));
            runtime.spawn(open.wait(events));
        }
    }
}

impl Open {
    /// Keeps the answer that was sent, if it was.
    fn sent(self) {
        if self.answered {
            self.resumptions.keep(&self.work, self.stream, self.answer);
        }
    }

    /// Waits for the answer on behalf of a client that left, until it resumes the stream, which ends `events`.
    async fn wait(self, mut events: Events) {
        let answer = async {
            while let Some(event) = events.next().await {
                if self.work.is_answer(&event) {
                    return Some(event);
                }
            }
            None
        };
        match tokio::time::timeout(RESUME_TIME, answer).await {
            Ok(Some(event)) => {
                self.resumptions.keep(&self.work, self.stream, Answer::of(&event, MOST_BYTES));
            }
            Ok(None) => {}
            Err(_) => {
                self.resumptions.lock().remove(&self.work.session.0, self.stream);
                self.work.cancel().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn work(session: &str) -> Work {
        Work {
            sessions: Weak::new(),
            session: (session.into(), session.into()),
            request: RequestId::Number(1),
            in_flight: InFlight::default(),
            caller: Claimant::new(Some("ada".into()), None, &[]),
            answered: CancellationToken::new(),
        }
    }

    fn event(index: usize, text: &str) -> ServerSseMessage {
        let message =
            json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": text}]}});
        let mut event = ServerSseMessage::from_message(serde_json::from_value(message).unwrap());
        event.event_id = Some(format!("{index}/7"));
        event
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_kept_for_its_session_until_the_time_is_over_or_the_session() {
        let (all, session) = (Resumptions::new(), SessionId::from("a"));
        all.keep(&work("a"), 7, Answer::of(&event(2, "x"), MOST_OF_SENT));
        assert!(all.kept(&session, "1/7").is_some());
        for (other, last) in [("a", "2/7"), ("a", "1/8"), ("a", "1"), ("b", "1/7")] {
            assert!(all.kept(&other.into(), last).is_none(), "{other} {last}");
        }
        tokio::time::advance(RESUME_TIME).await;
        assert!(all.kept(&session, "1/7").is_none());
        all.keep(&work("b"), 7, Answer::of(&event(2, "x"), MOST_OF_SENT));
        assert!(!all.lock().entries.contains_key(&session), "the old one is dropped");
        all.forget(&"b".into());
        assert_eq!((all.lock().entries.len(), all.room.taken()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_are_kept_are_bounded_for_each_caller() {
        let all = Resumptions::new();
        for n in 0..100 {
            let answer = Answer::of(&event(2, &"x".repeat(1 << 20)), MOST_BYTES);
            all.keep(&work(&n.to_string()), 7, answer);
        }
        assert!(
            all.room.taken() <= MOST_BYTES / 5 && all.room.taken() > MOST_BYTES / 8,
            "{}",
            all.room.taken()
        );
        all.keep(&work("long"), 7, Answer::of(&event(2, &"x".repeat(MOST_OF_SENT)), MOST_OF_SENT));
        assert!(all.kept(&"long".into(), "1/7").is_none());
    }
}
