//! A task that shares what was learned with other instances, in rounds, and once more at the end.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use gatewright_core::RecordsError;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Longest time of the last round, when the gateway stops.
const LAST_ROUND: Duration = Duration::from_secs(2);

/// Something learned that is shared in rounds.
pub(crate) trait Round: Send + 'static {
    /// Time between two rounds.
    const PERIOD: Duration;
    /// Name of the learned, for the log.
    const NAME: &'static str;

    /// Shares what is new here, and reads what others shared.
    fn round(&mut self) -> impl Future<Output = Result<(), RecordsError>> + Send;
}

/// The task, once it is started.
#[derive(Debug, Default)]
pub(crate) struct Rounds(Mutex<Option<(CancellationToken, JoinHandle<()>)>>);

impl Rounds {
    /// Has `shared` make its rounds from now on.
    pub(crate) fn start(&self, shared: impl Round) {
        let stop = CancellationToken::new();
        let task = tokio::spawn(run(shared, stop.clone()));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((stop, task));
    }

    /// Makes the last round, and ends.
    pub(crate) async fn close(&self) {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((stop, task)) = running {
            stop.cancel();
            let _ = task.await;
        }
    }
}

async fn run<R: Round>(mut shared: R, stop: CancellationToken) {
    let mut is_down = false;
    loop {
        let failed = shared.round().await.is_err();
        if failed && !is_down {
            tracing::warn!(
                shared = R::NAME,
                "nothing is shared with other instances: the store does not answer"
            );
        }
        is_down = failed;
        tokio::select! {
            () = tokio::time::sleep(R::PERIOD) => {}
            () = stop.cancelled() => break,
        }
    }
    let _ = tokio::time::timeout(LAST_ROUND, shared.round()).await;
}
