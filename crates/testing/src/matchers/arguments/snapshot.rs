//! A snapshot's file, and its parts that change.

use super::{kept::Kept, path::Path};

/// A file with a whole result, and the paths of its parts that change with every run.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(in crate::matchers) kept: Kept,
    pub(in crate::matchers) masks: Vec<Path>,
}

impl Snapshot {
    /// The snapshot in this file. It is written if the environment variable `GATEWRIGHT_UPDATE` is set.
    pub fn file(file: impl Into<std::path::PathBuf>) -> Self {
        Self::kept(Kept::file(file.into()))
    }

    /// Masks the parts at this path, such as `structuredContent.time` or `content.*.text`. They must be there.
    #[must_use]
    pub fn mask(mut self, path: impl Into<Path>) -> Self {
        self.masks.push(path.into());
        self
    }

    pub(in crate::matchers) fn kept(kept: Kept) -> Self {
        Self { kept, masks: Vec::new() }
    }
}

impl From<&str> for Snapshot {
    fn from(file: &str) -> Self {
        Self::file(file)
    }
}

impl From<String> for Snapshot {
    fn from(file: String) -> Self {
        Self::file(file)
    }
}
