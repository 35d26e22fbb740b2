//! Quota for authorization requests that are under way, in bytes, for all callers and for each network.
//!
//! A request writes up to some 10 KB into the store before anybody has signed in. Its bytes are free again when the record expires, not
//! when the sign-in is done. Each instance counts the requests that it received.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gatewright_core::{Share, Shares};

/// Bytes for all networks. One network gets a fifth at most.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// Bytes of a record besides its text, and of a login at a provider.
const OVERHEAD: usize = 512;

/// The quota, with the reserved shares by the time at which they are free again.
pub(crate) struct PendingQuota {
    shares: Arc<Shares<Box<str>>>,
    reserved: Mutex<BTreeMap<u64, Vec<Share<Box<str>>>>>,
}

impl Default for PendingQuota {
    fn default() -> Self {
        Self { shares: Shares::new(MAX_BYTES), reserved: Mutex::default() }
    }
}

impl PendingQuota {
    /// Reserves bytes for a record that lives for `life`. Returns `false` when `network` has none left.
    pub(crate) fn reserve(&self, network: &str, bytes: usize, now_ms: u64, life: Duration) -> bool {
        // Nothing panics while the lock is held.
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(first) = reserved.first_entry().filter(|first| *first.key() <= now_ms) {
            first.remove();
        }
        let Some(share) = self.shares.take(Some(network.into()), bytes + OVERHEAD) else { return false };
        let until = now_ms + u64::try_from(life.as_millis()).unwrap_or(u64::MAX / 2);
        reserved.entry(until).or_default().push(share);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(600);

    fn fill(room: &PendingQuota, network: &str, now_ms: u64) -> usize {
        (0..MAX_BYTES).take_while(|_| room.reserve(network, 10_000, now_ms, LIFE)).count() * 10_000
    }

    #[test]
    fn one_network_takes_a_fifth_of_the_bytes_and_another_finds_room() {
        let room = PendingQuota::default();
        let taken = fill(&room, "192.0.2.1", 0);
        assert!((1..=MAX_BYTES / 5).contains(&taken), "{taken}");
        assert!(room.reserve("192.0.2.2", 10_000, 0, LIFE));
        let all: usize = (0..100).map(|n| fill(&room, &format!("198.51.100.{n}"), 0)).sum();
        assert!(taken + all <= MAX_BYTES, "{all}");
    }

    #[test]
    fn what_was_taken_is_free_when_the_record_is_forgotten() {
        let room = PendingQuota::default();
        let first = fill(&room, "192.0.2.1", 0);
        assert!(!room.reserve("192.0.2.1", 10_000, 599_999, LIFE));
        assert_eq!(fill(&room, "192.0.2.1", 600_000), first);
    }
}
