//! Semantic search for a configuration: its cache folder, and the progress of a download.

use std::{
    io::IsTerminal as _,
    path::{Path, PathBuf},
};

use gatewright::open_semantic_search;
use gatewright_codecall::EmbeddingConfig;
use gatewright_embedding::{EmbeddingError, Progress, SemanticSearch};

use crate::{environment::environment, output};

/// The semantic search that a configuration describes, with no tools yet. Downloads the model if it is not in the cache.
///
/// # Errors
/// The model or the store cannot be opened.
pub async fn open(config: &EmbeddingConfig) -> Result<SemanticSearch, EmbeddingError> {
    let mut report = DownloadProgress::default();
    open_semantic_search(config, &default_cache(), |progress| report.update(progress)).await
}

/// The folder `gatewright` in the user's cache folder.
fn default_cache() -> PathBuf {
    let environment = environment();
    let folder = |name: &str| environment.get(name).filter(|value| Path::new(value).is_absolute());
    let base = folder("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| folder("HOME").map(|home| Path::new(home).join(".cache")))
        .unwrap_or_else(std::env::temp_dir);
    base.join("gatewright")
}

/// Reports the progress of a download: on a terminal a line that rewrites itself, else a log line for each tenth.
#[derive(Default)]
struct DownloadProgress {
    file: String,
    tenth: u64,
}

impl DownloadProgress {
    fn update(&mut self, progress: &Progress) {
        const MIB: f64 = 1024.0 * 1024.0;
        let new = self.file != progress.file;
        let tenth = progress.total.map_or(0, |total| progress.done * 10 / total.max(1));
        if !new && tenth == self.tenth {
            return;
        }
        self.file.clone_from(&progress.file);
        self.tenth = tenth;
        let (done, total) = (progress.done as f64 / MIB, progress.total.map(|total| total as f64 / MIB));
        if std::io::stderr().is_terminal() {
            let of = total.map(|total| format!(" of {total:.1}")).unwrap_or_default();
            let end = if progress.total == Some(progress.done) { "\n" } else { "" };
            output::progress(&format!("\r{}: {done:.1}{of} MiB{end}", progress.file));
        } else {
            tracing::info!(file = %progress.file, done_mib = done, total_mib = total, "downloading the model");
        }
    }
}
