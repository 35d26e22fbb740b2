//! Questions of one call: what an app asks through, and the deadline that stands still meanwhile.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rmcp::{
    RoleServer,
    model::{ClientResult, ServerRequest},
    service::{Peer, RequestContext},
};
use tokio::{sync::watch, time::Instant};

use super::{
    CannotAsk, Unasked,
    client::ask_one,
    desk::Desk,
    kind::{missing, outline_of, question_of},
};
use crate::Era;

/// Marks a request whose caller can send it again with answers: an extension of its context. Without it, a call that asks a client of the
/// era without sessions does not wait for the answer.
#[derive(Debug, Clone, Copy)]
pub struct AnswersByRetry;

/// Marks a request whose client is asked at once what an app asks with its answer, before the request is answered: an extension of its
/// context. Without it, such a question is the answer.
#[derive(Debug, Clone, Copy)]
pub struct AskedAtOnce;

/// Marks a request that repeats one which was counted for rate limits, with answers or the app's state: an extension of its context, for whoever
/// takes care that each answer is used once.
#[derive(Debug, Clone, Copy)]
pub struct CountedBefore;

/// Questions of one call. An extension of the call's context, which [`ask`] looks for.
#[derive(Debug, Clone)]
pub struct Questions(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Longest wait for one answer.
    longest: Duration,
    /// Questions that a client of the era with sessions is being asked.
    open: watch::Sender<usize>,
    /// The first question that could not be asked, and why.
    unasked: Mutex<Option<Unasked>>,
    /// Place at which a caller that answers in another request finds them.
    desk: Option<Arc<Desk>>,
}

impl Questions {
    pub(super) fn new(longest: Duration, desk: Option<Arc<Desk>>) -> Self {
        Self(Arc::new(Inner { longest, open: watch::Sender::new(0), unasked: Mutex::default(), desk }))
    }

    /// Stops the deadline of the call until the guard is dropped.
    pub(super) fn begin(&self) -> Thinking {
        self.0.open.send_modify(|open| *open += 1);
        Thinking(self.clone())
    }

    /// The first question that could not be asked, and why.
    pub(super) fn unasked(&self) -> Option<Unasked> {
        self.0.unasked.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn note_unasked(&self, asks: String, why: &CannotAsk) {
        // A client that answered with an error was asked.
        if !matches!(why, CannotAsk::Refused(_)) {
            let mut unasked = self.0.unasked.lock().unwrap_or_else(PoisonError::into_inner);
            unasked.get_or_insert(Unasked::new(asks, why.clone()));
        }
    }

    /// Does `work` for at most `limit`, in which the time with open questions does not count.
    pub(super) async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        let mut open = self.0.open.subscribe();
        let mut left = limit;
        tokio::pin!(work);
        loop {
            let (is_asking, since) = (*open.borrow_and_update() > 0, Instant::now());
            let over = async {
                match is_asking {
                    true => std::future::pending().await,
                    false => tokio::time::sleep(left).await,
                }
            };
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = over => return None,
                // The sender is `self`.
                _ = open.changed() => if !is_asking {
                    left = left.saturating_sub(since.elapsed());
                },
            }
        }
    }
}

/// A question that a client is thinking about.
#[derive(Debug)]
pub(super) struct Thinking(Questions);

impl Drop for Thinking {
    fn drop(&mut self) {
        self.0.0.open.send_modify(|open| *open -= 1);
    }
}

/// `true` while the caller of a call waits for it, as [`Presence::of`] a call that may wait for another request of its caller says.
#[derive(Debug)]
pub struct Presence(Option<watch::Receiver<bool>>);

impl Presence {
    /// The presence of the caller of `context`.
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        let desk = context.extensions.get::<Questions>().and_then(|questions| questions.0.desk.as_ref());
        Self(desk.map(|desk| desk.presence()))
    }

    /// Waits until the caller has left for an answer (`false`), or has come back with one (`true`).
    pub async fn changed(&mut self) -> bool {
        if let Some(present) = &mut self.0
            && present.changed().await.is_ok()
        {
            return *present.borrow_and_update();
        }
        std::future::pending().await
    }
}

/// The connection to the caller of a call; none while a caller that answers in another request has not sent it yet.
pub fn caller_peer(context: &RequestContext<RoleServer>) -> Option<Peer<RoleServer>> {
    match context.extensions.get::<Questions>().and_then(|questions| questions.0.desk.as_ref()) {
        Some(desk) => desk.peer(),
        None => Some(context.peer.clone()),
    }
}

/// Asks the caller of a call what a server wants to know, and waits for the answer. Dropped, it takes the question back.
///
/// To be awaited on the task of the call.
///
/// # Errors
/// The caller cannot be asked, or did not answer.
pub async fn ask(
    context: &RequestContext<RoleServer>,
    request: ServerRequest,
) -> Result<ClientResult, CannotAsk> {
    let Some(question) = question_of(request) else { return Err(CannotAsk::Capability("unknown")) };
    let questions = context.extensions.get::<Questions>();
    let desk = questions.and_then(|questions| questions.0.desk.as_ref());
    let has = context.client_capabilities().unwrap_or_default();
    let outline = outline_of(&question);
    let asked = match (missing(&question, &has), desk) {
        (Some(capability), _) => Err(CannotAsk::Capability(capability)),
        (None, Some(desk)) => desk.ask(question).await,
        (None, None) if Era::of(context).is_stateless() => Err(CannotAsk::Stateless),
        (None, None) => {
            let _thinking = questions.map(Questions::begin);
            let longest = questions.map_or(Duration::MAX, |questions| questions.0.longest);
            match tokio::time::timeout(longest, ask_one(context, question)).await {
                Ok(answer) => answer,
                Err(_) => Err(CannotAsk::TimedOut(longest)),
            }
        }
    };
    if let (Err(why), Some(questions)) = (&asked, questions) {
        questions.note_unasked(outline, why);
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_with_an_open_question_does_not_count_and_the_rest_does() {
        let questions = Questions::new(Duration::from_secs(600), None);
        let asks = async |thinks: u64, works: u64| {
            tokio::time::sleep(Duration::from_secs(works)).await;
            let first = questions.begin();
            let second = questions.begin();
            tokio::time::sleep(Duration::from_secs(thinks)).await;
            drop(first);
            tokio::time::sleep(Duration::from_secs(thinks)).await;
            drop(second);
            tokio::time::sleep(Duration::from_secs(works)).await;
        };
        let limit = Duration::from_secs(10);
        assert_eq!(questions.within(limit, asks(100, 4)).await, Some(()));
        let began = Instant::now();
        assert_eq!(questions.within(limit, asks(100, 6)).await, None);
        assert_eq!(began.elapsed().as_secs(), 6 + 200 + 4);
    }
}
