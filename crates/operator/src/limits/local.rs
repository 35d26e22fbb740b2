//! Counts of one process: a bucket for each caller, by the generic cell rate algorithm (GCRA).

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::rule::RateLimitRule;

/// Checks between two removals of callers whose buckets are full.
const SWEEP: u32 = 10_000;

/// The buckets of one rule: `limit` calls each, filled again evenly, once a window.
pub(super) struct Local {
    /// Time in which a bucket gains one call.
    interval: Duration,
    /// Time in which an empty bucket is full again.
    window: Duration,
    began: Instant,
    buckets: Mutex<Buckets>,
}

#[derive(Default)]
struct Buckets {
    /// By caller, since `began`: when the bucket is full again.
    full_at: HashMap<Box<str>, Duration>,
    checks: u32,
}

impl Local {
    pub(super) fn new(rule: &RateLimitRule) -> Self {
        let limit = rule.limit.max(1);
        let interval = (rule.window / limit).max(Duration::from_nanos(1));
        Self { interval, window: interval * limit, began: Instant::now(), buckets: Mutex::default() }
    }

    /// Counts a call, or returns the time to wait until there is room for it.
    /// `times` callers count as one, with a bucket of as many times the calls.
    pub(super) fn check(&self, caller: &str, times: u32) -> Result<(), Duration> {
        self.check_at(caller, times, self.began.elapsed())
    }

    fn check_at(&self, caller: &str, times: u32, now: Duration) -> Result<(), Duration> {
        let interval = (self.interval / times).max(Duration::from_nanos(1));
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.checks += 1;
        if buckets.checks == SWEEP {
            buckets.checks = 0;
            buckets.full_at.retain(|_, full_at| *full_at > now);
            buckets.full_at.shrink_to_fit();
        }
        match buckets.full_at.get_mut(caller) {
            None => {
                buckets.full_at.insert(caller.into(), now + interval);
            }
            Some(full_at) => {
                let next = now.max(*full_at) + interval;
                if next > now + self.window {
                    return Err(next - now - self.window);
                }
                *full_at = next;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(limit: u32, window: Duration) -> Local {
        Local::new(&RateLimitRule { tool: "*".to_owned(), limit, window })
    }

    #[test]
    fn an_empty_bucket_fills_again_evenly_and_never_beyond_its_limit() {
        let local = local(4, Duration::from_secs(8));
        let at = |seconds| local.check_at("ada", 1, Duration::from_secs(seconds));
        assert!((0..4).all(|_| at(0).is_ok()));
        assert_eq!(at(0), Err(Duration::from_secs(2)));
        assert_eq!(at(1), Err(Duration::from_secs(1)));
        assert!(at(2).is_ok() && at(2).is_err(), "two seconds bring one call");
        assert!((0..4).all(|_| at(100).is_ok()) && at(100).is_err(), "a long time brings four");
    }

    #[test]
    fn callers_whose_buckets_are_full_are_forgotten() {
        let local = local(1, Duration::from_secs(1));
        for caller in 0..SWEEP {
            let now = Duration::from_secs(u64::from(caller >= SWEEP / 2) * 10);
            assert!(local.check_at(&caller.to_string(), 1, now).is_ok());
        }
        let known = local.buckets.lock().unwrap().full_at.len();
        assert_eq!(known, (SWEEP / 2) as usize, "those of the first half had ten seconds to fill");
    }

    #[test]
    fn a_window_too_short_for_its_limit_still_lets_calls_pass() {
        let local = local(u32::MAX, Duration::from_millis(1));
        assert!((0..1_000).all(|_| local.check("ada", 1).is_ok()));
    }
}
