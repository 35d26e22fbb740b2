//! Lines of the log whose causes servers can repeat without end.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Time without another such line.
const EVERY: Duration = Duration::from_secs(60);

/// A line that is logged once a minute, however often its cause occurs.
#[derive(Debug, Default)]
pub(crate) struct RareLine(Mutex<Option<Instant>>);

impl RareLine {
    /// Returns `true` if the line is to be logged now.
    pub(crate) fn is_due(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| last.elapsed() >= EVERY);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_line_a_minute_is_due() {
        let line = RareLine::default();
        let mut due = 0;
        for _ in 0..150 {
            due += usize::from(line.is_due());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(due, 3);
    }
}
