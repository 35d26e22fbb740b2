//! The time for which a run has its worker, and the question whether it leaves it to others.

use std::time::Duration;

use tokio::time::Instant;

/// Time after which it is looked whether others need the worker of a run.
const LOOK: Duration = Duration::from_millis(500);
/// Time that a run may keep its worker where others wait, though it only calls and waits.
const LEAST_HELD: Duration = Duration::from_secs(2);
/// Time of a script's own after which another worker would take long to get to the same point.
const MOST_COMPUTED: Duration = Duration::from_secs(1);

/// The clock of a run that has a worker.
pub(super) struct Hold {
    /// Time without a message after which it leaves the worker anyway.
    park_after: Duration,
    began: Instant,
    idle_since: Instant,
    busy_since: Option<Instant>,
    computed: Duration,
}

impl Hold {
    /// The clock of a run that got its worker now.
    pub(super) fn new(park_after: Duration) -> Self {
        let began = Instant::now();
        Self { park_after, began, idle_since: began, busy_since: Some(began), computed: Duration::ZERO }
    }

    /// Time between two looks.
    pub(super) fn look(&self) -> Duration {
        self.park_after.min(LOOK)
    }

    /// Notes that a message came, or an answer was sent.
    pub(super) fn active(&mut self) {
        self.idle_since = Instant::now();
    }

    /// Notes whether the script waits: the rest of the time is its own.
    pub(super) fn waits(&mut self, waits: bool) {
        if !waits {
            self.busy_since.get_or_insert_with(Instant::now);
        } else if let Some(since) = self.busy_since.take() {
            self.computed += since.elapsed();
        }
    }

    /// Returns `true` for a run that leaves its worker if it can, where `others_wait` tells whether others need it more.
    pub(super) fn is_over(&self, others_wait: impl FnOnce() -> bool) -> bool {
        let idle = self.idle_since.elapsed();
        let is_cheap = self.began.elapsed() >= LEAST_HELD && self.computed < MOST_COMPUTED;
        idle >= self.park_after || (idle >= self.look() || is_cheap) && others_wait()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_run_leaves_its_worker_sooner_where_others_wait_unless_it_computed_for_long() {
        let pass = async |milliseconds: u64| tokio::time::advance(Duration::from_millis(milliseconds)).await;
        let mut hold = Hold::new(Duration::from_secs(5));
        hold.waits(true);
        pass(500).await;
        assert!(hold.is_over(|| true) && !hold.is_over(|| false));
        hold.active();
        assert!(!hold.is_over(|| true));
        pass(1_500).await;
        hold.active();
        assert!(hold.is_over(|| true), "it had the worker for two seconds");
        hold.waits(false);
        pass(1_000).await;
        hold.waits(true);
        hold.active();
        assert!(!hold.is_over(|| true), "all of that would be done again");
        pass(5_000).await;
        assert!(hold.is_over(|| false));
    }
}
