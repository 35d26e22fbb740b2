//! Retries that bring answers: each belongs to the call that asked, and is not counted for rate limits again.
//!
//! A state that was given out is remembered until it comes back, so that whoever sends it more often is counted. States that are not
//! remembered, such as those of other instances, count as new calls.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use sha2::{Digest as _, Sha256};

use super::MOST_ROUNDS;

/// States that are remembered; more push out the oldest.
const MOST: usize = 10_000;

type StateDigest = [u8; 32];

/// The states of calls that asked, each with the times that its call has.
#[derive(Debug, Default)]
pub(crate) struct Repetitions(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    rounds: HashMap<StateDigest, usize>,
    /// The oldest first. Some may be forgotten already.
    order: VecDeque<StateDigest>,
}

/// The digest of a state, whichever instance it names.
fn digest(state: &str) -> StateDigest {
    let state = state.split_once('.').map_or(state, |(state, _home)| state);
    Sha256::digest(state).into()
}

impl Repetitions {
    /// Remembers `state`, which a call got that has asked `rounds` times before.
    pub(crate) fn add(&self, state: &str, rounds: usize) {
        if rounds >= MOST_ROUNDS {
            return;
        }
        let (digest, mut known) = (digest(state), self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if known.order.len() == MOST
            && let Some(oldest) = known.order.pop_front()
        {
            known.rounds.remove(&oldest);
        }
        known.order.push_back(digest);
        known.rounds.insert(digest, rounds + 1);
    }

    /// Takes `state`, which comes back: the times that its call has asked. None for one that came before, or is not known.
    pub(crate) fn take(&self, state: &str) -> Option<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).rounds.remove(&digest(state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_taken_once_whichever_instance_it_names_and_for_some_rounds_only() {
        let known = Repetitions::default();
        assert_eq!(known.take("a"), None);
        known.add("a", 0);
        assert_eq!((known.take("a.instance"), known.take("a")), (Some(1), None));
        known.add("b", MOST_ROUNDS - 1);
        known.add("c", MOST_ROUNDS);
        assert_eq!((known.take("b"), known.take("c")), (Some(MOST_ROUNDS), None));
    }

    #[test]
    fn the_oldest_states_make_room() {
        let known = Repetitions::default();
        (0..MOST + 5).for_each(|n| known.add(&n.to_string(), 0));
        assert_eq!((known.take("4"), known.take("5")), (None, Some(1)));
        let memory = known.0.lock().unwrap();
        assert!(memory.order.len() == MOST && memory.rounds.len() < MOST);
    }
}
