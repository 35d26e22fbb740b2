//! Declarative suites: tests of a server in YAML, for teams that write no Rust. `gatewright test FILE…` runs them, and so does
//! a test in Rust:
//!
//! ```no_run
//! use gatewright_testing::suite::{RunOptions, Suite};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! Suite::from_file("tests/weather.yaml")?.run(&RunOptions::default()).await.assert_passed();
//! # Ok(())
//! # }
//! ```
//!
//! The keys and an example are in `docs/TESTING.md`, and in [`schema`]. Each test has a client of its own; the tests of a suite
//! share one server and run at the same time.

mod check;
mod expectations;
mod format;
mod output;
mod run;
mod stage;
mod step;
mod variables;

pub use check::schema;
pub use gatewright_findings::Finding;
pub use output::{json, junit, readable, tap};

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use format::SuiteFile;
use gatewright_findings::{Format, Lines, with_lines};
use serde_json::{Map, Value};

/// A suite cannot be used: every problem, with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteError {
    /// Which file.
    pub file: String,
    /// What is wrong, where, and what was probably meant; at least one.
    pub findings: Vec<Finding>,
}

impl std::fmt::Display for SuiteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, finding) in self.findings.iter().enumerate() {
            let line = finding.line.map_or_else(String::new, |line| format!(":{line}"));
            let path = if finding.path.is_empty() { String::new() } else { format!("{}: ", finding.path) };
            let end = if number == 0 { "" } else { "\n" };
            write!(f, "{end}{}{line}: {path}{}", self.file, finding.problem)?;
        }
        Ok(())
    }
}

impl std::error::Error for SuiteError {}

/// A suite that was read and checked.
#[derive(Debug, Clone)]
pub struct Suite {
    name: String,
    path: String,
    dir: Option<PathBuf>,
    file: SuiteFile,
    lines: Lines,
}

/// How to run suites.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Tests at the same time. Default 8.
    pub parallel: usize,
    /// Only tests whose name holds this text.
    pub filter: Option<String>,
    /// Only tests with one of these tags; with none, all.
    pub tags: Vec<String>,
    /// No tests with one of these tags.
    pub exclude_tags: Vec<String>,
    /// Variables over those of the suite.
    pub variables: Map<String, Value>,
    /// What texts hold as `${env.NAME}`.
    pub environment: BTreeMap<String, String>,
    /// Another server than the suite's: as `server.command`.
    pub command: Option<String>,
    /// Another server than the suite's, which runs already: as `server.url`.
    pub url: Option<String>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            parallel: 8,
            filter: None,
            tags: Vec::new(),
            exclude_tags: Vec::new(),
            variables: Map::new(),
            environment: BTreeMap::new(),
            command: None,
            url: None,
        }
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
    /// Its line in the file, from 1.
    pub line: Option<usize>,
    /// How it ended.
    pub outcome: TestOutcome,
    /// How long it took.
    pub duration: Duration,
    /// What was wrong on the wire though the test passed: text on standard output that is no JSON, answers to no request.
    pub notes: Vec<String>,
}

/// A suite that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteReport {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// Its tests, in the order of the file; then, when they failed, `teardown` and `HTTP mocks`.
    pub tests: Vec<TestReport>,
    /// Tests that a filter, a tag or `only` left out.
    pub left_out: usize,
}

impl SuiteReport {
    /// Whether no test failed.
    pub fn passed(&self) -> bool {
        !self.tests.iter().any(|test| matches!(test.outcome, TestOutcome::Failed(_)))
    }

    /// # Panics
    /// A test failed; the message is the readable report.
    #[track_caller]
    pub fn assert_passed(&self) {
        assert!(self.passed(), "{}", readable(std::slice::from_ref(self), false));
    }
}

impl Suite {
    /// Reads a file. Paths in it are those beside it.
    ///
    /// # Errors
    /// It cannot be read, is no YAML, or something in it is wrong.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, SuiteError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| SuiteError {
            file: name.clone(),
            findings: vec![Finding::new("", format!("it cannot be read: {error}"))],
        })?;
        let mut suite = Self::parse(&name, &text)?;
        suite.dir = path.parent().map(Path::to_owned);
        Ok(suite)
    }

    /// Reads YAML (JSON is YAML). `name` is what errors call it, and what it is called when it has no name of its own. Paths in
    /// it are those where the process runs.
    ///
    /// # Errors
    /// As [`Suite::from_file`].
    pub fn parse(name: &str, text: &str) -> Result<Self, SuiteError> {
        let lines = Lines::of(text, Format::Yaml);
        let wrong = |findings| {
            let mut findings = with_lines(findings, &lines);
            // What has no place of its own is of the whole file.
            findings.iter_mut().for_each(|one| one.line = one.line.or(Some(1)));
            SuiteError { file: name.to_owned(), findings }
        };
        let value: Value = serde_saphyr::from_str(text).map_err(|error| {
            let mut finding = Finding::new("", without_advice(&error.without_snippet().to_string()));
            finding.line = error.location().and_then(|place| place.line().try_into().ok());
            wrong(vec![finding])
        })?;
        if !value.is_object() {
            return Err(wrong(vec![Finding::new("", "a suite is a mapping with `server` and `tests`")]));
        }
        let mut findings = check::by_schema(&value);
        let file = match serde_json::from_value::<SuiteFile>(value) {
            Ok(file) => {
                findings.extend(check::problems(&file));
                Some(file)
            }
            Err(error) if findings.is_empty() => {
                findings.push(Finding::new("", error.to_string()));
                None
            }
            Err(_) => None,
        };
        match file {
            Some(file) if findings.is_empty() => {
                let own = file.name.clone().unwrap_or_else(|| name.to_owned());
                Ok(Self { name: own, path: name.to_owned(), dir: None, file, lines })
            }
            _ => Err(wrong(findings)),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file, as it was named.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Names and lines of the tests `options` choose.
    pub fn tests(&self, options: &RunOptions) -> Vec<(&str, Option<usize>)> {
        let chosen = self.chosen(options).into_iter();
        chosen
            .map(|index| (self.file.tests[index].name.as_str(), self.line(&format!("/tests/{index}"))))
            .collect()
    }

    /// Whether a test says `only`.
    pub fn has_only(&self) -> bool {
        self.file.tests.iter().any(|test| test.only)
    }

    /// Starts the server, runs the tests, ends the server. A server that does not start fails every test.
    pub async fn run(&self, options: &RunOptions) -> SuiteReport {
        let mut reports = run_all(std::slice::from_ref(self), options, |_, _| {}).await;
        reports.swap_remove(0)
    }

    fn line(&self, pointer: &str) -> Option<usize> {
        self.lines.nearest(pointer)
    }
}

/// The YAML parser tells those who call it, not those who write the file, what to set, and where it was, which the line says.
fn without_advice(problem: &str) -> &str {
    let problem = problem.rsplit_once(" at line ").map_or(problem, |(problem, _)| problem);
    problem.split_once(", set ").map_or(problem, |(problem, _)| problem)
}

/// Runs many suites at the same time; their tests share `options.parallel`. `on_test` is told of each test that ended.
pub async fn run_all(
    suites: &[Suite],
    options: &RunOptions,
    on_test: impl Fn(&Suite, &TestReport) + Sync,
) -> Vec<SuiteReport> {
    run::run_all(suites, options, &on_test).await
}
