//! Running suites: the server, concurrent tests, teardown.
//!
//! `process` is a server with its `setup`, `test` runs one test on it.

mod process;
mod test;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use futures::{StreamExt, future::LocalBoxFuture, stream};
use process::Process;
use serde_json::Value;
use tokio::sync::{RwLock, Semaphore};

use super::{
    cases::Instance,
    failure::Failure,
    file::Suite,
    options::RunOptions,
    results::{SuiteReport, TestOutcome, TestReport},
    variables::Variables,
};
use crate::base::text::random_text;

/// Hears of each test that has ended.
type OnTest<'a> = &'a (dyn Fn(&Suite, &TestReport) + Sync);

impl Suite {
    /// Starts the server, runs the tests, stops the server. If the server does not start, every test fails.
    pub fn run<'a>(&'a self, options: &'a RunOptions) -> LocalBoxFuture<'a, SuiteReport> {
        Box::pin(async move {
            let mut reports = run_all(std::slice::from_ref(self), options, &|_, _| {}).await;
            reports.swap_remove(0)
        })
    }
}

/// Runs several suites concurrently; together they run at most `options.parallel` tests at a time. `on_test` is called after each
/// test, in the order in which they end.
pub fn run_all<'a>(
    suites: &'a [Suite],
    options: &'a RunOptions,
    on_test: OnTest<'a>,
) -> LocalBoxFuture<'a, Vec<SuiteReport>> {
    Box::pin(async move {
        let permits = Arc::new(Semaphore::new(options.parallel.max(1)));
        let has_failed = Arc::new(AtomicBool::new(false));
        stream::iter(suites)
            .map(|suite| {
                let base = base_variables(suite, options);
                let run = SuiteRun {
                    suite,
                    options,
                    permits: permits.clone(),
                    has_failed: has_failed.clone(),
                    gate: RwLock::default(),
                    on_test,
                };
                async move { run.run(&base).await }
            })
            .buffered(options.parallel.max(1))
            .collect()
            .await
    })
}

/// Variables without those of the server.
fn base_variables(suite: &Suite, options: &RunOptions) -> Variables {
    let mut variables = Variables::of_file(suite.file.variables.clone());
    variables.known.clone_from(&options.variables);
    let env = options.environment.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    variables.known.insert("env".into(), Value::Object(env.collect()));
    // Shared by everything outside of tests.
    variables.known.insert("random".into(), random_text().into());
    variables
}

/// The run of one suite.
struct SuiteRun<'a> {
    suite: &'a Suite,
    options: &'a RunOptions,
    permits: Arc<Semaphore>,
    /// True after a test of any suite failed.
    has_failed: Arc<AtomicBool>,
    /// Held for writing by a test that runs alone on the shared server.
    gate: RwLock<()>,
    on_test: OnTest<'a>,
}

impl SuiteRun<'_> {
    async fn run(&self, base: &Variables) -> SuiteReport {
        let suite = self.suite;
        let selected = suite.selected(self.options);
        let shares = |one: &&Instance| !self.is_isolated(one) && suite.file.tests[one.test].skip.is_none();
        // Nothing is started if no test needs it.
        let needs_server = selected.iter().any(shares) && self.halt().is_none();
        let invalid = suite.check(self.options).err().map(|error| Failure::from(error.to_string()));
        let shared = match needs_server && invalid.is_none() {
            true => Some(self.begin(base).await),
            false => None,
        };
        let at_once = if suite.file.serial { 1 } else { self.options.parallel.max(1) };
        let mut report = SuiteReport {
            name: suite.name.clone(),
            file: suite.path.clone(),
            tests: Vec::new(),
            left_out: suite.instances.len() - selected.len(),
            interrupted: false,
        };
        report.tests = stream::iter(selected)
            .map(|instance| self.test(instance, invalid.as_ref(), shared.as_ref(), base))
            .buffered(at_once)
            .collect()
            .await;
        if let Some(Ok(process)) = &shared {
            let skipped = |test: &TestReport| matches!(test.outcome, TestOutcome::Skipped(_));
            let complete = report.left_out == 0 && !report.tests.iter().any(skipped);
            let passed = report.passed();
            let begun = Instant::now();
            let (failures, notes) = process.end(complete, passed, &self.options.stop).await;
            if !notes.is_empty() {
                let line = suite.line("/recordHttp");
                report.tests.push(self.report("recordHttp".to_owned(), line, Ended::Passed, begun, notes));
            }
            for (name, failure, started) in failures {
                let one = self.report(name.to_owned(), None, Ended::Failed(failure), started, Vec::new());
                report.tests.push(one);
            }
        }
        report.interrupted = self.options.stop.is_cancelled();
        report
    }

    /// Starts the shared server, unless the run is stopped meanwhile.
    async fn begin<'a>(&'a self, base: &'a Variables) -> Result<Process<'a>, Failure> {
        let begin = Process::begin(self.suite, self.options, base, None);
        tokio::select! {
            process = begin => process,
            () = self.options.stop.cancelled() => Err(INTERRUPTED.to_owned().into()),
        }
    }

    /// The reason if no further test begins.
    fn halt(&self) -> Option<&'static str> {
        if self.options.stop.is_cancelled() {
            return Some("not run: the run was interrupted");
        }
        let failed = self.options.fail_fast && self.has_failed.load(Ordering::Relaxed);
        failed.then_some("not run: an earlier test failed")
    }

    /// True if a test has a process of its own.
    fn is_isolated(&self, instance: &Instance) -> bool {
        let test = &self.suite.file.tests[instance.test];
        self.suite.file.server.per_test || test.isolated || !test.env.is_empty()
    }

    async fn test(
        &self,
        instance: &Instance,
        invalid: Option<&Failure>,
        shared: Option<&Result<Process<'_>, Failure>>,
        base: &Variables,
    ) -> TestReport {
        let test = &self.suite.file.tests[instance.test];
        let is_isolated = self.is_isolated(instance);
        let is_alone = self.suite.runs_alone(test);
        let (_reading, _writing) = match (is_isolated, is_alone) {
            (true, _) => (None, None),
            (false, true) => (None, Some(self.gate.write().await)),
            (false, false) => (Some(self.gate.read().await), None),
        };
        let _permit = self.permits.acquire().await;
        let started = Instant::now();
        let mut notes = Vec::new();
        let ended = match (&test.skip, self.halt(), shared) {
            (Some(why), _, _) => Ended::Skipped(why.clone()),
            (None, Some(halted), _) => Ended::Skipped(halted.to_owned()),
            (None, None, _) if invalid.is_some() => Ended::Failed(invalid.cloned().unwrap_or_default()),
            (None, None, Some(Err(failure))) if !is_isolated => Ended::Failed(failure.clone()),
            (None, None, Some(Ok(process))) if !is_isolated => {
                self.on_process(instance, process, &mut notes).await
            }
            (None, None, _) => self.on_own_process(instance, base, &mut notes).await,
        };
        let line = self.suite.line(&instance.pointer);
        self.report(instance.name.clone(), line, ended, started, notes)
    }

    fn report(
        &self,
        name: String,
        line: Option<usize>,
        ended: Ended,
        started: Instant,
        notes: Vec<String>,
    ) -> TestReport {
        let (outcome, failure) = match ended {
            Ended::Passed => (TestOutcome::Passed, None),
            Ended::Skipped(why) => (TestOutcome::Skipped(why), None),
            Ended::Failed(Failure { text, mut details }) => {
                self.has_failed.store(true, Ordering::Relaxed);
                if details.message.is_empty() {
                    details.message.clone_from(&text);
                }
                (TestOutcome::Failed(text), Some(details))
            }
        };
        let report = TestReport { name, line, outcome, failure, duration: started.elapsed(), notes };
        (self.on_test)(self.suite, &report);
        report
    }
}

/// The failure of what an interruption cut off.
const INTERRUPTED: &str = "the run was interrupted";

/// The end of a test.
enum Ended {
    Passed,
    Skipped(String),
    Failed(Failure),
}
