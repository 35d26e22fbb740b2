//! Reports that are written as tests end.

use std::{
    borrow::Cow,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{github, readable::Style, tap};
use crate::{
    base::lock,
    suite::{
        file::Suite,
        results::{SuiteReport, TestOutcome, TestReport},
    },
};

/// Formats of which each test is a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveFormat {
    /// Text for people, with colours for a terminal.
    Readable {
        /// True for a terminal.
        colours: bool,
    },
    /// Test Anything Protocol, version 14.
    Tap,
    /// Text for people with annotations of GitHub Actions.
    Github,
}

/// A report that grows while tests run, in the order in which they end.
#[derive(Debug)]
pub struct Live {
    format: LiveFormat,
    /// True if the names of suites are needed to tell tests apart.
    has_several: bool,
    number: AtomicUsize,
    /// Suite, name and failure of the last test that failed in its own way.
    failed: Mutex<Option<(String, String, String)>>,
}

impl Live {
    /// A report of these suites.
    pub fn new(format: LiveFormat, suites: &[Suite]) -> Self {
        Self { format, has_several: suites.len() > 1, number: AtomicUsize::new(0), failed: Mutex::default() }
    }

    /// The text before the first test.
    pub fn head(&self, suites: &[Suite]) -> String {
        match (self.style(), suites) {
            (None, _) => tap::VERSION.to_owned(),
            (Some(style), [suite]) => style.suite(suite.name(), suite.path()),
            (Some(_), _) => String::new(),
        }
    }

    /// The text of a test that has ended.
    pub fn test(&self, suite: &Suite, test: &TestReport) -> String {
        let (name, file) = (suite.name(), suite.path());
        let Some(style) = self.style() else {
            return tap::line(self.number.fetch_add(1, Ordering::Relaxed) + 1, name, file, test);
        };
        let prefix = if self.has_several { format!("{name} > ") } else { String::new() };
        let annotation = match self.format {
            LiveFormat::Github => github::annotation(name, file, test),
            LiveFormat::Readable { .. } | LiveFormat::Tap => String::new(),
        };
        let text = style.test(&prefix, &self.told_once(file, test));
        match self.format {
            LiveFormat::Github => github::without_commands(&text) + &annotation,
            LiveFormat::Readable { .. } | LiveFormat::Tap => text,
        }
    }

    /// The test, whose failure is only named if the last one that failed did for the same reason: a server that does not start fails
    /// all tests of a suite.
    fn told_once<'a>(&self, file: &str, test: &'a TestReport) -> Cow<'a, TestReport> {
        let TestOutcome::Failed(why) = &test.outcome else { return Cow::Borrowed(test) };
        let mut failed = lock(&self.failed);
        if let Some((of, name, known)) = &*failed
            && of == file
            && known == why
            && why.contains('\n')
        {
            let outcome = TestOutcome::Failed(format!("as `{name}`"));
            return Cow::Owned(TestReport { outcome, ..test.clone() });
        }
        *failed = Some((file.to_owned(), test.name.clone(), why.clone()));
        Cow::Borrowed(test)
    }

    /// The text after the last test.
    pub fn end(&self, reports: &[SuiteReport]) -> String {
        match self.style() {
            Some(style) => format!("\n{}", style.totals(reports)),
            None => {
                let interrupted = reports.iter().any(|report| report.interrupted);
                format!("{}{}", tap::plan(reports), if interrupted { tap::INTERRUPTED } else { "" })
            }
        }
    }

    /// The look of text for people.
    fn style(&self) -> Option<Style> {
        match self.format {
            LiveFormat::Readable { colours } => Some(Style { colours }),
            LiveFormat::Github => Some(Style { colours: false }),
            LiveFormat::Tap => None,
        }
    }
}
