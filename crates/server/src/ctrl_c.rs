//! Serving until Ctrl-C, for programs that have nothing else to do.

use std::io;

use tokio_util::sync::CancellationToken;

/// Runs `serve` and cancels its token at the first SIGINT (Ctrl-C) or SIGTERM. At the second one it returns at once.
///
/// # Errors
/// A signal cannot be listened for; nothing was served then.
pub async fn until_ctrl_c<F: Future<Output = ()>>(
    serve: impl FnOnce(CancellationToken) -> F,
) -> io::Result<()> {
    let mut signals = Signals::new()?;
    let stop = CancellationToken::new();
    let serving = serve(stop.clone());
    let stopping = async {
        signals.next().await;
        stop.cancel();
        signals.next().await;
    };
    tokio::select! {
        () = serving => {}
        () = stopping => {}
    }
    Ok(())
}

#[cfg(unix)]
struct Signals(tokio::signal::unix::Signal, tokio::signal::unix::Signal);

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self(signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
