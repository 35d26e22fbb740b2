//! The line of runs that wait for a worker: whose turn is next, and how much of the pool one caller may take.
//!
//! A free worker goes to a run that another one waits for, then to one that a client waits for, then to one in the background, which is passed over
//! four times at most; among those, to the caller with the fewest runs under way, and of several such to the one whose last turn is the longest ago.

use std::{
    collections::{HashMap, HashSet},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use tokio::sync::oneshot;

use super::shares::{Claim, Counts, Reserve, WorkerShares};
use crate::outcome::WorkerError;

/// The answer to a claim.
pub(super) enum Claimed {
    Turn(Turn),
    Waits(Waits),
}

/// The right of a run to one worker, until it is dropped.
pub(super) struct Turn {
    line: Arc<Line>,
    claim: Claim,
    worker: TurnFor,
}

/// The worker that a turn is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TurnFor {
    /// One of the pool, whose slot is still in its place.
    Slot,
    /// One of the pool, whose slot was taken.
    TakenSlot,
    /// One in reserve.
    Reserve,
}

/// A place in the line, left when dropped.
pub(super) struct Waits {
    line: Arc<Line>,
    id: u64,
    turn: oneshot::Receiver<Turn>,
}

/// The line, and the runs that had their turn.
pub(super) struct Line {
    state: Mutex<State>,
    shares: WorkerShares,
}

#[derive(Default)]
struct State {
    free: usize,
    closed: bool,
    /// Of each caller, and of the networks around it.
    running: HashMap<Arc<str>, Counts>,
    all: Counts,
    reserve: Reserve,
    /// In the order in which they came.
    waiting: Vec<Waiter>,
    last: u64,
    /// Numbers of the last turns of callers that wait, or did lately.
    turns: HashMap<Arc<str>, u64>,
    /// Turns that runs with waiting clients had since one in the background had its own, while such waited.
    passed: usize,
}

/// Turns that go to runs with waiting clients before one goes to the background.
const MOST_PASSED: usize = 4;

/// Callers whose last turns are remembered although they wait for none.
const MOST_REMEMBERED: usize = 1_000;

struct Waiter {
    id: u64,
    claim: Claim,
    /// It has a place in the queue.
    queued: bool,
    turn: oneshot::Sender<Turn>,
}

/// Part of the queue that a party may take that counts for `times` callers.
fn share(queue: usize, times: usize) -> usize {
    (queue.div_ceil(2) * times).min((queue - queue / 4).max(queue.div_ceil(2)))
}

impl Line {
    /// A line for at most `workers` workers and those beside them ([`places`](super::shares::places)), of which none is free yet.
    pub(super) fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), shares: WorkerShares::new(workers) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a worker, or a place in the line: one of `queue`, or one beside them.
    ///
    /// # Errors
    /// The pool is closed, or the queue or the caller's part of it is full.
    pub(super) fn claim(
        self: &Arc<Self>,
        claim: Claim,
        queue: Option<usize>,
    ) -> Result<Claimed, WorkerError> {
        let mut state = self.lock();
        if state.closed {
            return Err(WorkerError::Disposed);
        }
        // Whoever waits although a worker is free may not have it.
        if state.free > 0 && self.may_run(&state, &claim) {
            return Ok(Claimed::Turn(self.turn(&mut state, claim, TurnFor::Slot)));
        }
        if state.reserve.take(&self.shares, &claim) {
            return Ok(Claimed::Turn(self.turn(&mut state, claim, TurnFor::Reserve)));
        }
        if let Some(queue) = queue {
            let queued = || state.waiting.iter().filter(|waiter| waiter.queued);
            if queued().count() >= queue {
                return Err(WorkerError::QueueFull(queue));
            }
            for party in &*claim.parties {
                let own = queued().filter(|waiter| waiter.claim.parties.contains(party)).count();
                let share = share(queue, party.times);
                if own >= share {
                    return Err(WorkerError::QueueFull(share));
                }
            }
        }
        state.last += 1;
        let (id, (sender, turn)) = (state.last, oneshot::channel());
        state.waiting.push(Waiter { id, claim, queued: queue.is_some(), turn: sender });
        Ok(Claimed::Waits(Waits { line: self.clone(), id, turn }))
    }

    /// Returns `true` if a run may have a free worker.
    fn may_run(&self, state: &State, claim: &Claim) -> bool {
        let of = |name: &str| state.running.get(name).copied().unwrap_or_default();
        self.shares.allow(claim, state.all, |party| of(&party.name))
    }

    /// A turn that begins. The worker in reserve was taken already.
    fn turn(self: &Arc<Self>, state: &mut State, claim: Claim, worker: TurnFor) -> Turn {
        if worker == TurnFor::Slot {
            state.free -= 1;
            state.begin(&claim);
        }
        Turn { line: self.clone(), claim, worker }
    }

    /// Makes a slot available.
    pub(super) fn put(self: &Arc<Self>) {
        self.lock().free += 1;
        self.serve();
    }

    /// Gives free workers, and those in reserve, to those whose turn it is.
    fn serve(self: &Arc<Self>) {
        loop {
            let (next, turn) = {
                let mut state = self.lock();
                let (at, worker) = match self.next(&state) {
                    Some(at) => (at, TurnFor::Slot),
                    None => match self.next_in_reserve(&mut state) {
                        Some(at) => (at, TurnFor::Reserve),
                        None => return,
                    },
                };
                let Waiter { claim, turn, .. } = state.waiting.remove(at);
                (turn, self.turn(&mut state, claim, worker))
            };
            // Whoever left in this moment gives it back.
            let _ = next.send(turn);
        }
    }

    /// The first one that gets a worker in reserve, which it has from now on.
    fn next_in_reserve(&self, state: &mut State) -> Option<usize> {
        let State { waiting, reserve, closed, .. } = state;
        waiting.iter().position(|waiter| !*closed && reserve.take(&self.shares, &waiter.claim))
    }

    /// The one whose turn is next.
    fn next(&self, state: &State) -> Option<usize> {
        if state.free == 0 || state.closed {
            return None;
        }
        let running = |claim: &Claim| state.own(claim).all();
        let turn = |claim: &Claim| state.turns.get(&claim.caller).copied().unwrap_or(0);
        let class = |claim: &Claim| match claim.background {
            true if state.passed >= MOST_PASSED => 0,
            false => 1,
            true => 2,
        };
        let order = |claim: &Claim| (claim.level == 0, class(claim), running(claim), turn(claim));
        let may_run = |(_, waiter): &(usize, &Waiter)| self.may_run(state, &waiter.claim);
        let waiting = state.waiting.iter().enumerate().filter(may_run);
        // Of equals, the first one.
        waiting.min_by_key(|(at, waiter)| (order(&waiter.claim), *at)).map(|(at, _)| at)
    }

    /// Lets nobody wait any more.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.waiting.clear();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Runs under way of a caller.
    pub(super) fn running(&self, caller: &str) -> usize {
        self.lock().running.get(caller).map_or(0, |counts| counts.all())
    }

    /// Runs that wait.
    pub(super) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }
}

impl State {
    /// Runs under way of the caller of `claim`.
    fn own(&self, claim: &Claim) -> Counts {
        self.running.get(&claim.caller).copied().unwrap_or_default()
    }

    fn begin(&mut self, claim: &Claim) {
        if claim.level == 0 {
            self.passed = match claim.background {
                true => 0,
                false => self.passed + usize::from(self.waiting.iter().any(|one| one.claim.background)),
            };
            self.last += 1;
            self.turns.insert(claim.caller.clone(), self.last);
            if self.turns.len() > MOST_REMEMBERED {
                let waiting: HashSet<_> = self.waiting.iter().map(|waiter| &waiter.claim.caller).collect();
                self.turns.retain(|caller, _| waiting.contains(caller));
            }
        }
        *self.all.of(claim) += 1;
        for name in claim.names() {
            *self.running.entry(name.clone()).or_default().of(claim) += 1;
        }
    }

    fn end(&mut self, claim: &Claim) {
        *self.all.of(claim) -= 1;
        for name in claim.names() {
            let Some(running) = self.running.get_mut(name) else { continue };
            *running.of(claim) -= 1;
            if running.all() == 0 {
                self.running.remove(name);
            }
        }
    }
}

impl Turn {
    /// Returns `true` for a run in the background if one of a caller that has fewer of them waits for a worker.
    pub(super) fn others_wait(&self) -> bool {
        let state = self.line.lock();
        let running = |claim: &Claim| state.own(claim).background;
        let own = running(&self.claim);
        let is_other = |waiter: &Waiter| {
            let claim = &waiter.claim;
            claim.background && claim.caller != self.claim.caller && running(claim) < own
        };
        self.claim.background && state.waiting.iter().any(is_other)
    }

    /// Returns `true` for a worker that belongs into one of the slots of the pool; others end with their run.
    pub(super) fn is_of_pool(&self) -> bool {
        self.worker != TurnFor::Reserve
    }

    /// The slot was taken: it is put back as one.
    pub(super) fn took_slot(&mut self) {
        self.worker = TurnFor::TakenSlot;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        {
            let mut state = self.line.lock();
            match self.worker {
                TurnFor::Reserve => state.reserve.put(&self.claim),
                TurnFor::Slot | TurnFor::TakenSlot => state.end(&self.claim),
            }
            state.free += usize::from(self.worker == TurnFor::Slot);
        }
        self.line.serve();
    }
}

impl Future for Waits {
    type Output = Result<Turn, WorkerError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.turn).poll(context).map_err(|_| WorkerError::Disposed)
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.line.lock().waiting.retain(|waiter| waiter.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::pool::shares::{Party, places};

    fn of(principal: &str, background: bool) -> Claim {
        from(&[(principal, 1)], background)
    }

    fn from(parties: &[(&str, usize)], background: bool) -> Claim {
        let parties = parties.iter().map(|(name, times)| Party { name: (*name).into(), times: *times });
        Claim::new(parties, 0, background)
    }

    fn free(workers: usize) -> Arc<Line> {
        let line = Line::new(workers);
        (0..workers).for_each(|_| line.put());
        line
    }

    fn turn(line: &Arc<Line>, claim: Claim) -> Turn {
        match line.claim(claim, Some(64)) {
            Ok(Claimed::Turn(turn)) => turn,
            _ => panic!("a worker is free"),
        }
    }

    fn waits(line: &Arc<Line>, claim: Claim, queue: Option<usize>) -> Waits {
        match line.claim(claim, queue) {
            Ok(Claimed::Waits(waits)) => waits,
            _ => panic!("it waits"),
        }
    }

    #[test]
    fn a_free_worker_goes_to_whoever_has_the_fewest_and_background_runs_come_last() {
        let line = free(2);
        let running = [turn(&line, of("alice", false)), turn(&line, of("alice", false))];
        let mut later = waits(&line, of("carol", true), None);
        let mut own = waits(&line, of("alice", false), Some(9));
        let mut bob = waits(&line, of("bob", false), Some(9));
        let [first, second] = running;
        drop(first);
        assert!((&mut own).now_or_never().is_none() && (&mut later).now_or_never().is_none());
        let bob = (&mut bob).now_or_never().unwrap().ok().unwrap();
        drop(second);
        let own = (&mut own).now_or_never().unwrap().ok().unwrap();
        assert!((&mut later).now_or_never().is_none());
        drop((bob, own));
        assert!((&mut later).now_or_never().unwrap().is_ok());
    }

    #[test]
    fn one_principal_leaves_workers_to_others_with_waiting_clients() {
        for (workers, most) in [(2, 2), (4, 3), (16, 12)] {
            let line = free(workers);
            let mut alice: Vec<Turn> = (0..most).map(|_| turn(&line, of("alice", false))).collect();
            let mut more = waits(&line, of("alice", false), Some(9));
            if workers > most {
                let nested = Claim { level: 1, ..of("alice", false) };
                drop(turn(&line, of("bob", false)));
                assert!(!turn(&line, nested).is_of_pool(), "it gets one in reserve");
            }
            assert!((&mut more).now_or_never().is_none());
            alice.pop();
            assert!(more.now_or_never().is_some());
        }
    }

    #[test]
    fn a_run_that_others_wait_for_finds_a_worker_however_many_one_caller_has() {
        let nested = |principal, level| Claim { level, ..of(principal, false) };
        let line = free(4);
        let _alice = [(); 3].map(|()| turn(&line, of("alice", false)));
        let own = turn(&line, nested("alice", 1));
        let mut second = waits(&line, nested("alice", 1), None);
        let _bob = turn(&line, of("bob", false));
        let bobs = turn(&line, nested("bob", 1));
        assert!(!own.is_of_pool() && !bobs.is_of_pool());
        let _innermost = [turn(&line, nested("bob", 2)), turn(&line, nested("bob", 3))];
        let many = Claim { level: 1, ..from(&[], false) };
        let many = waits(&line, many, None);
        drop(bobs);
        let many = many.now_or_never().expect("there are two for each level").ok().unwrap();
        assert!((&mut second).now_or_never().is_none());
        drop(own);
        assert!(second.now_or_never().is_some());
        drop(many);
        assert_eq!(line.lock().free, 0);
    }

    #[test]
    fn runs_of_all_kinds_of_one_caller_leave_a_worker_to_others() {
        let line = free(16);
        let nested = Claim { level: 1, ..of("alice", true) };
        let kinds = [of("alice", true), nested, of("alice", false)];
        let mut alice = Vec::new();
        for claim in kinds.iter().flat_map(|kind| std::iter::repeat_n(kind, 16)) {
            if let Ok(Claimed::Turn(turn)) = line.claim(claim.clone(), Some(64)) {
                alice.push(turn);
            }
        }
        assert_eq!(alice.iter().filter(|turn| turn.is_of_pool()).count(), 12);
        let _others = [turn(&line, of("bob", false)), turn(&line, of("carol", true))];
    }

    #[test]
    fn networks_of_one_site_leave_workers_and_places_in_the_queue_to_others_together() {
        let line = free(16);
        let at = |n: usize, background| {
            let (own, site) = (format!("2001:db8:1:{n:x}::/64"), "2001:db8:1::/48");
            from(&[(&own, 1), (site, 4)], background)
        };
        let _site: Vec<Turn> = (0..14).map(|n| turn(&line, at(n, false))).collect();
        let mut own = waits(&line, at(20, false), Some(8));
        assert!((&mut own).now_or_never().is_none());
        let _other = turn(&line, of("bob", false));
        let _queued: Vec<Waits> = (21..26).map(|n| waits(&line, at(n, false), Some(8))).collect();
        assert!(matches!(line.claim(at(30, false), Some(8)), Err(WorkerError::QueueFull(6))));
        let line = free(16);
        let _site: Vec<Turn> = (0..7).map(|n| turn(&line, at(n, true))).collect();
        let _own = waits(&line, at(7, true), None);
        let _other = turn(&line, of("bob", true));
    }

    #[test]
    fn principals_take_turns_however_many_of_their_runs_wait() {
        for background in [false, true] {
            let line = free(1);
            let running = turn(&line, of("alice", background));
            let mut own = [(); 3].map(|()| waits(&line, of("alice", background), None));
            let mut others = [(); 2].map(|()| waits(&line, of("bob", background), None));
            let mut next = |before: Turn, of_bob: bool, at: usize| {
                drop(before);
                let whose = if of_bob { &mut others[at] } else { &mut own[at] };
                whose.now_or_never().expect("it is its turn").ok().unwrap()
            };
            let running = next(running, true, 0);
            let running = next(running, false, 0);
            let running = next(running, true, 1);
            let running = next(running, false, 1);
            next(running, false, 2);
        }
    }

    #[test]
    fn runs_in_the_background_are_passed_over_a_few_times_and_not_for_ever() {
        let line = free(1);
        let mut running = turn(&line, of("alice", false));
        let mut bob = waits(&line, of("bob", true), None);
        for _ in 0..MOST_PASSED {
            let mut own = waits(&line, of("alice", false), Some(9));
            drop(running);
            running = (&mut own).now_or_never().expect("a client waits for it").ok().unwrap();
        }
        let mut own = waits(&line, of("alice", false), Some(9));
        drop(running);
        assert!((&mut own).now_or_never().is_none());
        assert!((&mut bob).now_or_never().is_some());
    }

    #[test]
    fn last_turns_are_remembered_for_so_many_principals() {
        let line = Line::new(3 * MOST_REMEMBERED + 1);
        line.put();
        let _waits = (turn(&line, of("alice", false)), waits(&line, of("bob", false), None));
        line.put();
        for n in 0..3 * MOST_REMEMBERED {
            line.put();
            drop(turn(&line, of(&n.to_string(), false)));
        }
        assert!(line.lock().turns.len() <= MOST_REMEMBERED + 1);
    }

    #[test]
    fn background_runs_leave_half_of_the_workers_and_one_principal_half_of_theirs() {
        let line = free(8);
        let alice: Vec<Turn> = (0..2).map(|_| turn(&line, of("alice", true))).collect();
        let third = waits(&line, of("alice", true), None);
        let bob: Vec<Turn> = (0..2).map(|_| turn(&line, of("bob", true))).collect();
        let carol = waits(&line, of("carol", true), None);
        let others: Vec<Turn> = (0..3).map(|_| turn(&line, of("dave", false))).collect();
        drop((alice, others));
        assert!(third.now_or_never().unwrap().is_ok() && carol.now_or_never().unwrap().is_ok());
        drop(bob);
        assert!(
            line.lock().running.is_empty() && line.lock().free == 8 && line.lock().all == Counts::default()
        );
    }

    #[test]
    fn in_a_small_pool_a_background_run_leaves_a_worker_to_other_principals_and_all_to_those_with_clients() {
        for workers in 1..=3 {
            let line = Line::new(workers);
            (0..places(workers)).for_each(|_| line.put());
            let alice = turn(&line, of("alice", true));
            let second = waits(&line, of("alice", true), None);
            let clients: Vec<Turn> = (0..workers).map(|_| turn(&line, of("dave", false))).collect();
            let bob = turn(&line, of("bob", true));
            let mut one_more = waits(&line, of("dave", false), Some(9));
            let mut carol = waits(&line, of("carol", true), None);
            assert!((&mut carol).now_or_never().is_none());
            assert!(bob.others_wait() && alice.others_wait() && !clients[0].others_wait());
            drop(carol);
            assert!(!bob.others_wait(), "alice has as many");
            assert!(second.now_or_never().is_none() && (&mut one_more).now_or_never().is_none());
            drop(clients);
            assert!(one_more.now_or_never().is_some());
        }
    }

    #[test]
    fn runs_that_background_runs_wait_for_get_a_free_worker_and_leave_some_to_others() {
        let nested = |level| Claim { level, ..of("alice", true) };
        let small = free(2);
        let _both = [turn(&small, of("alice", true)), turn(&small, nested(1))];
        let line = free(4);
        let _outer = [turn(&line, of("alice", true)), turn(&line, of("bob", true))];
        let _inner = turn(&line, nested(1));
        let (another, innermost) = (turn(&line, nested(1)), turn(&line, nested(2)));
        assert!(!another.is_of_pool() && !innermost.is_of_pool());
        assert!(waits(&line, nested(1), None).now_or_never().is_none());
        let _other = turn(&line, of("carol", false));
    }

    #[test]
    fn one_principal_takes_half_of_the_queue_and_places_that_are_left_are_free_again() {
        let line = free(1);
        let running = turn(&line, of("alice", false));
        let own = [(); 2].map(|()| waits(&line, of("alice", false), Some(4)));
        assert!(matches!(line.claim(of("alice", false), Some(4)), Err(WorkerError::QueueFull(2))));
        let bob = [(); 2].map(|()| waits(&line, of("bob", false), Some(4)));
        assert!(matches!(line.claim(of("carol", false), Some(4)), Err(WorkerError::QueueFull(4))));
        drop(bob);
        let carol = waits(&line, of("carol", false), Some(4));
        drop((own, running));
        assert!(carol.now_or_never().unwrap().is_ok());
        assert_eq!((line.waiting(), line.lock().free), (0, 1));
        line.close();
        assert!(matches!(line.claim(of("carol", false), None), Err(WorkerError::Disposed)));
    }
}
