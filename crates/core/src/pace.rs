//! Pauses between reads of the lists of an app that announces changes again and again.

use std::time::Duration;

use tokio::{sync::Notify, time::Instant};

/// Shortest and longest pause.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);
/// A pause is this many times as long as the read before it: reading takes a tenth of the time at most.
const TIMES: u32 = 10;

/// Announced changes of an app, and when its lists are read again for them. The first is read at once; while changes come without end, pauses
/// grow. A change that is announced during a pause or a read is followed by another read.
#[derive(Debug, Default)]
pub struct Rereads {
    pause: Duration,
    /// End of the pause.
    until: Option<Instant>,
    began: Option<Instant>,
}

impl Rereads {
    /// Waits until a change was announced and the pause is over. The time from here to the next call is that of the read.
    pub async fn next(&mut self, changed: &Notify) {
        if let Some(began) = self.began.take() {
            self.pause = self.pause.max(began.elapsed() * TIMES).clamp(SHORTEST, LONGEST);
            self.until = Some(Instant::now() + self.pause);
        }
        changed.notified().await;
        match self.until {
            Some(until) if Instant::now() < until => {
                tokio::time::sleep_until(until).await;
                // What was announced meanwhile is read now.
                let mut more = std::pin::pin!(changed.notified());
                let _ = more.as_mut().enable();
                self.pause *= 2;
            }
            _ => self.pause = Duration::ZERO,
        }
        self.began = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Reads `state` for as long as `storm` goes on, and a minute more: the number of reads, and the last that was seen.
    async fn reads(takes: Duration, storm: impl AsyncFn(&Notify, &AtomicU64)) -> (usize, u64) {
        let (changed, state) = (Notify::new(), AtomicU64::new(0));
        let (mut count, mut seen) = (0, 0);
        let reading = async {
            let mut rereads = Rereads::default();
            loop {
                rereads.next(&changed).await;
                seen = state.load(Ordering::Relaxed);
                tokio::time::sleep(takes).await;
                count += 1;
            }
        };
        let storming = async {
            storm(&changed, &state).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
        };
        tokio::select! {
            () = reading => {}
            () = storming => {}
        }
        (count, seen)
    }

    #[tokio::test(start_paused = true)]
    async fn a_storm_of_changes_leads_to_few_reads_and_the_last_state_is_seen() {
        for takes in [Duration::ZERO, Duration::from_millis(100), Duration::from_secs(3)] {
            let storm = async |changed: &Notify, state: &AtomicU64| {
                for at in 1..=20_000 {
                    state.store(at, Ordering::Relaxed);
                    changed.notify_one();
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            let (count, seen) = reads(takes, storm).await;
            assert!(count <= 15 && seen == 20_000, "{takes:?}: {count} reads, {seen}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn changes_with_time_between_them_are_read_at_once() {
        let storm = async |changed: &Notify, state: &AtomicU64| {
            for at in 1..=20 {
                state.store(at, Ordering::Relaxed);
                changed.notify_one();
                tokio::time::sleep(Duration::from_millis(1)).await;
                tokio::time::sleep(LONGEST).await;
            }
        };
        assert_eq!(reads(Duration::from_millis(10), storm).await, (20, 20));
    }
}
