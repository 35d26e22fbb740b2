//! Places that each of many parties has of its own, for as long as it uses or waits for one.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::Semaphore;

/// Entries from which on those of parties without places in use are removed.
const LEAST_SWEPT: usize = 64;

/// The same number of places for each party.
#[derive(Debug)]
pub struct OwnPlaces<K> {
    of_one: usize,
    parties: Mutex<Parties<K>>,
}

#[derive(Debug)]
struct Parties<K> {
    places: HashMap<K, Weak<Semaphore>>,
    sweep_at: usize,
}

impl<K: Eq + Hash> OwnPlaces<K> {
    /// `of_one` places for each.
    pub fn new(of_one: usize) -> Self {
        let parties = Parties { places: HashMap::new(), sweep_at: LEAST_SWEPT };
        Self { of_one: of_one.clamp(1, Semaphore::MAX_PERMITS), parties: Mutex::new(parties) }
    }

    /// The places of `party`.
    pub fn of(&self, party: K) -> Arc<Semaphore> {
        let mut parties = self.parties.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = parties.places.get(&party).and_then(Weak::upgrade) {
            return own;
        }
        if parties.places.len() >= parties.sweep_at {
            parties.places.retain(|_, own| own.strong_count() > 0);
            parties.sweep_at = (parties.places.len() * 2).max(LEAST_SWEPT);
        }
        let own = Arc::new(Semaphore::new(self.of_one));
        parties.places.insert(party, Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parties_that_use_no_place_are_forgotten() {
        let places = OwnPlaces::new(2);
        let own = places.of(1_000);
        (0..1_000).for_each(|party| drop(places.of(party)));
        assert!(places.parties.lock().unwrap().places.len() <= LEAST_SWEPT);
        assert!(Arc::ptr_eq(&own, &places.of(1_000)));
    }
}
