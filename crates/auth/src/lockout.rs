//! Wrong passwords: who is locked out after how many.
//!
//! Failures are counted by account and network together, so that nobody locks a user out from elsewhere. An account that sees many of
//! them from many networks (NIST SP 800-63B §5.2.2: no more than 100) takes passwords only from networks that its user signed in from
//! before; and a network that tries many accounts is stopped at all of them.

use std::time::Duration;

use crate::{
    net::Caller,
    store::{Key, Store, StoreError},
};

/// How long failures count, from the first one on.
pub(crate) const LOCK: Duration = Duration::from_secs(900);
/// How long a network is known as one that the user signs in from.
const KNOWN: Duration = Duration::from_secs(30 * 86_400);
/// Failures of a network at all accounts, and of an account from all networks, as multiples of those of both together.
const OF_NETWORK: u64 = 10;
const OF_ACCOUNT: u64 = 20;

/// The counters of one try.
pub(crate) struct Lockout {
    both: Key,
    network: Key,
    account: Key,
    known: Key,
}

impl Lockout {
    /// The counters of a try at the account `name` by `caller`.
    pub(crate) fn of(name: &str, caller: Caller) -> Self {
        let network = caller.to_string();
        Self {
            both: Key::named("wrong", &["both", name, &network]),
            network: Key::named("wrong", &["ip", &network]),
            account: Key::named("wrong", &["name", name]),
            known: Key::named("wrong", &["known", name, &network]),
        }
    }

    /// Returns whether the try is refused unseen. `most` is the number of failures of an account from one network.
    pub(crate) async fn is_locked(&self, store: &dyn Store, most: u64) -> Result<bool, StoreError> {
        let Self { both, network, account, known } = self;
        let held = store.get_many(&[both.clone(), network.clone(), account.clone(), known.clone()]).await?;
        let count = |at: usize| {
            let text =
                held.get(at).and_then(Option::as_deref).and_then(|held| std::str::from_utf8(held).ok());
            text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0)
        };
        let is_known = held.get(3).is_some_and(Option::is_some);
        Ok(count(0) >= most
            || count(1) >= most.saturating_mul(OF_NETWORK)
            || (count(2) >= most.saturating_mul(OF_ACCOUNT) && !is_known))
    }

    /// Counts a wrong password.
    pub(crate) async fn wrong(&self, store: &dyn Store) -> Result<(), StoreError> {
        for key in [&self.both, &self.network, &self.account] {
            store.hit(key, LOCK).await?;
        }
        Ok(())
    }

    /// Notes that the password was right.
    pub(crate) async fn fits(&self, store: &dyn Store) -> Result<(), StoreError> {
        store.remove(&self.both).await?;
        store.put(&self.known, b"1", KNOWN).await
    }
}
