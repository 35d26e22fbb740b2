//! A fair queue of password checks: a few at the same time, networks in turn.
//!
//! A check takes tens of milliseconds and 19 MiB or more. Waiting checks stand in the line of their network (an IPv4 address, or 48 bits of IPv6), and
//! the lines are served in turn, so that a network with many tries delays itself. When the queue is full, a new check takes the place of the last one in the
//! longest line. Networks from which somebody signed in before have a queue of their own, which is served in turn with that of all others: strangers at many
//! addresses, one try each, keep none of them out.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gatewright_core::CountedNetwork;
use tokio::sync::oneshot;

/// Checks at the same time.
const MAX_RUNNING: usize = 4;
/// Checks that wait.
const MAX_WAITING: usize = 64;
/// Checks that wait for networks from which somebody signed in before.
const MAX_KNOWN_WAITING: usize = 16;
/// Networks that are remembered for a sign-in. The oldest make room.
const MAX_KNOWN: usize = 4_096;

/// A fair queue of password checks.
#[derive(Default)]
pub(crate) struct PasswordCheckQueue(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    running: usize,
    others: Lines,
    known: Lines,
    /// The queue of known networks is next.
    is_turn_of_known: bool,
    signed_in: SignedIn,
}

/// Networks from which somebody signed in.
#[derive(Default)]
struct SignedIn {
    networks: HashSet<CountedNetwork>,
    by_age: VecDeque<CountedNetwork>,
}

/// Checks that wait, by network.
#[derive(Default)]
struct Lines {
    waiting: usize,
    lines: HashMap<CountedNetwork, VecDeque<oneshot::Sender<PasswordCheckPermit>>>,
    /// Networks with a line, in the order they are served.
    order: VecDeque<CountedNetwork>,
}

/// A permit to check one password. When it is dropped, the next check gets it.
pub(crate) struct PasswordCheckPermit(Arc<Mutex<Queue>>);

/// The queue is full.
#[derive(Debug)]
pub(crate) struct Busy;

fn lock(state: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    // Nothing panics while the lock is held.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PasswordCheckQueue {
    /// Waits for a permit for a caller of `network`.
    ///
    /// # Errors
    /// The queue is full and the line of the network is the longest, or a check of another network took the place.
    pub(crate) async fn acquire(&self, network: CountedNetwork) -> Result<PasswordCheckPermit, Busy> {
        let waits = {
            let mut state = lock(&self.0);
            if state.running < MAX_RUNNING {
                state.running += 1;
                return Ok(PasswordCheckPermit(self.0.clone()));
            }
            match state.signed_in.networks.contains(&network) {
                true => state.known.join(network, MAX_KNOWN_WAITING)?,
                false => state.others.join(network, MAX_WAITING)?,
            }
        };
        waits.await.map_err(|_| Busy)
    }

    /// Remembers that somebody signed in from `network`.
    pub(crate) fn remember(&self, network: CountedNetwork) {
        let SignedIn { networks, by_age } = &mut lock(&self.0).signed_in;
        if networks.insert(network) {
            by_age.push_back(network);
        }
        if by_age.len() > MAX_KNOWN
            && let Some(oldest) = by_age.pop_front()
        {
            networks.remove(&oldest);
        }
    }
}

impl Queue {
    /// Returns the next waiting check.
    fn next(&mut self) -> Option<oneshot::Sender<PasswordCheckPermit>> {
        self.is_turn_of_known = !self.is_turn_of_known;
        let (first, second) = match self.is_turn_of_known {
            true => (&mut self.known, &mut self.others),
            false => (&mut self.others, &mut self.known),
        };
        first.next().or_else(|| second.next())
    }
}

impl Lines {
    fn join(
        &mut self,
        network: CountedNetwork,
        most: usize,
    ) -> Result<oneshot::Receiver<PasswordCheckPermit>, Busy> {
        if self.waiting >= most {
            self.remove_closed();
        }
        if self.waiting >= most {
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

    /// Removes checks that nobody waits for any more.
    fn remove_closed(&mut self) {
        self.lines.retain(|_, line| {
            line.retain(|sender| !sender.is_closed());
            !line.is_empty()
        });
        self.waiting = self.lines.values().map(VecDeque::len).sum();
        let lines = &self.lines;
        self.order.retain(|network| lines.contains_key(network));
    }

    /// Returns the next waiting check.
    fn next(&mut self) -> Option<oneshot::Sender<PasswordCheckPermit>> {
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

impl Drop for PasswordCheckPermit {
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
            // When nobody waits for it any more, the permit is dropped here and goes on to the next check.
            let _ = next.send(PasswordCheckPermit(self.0.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, future::BoxFuture};

    use super::*;

    fn network(number: u8) -> CountedNetwork {
        CountedNetwork::widest([192, 0, 2, number].into())
    }

    /// Asks for a permit and polls once, so that it is in the queue.
    fn ask(
        queue: &Arc<PasswordCheckQueue>,
        from: CountedNetwork,
    ) -> Result<Result<PasswordCheckPermit, Busy>, BoxFuture<'static, Result<PasswordCheckPermit, Busy>>>
    {
        let queue = queue.clone();
        let mut future = async move { queue.acquire(from).await }.boxed();
        match (&mut future).now_or_never() {
            Some(done) => Ok(done),
            None => Err(future),
        }
    }

    fn full() -> (Arc<PasswordCheckQueue>, Vec<PasswordCheckPermit>) {
        let queue = Arc::new(PasswordCheckQueue::default());
        let turns = (0..MAX_RUNNING).map(|_| ask(&queue, network(1)).ok().unwrap().unwrap()).collect();
        (queue, turns)
    }

    #[test]
    fn one_network_with_every_place_does_not_keep_another_from_its_turn() {
        let (queue, mut turns) = full();
        let mut flood: Vec<_> = (0..MAX_WAITING).map(|_| ask(&queue, network(1)).err().unwrap()).collect();
        assert!(ask(&queue, network(1)).ok().unwrap().is_err(), "its own line is full");
        let mut newcomer = ask(&queue, network(2)).err().expect("the newcomer waits");
        assert!((&mut flood[MAX_WAITING - 1]).now_or_never().unwrap().is_err(), "the last in line made room");
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
        let Lines { waiting, lines, order } = &state.others;
        assert_eq!((state.running, *waiting, lines.len(), order.len()), (0, 0, 0, 0));
    }

    #[test]
    fn a_line_of_those_who_went_away_leaves_room() {
        let (queue, _turns) = full();
        drop((0..MAX_WAITING).map(|_| ask(&queue, network(1))).collect::<Vec<_>>());
        assert!(ask(&queue, network(1)).is_err(), "it waits");
    }

    #[test]
    fn strangers_at_many_addresses_keep_none_out_from_where_somebody_signed_in() {
        let (queue, mut turns) = full();
        queue.remember(network(200));
        let mut flood: Vec<_> =
            (2..).take(MAX_WAITING).map(|n| ask(&queue, network(n)).err().unwrap()).collect();
        assert!(ask(&queue, network(100)).ok().unwrap().is_err(), "a stranger finds no place");
        let mut user = ask(&queue, network(200)).err().expect("the user waits");
        turns.pop();
        let permit = (&mut user).now_or_never().expect("the user is served").unwrap();
        let waiting: Vec<_> =
            (0..MAX_KNOWN_WAITING).map(|_| ask(&queue, network(200)).err().expect("it waits")).collect();
        assert!(ask(&queue, network(200)).ok().unwrap().is_err(), "its places are bounded, too");
        drop(permit);
        assert!((&mut flood[0]).now_or_never().is_some(), "then a stranger's turn");
        drop(waiting);
    }

    #[test]
    fn networks_that_are_remembered_for_a_sign_in_are_bounded() {
        let queue = PasswordCheckQueue::default();
        for n in 0..u32::try_from(MAX_KNOWN + 10).unwrap() {
            queue.remember(CountedNetwork::widest(std::net::Ipv4Addr::from(n).into()));
            queue.remember(network(7));
        }
        let state = lock(&queue.0);
        assert_eq!((state.signed_in.networks.len(), state.signed_in.by_age.len()), (MAX_KNOWN, MAX_KNOWN));
    }
}
