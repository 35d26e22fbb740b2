//! The file of pinned definitions: beside the configuration, with the extension `lock`.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use gatewright_core::Pins;
use gatewright_findings::Finding;

use super::{Config, file};

/// The pinned definitions of a configuration.
#[derive(Debug, Clone, Default)]
pub struct PinFile {
    /// The file, whether it exists or not; none if no app is pinned.
    pub path: Option<PathBuf>,
    /// Its content; empty if it does not exist.
    pub pins: Arc<Pins>,
}

impl PinFile {
    /// Reads the file of the configuration at `config`.
    ///
    /// # Errors
    /// It exists, and cannot be read.
    pub fn of(config: &Path) -> Result<Self, Finding> {
        Self::at(config.with_extension("lock"))
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// It exists, and cannot be read.
    pub fn at(path: PathBuf) -> Result<Self, Finding> {
        if !path.exists() {
            return Ok(Self { path: Some(path), pins: Arc::default() });
        }
        let text = file::contents(&path);
        let pins = text.and_then(|text| {
            serde_json::from_str(&text).map_err(|error| format!("is no file of pins: {error}"))
        });
        match pins {
            Ok(pins) => Ok(Self { path: Some(path), pins: Arc::new(pins) }),
            Err(problem) => Err(Finding::new("", problem).in_file(&path)),
        }
    }

    /// The text of a file with `pins`.
    pub fn text(pins: &Pins) -> String {
        serde_json::to_string_pretty(pins).unwrap_or_default() + "\n"
    }
}

/// Reads the pins of a configuration that pins something.
pub(super) fn read(config: &Config, path: &Path) -> Result<PinFile, Finding> {
    let is_pinned = config.apps.values().any(|app| app.options().pins());
    if is_pinned { PinFile::of(path) } else { Ok(PinFile::default()) }
}
