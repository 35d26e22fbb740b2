//! The output and the report files of a run. Both grow while tests run, so that a run that is cut off leaves what it knows.

use std::{
    fs, io,
    io::IsTerminal as _,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use gatewright_testing::suite::{self, Live, LiveFormat, Suite, SuiteReport, TestReport};
use tokio_util::sync::CancellationToken;

use crate::{
    args::{TestArgs, TestFormat},
    output,
};

/// Time between two versions of the report files.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// The reports of one run.
pub struct Reports<'a> {
    args: &'a TestArgs,
    live: Option<Live>,
    /// The results so far, and the time of the last report files.
    so_far: Mutex<(Vec<SuiteReport>, Option<Instant>)>,
    /// Tests that will run, for the counter on a terminal.
    chosen: usize,
    stop: CancellationToken,
}

impl<'a> Reports<'a> {
    /// Prints what stands before the first test.
    pub fn begin(args: &'a TestArgs, suites: &[Suite], chosen: usize, stop: &CancellationToken) -> Self {
        let live = match format(args) {
            TestFormat::Readable => Some(LiveFormat::Readable { colours: io::stdout().is_terminal() }),
            TestFormat::Tap => Some(LiveFormat::Tap),
            TestFormat::Github => Some(LiveFormat::Github),
            TestFormat::Junit | TestFormat::Json => None,
        };
        let live = live.map(|format| Live::new(format, suites));
        if let Some(live) = &live {
            print(&live.head(suites));
        }
        let so_far = suites.iter().map(|suite| SuiteReport {
            name: suite.name().to_owned(),
            file: suite.path().to_owned(),
            tests: Vec::new(),
            left_out: 0,
            interrupted: true,
        });
        Self { args, live, so_far: Mutex::new((so_far.collect(), None)), chosen, stop: stop.clone() }
    }

    /// Prints a test that has ended, and writes the report files anew if they are old.
    pub fn add(&self, suite: &Suite, test: &TestReport) {
        let mut so_far = self.lock();
        let (reports, written) = &mut *so_far;
        if let Some(report) = reports.iter_mut().find(|report| report.file == suite.path()) {
            report.tests.push(test.clone());
        }
        let done: usize = reports.iter().map(|report| report.tests.len()).sum();
        let on_terminal = io::stderr().is_terminal() && self.chosen > 1;
        if on_terminal {
            output::progress("\r\x1b[K");
        }
        if let Some(live) = &self.live {
            print(&live.test(suite, test));
        }
        if on_terminal && done < self.chosen {
            output::progress(&format!("\r{done}/{} tests", self.chosen));
        }
        // After an interruption there may be little time left.
        let is_due = written.is_none_or(|written| written.elapsed() >= WRITE_EVERY);
        if is_due || self.stop.is_cancelled() {
            // The last version is written, and its failure reported, by `end`.
            let _ = self.write(reports);
            *written = Some(Instant::now());
        }
    }

    /// Prints the rest, and writes the report files.
    pub fn end(&self, reports: &[SuiteReport]) -> anyhow::Result<()> {
        let text = match (&self.live, format(self.args)) {
            (Some(live), _) => live.end(reports),
            (None, TestFormat::Junit) => suite::junit(reports),
            (None, _) => format!("{:#}\n", suite::json(reports)),
        };
        // The files of reports are written, and the exit code says the same, if nobody reads this one.
        print(&text);
        self.write(reports)
    }

    fn write(&self, reports: &[SuiteReport]) -> anyhow::Result<()> {
        type Format = fn(&[SuiteReport]) -> String;
        let files: [(&Option<PathBuf>, Format); 2] =
            [(&self.args.junit, suite::junit), (&self.args.tap, suite::tap)];
        for (file, format) in files {
            if let Some(file) = file {
                replace(file, &format(reports))
                    .with_context(|| format!("{} cannot be written", file.display()))?;
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, (Vec<SuiteReport>, Option<Instant>)> {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn format(args: &TestArgs) -> TestFormat {
    if args.json { TestFormat::Json } else { args.format }
}

fn print(text: &str) {
    let _ = output::raw(text.as_bytes());
}

/// Writes a file so that readers see the old or the new version. What is no regular file, such as a pipe, is written in place.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    if file.exists() && !file.is_file() {
        return fs::write(file, text);
    }
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = file.with_file_name(name);
    fs::write(&part, text)?;
    fs::rename(&part, file)
}
