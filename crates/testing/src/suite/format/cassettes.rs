//! The keys `record` and `recordHttp`: a cassette.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::cassette::RecordMode;

/// A cassette: its file, or an object with its options.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::suite) enum CassetteSection {
    File(String),
    Options(CassetteOptions),
}

/// Options of a cassette.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::suite) struct CassetteOptions {
    /// The file, relative to the suite.
    pub(in crate::suite) file: String,
    /// `none` only replays it, `new` records it if it is missing, `all` records it in every run. Default `new`; `gatewright test --record`
    /// overrides it.
    #[serde(default)]
    pub(in crate::suite) mode: RecordMode,
}

impl CassetteSection {
    pub(in crate::suite) fn file(&self) -> &str {
        match self {
            Self::File(file) => file,
            Self::Options(options) => &options.file,
        }
    }

    pub(in crate::suite) fn mode(&self) -> RecordMode {
        match self {
            Self::File(_) => RecordMode::default(),
            Self::Options(options) => options.mode,
        }
    }
}
