//! Questions of one call: what an app asks through, and the deadline that stands still meanwhile.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::{
    RoleServer,
    model::{ClientResult, InputRequest, ServerRequest},
    service::{Peer, RequestContext},
};
use serde::Serialize;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    CannotAsk, MOST_OPEN, MOST_QUESTIONS, Unasked,
    client::ask_one,
    kind::{leads_to_web, missing, outline_of, question_of},
    open_questions::OpenQuestions,
    room::{KeptQuestions, QuestionRoom},
};
use crate::Era;

/// Marks a request whose caller can send it again with answers: an extension of its context. Without it, a call that asks a client of the
/// era without sessions does not wait for the answer.
#[derive(Debug, Clone, Copy)]
pub struct AnswersByRetry;

/// Marks a request of a run that waits for the answers to what an app asks, whoever brings them: an extension of its context. Its client
/// need not be able to answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnsweredLater {
    /// Address of whoever began the run, if the request itself comes from nowhere.
    pub address: Option<IpAddr>,
}

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
    asked: Option<Arc<OpenQuestions>>,
    counts: Mutex<Counts>,
    room: QuestionRoom,
    kept: Mutex<KeptQuestions>,
}

/// Questions of a call.
#[derive(Debug, Default)]
struct Counts {
    asked: usize,
    /// Those that a server asked with requests, and that are not answered yet.
    open: usize,
}

impl Counts {
    fn add(&mut self, questions: usize) -> Result<(), CannotAsk> {
        if self.asked + questions > MOST_QUESTIONS {
            return Err(CannotAsk::TooMany);
        }
        self.asked += questions;
        Ok(())
    }
}

impl Questions {
    pub(super) fn new(longest: Duration, room: QuestionRoom, asked: Option<Arc<OpenQuestions>>) -> Self {
        let open = watch::Sender::new(0);
        let (unasked, counts, kept) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { longest, open, unasked, asked, counts, room, kept }))
    }

    /// Takes room for `questions`, which a client is asked on the stream of its request.
    ///
    /// # Errors
    /// There is none for the caller.
    pub(super) fn keep(&self, questions: &impl Serialize) -> Result<(), CannotAsk> {
        let room = self.0.room.of_question(questions)?;
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner).push(room);
        Ok(())
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts questions that are asked at once.
    ///
    /// # Errors
    /// The call asks too many in all.
    pub(super) fn count(&self, questions: usize) -> Result<(), CannotAsk> {
        self.counts().add(questions)
    }

    /// Lets a server ask one question, which is open until the guard is dropped.
    fn admit(&self) -> Result<Admitted, CannotAsk> {
        let mut counts = self.counts();
        if counts.open >= MOST_OPEN {
            return Err(CannotAsk::Busy);
        }
        counts.add(1)?;
        counts.open += 1;
        drop(counts);
        Ok(Admitted(self.clone()))
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
        // A client that answered with an error was asked, and nobody waits for what came too late.
        if !matches!(why, CannotAsk::Refused(_) | CannotAsk::CallOver) {
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

/// An open question of a server.
#[derive(Debug)]
struct Admitted(Questions);

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.counts().open -= 1;
    }
}

/// `true` while the caller of a call waits for it, as [`Presence::of`] a call that may wait for another request of its caller says.
#[derive(Debug)]
pub struct Presence(Option<watch::Receiver<bool>>);

impl Presence {
    /// The presence of the caller of `context`.
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        let asked = context.extensions.get::<Questions>().and_then(|questions| questions.0.asked.as_ref());
        Self(asked.map(|asked| asked.presence()))
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
    match context.extensions.get::<Questions>().and_then(|questions| questions.0.asked.as_ref()) {
        Some(asked) => asked.peer(),
        None => Some(context.peer.clone()),
    }
}

/// Asks the caller of a call what a server wants to know, and waits for the answer. Dropped, it takes the question back, and so it does on
/// `over`, before it returns.
///
/// To be awaited on the task of the call.
///
/// # Errors
/// The caller cannot be asked, has been asked too much, or did not answer.
pub async fn ask(
    context: &RequestContext<RoleServer>,
    request: ServerRequest,
    over: &CancellationToken,
) -> Result<ClientResult, CannotAsk> {
    let Some(question) = question_of(request) else { return Err(CannotAsk::Capability("unknown")) };
    let Some(questions) = context.extensions.get::<Questions>() else { return Err(CannotAsk::NoCall) };
    let outline = outline_of(&question);
    let asked = ask_caller(questions, context, question, over).await;
    if let Err(why) = &asked {
        questions.note_unasked(outline, why);
    }
    asked
}

async fn ask_caller(
    questions: &Questions,
    context: &RequestContext<RoleServer>,
    question: InputRequest,
    over: &CancellationToken,
) -> Result<ClientResult, CannotAsk> {
    leads_to_web(&question)?;
    let missing = missing(&question, &context.client_capabilities().unwrap_or_default());
    let asked = questions.0.asked.as_ref();
    let waits = asked.is_some() && context.extensions.get::<AnsweredLater>().is_some();
    if let Some(capability) = missing.filter(|_| !waits) {
        return Err(CannotAsk::Capability(capability));
    }
    let _admitted = questions.admit()?;
    let has_stream = missing.is_none() && !Era::of(context).is_stateless();
    // A run is asked when its call waits: until then its own time would go on.
    match asked.filter(|asked| waits || !has_stream || asked.is_away()) {
        Some(asked) => {
            let _room = questions.0.room.of_question(&question)?;
            over.run_until_cancelled(asked.ask(question)).await.unwrap_or(Err(CannotAsk::CallOver))
        }
        None if Era::of(context).is_stateless() => Err(CannotAsk::Stateless),
        None => {
            questions.keep(&question)?;
            let _thinking = questions.begin();
            let longest = questions.0.longest;
            match tokio::time::timeout(longest, ask_one(context, question, over)).await {
                Ok(answer) => answer,
                Err(_) => Err(CannotAsk::TimedOut(longest)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Claimant, questions::room::budget};

    fn nobody() -> QuestionRoom {
        QuestionRoom::new(budget(), Claimant::default())
    }

    #[tokio::test(start_paused = true)]
    async fn time_with_an_open_question_does_not_count_and_the_rest_does() {
        let questions = Questions::new(Duration::from_secs(600), nobody(), None);
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

    #[test]
    fn open_questions_and_all_questions_of_a_call_are_limited() {
        let questions = Questions::new(Duration::from_secs(600), nobody(), None);
        let mut open: Vec<Admitted> = (0..MOST_OPEN).map(|_| questions.admit().unwrap()).collect();
        assert_eq!(questions.admit().unwrap_err(), CannotAsk::Busy);
        for _ in MOST_OPEN..MOST_QUESTIONS {
            open.pop();
            open.push(questions.admit().unwrap());
        }
        open.clear();
        assert_eq!(questions.admit().unwrap_err(), CannotAsk::TooMany);
        assert_eq!(questions.count(1), Err(CannotAsk::TooMany));
    }
}
