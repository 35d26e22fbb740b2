//! Counts kept in this process.

use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use governor::{
    DefaultKeyedRateLimiter, Quota, RateLimiter,
    clock::{Clock as _, DefaultClock},
};

use crate::RateLimitRule;

/// Checks after which callers who have been quiet for a window are forgotten.
const SWEEP: u32 = 10_000;

/// One rule's counts: a bucket of `limit` calls for each caller that fills again evenly, once a window.
pub(crate) struct Local {
    buckets: DefaultKeyedRateLimiter<Box<str>>,
    clock: DefaultClock,
    checks: AtomicU32,
}

impl Local {
    pub(crate) fn new(rule: &RateLimitRule) -> Self {
        let burst = NonZeroU32::new(rule.limit).unwrap_or(NonZeroU32::MIN);
        let each = (rule.window / burst.get()).max(Duration::from_nanos(1));
        let quota = Quota::with_period(each).unwrap_or(Quota::per_second(burst)).allow_burst(burst);
        Self { buckets: RateLimiter::keyed(quota), clock: DefaultClock::default(), checks: AtomicU32::new(0) }
    }

    /// Counts a call; the time to wait when there is no room.
    pub(crate) fn check(&self, caller: &str) -> Result<(), Duration> {
        if self.checks.fetch_add(1, Ordering::Relaxed) % SWEEP == SWEEP - 1 {
            self.buckets.retain_recent();
            self.buckets.shrink_to_fit();
        }
        let caller: Box<str> = caller.into();
        self.buckets.check_key(&caller).map_err(|until| until.wait_time_from(self.clock.now()))
    }
}
