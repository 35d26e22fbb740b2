//! Turns: one call at a time, callers one after the other.
//!
//! A caller with many calls in line delays each other by one call at most.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gatewright_core::Claimant;
use tokio::sync::oneshot;

type Waiter = oneshot::Sender<Turn>;

/// The line of calls that wait for their turn.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<Line>);

#[derive(Debug, Default)]
struct Line {
    /// The caller whose turn it is.
    current: Option<Claimant>,
    /// Callers with calls that wait, in the order of their turns.
    waiting: VecDeque<(Claimant, VecDeque<Waiter>)>,
}

/// The turn of one call; over when dropped.
#[derive(Debug)]
pub(crate) struct Turn(Option<Arc<Turns>>);

impl Turns {
    /// Waits for the turn of a call of `caller`.
    pub(crate) async fn take(self: &Arc<Self>, caller: Claimant) -> Turn {
        let receiver = {
            let mut line = self.lock();
            if line.current.is_none() {
                line.current = Some(caller);
                return Turn(Some(self.clone()));
            }
            let (waiter, receiver) = oneshot::channel();
            match line.waiting.iter_mut().find(|(other, _)| *other == caller) {
                Some((_, calls)) => calls.push_back(waiter),
                None => line.waiting.push_back((caller, VecDeque::from([waiter]))),
            }
            receiver
        };
        // Nobody drops the sender of a call that waits.
        receiver.await.unwrap_or(Turn(None))
    }

    /// Returns `true` if calls wait for their turn.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    /// Gives the turn to the next caller.
    fn pass(self: &Arc<Self>) {
        loop {
            let next = self.lock().next();
            let Some(waiter) = next else { return };
            match waiter.send(Turn(Some(self.clone()))) {
                Ok(()) => return,
                // Its call is over: the loop passes the turn on.
                Err(mut turn) => turn.0 = None,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// The next call. The caller that had the last turn comes after all others.
    fn next(&mut self) -> Option<Waiter> {
        let last = self.current.take();
        let has_more = |(caller, _): &(Claimant, VecDeque<Waiter>)| Some(caller) == last.as_ref();
        if let Some(at) = self.waiting.iter().position(has_more)
            && let Some(same) = self.waiting.remove(at)
        {
            self.waiting.push_back(same);
        }
        let (caller, mut calls) = self.waiting.pop_front()?;
        let waiter = calls.pop_front();
        if !calls.is_empty() {
            self.waiting.push_front((caller.clone(), calls));
        }
        self.current = Some(caller);
        waiter
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.pass();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn of(subject: &str) -> Claimant {
        Claimant::new(Some(subject.into()), None, &[])
    }

    #[tokio::test]
    async fn callers_take_turns_however_many_calls_one_of_them_has_in_line() {
        let turns = Arc::new(Turns::default());
        let mut now = turns.take(of("alice")).now_or_never().unwrap();
        let order = ["alice", "alice", "alice", "bob", "alice", "carl", "bob"];
        let mut line: Vec<_> = order.map(|caller| Some(Box::pin(turns.take(of(caller))))).into();
        for call in line.iter_mut().flatten() {
            assert!(call.now_or_never().is_none());
        }
        assert!(turns.is_waited_for());
        let mut served = Vec::new();
        for _ in 0..line.len() {
            drop(now);
            let mut next = None;
            for (number, place) in line.iter_mut().enumerate() {
                if let Some(turn) = place.as_mut().and_then(|call| call.now_or_never()) {
                    *place = None;
                    served.push(order[number]);
                    assert!(next.replace(turn).is_none(), "one at a time");
                }
            }
            now = next.unwrap();
        }
        assert_eq!(served, ["bob", "carl", "alice", "bob", "alice", "alice", "alice"]);
        drop(now);
        assert!(turns.take(of("bob")).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_call_that_is_over_before_its_turn_delays_nobody() {
        let turns = Arc::new(Turns::default());
        let now = turns.take(of("alice")).await;
        let mut gone: Vec<_> = (0..100).map(|_| Box::pin(turns.take(of("alice")))).collect();
        for call in &mut gone {
            assert!(call.now_or_never().is_none());
        }
        let mut waits = Box::pin(turns.take(of("bob")));
        assert!((&mut waits).now_or_never().is_none());
        let mut granted = gone.pop().unwrap();
        drop(gone);
        drop(now);
        let turn = (&mut waits).now_or_never().expect("the other subject is next");
        drop(turn);
        // Its turn came, and it left without noticing.
        assert!(!turns.is_waited_for());
        let mut last = Box::pin(turns.take(of("bob")));
        assert!((&mut last).now_or_never().is_none());
        assert!((&mut granted).now_or_never().is_some(), "and so it ends at once");
        assert!((&mut last).now_or_never().is_some());
    }
}
