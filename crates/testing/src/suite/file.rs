//! Suite files: read, checked, and filtered.

use std::path::{Path, PathBuf};

use gatewright_findings::{Finding, Format, Lines, parser_problem, with_lines};
use serde_json::Value;

use super::{
    check,
    format::{SuiteFile, TestEntry},
    options::RunOptions,
};

/// A suite that cannot be used: all problems, with their lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteError {
    /// The file.
    pub file: String,
    /// The problems, with their places and suggestions; at least one.
    pub findings: Vec<Finding>,
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
        let mut suite = Self::parse(&name, &text)?;
        suite.dir = path.parent().map(Path::to_owned);
        Ok(suite)
    }

    /// Parses YAML (JSON is YAML). `name` is its name in errors, and in reports unless the suite has its own. Paths in it are
    /// relative to the working directory.
    ///
    /// # Errors
    /// As [`Suite::from_file`].
    pub fn parse(name: &str, text: &str) -> Result<Self, SuiteError> {
        let lines = Lines::of(text, Format::Yaml);
        let invalid = |findings| {
            let mut findings = with_lines(findings, &lines);
            // A problem without a place belongs to the whole file.
            findings.iter_mut().for_each(|one| one.line = one.line.or(Some(1)));
            SuiteError { file: name.to_owned(), findings }
        };
        let value: Value = serde_saphyr::from_str(text).map_err(|error| {
            let mut finding = Finding::new("", parser_problem(&error.without_snippet().to_string()));
            finding.line = error.location().and_then(|place| place.line().try_into().ok());
            invalid(vec![finding])
        })?;
        if !value.is_object() {
            return Err(invalid(vec![Finding::new("", "a suite is a mapping with `server` and `tests`")]));
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
            _ => Err(invalid(findings)),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file, as it was named.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Names and lines of the tests that `options` select.
    pub fn tests(&self, options: &RunOptions) -> Vec<(&str, Option<usize>)> {
        let selected = self.selected(options).into_iter();
        selected
            .map(|index| (self.file.tests[index].name.as_str(), self.line(&format!("/tests/{index}"))))
            .collect()
    }

    /// True if a test has `only`.
    pub fn has_only(&self) -> bool {
        self.file.tests.iter().any(|test| test.only)
    }

    /// Indices of the tests that `options` and `only` select.
    pub(super) fn selected(&self, options: &RunOptions) -> Vec<usize> {
        let only = self.has_only();
        let is_selected = |test: &TestEntry| {
            (!only || test.only)
                && options.filter.as_ref().is_none_or(|part| test.name.contains(part.as_str()))
                && (options.tags.is_empty() || test.tags.iter().any(|tag| options.tags.contains(tag)))
                && !test.tags.iter().any(|tag| options.exclude_tags.contains(tag))
        };
        let tests = self.file.tests.iter().enumerate();
        tests.filter(|(_, test)| is_selected(test)).map(|(index, _)| index).collect()
    }

    /// The line of a JSON pointer.
    pub(super) fn line(&self, pointer: &str) -> Option<usize> {
        self.lines.nearest(pointer)
    }
}
