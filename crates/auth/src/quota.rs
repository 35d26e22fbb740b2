//! Quotas for records that expire: for all callers together, and for each of them.
//!
//! The room of a record is free again when it expires, not when it is removed. Each instance counts the requests that it received.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gatewright_core::{Claimant, Portion, Share, Shares};

/// A quota of which one caller gets a portion: by default a fifth at most, and 48 bits of IPv6 half.
pub(crate) struct Quota {
    shares: Arc<Shares>,
    /// The reserved shares, by the second in which they are free again.
    reserved: Mutex<BTreeMap<u64, HashMap<Claimant, Share>>>,
}

impl Quota {
    /// A quota of `most` for all callers.
    pub(crate) fn new(most: usize) -> Self {
        Self::of(most, Portion::QuarterOfFree)
    }

    /// A quota of `most` for all callers, of which one gets `portion`.
    pub(crate) fn of(most: usize, portion: Portion) -> Self {
        Self { shares: Shares::new(most, portion), reserved: Mutex::default() }
    }

    /// Reserves `amount` for a record that lives for `life`. Returns `false` if `claimant` has its share.
    pub(crate) fn reserve(&self, claimant: Claimant, amount: usize, now_ms: u64, life: Duration) -> bool {
        // Nothing panics while the lock is held.
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(first) = reserved.first_entry().filter(|first| first.key() * 1000 <= now_ms) {
            first.remove();
        }
        let life_ms = u64::try_from(life.as_millis()).unwrap_or(u64::MAX / 2);
        let until_s = now_ms.saturating_add(life_ms).div_ceil(1000);
        match reserved.entry(until_s).or_default().entry(claimant) {
            Entry::Occupied(mut share) => share.get_mut().grow(amount).is_ok(),
            Entry::Vacant(place) => match self.shares.take(place.key().clone(), amount) {
                Ok(share) => {
                    place.insert(share);
                    true
                }
                Err(_) => false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(600);
    const MOST: usize = 32 * 1024 * 1024;

    fn reserve(quota: &Quota, network: &str, now_ms: u64) -> bool {
        quota.reserve(Claimant::at(network.parse().unwrap()), 10_000, now_ms, LIFE)
    }

    fn fill(quota: &Quota, network: &str, now_ms: u64) -> usize {
        (0..MOST).take_while(|_| reserve(quota, network, now_ms)).count() * 10_000
    }

    #[test]
    fn one_network_takes_a_fifth_and_another_finds_room() {
        let quota = Quota::new(MOST);
        let taken = fill(&quota, "192.0.2.1", 0);
        assert!((1..=MOST / 5).contains(&taken), "{taken}");
        assert!(reserve(&quota, "192.0.2.2", 0));
        let all: usize = (0..100).map(|n| fill(&quota, &format!("198.51.100.{n}"), 0)).sum();
        assert!(taken + all <= MOST, "{all}");
    }

    #[test]
    fn what_was_taken_is_free_when_the_record_expires() {
        let quota = Quota::new(MOST);
        let first = fill(&quota, "192.0.2.1", 0);
        assert!(!reserve(&quota, "192.0.2.1", 599_999));
        assert_eq!(fill(&quota, "192.0.2.1", 600_000), first);
    }
}
