//! The rights of callers whose requests go on while the configuration changes.
//!
//! The rights of a request are decided on once, when it is authenticated. A configuration that came since then may grant less, or have another app in the
//! place of one: a call that waited meanwhile, or a script that goes on, asks again.

use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Instant, SystemTime},
};

use crate::{Authenticator, Caller, Denied, Scopes};

/// The authenticator that knows the rights of callers, and the time at which they may have changed.
pub(super) struct CurrentRights {
    authenticator: OnceLock<Weak<dyn Authenticator>>,
    began: Instant,
    /// Nanoseconds after `began` from which on callers that were known before are asked for again.
    changed: AtomicU64,
    /// Changes so far.
    count: AtomicU64,
}

impl Default for CurrentRights {
    fn default() -> Self {
        Self {
            authenticator: OnceLock::new(),
            began: Instant::now(),
            changed: AtomicU64::new(0),
            count: AtomicU64::new(0),
        }
    }
}

impl CurrentRights {
    /// Asks `authenticator` from now on.
    pub(super) fn of(&self, authenticator: &Arc<dyn Authenticator>) {
        let _ = self.authenticator.set(Arc::downgrade(authenticator));
    }

    /// Has callers that are known already asked for again.
    pub(super) fn change(&self) {
        self.changed.fetch_max(self.nanos(Instant::now()), Ordering::SeqCst);
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// The number of changes.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// The caller with the rights that it has now, if they may have changed; `None` if it can go on as it is.
    ///
    /// # Errors
    /// Its access has ended, or the store that knows does not answer.
    pub(super) async fn of_caller(&self, caller: &Caller) -> Result<Option<Caller>, Denied> {
        if self.nanos(caller.since()) > self.changed.load(Ordering::SeqCst)
            || caller.principal().scopes == Scopes::All
        {
            return Ok(None);
        }
        let Some(authenticator) = self.authenticator.get() else { return Ok(None) };
        let authenticator = authenticator.upgrade().ok_or(Denied::Ended)?;
        let since = SystemTime::now().checked_sub(caller.since().elapsed()).unwrap_or(SystemTime::UNIX_EPOCH);
        match authenticator.principal_now(caller.principal(), since, None).await {
            Ok(Some(principal)) => Ok(Some(caller.clone().renewed(principal))),
            Ok(None) | Err(_) => Err(Denied::Ended),
        }
    }

    fn nanos(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.began).as_nanos()).unwrap_or(u64::MAX)
    }
}
