//! Signals that stop the process.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::output::errln;

/// A token that the first SIGINT or SIGTERM cancels. The second one ends the process at once, with the code that shells give to a signal.
///
/// # Errors
/// A signal handler cannot be installed.
pub fn stop_signal() -> anyhow::Result<CancellationToken> {
    const CODES: [u8; 2] = [130, 143];
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = interrupt.recv() => CODES[0],
                _ = terminate.recv() => CODES[1],
            }
        };
        if next().await == CODES[0] {
            tracing::info!("stopping; press Ctrl-C again to end at once");
        }
        stop.cancel();
        let code = next().await;
        errln!("ended at once, by the second signal");
        std::process::exit(code.into());
    });
    Ok(token)
}
