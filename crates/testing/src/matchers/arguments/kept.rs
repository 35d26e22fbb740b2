//! Expectations that are kept in files: snapshots and baselines.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use serde_json::Value;

use crate::{base::lock, matchers::mismatch::Mismatch};

/// The environment variable that makes matchers in Rust write their files.
const UPDATE: &str = "GATEWRIGHT_UPDATE";

/// A file with an expectation.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    file: PathBuf,
    /// The suite that it belongs to. `None` in Rust.
    run: Option<Arc<KeptFiles>>,
}

/// The files of one run of a suite.
#[derive(Debug, Default)]
#[cfg_attr(not(feature = "suites"), allow(dead_code, reason = "only suites have such files"))]
pub(crate) struct KeptFiles {
    /// The directory of the files, beside the suite. `None` for a suite without a file.
    pub(crate) dir: Option<PathBuf>,
    /// Writes the files instead of comparing with them.
    pub(crate) update: bool,
    written: Mutex<HashMap<PathBuf, Value>>,
}

/// The outcome of [`Kept::read_or_write`].
pub(in crate::matchers) enum KeptFile {
    Read(Value),
    Written,
}

#[cfg(feature = "suites")]
impl KeptFiles {
    /// The files of the suite at `suite`: in a directory that has its name, with `.snapshots`.
    pub(crate) fn beside(suite: Option<&Path>, update: bool) -> Arc<Self> {
        let dir = suite.and_then(|suite| {
            let name = suite.file_name()?.to_str()?;
            let stem = [".yaml", ".yml", ".json"]
                .iter()
                .find_map(|ending| name.strip_suffix(ending))
                .unwrap_or(name);
            Some(suite.with_file_name(format!("{}.snapshots", stem.strip_suffix(".suite").unwrap_or(stem))))
        });
        Arc::new(Self { dir, update, written: Mutex::default() })
    }

    /// The file `name` of the suite.
    ///
    /// # Errors
    /// The requirement that the name or the suite does not meet.
    pub(crate) fn named(self: &Arc<Self>, name: &str, ending: &str) -> Result<Kept, String> {
        let plain = |c: char| c.is_alphanumeric() || "-_. ".contains(c);
        if name.is_empty() || name.len() > 100 || name.starts_with(['.', ' ']) || !name.chars().all(plain) {
            return Err("takes a name of letters, digits, `-`, `_`, `.` and spaces, at most 100".into());
        }
        let dir = self.dir.as_ref().ok_or("needs a suite in a file, beside which it is kept")?;
        Ok(Kept { file: dir.join(format!("{name}.{ending}")), run: Some(self.clone()) })
    }
}

impl Kept {
    /// A file as it is named in Rust.
    pub(in crate::matchers) fn file(file: PathBuf) -> Self {
        Self { file, run: None }
    }

    fn update(&self) -> bool {
        #[expect(clippy::disallowed_methods, reason = "tests in Rust have no command line")]
        match &self.run {
            Some(run) => run.update,
            None => std::env::var(UPDATE).is_ok_and(|value| !value.is_empty() && value != "0"),
        }
    }

    pub(in crate::matchers) fn how_to_update(&self) -> String {
        match &self.run {
            Some(_) => "run with `--update`".to_owned(),
            None => format!("set the environment variable {UPDATE}=1"),
        }
    }

    /// Reads the expectation, or writes `actual` in its place when files are to be updated.
    ///
    /// # Errors
    /// There is no such file, it is no JSON, or it cannot be written.
    pub(in crate::matchers) fn read_or_write(
        &self,
        what: &str,
        actual: &Value,
    ) -> Result<KeptFile, Mismatch> {
        if self.update() {
            self.write(actual)?;
            return Ok(KeptFile::Written);
        }
        match std::fs::read_to_string(&self.file) {
            Ok(text) => serde_json::from_str(&text)
                .map(KeptFile::Read)
                .map_err(|error| self.unusable(&format!("it is no JSON: {error}"))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let mut mismatch = Mismatch::new(format!("{what} in {self}"), "there is no such file");
                mismatch.unsupported = true;
                Err(mismatch.hint(Some(format!("to write it, {}", self.how_to_update()))))
            }
            Err(error) => Err(self.unusable(&format!("it cannot be read: {error}"))),
        }
    }

    fn write(&self, actual: &Value) -> Result<(), Mismatch> {
        if let Some(run) = &self.run
            && let Some(earlier) = lock(&run.written).insert(self.file.clone(), actual.clone())
            && earlier != *actual
        {
            return Err(
                self.unusable("two steps write it, with different values; give each a name of its own")
            );
        }
        let text = serde_json::to_string_pretty(actual).unwrap_or_default() + "\n";
        let written = || {
            let dir = self.file.parent().filter(|dir| !dir.as_os_str().is_empty());
            let dir = dir.unwrap_or(Path::new("."));
            std::fs::create_dir_all(dir)?;
            // A run that is interrupted leaves the old file or the new one.
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
            let mut file = tempfile::Builder::new().permissions(mode).tempfile_in(dir)?;
            std::io::Write::write_all(&mut file, text.as_bytes())?;
            file.persist(&self.file).map_err(|error| error.error)?;
            Ok::<_, std::io::Error>(())
        };
        written().map_err(|error| self.unusable(&format!("it cannot be written: {error}")))
    }

    /// The mismatch of a file that cannot be used.
    pub(in crate::matchers) fn unusable(&self, problem: &str) -> Mismatch {
        let mut mismatch = Mismatch::new(format!("a usable file {self}"), problem);
        mismatch.unsupported = true;
        mismatch
    }
}

impl std::fmt::Display for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.display())
    }
}
