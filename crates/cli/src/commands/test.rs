//! `gatewright test`: runs test suites against an MCP server in any language, with `gatewright_testing::suite`. `rerun` decides
//! when `--watch` runs them again, `reports` prints and writes what they find. `fuzz` and `probe` need no suite.

mod files;
mod fuzz;
mod last_failed;
mod probe;
mod reports;
mod rerun;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use gatewright_testing::suite::{self, RunOptions, Suite, SuiteReport};
use reports::Reports;
use rerun::Rerun;
use tokio_util::sync::CancellationToken;

use crate::{
    args::{TestArgs, TestCommand},
    environment::environment,
    exit::{self, BadConfig},
    output::{errln, outln},
    signals::stop_signal,
};

/// Runs suites, once or until stopped, or what needs none.
pub async fn run(args: TestArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        Some(TestCommand::Fuzz(args)) => return fuzz::run(args).await,
        Some(TestCommand::Probe(args)) => return probe::run(args).await,
        None => {}
    }
    let stop = stop_signal()?;
    let options = options(&args, &stop);
    if !args.watch {
        return once(&args, &args.files, &options).await;
    }
    watch(&args, &options, &stop).await
}

fn options(args: &TestArgs, stop: &CancellationToken) -> RunOptions {
    RunOptions {
        parallel: usize::from(args.jobs),
        filter: args.filter.clone(),
        tags: args.tag.clone(),
        exclude_tags: args.exclude_tag.clone(),
        variables: args.var.iter().cloned().collect(),
        environment: environment().into_iter().collect::<BTreeMap<_, _>>(),
        // A suite of the gateway itself runs with this program.
        programs: std::env::current_exe().map(|own| ("gatewright".to_owned(), own)).into_iter().collect(),
        record: args.record,
        command: args.server.clone(),
        url: args.url.clone(),
        update: args.update,
        fail_fast: args.fail_fast,
        stop: stop.clone(),
        ..RunOptions::default()
    }
}

/// Runs the suites of `files` once. An interruption ends the run early, with all reports.
async fn once(args: &TestArgs, files: &[PathBuf], options: &RunOptions) -> anyhow::Result<ExitCode> {
    let suites = files::read(files, options)?;
    let memory = std::env::current_dir().ok().and_then(|dir| last_failed::file(&environment(), &dir));
    let only = match (&memory, args.last_failed) {
        (Some(file), true) => last_failed_of(&suites, options, last_failed::read(file))?,
        _ => None,
    };
    let options = &RunOptions { only, ..options.clone() };
    let chosen: usize = suites.iter().map(|suite| suite.tests(options).len()).sum();
    if chosen == 0 {
        return Err(BadConfig(
            "no test was chosen: look at --filter, --tag and --exclude-tag, or list all with --list"
                .to_owned(),
        )
        .into());
    }
    if args.list {
        for suite in &suites {
            for (name, line) in suite.tests(options) {
                let line = line.map_or_else(String::new, |line| format!(":{line}"));
                outln!("{}{line}: {name}", suite.path())?;
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let (true, Some(suite)) = (args.forbid_only, suites.iter().find(|suite| suite.has_only())) {
        return Err(BadConfig(format!("{}: a test says `only`; take it out", suite.path())).into());
    }
    let output = Reports::begin(args, &suites, chosen, &options.stop);
    let reports = suite::run_all(&suites, options, &|suite, test| output.add(suite, test)).await;
    let written = output.end(&reports);
    if let Some(Err(error)) = memory.map(|file| last_failed::update(&file, &reports)) {
        tracing::debug!(%error, "the failures are not kept for --last-failed");
    }
    written?;
    let passed = reports.iter().all(SuiteReport::passed);
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

/// The tests of the suites that failed in the last run. If none did, all run.
fn last_failed_of(
    suites: &[Suite],
    options: &RunOptions,
    failed: last_failed::Failed,
) -> anyhow::Result<Option<last_failed::Failed>> {
    let is_there = |(file, names): &(&String, &BTreeSet<String>)| {
        let suite = suites.iter().find(|suite| suite.path() == *file);
        suite.is_some_and(|suite| suite.tests(options).iter().any(|(name, _)| names.contains(*name)))
    };
    if failed.iter().any(|one| is_there(&one)) {
        return Ok(Some(failed));
    }
    errln!("no test of these suites failed in the last run: all run");
    Ok(None)
}

/// Runs the suites whenever a file changes: all of them, or those that changed if nothing else did.
async fn watch(args: &TestArgs, options: &RunOptions, stop: &CancellationToken) -> anyhow::Result<ExitCode> {
    let mut rerun = Rerun::new(args.junit.iter().chain(&args.tap));
    let mut due = args.files.clone();
    loop {
        let before = files::states(&args.files);
        let outcome = once(args, &due, options).await;
        if stop.is_cancelled() {
            return Ok(ExitCode::SUCCESS);
        }
        if let Err(error) = outcome {
            // A suite may be invalid while it is being edited.
            exit::report(&error);
        }
        rerun.ran(before, &files::states(&args.files));
        let _ = outln!("waiting for changes; Ctrl-C stops");
        let changed = loop {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(200)) => {}
                () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
            }
            let changed = rerun.due(&files::states(&args.files));
            if !changed.is_empty() {
                break changed;
            }
        };
        due = files::due(&args.files, &changed);
    }
}
