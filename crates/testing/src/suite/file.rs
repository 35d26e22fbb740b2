//! Suite files: read, checked, and filtered.

use std::path::{Path, PathBuf};

use gatewright_findings::{Finding, Format, Lines, parser_problem, with_lines};
use serde_json::Value;

use super::{
    cases::{Instance, instances},
    check,
    format::{SuiteFile, TestEntry},
    options::RunOptions,
    tolerant,
};
use crate::server::Transport;

/// A suite that cannot be used: all problems, with their lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteError {
    /// The file.
    pub file: String,
    /// The problems, with their places and suggestions; at least one.
    pub findings: Vec<Finding>,
}

impl SuiteError {
    fn new(file: &str, findings: Vec<Finding>, lines: &Lines) -> Self {
        let mut findings = with_lines(findings, lines);
        // A problem without a place belongs to the whole file.
        findings.iter_mut().for_each(|one| one.line = one.line.or(Some(1)));
        Self { file: file.to_owned(), findings }
    }
}

impl std::fmt::Display for SuiteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, finding) in self.findings.iter().enumerate() {
            let line = finding.line.map_or_else(String::new, |line| format!(":{line}"));
            let end = if number == 0 { "" } else { "\n" };
            write!(f, "{end}{}{line}: {}", self.file, finding.without_line())?;
        }
        Ok(())
    }
}

impl std::error::Error for SuiteError {}

/// A valid suite.
#[derive(Debug, Clone)]
pub struct Suite {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) dir: Option<PathBuf>,
    pub(super) file: SuiteFile,
    /// The tests, once for each of their cases.
    pub(super) instances: Vec<Instance>,
    /// The file as it was read.
    raw: Value,
    lines: Lines,
}

impl Suite {
    /// Reads a suite file. Paths in it are relative to its directory.
    ///
    /// # Errors
    /// The file cannot be read, is not YAML, or is not a valid suite.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, SuiteError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| SuiteError {
            file: name.clone(),
            findings: vec![Finding::new("", format!("it cannot be read: {error}"))],
        })?;
        Self::read(&name, &text, path.parent())
    }

    /// Parses YAML (JSON is YAML). `name` is its name in errors, and in reports unless the suite has its own. Paths in it are
    /// relative to the working directory.
    ///
    /// # Errors
    /// As [`Suite::from_file`].
    pub fn parse(name: &str, text: &str) -> Result<Self, SuiteError> {
        Self::read(name, text, None)
    }

    fn read(name: &str, text: &str, dir: Option<&Path>) -> Result<Self, SuiteError> {
        let lines = Lines::of(text, Format::Yaml);
        let invalid = |findings| SuiteError::new(name, findings, &lines);
        let value: Value = serde_saphyr::from_str_with_options(text, yaml_options()).map_err(|error| {
            let mut finding = Finding::new("", parser_problem(&error.without_snippet().to_string()));
            finding.line = error.location().and_then(|place| place.line().try_into().ok());
            invalid(vec![finding])
        })?;
        if !value.is_object() {
            return Err(invalid(vec![Finding::new("", "a suite is a mapping with `server` and `tests`")]));
        }
        let mut findings = check::by_schema(&value);
        let (file, left_out) = tolerant::deserialize(value.clone());
        let Some(file) = file else { return Err(invalid(findings)) };
        findings.extend(left_out.without_false_alarms(check::problems(&file)));
        let (instances, problems) = instances(&file, dir);
        findings.extend(left_out.without_false_alarms(problems));
        if !findings.is_empty() {
            return Err(invalid(findings));
        }
        let own = file.name.clone().unwrap_or_else(|| name.to_owned());
        let dir = dir.map(Path::to_owned);
        Ok(Self { name: own, path: name.to_owned(), dir, file, instances, raw: value, lines })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file, as it was named.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Checks what depends on the options of a run: the variables in texts.
    ///
    /// # Errors
    /// A text contains a variable that neither the suite nor `options` define.
    pub fn check(&self, options: &RunOptions) -> Result<(), SuiteError> {
        let findings = check::unknown_variables(&self.raw, &self.file, &self.instances, options);
        match findings.is_empty() {
            true => Ok(()),
            false => Err(SuiteError::new(&self.path, findings, &self.lines)),
        }
    }

    /// Names and lines of the tests that `options` select.
    pub fn tests(&self, options: &RunOptions) -> Vec<(&str, Option<usize>)> {
        let selected = self.selected(options).into_iter();
        selected.map(|one| (one.name.as_str(), self.line(&one.pointer))).collect()
    }

    /// True if a test has `only`.
    pub fn has_only(&self) -> bool {
        self.file.tests.iter().any(|test| test.only)
    }

    /// The tests that `options` and `only` select.
    pub(super) fn selected(&self, options: &RunOptions) -> Vec<&Instance> {
        let only = self.has_only();
        let named = options.only.as_ref().map(|all| all.get(&self.path));
        let is_selected = |one: &&Instance| {
            let test = &self.file.tests[one.test];
            (!only || test.only)
                && named.is_none_or(|named| named.is_some_and(|names| names.contains(&one.name)))
                && options.filter.as_ref().is_none_or(|part| one.name.contains(part.as_str()))
                && (options.tags.is_empty() || test.tags.iter().any(|tag| options.tags.contains(tag)))
                && !test.tags.iter().any(|tag| options.exclude_tags.contains(tag))
        };
        self.instances.iter().filter(is_selected).collect()
    }

    /// True if a test runs alone on the shared server: what it observes cannot be told apart from what other tests cause.
    pub(super) fn runs_alone(&self, test: &TestEntry) -> bool {
        let file = &self.file;
        let is_stdio = file.server.transport == Transport::Stdio;
        let asks = test.elicitation.is_some() || test.sampling.is_some();
        let answers = asks || !test.answers.is_empty() || !file.answers.is_empty();
        let mut steps = test.steps.iter().chain(&file.before_each).chain(&file.after_each);
        !test.http_mocks.is_empty()
            || (is_stdio && answers)
            || steps.any(|step| step.observes_server(is_stdio))
    }

    /// The line of a JSON pointer.
    pub(super) fn line(&self, pointer: &str) -> Option<usize> {
        self.lines.nearest(pointer)
    }
}

/// Booleans of YAML 1.2: `true` and `false`. In YAML 1.1 `no`, `y` and `on` are booleans, too.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! { strict_booleans: true }
}
