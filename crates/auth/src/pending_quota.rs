//! Quota for authorization requests that are under way, in bytes, for all callers and for each network.
//!
//! A request writes up to some 10 KB into the store before anybody has signed in. Its bytes are free again when the record expires, not
//! when the sign-in is done. Each instance counts the requests that it received.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gatewright_core::{Claimant, Portion, Share, Shares};

use crate::net::ClientAddress;

/// Bytes for all networks. One network gets a fifth at most, and 48 bits of IPv6 get half.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// Bytes of a record besides its text, and of a login at a provider.
const OVERHEAD: usize = 512;

/// The quota, with the reserved shares by the time at which they are free again.
pub(crate) struct PendingQuota {
    shares: Arc<Shares>,
    reserved: Mutex<BTreeMap<u64, Vec<Share>>>,
}

impl Default for PendingQuota {
    fn default() -> Self {
        Self { shares: Shares::new(MAX_BYTES, Portion::QuarterOfFree), reserved: Mutex::default() }
    }
}

impl PendingQuota {
    /// Reserves bytes for a record that lives for `life`. Returns `false` when the networks of `caller` have none left.
    pub(crate) fn reserve(&self, caller: ClientAddress, bytes: usize, now_ms: u64, life: Duration) -> bool {
        // Nothing panics while the lock is held.
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(first) = reserved.first_entry().filter(|first| *first.key() <= now_ms) {
            first.remove();
        }
        let Ok(share) = self.shares.take(Claimant::at(caller.0), bytes + OVERHEAD) else { return false };
        let until = now_ms + u64::try_from(life.as_millis()).unwrap_or(u64::MAX / 2);
        reserved.entry(until).or_default().push(share);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(600);

    fn caller(address: &str) -> ClientAddress {
        ClientAddress(address.parse().unwrap())
    }

    fn fill(room: &PendingQuota, network: &str, now_ms: u64) -> usize {
        (0..MAX_BYTES).take_while(|_| room.reserve(caller(network), 10_000, now_ms, LIFE)).count() * 10_000
    }

    #[test]
    fn one_network_takes_a_fifth_of_the_bytes_and_another_finds_room() {
        let room = PendingQuota::default();
        let taken = fill(&room, "192.0.2.1", 0);
        assert!((1..=MAX_BYTES / 5).contains(&taken), "{taken}");
        assert!(room.reserve(caller("192.0.2.2"), 10_000, 0, LIFE));
        let all: usize = (0..100).map(|n| fill(&room, &format!("198.51.100.{n}"), 0)).sum();
        assert!(taken + all <= MAX_BYTES, "{all}");
    }

    #[test]
    fn what_was_taken_is_free_when_the_record_is_forgotten() {
        let room = PendingQuota::default();
        let first = fill(&room, "192.0.2.1", 0);
        assert!(!room.reserve(caller("192.0.2.1"), 10_000, 599_999, LIFE));
        assert_eq!(fill(&room, "192.0.2.1", 600_000), first);
    }
}
