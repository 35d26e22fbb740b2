//! The limiter: the rules that cover a call, and the caller that they count.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use futures::future::BoxFuture;
use gatewright_core::{AppFuture, Principal, RateLimiter, RetryAfter, counted_networks};

use super::{local::Local, rule::RateLimitRule};

/// Pause after a shared counter did not answer: calls must not wait for it one after the other.
const PAUSE_MS: u64 = 2_000;
/// Shortest time between two warnings that the shared counter does not answer.
const WARN_AGAIN_MS: u64 = 10_000;

/// Result of counting one use in a shared counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Uses in the current window, this one included.
    pub count: u64,
    /// Until the window ends.
    pub resets_in: Duration,
}

/// The shared counter does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unavailable;

/// Future of a shared counter's answer.
pub type CounterFuture<'a> = BoxFuture<'a, Result<Counted, Unavailable>>;

/// Counts uses for all instances. Each count is one atomic step.
pub trait SharedCounter: Send + Sync + 'static {
    /// Counts one use of `key`; the first begins a window of this length.
    fn count<'a>(&'a self, key: &'a [&'a str], window: Duration) -> CounterFuture<'a>;
}

struct Counts {
    rule: RateLimitRule,
    /// Tells rules apart in the shared counter: a changed rule starts anew.
    name: String,
    local: Local,
}

impl Counts {
    fn new(rule: RateLimitRule) -> Arc<Self> {
        let name = format!("{} {} {}", rule.tool, rule.limit, rule.window.as_millis());
        Arc::new(Self { name, local: Local::new(&rule), rule })
    }
}

/// Every rule, with its counts.
pub struct Limits {
    rules: ArcSwap<Vec<Arc<Counts>>>,
    shared: Option<Arc<dyn SharedCounter>>,
    began: Instant,
    warned_ms: AtomicU64,
    /// End of the pause after the shared counter did not answer.
    paused_until_ms: AtomicU64,
    failures: AtomicU64,
}

impl std::fmt::Debug for Limits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limits").field("rules", &self.rules.load().len()).finish_non_exhaustive()
    }
}

impl Limits {
    /// Limits counted in this process. A caller has a bucket of `limit` calls that fills evenly, once a window.
    pub fn new(rules: Vec<RateLimitRule>) -> Self {
        let rules = ArcSwap::from_pointee(rules.into_iter().map(Counts::new).collect());
        Self {
            rules,
            shared: None,
            began: Instant::now(),
            warned_ms: AtomicU64::new(u64::MAX),
            paused_until_ms: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    /// Calls since the start that the shared counter did not count. After each it is not asked for two seconds.
    pub fn shared_failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Replaces the rules. A rule that stays keeps its counts.
    pub fn replace(&self, rules: Vec<RateLimitRule>) {
        let current = self.rules.load();
        let kept = |rule: RateLimitRule| {
            current.iter().find(|counts| counts.rule == rule).cloned().unwrap_or_else(|| Counts::new(rule))
        };
        self.rules.store(Arc::new(rules.into_iter().map(kept).collect()));
    }

    /// Counts with `counter` for all instances together: at most `limit` calls in a window that the first call begins. While the
    /// counter does not answer, this process counts for itself.
    #[must_use]
    pub fn shared(mut self, counter: Arc<dyn SharedCounter>) -> Self {
        self.shared = Some(counter);
        self
    }

    async fn count(&self, counts: &Counts, caller: &str, times: u32) -> Result<(), Duration> {
        let is_paused = || self.now_ms() < self.paused_until_ms.load(Ordering::Relaxed);
        if let Some(shared) = self.shared.as_ref().filter(|_| !is_paused()) {
            match shared.count(&[&counts.name, caller], counts.rule.window).await {
                Ok(Counted { count, resets_in })
                    if count > u64::from(counts.rule.limit) * u64::from(times) =>
                {
                    return Err(resets_in);
                }
                Ok(_) => return Ok(()),
                Err(Unavailable) => {
                    self.failures.fetch_add(1, Ordering::Relaxed);
                    self.paused_until_ms.store(self.now_ms() + PAUSE_MS, Ordering::Relaxed);
                    self.warn();
                }
            }
        }
        counts.local.check(caller, times)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX / 2)
    }

    fn warn(&self) {
        let now = self.now_ms();
        let before = self.warned_ms.load(Ordering::Relaxed);
        if before == u64::MAX || now >= before + WARN_AGAIN_MS {
            self.warned_ms.store(now, Ordering::Relaxed);
            tracing::warn!(
                "the store that counts for all instances does not answer: rate limits are counted by this instance alone"
            );
        }
    }
}

/// Returns the keys that a caller is counted under, each with the number of callers whose limit it has: the subject, with all its
/// clients, of which it can register any number; or the networks of the address where nobody logs in.
fn callers(principal: &Principal, address: Option<IpAddr>) -> Vec<(String, u32)> {
    if let Some(address) = address
        && principal.client_id.is_none()
        && &*principal.subject == "anonymous"
    {
        let times = |times: usize| u32::try_from(times).unwrap_or(u32::MAX);
        return counted_networks(address).map(|(network, n)| (format!("@{network}"), times(n))).collect();
    }
    vec![(principal.subject.to_string(), 1)]
}

impl RateLimiter for Limits {
    fn check<'a>(
        &'a self,
        tool: &'a str,
        principal: &'a Principal,
        address: Option<IpAddr>,
    ) -> AppFuture<'a, Result<(), RetryAfter>> {
        Box::pin(async move {
            let mut keys = None;
            for counts in self.rules.load_full().iter().filter(|counts| counts.rule.covers(tool)) {
                for (caller, times) in keys.get_or_insert_with(|| callers(principal, address)) {
                    self.count(counts, caller, *times).await.map_err(RetryAfter)?;
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use gatewright_core::Scopes;

    use super::*;

    fn limits(rules: &[(&str, u32)]) -> Limits {
        let rule = |(tool, limit): &(&str, u32)| RateLimitRule {
            tool: (*tool).to_owned(),
            limit: *limit,
            window: Duration::from_secs(3600),
        };
        Limits::new(rules.iter().map(rule).collect())
    }

    fn who(subject: &str, client: Option<&str>) -> Principal {
        Principal {
            subject: subject.into(),
            client_id: client.map(Into::into),
            scopes: Scopes::All,
            ..Principal::local()
        }
    }

    async fn passes(limits: &Limits, tool: &str, principal: &Principal, address: Option<[u8; 4]>) -> bool {
        limits.check(tool, principal, address.map(Into::into)).await.is_ok()
    }

    #[tokio::test]
    async fn each_caller_has_a_count_of_its_own() {
        let limits = limits(&[("crm:*", 2)]);
        let (ada, grace) = (who("ada", Some("app")), who("grace", Some("app")));
        for _ in 0..2 {
            assert!(passes(&limits, "crm:a", &ada, None).await);
        }
        assert!(!passes(&limits, "crm:b", &ada, None).await, "the rule counts the whole app");
        assert!(passes(&limits, "crm:a", &grace, None).await);
        assert!(passes(&limits, "billing:a", &ada, None).await, "no rule covers it");
        assert!(
            !passes(&limits, "crm:a", &who("ada", Some("other")), None).await,
            "a client of the same user"
        );
    }

    #[tokio::test]
    async fn anonymous_callers_are_told_apart_by_address_and_named_ones_are_not() {
        let limits = limits(&[("*", 1)]);
        let nobody = who("anonymous", None);
        assert!(passes(&limits, "x:y", &nobody, Some([10, 0, 0, 1])).await);
        assert!(!passes(&limits, "x:y", &nobody, Some([10, 0, 0, 1])).await);
        assert!(passes(&limits, "x:y", &nobody, Some([10, 0, 0, 2])).await);
        let ada = who("ada", None);
        assert!(passes(&limits, "x:y", &ada, Some([10, 0, 0, 1])).await);
        assert!(!passes(&limits, "x:y", &ada, Some([10, 0, 0, 2])).await);
    }

    #[tokio::test]
    async fn all_addresses_of_one_ipv6_subscriber_are_one_caller() {
        let limits = limits(&[("*", 1)]);
        let passes = async |address: &str| {
            limits.check("x:y", &who("anonymous", None), Some(address.parse().unwrap())).await.is_ok()
        };
        assert!(passes("2001:db8:1:2::1").await);
        assert!(!passes("2001:db8:1:2:ffff::9").await);
        assert!(passes("2001:db8:1:3::1").await);
        assert!(passes("10.0.0.1").await && !passes("::ffff:10.0.0.1").await);
    }

    #[tokio::test]
    async fn a_refusal_says_how_long_to_wait() {
        let limits = limits(&[("x:y", 6)]);
        let ada = who("ada", None);
        for _ in 0..6 {
            assert!(passes(&limits, "x:y", &ada, None).await);
        }
        let RetryAfter(wait) = limits.check("x:y", &ada, None).await.unwrap_err();
        // Six an hour: one every ten minutes.
        assert!((Duration::from_secs(590)..=Duration::from_secs(600)).contains(&wait), "{wait:?}");
    }

    #[tokio::test]
    async fn a_rule_that_stays_keeps_its_counts_when_others_change() {
        let limits = limits(&[("x:y", 1), ("x:z", 1)]);
        let ada = who("ada", None);
        assert!(passes(&limits, "x:y", &ada, None).await);
        let rule =
            |tool: &str, limit| RateLimitRule { tool: tool.into(), limit, window: Duration::from_secs(3600) };
        limits.replace(vec![rule("x:y", 1), rule("x:z", 2)]);
        assert!(!passes(&limits, "x:y", &ada, None).await);
        assert!(passes(&limits, "x:z", &ada, None).await && passes(&limits, "x:z", &ada, None).await);
        limits.replace(Vec::new());
        assert!(passes(&limits, "x:y", &ada, None).await);
    }

    #[tokio::test]
    async fn a_caller_of_many_ipv6_networks_has_a_limit_of_its_own() {
        let counter = Arc::new(Counter::default());
        for limits in [limits(&[("x:y", 3)]), limits(&[("x:y", 3)]).shared(counter)] {
            let nobody = who("anonymous", None);
            let passes = async |address: String| {
                limits.check("x:y", &nobody, Some(address.parse().unwrap())).await.is_ok()
            };
            let mut passed = 0;
            for n in 0..100 {
                passed += usize::from(passes(format!("2001:db8:1:{:x}::1", n << 8)).await);
            }
            assert_eq!(passed, 12, "four times the limit for 48 bits");
            assert!(passes("2001:db8:2::1".to_owned()).await);
        }
    }

    #[derive(Default)]
    struct Counter(Mutex<std::collections::HashMap<String, u64>>, std::sync::atomic::AtomicBool);

    impl SharedCounter for Counter {
        fn count<'a>(&'a self, key: &'a [&'a str], window: Duration) -> CounterFuture<'a> {
            Box::pin(async move {
                if self.1.load(Ordering::SeqCst) {
                    return Err(Unavailable);
                }
                let mut counts = self.0.lock().unwrap();
                let count = counts.entry(key.join("|")).or_default();
                *count += 1;
                Ok(Counted { count: *count, resets_in: window })
            })
        }
    }

    #[tokio::test]
    async fn a_counter_that_does_not_answer_is_not_asked_again_at_once() {
        let counter = Arc::new(Counter::default());
        counter.1.store(true, Ordering::SeqCst);
        let limits = limits(&[("x:y", 2)]).shared(counter.clone());
        let ada = who("ada", None);
        assert!(passes(&limits, "x:y", &ada, None).await);
        counter.1.store(false, Ordering::SeqCst);
        assert!(passes(&limits, "x:y", &ada, None).await && !passes(&limits, "x:y", &ada, None).await);
        assert!(counter.0.lock().unwrap().is_empty(), "it is left alone for a moment");
        assert_eq!(limits.shared_failures(), 1);
        limits.paused_until_ms.store(0, Ordering::Relaxed);
        assert!(passes(&limits, "x:y", &ada, None).await);
        assert_eq!(counter.0.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn instances_with_one_counter_share_the_limit_and_go_on_without_it() {
        let counter = Arc::new(Counter::default());
        let (one, other) =
            (limits(&[("x:y", 2)]).shared(counter.clone()), limits(&[("x:y", 2)]).shared(counter.clone()));
        let ada = who("ada", None);
        assert!(passes(&one, "x:y", &ada, None).await && passes(&other, "x:y", &ada, None).await);
        assert!(!passes(&one, "x:y", &ada, None).await && !passes(&other, "x:y", &ada, None).await);
        counter.1.store(true, Ordering::SeqCst);
        assert!(passes(&one, "x:y", &ada, None).await, "counted by itself from here on");
        assert!(passes(&one, "x:y", &ada, None).await);
        assert!(!passes(&one, "x:y", &ada, None).await);
    }
}
