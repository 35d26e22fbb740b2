//! Password checks take turns: a few at once, and networks one after the other.
//!
//! A check costs tens of milliseconds and 19 MiB or more. Whoever waits, waits in the line of their network; lines are served in turn, so
//! that a network with many tries delays itself. When there is no room left to wait in, a newcomer takes the place of the last one in
//! the longest line.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

/// Checks at once.
const MOST_RUNNING: usize = 4;
/// Checks that wait.
const MOST_WAITING: usize = 64;

/// Whose turn it is to check a password.
#[derive(Default)]
pub(crate) struct HashQueue(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    running: usize,
    waiting: usize,
    lines: HashMap<IpAddr, VecDeque<oneshot::Sender<Turn>>>,
    /// Networks with a line, in the order they are served.
    order: VecDeque<IpAddr>,
}

/// The right to check one password; the next one's turn comes when it is dropped.
pub(crate) struct Turn(Arc<Mutex<State>>);

/// There is no room to wait in.
#[derive(Debug)]
pub(crate) struct Busy;

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Nothing panics while it holds the lock.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HashQueue {
    /// Waits for a turn of `network`.
    ///
    /// # Errors
    /// When its line is the longest and there is no room, or when a newcomer took its place.
    pub(crate) async fn turn(&self, network: IpAddr) -> Result<Turn, Busy> {
        let waits = {
            let mut state = lock(&self.0);
            if state.running < MOST_RUNNING {
                state.running += 1;
                return Ok(Turn(self.0.clone()));
            }
            state.join(network)?
        };
        waits.await.map_err(|_| Busy)
    }
}

impl State {
    fn join(&mut self, network: IpAddr) -> Result<oneshot::Receiver<Turn>, Busy> {
        if self.waiting >= MOST_WAITING {
            self.forget_gone();
        }
        if self.waiting >= MOST_WAITING {
            let own = self.lines.get(&network).map_or(0, VecDeque::len);
            let longest =
                self.lines.iter().max_by_key(|(_, line)| line.len()).map(|(at, line)| (*at, line.len()));
            let (at, _) = longest.filter(|(_, length)| *length > own + 1).ok_or(Busy)?;
            if let Some(line) = self.lines.get_mut(&at) {
                line.pop_back();
                self.waiting -= 1;
            }
        }
        let (sender, receiver) = oneshot::channel();
        let line = self.lines.entry(network).or_default();
        if line.is_empty() {
            self.order.push_back(network);
        }
        line.push_back(sender);
        self.waiting += 1;
        Ok(receiver)
    }

    /// Forgets those who wait no more.
    fn forget_gone(&mut self) {
        self.lines.retain(|_, line| {
            line.retain(|sender| !sender.is_closed());
            !line.is_empty()
        });
        self.waiting = self.lines.values().map(VecDeque::len).sum();
        let lines = &self.lines;
        self.order.retain(|network| lines.contains_key(network));
    }

    /// Takes the next one who waits out of the lines.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        while let Some(network) = self.order.pop_front() {
            let Some(line) = self.lines.get_mut(&network) else { continue };
            let sender = line.pop_front();
            if line.is_empty() {
                self.lines.remove(&network);
            } else {
                self.order.push_back(network);
            }
            if let Some(sender) = sender {
                self.waiting -= 1;
                if !sender.is_closed() {
                    return Some(sender);
                }
            }
        }
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = {
            let mut state = lock(&self.0);
            let next = state.next();
            if next.is_none() {
                state.running -= 1;
            }
            next
        };
        if let Some(next) = next {
            // When the one who waited is gone meanwhile, the turn comes back here and goes on to the one after.
            let _ = next.send(Turn(self.0.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, future::BoxFuture};

    use super::*;

    fn network(number: u8) -> IpAddr {
        [192, 0, 2, number].into()
    }

    /// Asks for a turn and is polled once, so that it stands in line.
    fn ask(
        queue: &Arc<HashQueue>,
        from: IpAddr,
    ) -> Result<Result<Turn, Busy>, BoxFuture<'static, Result<Turn, Busy>>> {
        let queue = queue.clone();
        let mut future = async move { queue.turn(from).await }.boxed();
        match (&mut future).now_or_never() {
            Some(done) => Ok(done),
            None => Err(future),
        }
    }

    fn full() -> (Arc<HashQueue>, Vec<Turn>) {
        let queue = Arc::new(HashQueue::default());
        let turns = (0..MOST_RUNNING).map(|_| ask(&queue, network(1)).ok().unwrap().unwrap()).collect();
        (queue, turns)
    }

    #[test]
    fn one_network_with_every_place_does_not_keep_another_from_its_turn() {
        let (queue, mut turns) = full();
        let mut flood: Vec<_> = (0..MOST_WAITING).map(|_| ask(&queue, network(1)).err().unwrap()).collect();
        assert!(ask(&queue, network(1)).ok().unwrap().is_err(), "its own line is full");
        let mut newcomer = ask(&queue, network(2)).err().expect("the newcomer waits");
        assert!(
            (&mut flood[MOST_WAITING - 1]).now_or_never().unwrap().is_err(),
            "the last in line made room"
        );
        turns.pop();
        let first = (&mut flood[0]).now_or_never().expect("the first in line is served").unwrap();
        drop(first);
        assert!(
            (&mut newcomer).now_or_never().is_some(),
            "then the other network, before the rest of the line"
        );
    }

    #[test]
    fn whoever_went_away_is_passed_over_and_no_turn_is_lost() {
        let (queue, turns) = full();
        let gone: Vec<_> = (2..40).map(|n| ask(&queue, network(n)).err().unwrap()).collect();
        let mut last = ask(&queue, network(99)).err().unwrap();
        drop(gone);
        drop(turns);
        drop((&mut last).now_or_never().unwrap().unwrap());
        let state = lock(&queue.0);
        assert_eq!((state.running, state.waiting, state.lines.len(), state.order.len()), (0, 0, 0, 0));
    }

    #[test]
    fn a_line_of_those_who_went_away_leaves_room() {
        let (queue, _turns) = full();
        drop((0..MOST_WAITING).map(|_| ask(&queue, network(1))).collect::<Vec<_>>());
        assert!(ask(&queue, network(1)).is_err(), "it waits");
    }
}
