//! Writes the file of pinned definitions.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use gatewright_core::Pins;
use tokio::sync::watch;

use crate::{clients, config::PinFile};

/// Writes the file in one step.
///
/// # Errors
/// It is read-only, changed meanwhile, or cannot be written.
pub fn write(path: &Path, pins: &Pins) -> anyhow::Result<()> {
    let before = fs::read_to_string(path).ok();
    clients::files::replace(path, before.as_deref(), &PinFile::text(pins)).map_err(anyhow::Error::msg)
}

/// Adds to the file at `path` what the registry pins for the first time, until it is gone. What the file has stays.
pub async fn keep(path: PathBuf, mut pins: watch::Receiver<Arc<Pins>>) {
    loop {
        let now = pins.borrow_and_update().clone();
        let file = path.clone();
        let kept = tokio::task::spawn_blocking(move || add(&file, &now)).await;
        if let Ok(Err(problem)) = kept {
            tracing::error!(
                "pinned definitions cannot be written to {}, and a restart would pin whatever it finds: {problem:#}. Run `gatewright pins approve \
                 --all` where the file can be written, and deliver it with the configuration",
                path.display()
            );
        }
        if pins.changed().await.is_err() {
            return;
        }
    }
}

fn add(path: &Path, now: &Pins) -> anyhow::Result<()> {
    let known = PinFile::at(path.to_owned()).map_err(|finding| anyhow::anyhow!("{finding}"))?.pins;
    let all = now.clone().with(&known);
    if all == *known { Ok(()) } else { write(path, &all) }
}
