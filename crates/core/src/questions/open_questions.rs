//! The open questions of a call whose caller answers in another request: open questions, and whoever waits for the call now.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rmcp::{
    ErrorData, RoleServer,
    model::{ClientResult, InputRequest, InputRequests, InputResponses, ProgressToken, ServerResult},
    service::{Peer, RequestContext},
};
use tokio::{
    sync::{Notify, oneshot, watch},
    time::Instant,
};

use super::{CannotAsk, kind::answer_of, room::QuestionRoom};
use crate::{Claimant, ProgressSink, Share};

/// Time in which questions that follow the first one go out with it.
const TOGETHER: Duration = Duration::from_millis(10);

/// The id of a held call: random, so that it cannot be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OpenCallId([u8; 16]);

impl OpenCallId {
    pub(super) fn random() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the system's random numbers");
        Self(bytes)
    }

    /// The id as text.
    pub(crate) fn text(self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// The id that a text is.
    pub(crate) fn named(text: &str) -> Option<Self> {
        URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok().map(Self)
    }
}

/// The end of a call.
pub(super) type Outcome = Result<ServerResult, ErrorData>;

/// Open questions of a call, and its end.
pub(super) struct OpenQuestions {
    state: Mutex<State>,
    /// Something for the caller is there.
    news: Notify,
    /// The id under which the call waits for its caller, and until when; none while the caller waits for the call.
    left: watch::Sender<Option<(OpenCallId, Instant)>>,
    present: watch::Sender<bool>,
    /// The call goes on without the request that began it.
    is_away: AtomicBool,
    room: QuestionRoom,
}

#[derive(Default)]
struct State {
    line: Option<Line>,
    open: Vec<OpenQuestion>,
    asked: usize,
    outcome: Option<(Outcome, Option<Share>)>,
}

struct OpenQuestion {
    key: String,
    question: InputRequest,
    answer: oneshot::Sender<ClientResult>,
}

/// The connection of the request that waits for the call now.
#[derive(Clone)]
struct Line {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    sink: Option<ProgressSink>,
}

/// News of a call.
pub(super) enum News {
    /// It is over.
    Over(Box<Outcome>),
    /// It asks.
    Asks,
}

impl std::fmt::Debug for OpenQuestions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenQuestions").field("open", &self.lock().open.len()).finish_non_exhaustive()
    }
}

impl OpenQuestions {
    /// No questions, of a call whose result waits in `room`.
    pub(super) fn new(room: QuestionRoom) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            news: Notify::new(),
            left: watch::Sender::new(None),
            present: watch::Sender::new(true),
            is_away: AtomicBool::new(false),
            room,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn claimant(&self) -> &Claimant {
        self.room.claimant()
    }

    pub(super) fn presence(&self) -> watch::Receiver<bool> {
        self.present.subscribe()
    }

    /// The id under which the call waits, and until when.
    pub(super) fn left(&self) -> watch::Receiver<Option<(OpenCallId, Instant)>> {
        self.left.subscribe()
    }

    pub(super) fn peer(&self) -> Option<Peer<RoleServer>> {
        self.lock().line.as_ref().map(|line| line.peer.clone())
    }

    /// From now on the call goes on without the request that began it, on whose stream nothing can be asked any more.
    pub(super) fn go_away(&self) {
        self.is_away.store(true, Ordering::Release);
    }

    /// Returns `true` if the call goes on without the request that began it.
    pub(super) fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Acquire)
    }

    /// The request of `context` waits for the call from now on.
    pub(super) fn attend(&self, context: &RequestContext<RoleServer>) {
        let line = Line {
            peer: context.peer.clone(),
            token: context.meta.get_progress_token(),
            sink: context.extensions.get().cloned(),
        };
        self.lock().line = Some(line);
        self.left.send_if_modified(|left| left.take().is_some());
        self.present.send_if_modified(|present| !std::mem::replace(present, true));
    }

    /// Nobody waits for the call until a request names `id`.
    pub(super) fn leave(&self, id: OpenCallId, until: Instant) {
        self.lock().line = None;
        self.left.send_replace(Some((id, until)));
        self.present.send_if_modified(|present| std::mem::replace(present, false));
    }

    /// Hands progress of the call to whoever waits for it.
    pub(super) fn progress(self: &Arc<Self>) -> ProgressSink {
        let asked = self.clone();
        ProgressSink::new(move |mut progress| {
            let line = asked.lock().line.clone();
            Box::pin(async move {
                let Some(Line { peer, token, sink }) = line else { return };
                if let Some(sink) = sink {
                    sink.receive(progress).await;
                } else if let Some(token) = token {
                    progress.progress_token = token;
                    let _ = peer.notify_progress(progress).await;
                }
            })
        })
    }

    /// Waits for the caller's answer. Dropped, it takes the question back.
    pub(super) async fn ask(&self, question: InputRequest) -> Result<ClientResult, CannotAsk> {
        let (answer, answered) = oneshot::channel();
        let key = {
            let mut state = self.lock();
            state.asked += 1;
            let key = format!("question_{}", state.asked);
            state.open.push(OpenQuestion { key: key.clone(), question, answer });
            key
        };
        self.news.notify_one();
        let _open = TakenBack { asked: self, key };
        answered.await.map_err(|_| CannotAsk::Busy)
    }

    /// Refuses every open question.
    pub(super) fn refuse_all(&self) {
        self.lock().open.clear();
    }

    /// The open questions.
    pub(super) fn requests(&self) -> InputRequests {
        self.lock().open.iter().map(|open| (open.key.clone(), open.question.clone())).collect()
    }

    /// The answers among `responses` to questions that are open.
    ///
    /// # Errors
    /// The key of a response that does not fit its question.
    pub(super) fn read(&self, responses: &InputResponses) -> Result<Vec<(String, ClientResult)>, String> {
        let state = self.lock();
        let open = state.open.iter().filter_map(|open| Some((open, responses.get(&open.key)?)));
        open.map(|(open, response)| match answer_of(&open.question, response) {
            Some(answer) => Ok((open.key.clone(), answer)),
            None => Err(open.key.clone()),
        })
        .collect()
    }

    /// Hands answers to whoever asked. Each question is answered once.
    pub(super) fn answer(&self, answers: Vec<(String, ClientResult)>) {
        let mut state = self.lock();
        for (key, answer) in answers {
            if let Some(at) = state.open.iter().position(|open| open.key == key) {
                // The asker may have taken it back in this moment.
                let _ = state.open.remove(at).answer.send(answer);
            }
        }
    }

    /// The call is over. Whatever it ends with is kept for the caller, in the room that the caller has.
    pub(super) fn end(&self, outcome: Outcome) {
        let room = match (&outcome, *self.present.borrow()) {
            (Ok(result), false) => {
                let bytes = json_len(result);
                self.room.take(bytes).map(Some).ok_or(bytes)
            }
            _ => Ok(None),
        };
        let ended = match room {
            Ok(room) => (outcome, room),
            Err(bytes) => {
                let message = format!(
                    "the call ended while it waited for your answer, and there is no room for its result of {bytes} bytes; what it did is done"
                );
                (Err(ErrorData::internal_error(message, None)), None)
            }
        };
        self.lock().outcome = Some(ended);
        self.news.notify_one();
    }

    /// Waits until the call is over, or asks. Questions that come close together come as one.
    pub(super) async fn news(&self) -> News {
        loop {
            {
                let mut state = self.lock();
                if let Some((outcome, _)) = state.outcome.take() {
                    return News::Over(Box::new(outcome));
                }
                if !state.open.is_empty() {
                    break;
                }
            }
            self.news.notified().await;
        }
        tokio::time::sleep(TOGETHER).await;
        match self.lock().outcome.take() {
            Some((outcome, _)) => News::Over(Box::new(outcome)),
            None => News::Asks,
        }
    }
}

/// Takes a question back when dropped.
struct TakenBack<'a> {
    asked: &'a OpenQuestions,
    key: String,
}

impl Drop for TakenBack<'_> {
    fn drop(&mut self) {
        self.asked.lock().open.retain(|open| open.key != self.key);
    }
}

/// Bytes of a value as JSON.
pub(super) fn json_len(value: &impl serde::Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}
