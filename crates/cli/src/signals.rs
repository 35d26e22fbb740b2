//! Signals that stop the process.

use tokio_util::sync::CancellationToken;

/// A token that the first SIGINT or SIGTERM cancels.
///
/// # Errors
/// A signal handler cannot be installed.
pub fn stop_signal() -> anyhow::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stop.cancel();
    });
    Ok(token)
}
