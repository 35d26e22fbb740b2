//! Room for authorizations that are under way: bounded in bytes, for all and for each network.
//!
//! Whoever begins one writes up to some 10 KB into the store before anybody has signed in. What is taken is free again when the record is
//! forgotten, not when the sign-in is done. Each instance counts what it began.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gatewright_core::{Share, Shares};

/// Bytes for all: one network gets a fifth at most.
const MOST_BYTES: usize = 32 * 1024 * 1024;
/// What a record needs beside its text, and what a login at a provider adds to it.
const MORE: usize = 512;

/// The room, and what is taken of it by the time at which it is free again.
pub(crate) struct UnderWay {
    room: Arc<Shares<Box<str>>>,
    taken: Mutex<BTreeMap<u64, Vec<Share<Box<str>>>>>,
}

impl Default for UnderWay {
    fn default() -> Self {
        Self { room: Shares::new(MOST_BYTES), taken: Mutex::default() }
    }
}

impl UnderWay {
    /// Takes room for a record of `bytes` that lives for `life`; `false` when there is none for `network`.
    pub(crate) fn take(&self, network: &str, bytes: usize, now_ms: u64, life: Duration) -> bool {
        // Nothing panics while it holds the lock.
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(first) = taken.first_entry().filter(|first| *first.key() <= now_ms) {
            first.remove();
        }
        let Some(share) = self.room.take(Some(network.into()), bytes + MORE) else { return false };
        let until = now_ms + u64::try_from(life.as_millis()).unwrap_or(u64::MAX / 2);
        taken.entry(until).or_default().push(share);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(600);

    fn fill(room: &UnderWay, network: &str, now_ms: u64) -> usize {
        (0..MOST_BYTES).take_while(|_| room.take(network, 10_000, now_ms, LIFE)).count() * 10_000
    }

    #[test]
    fn one_network_takes_a_fifth_of_the_bytes_and_another_finds_room() {
        let room = UnderWay::default();
        let taken = fill(&room, "192.0.2.1", 0);
        assert!((1..=MOST_BYTES / 5).contains(&taken), "{taken}");
        assert!(room.take("192.0.2.2", 10_000, 0, LIFE));
        let all: usize = (0..100).map(|n| fill(&room, &format!("198.51.100.{n}"), 0)).sum();
        assert!(taken + all <= MOST_BYTES, "{all}");
    }

    #[test]
    fn what_was_taken_is_free_when_the_record_is_forgotten() {
        let room = UnderWay::default();
        let first = fill(&room, "192.0.2.1", 0);
        assert!(!room.take("192.0.2.1", 10_000, 599_999, LIFE));
        assert_eq!(fill(&room, "192.0.2.1", 600_000), first);
    }
}
