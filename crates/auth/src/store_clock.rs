//! The clock that all instances of a deployment share: that of the server of their store.
//!
//! A revocation ends what was granted before it. An instance whose clock is ahead would give grants that are younger than a revocation which
//! another one makes after them.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use crate::{
    clock::Clock,
    store::{Store, StoreError},
};

/// Time between two questions for the time.
const EVERY: Duration = Duration::from_secs(30);
/// Largest difference that is made up for, in milliseconds: the clocks of machines have to agree to within 30 seconds.
const MOST: i64 = 30_000;
/// Longest wait for an answer that is believed, in milliseconds: what took longer says too little.
const LONGEST_ANSWER: u64 = 1_000;

/// The machine's clock, set by that of the store.
struct StoreClock {
    machine: Arc<dyn Clock>,
    ahead_ms: AtomicI64,
}

impl Clock for StoreClock {
    fn now_ms(&self) -> u64 {
        self.machine.now_ms().saturating_add_signed(self.ahead_ms.load(Ordering::Relaxed))
    }
}

impl StoreClock {
    /// Asks the store for its time.
    async fn set_by(&self, store: &dyn Store) -> Result<(), StoreError> {
        let before = self.machine.now_ms();
        let Some(theirs) = store.time_ms().await? else { return Ok(()) };
        let after = self.machine.now_ms();
        if after.saturating_sub(before) > LONGEST_ANSWER {
            return Ok(());
        }
        let ours = before.midpoint(after);
        let ahead = i64::try_from(theirs).unwrap_or(i64::MAX).saturating_sub_unsigned(ours);
        if ahead.abs() > MOST {
            tracing::warn!(
                seconds = ahead / 1000,
                "the clock of this machine is more than 30 s off that of the token store: set both, revocations do not end all they should"
            );
        }
        self.ahead_ms.store(ahead.clamp(-MOST, MOST), Ordering::Relaxed);
        Ok(())
    }
}

/// Returns the clock of a server with this store: `machine`, or, where instances share the store, its time.
pub(crate) async fn of_store(store: &Arc<dyn Store>, machine: Arc<dyn Clock>) -> Arc<dyn Clock> {
    match store.time_ms().await {
        Ok(None) => return machine,
        Ok(Some(_)) => {}
        Err(error) => {
            tracing::warn!(
                %error,
                "the token store does not tell its time (`TIME`): the clocks of all instances have to agree exactly for revocations"
            );
            return machine;
        }
    }
    let clock = Arc::new(StoreClock { machine, ahead_ms: AtomicI64::new(0) });
    let _ = clock.set_by(&**store).await;
    tokio::spawn(keep_set(Arc::downgrade(&clock), store.clone()));
    clock
}

/// Asks again for as long as the clock is used.
async fn keep_set(clock: Weak<StoreClock>, store: Arc<dyn Store>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let Some(clock) = clock.upgrade() else { return };
        // While the store is away, the last answer counts.
        let _ = clock.set_by(&*store).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    fn clock(machine: u64) -> StoreClock {
        StoreClock { machine: Arc::new(ManualClock::at(machine)), ahead_ms: AtomicI64::new(0) }
    }

    #[test]
    fn the_time_is_the_machines_plus_the_difference() {
        let clock = clock(100_000);
        clock.ahead_ms.store(-25_000, Ordering::Relaxed);
        assert_eq!(clock.now_ms(), 75_000);
        clock.ahead_ms.store(25_000, Ordering::Relaxed);
        assert_eq!(clock.now_ms(), 125_000);
    }
}
