//! A bounded amount of something, shared among callers so that none of them can take all of it.
//!
//! Dynamic thresholds (Choudhury and Hahne, 1998): a caller may hold a quarter of what is free. One alone gets a fifth of the whole,
//! and the more is taken, the less anybody gets: dozens of callers are needed to use it up.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A bounded amount, and what each caller holds of it.
#[derive(Debug)]
pub struct Shares<K: Eq + Hash> {
    most: usize,
    most_of_one: Option<usize>,
    taken: Mutex<Taken<K>>,
}

#[derive(Debug)]
struct Taken<K> {
    all: usize,
    by: HashMap<K, usize>,
}

/// An amount that is held until this is dropped.
#[derive(Debug)]
pub struct Share<K: Eq + Hash> {
    of: Arc<Shares<K>>,
    key: Option<K>,
    amount: usize,
}

impl<K: Eq + Hash + Clone> Shares<K> {
    /// Room for `most` in all.
    pub fn new(most: usize) -> Arc<Self> {
        Self::with_most_of_one(most, None)
    }

    /// Room for `most` in all, and for `most_of_one` of each caller in place of a quarter of what is free.
    pub fn with_most_of_one(most: usize, most_of_one: Option<usize>) -> Arc<Self> {
        Arc::new(Self { most, most_of_one, taken: Mutex::new(Taken { all: 0, by: HashMap::new() }) })
    }

    /// Takes `amount` for `key`; `None` when there is no room, or when `key` holds something already and would then hold more than its
    /// share: a quarter of what stays free, if no number is set. Without a key only the whole is bounded: for callers who stand for many, such as a proxy.
    pub fn take(self: &Arc<Self>, key: Option<K>, amount: usize) -> Option<Share<K>> {
        let mut held = self.lock();
        let free = self.most.saturating_sub(held.all).checked_sub(amount)?;
        if let Some(key) = &key {
            let own = held.by.get(key).copied().unwrap_or_default();
            let share = self.most_of_one.unwrap_or(free / 4);
            if own > 0 && own + amount > share {
                return None;
            }
            held.by.insert(key.clone(), own + amount);
        }
        held.all += amount;
        Some(Share { of: self.clone(), key, amount })
    }

    /// The amount that is held in all.
    pub fn held(&self) -> usize {
        self.lock().all
    }
}

impl<K: Eq + Hash> Shares<K> {
    fn lock(&self) -> MutexGuard<'_, Taken<K>> {
        // Nothing panics while it holds the lock.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        let mut held = self.of.lock();
        held.all -= self.amount;
        if let Some(key) = &self.key
            && let Some(own) = held.by.get_mut(key)
        {
            *own -= self.amount;
            if *own == 0 {
                held.by.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(shares: &Arc<Shares<u8>>, key: Option<u8>) -> Vec<Share<u8>> {
        std::iter::from_fn(|| shares.take(key, 1)).collect()
    }

    #[test]
    fn one_caller_takes_no_more_than_a_fifth_and_twenty_leave_room_for_a_newcomer() {
        let shares = Shares::new(1_000);
        let mut all = Vec::new();
        for key in 0..20 {
            let got = fill(&shares, Some(key));
            assert!((1..=200).contains(&got.len()), "caller {key} got {}", got.len());
            all.push(got);
        }
        assert!(shares.take(Some(99), 1).is_some());
    }

    #[test]
    fn what_is_given_back_is_free_again() {
        let shares = Shares::new(10);
        let got = fill(&shares, Some(1));
        assert_eq!((shares.held(), got.len()), (2, 2));
        drop(got);
        assert_eq!(shares.held(), 0);
        assert!(shares.lock().by.is_empty(), "callers who hold nothing are forgotten");
        assert_eq!(fill(&shares, Some(1)).len(), 2);
    }

    #[test]
    fn a_caller_without_a_key_is_bounded_by_the_whole_alone() {
        let shares = Shares::new(10);
        let all = fill(&shares, None);
        assert_eq!(all.len(), 10);
        assert!(shares.take(Some(1), 1).is_none());
    }

    #[test]
    fn amounts_count_and_not_only_callers() {
        let shares = Shares::new(100);
        let _first = shares.take(Some(1), 10).unwrap();
        assert!(
            shares.take(Some(1), 15).is_none(),
            "25 is more than a quarter of the 75 that would stay free"
        );
        assert!(shares.take(Some(2), 30).is_some(), "a first one needs room only");
        assert!(shares.take(Some(3), 101).is_none());
    }
}
