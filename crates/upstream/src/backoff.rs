//! Waits between tries: twice as long after each failure, with a random part so that many do not come at once.

use std::time::Duration;

use crate::RestartConfig;

/// A server that stayed up this long starts anew at the shortest wait when it fails.
const HEALTHY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Backoff {
    config: RestartConfig,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(config: RestartConfig) -> Self {
        Self { config, next: config.initial }
    }

    /// Says how long the server was up before it failed.
    pub(crate) fn served(&mut self, uptime: Duration) {
        if uptime >= HEALTHY {
            self.next = self.config.initial;
        }
    }

    /// The wait before the next try. `random` is in 0..1.
    pub(crate) fn wait(&mut self, random: f64) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(self.config.max);
        whole.mul_f64(1.0 - self.config.jitter * random)
    }
}

/// A number in 0..1 from the operating system.
pub(crate) fn random() -> f64 {
    // Without randomness the wait is in the middle: no reason to fail.
    getrandom::u32().map_or(0.5, |number| f64::from(number) / (f64::from(u32::MAX) + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_start_anew_after_a_healthy_time() {
        let config = RestartConfig {
            initial: Duration::from_millis(100),
            max: Duration::from_millis(350),
            jitter: 0.5,
        };
        let mut backoff = Backoff::new(config);
        let waits = [0.0; 4].map(|random| backoff.wait(random).as_millis());
        assert_eq!(waits, [100, 200, 350, 350]);
        backoff.served(Duration::from_secs(1));
        assert_eq!(backoff.wait(0.9).as_millis(), 192);
        backoff.served(HEALTHY);
        assert_eq!(backoff.wait(0.0).as_millis(), 100);
        assert!((0.0..1.0).contains(&random()));
    }
}
