//! Lockout after wrong passwords.
//!
//! Failures are counted by account and network together, so that a user cannot be locked out from another network. After many failures from
//! many networks (NIST SP 800-63B §5.2.2: no more than 100) an account accepts passwords only from networks that its user signed in from
//! before. A network that tries many accounts is stopped for all of them.

use std::time::Duration;

use crate::{
    net::ClientAddress,
    store::{Key, Store, StoreError},
    tuning::{KNOWN_NETWORK, LOCKOUT_WINDOW},
};

/// Failures of a network at all accounts, and of an account from all networks, as multiples of those of both together.
const OF_NETWORK: u64 = 10;
const OF_ACCOUNT: u64 = 20;

/// The counters of one login.
pub(crate) struct Lockout {
    both: Key,
    /// Of each network of the caller, with the number of callers whose limit it has.
    networks: Vec<(Key, u64)>,
    account: Key,
    known: Key,
}

impl Lockout {
    /// Returns the counters of a login at the account `name` by `caller`.
    pub(crate) fn of(name: &str, caller: ClientAddress) -> Self {
        let network = caller.to_string();
        Self {
            both: Key::named("wrong", &["both", name, &network]),
            networks: caller
                .networks()
                .map(|(network, times)| (Key::named("wrong", &["ip", &network.to_string()]), times))
                .collect(),
            account: Key::named("wrong", &["name", name]),
            known: Key::named("wrong", &["known", name, &network]),
        }
    }

    /// Returns the time for which logins are refused without a check, if they are. `limit` is the number of failures of an account from one
    /// network.
    pub(crate) async fn locked_for(
        &self,
        store: &dyn Store,
        limit: u64,
    ) -> Result<Option<Duration>, StoreError> {
        let mut counters = vec![(&self.both, limit)];
        if store.get(&self.known).await?.is_none() {
            counters.push((&self.account, limit.saturating_mul(OF_ACCOUNT)));
        }
        let of_network = limit.saturating_mul(OF_NETWORK);
        counters.extend(self.networks.iter().map(|(key, times)| (key, of_network.saturating_mul(*times))));
        remaining_lock(store, &counters).await
    }

    /// Counts a check that begins as a failure, so that checks at the same time see it. Returns `false` if there were `limit` already.
    pub(crate) async fn begin(&self, store: &dyn Store, limit: u64) -> Result<bool, StoreError> {
        Ok(store.hit(&self.both, LOCKOUT_WINDOW).await?.count <= limit)
    }

    /// Counts the failure of a check that [began](Self::begin).
    pub(crate) async fn record_failure(&self, store: &dyn Store) -> Result<(), StoreError> {
        let networks = self.networks.iter().map(|(key, _)| key);
        for key in std::iter::once(&self.account).chain(networks) {
            store.hit(key, LOCKOUT_WINDOW).await?;
        }
        Ok(())
    }

    /// Resets the counter of the account and the network, and remembers the network.
    pub(crate) async fn record_success(&self, store: &dyn Store) -> Result<(), StoreError> {
        store.remove(&self.both).await?;
        store.put(&self.known, b"1", KNOWN_NETWORK).await
    }
}

/// Returns the time until none of `counters` has reached its limit; `None` when none has.
pub(crate) async fn remaining_lock(
    store: &dyn Store,
    counters: &[(&Key, u64)],
) -> Result<Option<Duration>, StoreError> {
    let keys: Vec<Key> = counters.iter().map(|(key, _)| (*key).clone()).collect();
    let records = store.get_many(&keys).await?;
    let mut left = None;
    for ((key, limit), record) in counters.iter().zip(records) {
        let text = record.as_deref().and_then(|record| std::str::from_utf8(record).ok());
        if text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0) >= *limit {
            // Beyond the limit one more changes nothing, and a window does not begin anew: only a counter knows when its own ends.
            left = left.max(Some(store.hit(key, LOCKOUT_WINDOW).await?.resets_in));
        }
    }
    Ok(left)
}
