//! The clock of a run whose waiting has a limit of its own.

use std::time::Duration;

use tokio::time::Instant;

/// The time in which a script waits for its host and the limit of its own time does not run.
#[derive(Default)]
pub(super) struct Pause(Option<Waiting>);

struct Waiting {
    began: Instant,
    /// It waits for calls, and not only for answers about tools.
    has_calls: bool,
}

impl Pause {
    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Takes what is under way at the host now: `open` in all, `calls` of it calls. Returns the new end of the script's time when a pause has ended: `timeout`
    /// begins anew after a wait for calls, and goes on after one for answers about tools, for no limit counts those.
    pub(super) fn update(
        &mut self,
        open: u32,
        calls: u32,
        stopping: bool,
        until: Instant,
        timeout: Duration,
    ) -> Option<Instant> {
        if open > 0 && !stopping {
            let waiting = self.0.get_or_insert_with(|| Waiting { began: Instant::now(), has_calls: false });
            waiting.has_calls |= calls > 0;
            return None;
        }
        let waited = self.0.take().filter(|_| !stopping)?;
        Some(if waited.has_calls { Instant::now() + timeout } else { until + waited.began.elapsed() })
    }
}
