//! Cassettes of a suite: their files, modes and redaction.

use std::path::PathBuf;

use super::{Environment, resolve_path};
use crate::{
    cassette::{RecordMode, RecordOptions},
    client::Tape,
    suite::{file::Suite, format::CassetteSection, variables::Variables},
};

/// The file and the options of a cassette. `mode` is that of the run, which overrides the suite's.
pub(super) fn options(
    suite: &Suite,
    mode: Option<RecordMode>,
    cassette: &CassetteSection,
    variables: &Variables,
) -> Result<(PathBuf, RecordOptions), String> {
    let file = resolve_path(suite.dir.as_deref(), &variables.text(cassette.file())?);
    let mode = mode.unwrap_or(cassette.mode());
    Ok((file, RecordOptions { mode, redaction: suite.file.redact.clone() }))
}

impl Environment {
    /// Opens the cassette of a test, which is written by `finish`.
    pub(in crate::suite) fn tape(
        &self,
        suite: &Suite,
        cassette: &CassetteSection,
        variables: &Variables,
    ) -> Result<Tape, String> {
        let (file, record) = options(suite, self.record, cassette, variables)?;
        Tape::open(file, &record).map_err(|error| error.to_string())
    }
}
