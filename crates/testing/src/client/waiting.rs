//! Who waits for which answer, and which requests were given up: what comes for those later is late, not wrong.

use std::{
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use serde_json::Value;
use tokio::sync::oneshot;

use crate::{ClientError, lock, records::RpcResponse};

pub(super) type Answer = Result<RpcResponse, ClientError>;

/// How many requests that were given up are remembered; of more, the oldest are forgotten.
const MOST_GIVEN_UP: usize = 1024;

/// Who waits for which answer on one connection.
#[derive(Default)]
pub(super) struct Waiting {
    requests: Mutex<Requests>,
}

#[derive(Default)]
struct Requests {
    open: HashMap<String, oneshot::Sender<Answer>>,
    /// Ids of those nobody waits for any more, oldest first. The answer may be on its way: a server may end a request before
    /// it hears that it was cancelled (2025-11-25, cancellation, "Timing considerations").
    given_up: VecDeque<String>,
    /// Why nothing comes any more.
    closed: Option<String>,
}

/// What an answer was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    /// The answer to a request that waited for it.
    Told,
    /// The first answer to a request that was given up: timed out, cancelled or dropped.
    Late,
    /// To no request, or the second one.
    Unclaimed,
}

impl Waiting {
    /// Waits for the answer to `id` from now on.
    pub(super) fn register(self: &Arc<Self>, id: &Value) -> Told {
        let (tell, answer) = oneshot::channel();
        let id = id.to_string();
        lock(&self.requests).open.insert(id.clone(), tell);
        Told { waiting: self.clone(), id, answer }
    }

    pub(super) fn settle(&self, id: &Value, answer: Answer) -> Settled {
        let id = id.to_string();
        let mut requests = lock(&self.requests);
        if let Some(tell) = requests.open.remove(&id) {
            return match tell.send(answer) {
                Ok(()) => Settled::Told,
                // Dropped at this very moment.
                Err(_) => Settled::Late,
            };
        }
        match requests.given_up.iter().position(|one| *one == id) {
            Some(at) => {
                requests.given_up.remove(at);
                Settled::Late
            }
            None => Settled::Unclaimed,
        }
    }

    /// Nothing comes any more.
    pub(super) fn close(&self, why: &str) {
        let mut requests = lock(&self.requests);
        requests.closed = Some(why.to_owned());
        for (_, tell) in requests.open.drain() {
            let _ = tell.send(Err(ClientError::Closed(why.to_owned())));
        }
    }

    /// Why nothing comes any more; none while the connection stands.
    pub(super) fn closed(&self) -> Option<String> {
        lock(&self.requests).closed.clone()
    }
}

/// The answer to one request, to be awaited. Dropped before it came, it gives the request up.
pub(super) struct Told {
    waiting: Arc<Waiting>,
    id: String,
    answer: oneshot::Receiver<Answer>,
}

impl Told {
    /// Takes the request back: an answer to it would be one too many.
    pub(super) fn withdraw(&mut self) {
        self.close(&mut lock(&self.waiting.clone().requests));
    }

    /// Whether the request was open until now. Another one with the same id stays open.
    fn close(&mut self, requests: &mut Requests) -> bool {
        self.answer.close();
        let is_ours = requests.open.get(&self.id).is_some_and(oneshot::Sender::is_closed);
        if is_ours {
            requests.open.remove(&self.id);
        }
        is_ours
    }
}

impl Future for Told {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let ended = || Err(ClientError::Closed("the connection ended".into()));
        Pin::new(&mut self.answer).poll(context).map(|answer| answer.unwrap_or_else(|_| ended()))
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let waiting = self.waiting.clone();
        let mut requests = lock(&waiting.requests);
        if self.close(&mut requests) {
            requests.given_up.push_back(std::mem::take(&mut self.id));
            while requests.given_up.len() > MOST_GIVEN_UP {
                requests.given_up.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer() -> Answer {
        Ok(RpcResponse { raw: json!({}) })
    }

    #[test]
    fn the_first_answer_to_a_request_that_was_given_up_is_late_and_the_second_is_one_too_many() {
        let waiting = Arc::new(Waiting::default());
        let told = waiting.register(&json!(1));
        assert_eq!(waiting.settle(&json!(1), answer()), Settled::Told);
        drop(told);
        assert_eq!(waiting.settle(&json!(1), answer()), Settled::Unclaimed);
        drop(waiting.register(&json!(2)));
        assert_eq!(waiting.settle(&json!("2"), answer()), Settled::Unclaimed, "a text is another id");
        assert_eq!(waiting.settle(&json!(2), answer()), Settled::Late);
        assert_eq!(waiting.settle(&json!(2), answer()), Settled::Unclaimed);
    }

    #[test]
    fn only_so_many_requests_that_were_given_up_are_remembered() {
        let waiting = Arc::new(Waiting::default());
        for id in 0..=MOST_GIVEN_UP {
            drop(waiting.register(&json!(id)));
        }
        let requests = lock(&waiting.requests);
        assert_eq!((requests.open.len(), requests.given_up.len()), (0, MOST_GIVEN_UP));
        drop(requests);
        assert_eq!(waiting.settle(&json!(0), answer()), Settled::Unclaimed);
        assert_eq!(waiting.settle(&json!(1), answer()), Settled::Late);
    }

    #[test]
    fn giving_a_request_up_leaves_a_later_one_with_its_id_open() {
        let waiting = Arc::new(Waiting::default());
        let earlier = waiting.register(&json!("raw"));
        let mut later = waiting.register(&json!("raw"));
        drop(earlier);
        assert_eq!(waiting.settle(&json!("raw"), answer()), Settled::Told);
        assert!(later.answer.try_recv().is_ok());
    }

    #[test]
    fn a_request_that_was_taken_back_has_no_late_answer() {
        let waiting = Arc::new(Waiting::default());
        let mut told = waiting.register(&Value::Null);
        told.withdraw();
        drop(told);
        assert_eq!(waiting.settle(&Value::Null, answer()), Settled::Unclaimed);
    }
}
