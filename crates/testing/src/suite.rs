//! Declarative suites: tests of a server in YAML, for teams that write no Rust.
//!
//! The keys and an example are in `docs/TESTING.md`. Each test has a client of its own; the tests of a suite share one server and
//! run at the same time.

mod format;
mod output;
mod run;
mod variables;

pub use output::{junit, tap};

use std::{path::Path, time::Duration};

use format::SuiteFile;

/// A suite cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the suite {file} cannot be used: {problem}")]
pub struct SuiteError {
    /// Which file.
    pub file: String,
    /// What is wrong, and where.
    pub problem: String,
}

/// A suite that was read and checked.
#[derive(Debug, Clone)]
pub struct Suite {
    name: String,
    file: SuiteFile,
}

/// How to run suites.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Tests at the same time. Default 8.
    pub parallel: usize,
    /// Only tests whose name holds this text.
    pub filter: Option<String>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { parallel: 8, filter: None }
    }
}

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestOutcome {
    /// Every expectation held.
    Passed,
    /// Not run; the text says why.
    Skipped(String),
    /// Something did not hold; the text says what, and shows requests and the server's log.
    Failed(String),
}

/// One test that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestReport {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub outcome: TestOutcome,
    /// How long it took.
    pub duration: Duration,
}

/// A suite that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteReport {
    /// Its name.
    pub name: String,
    /// Its tests, in the order of the file.
    pub tests: Vec<TestReport>,
}

impl SuiteReport {
    /// Whether no test failed.
    pub fn passed(&self) -> bool {
        !self.tests.iter().any(|test| matches!(test.outcome, TestOutcome::Failed(_)))
    }
}

impl Suite {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is no YAML, has a key that does not exist, or an expectation that does not.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, SuiteError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| SuiteError { file: name.clone(), problem: error.to_string() })?;
        Self::parse(&name, &text)
    }

    /// Reads YAML. `name` is what errors call it, and what it is called when it has no name of its own.
    ///
    /// # Errors
    /// As [`Suite::from_file`].
    pub fn parse(name: &str, text: &str) -> Result<Self, SuiteError> {
        let wrong = |problem: String| SuiteError { file: name.to_owned(), problem };
        let file: SuiteFile = serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string()))?;
        file.check().map_err(wrong)?;
        Ok(Self { name: file.name.clone().unwrap_or_else(|| name.to_owned()), file })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts the server, runs the tests, ends the server. A server that does not start fails every test.
    pub async fn run(&self, options: &RunOptions) -> SuiteReport {
        run::run(self, options).await
    }
}
