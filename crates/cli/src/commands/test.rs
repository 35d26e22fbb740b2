//! `gatewright test`: runs test suites against an MCP server in any language, with `gatewright_testing::suite`. `rerun` decides
//! when `--watch` runs them again.

mod rerun;

use std::{
    collections::BTreeMap,
    io::IsTerminal as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use anyhow::Context as _;
use gatewright_testing::suite::{self, RunOptions, Suite, SuiteReport};
use rerun::{FileStates, Rerun};
use tokio_util::sync::CancellationToken;

use crate::{
    args::{TestArgs, TestFormat},
    environment::environment,
    exit::{self, BadConfig},
    output::{self, outln},
    signals::stop_signal,
};

/// Runs suites, once or until stopped.
pub async fn run(args: TestArgs) -> anyhow::Result<ExitCode> {
    let stop = stop_signal()?;
    let options = options(&args);
    if !args.watch {
        return tokio::select! {
            code = once(&args, &options) => code,
            // Dropping the run stops its servers.
            () = stop.cancelled() => Ok(ExitCode::from(exit::FAILED)),
        };
    }
    watch(&args, &options, &stop).await
}

fn options(args: &TestArgs) -> RunOptions {
    RunOptions {
        parallel: usize::from(args.jobs),
        filter: args.filter.clone(),
        tags: args.tag.clone(),
        exclude_tags: args.exclude_tag.clone(),
        variables: args.var.iter().cloned().collect(),
        environment: environment().into_iter().collect::<BTreeMap<_, _>>(),
        // A suite of the gateway itself runs with this program.
        programs: std::env::current_exe().map(|own| ("gatewright".to_owned(), own)).into_iter().collect(),
        command: args.server.clone(),
        url: args.url.clone(),
    }
}

async fn once(args: &TestArgs, options: &RunOptions) -> anyhow::Result<ExitCode> {
    let suites = read(args)?;
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
    let done = AtomicUsize::new(0);
    let show_progress = std::io::stderr().is_terminal() && chosen > 1;
    let reports = suite::run_all(&suites, options, |_, _| {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if show_progress {
            output::progress(&format!(
                "\r{done}/{chosen} tests{}",
                if done >= chosen { "\r\x1b[K" } else { "" }
            ));
        }
    })
    .await;
    print_reports(args, &reports)?;
    let passed = reports.iter().all(SuiteReport::passed);
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

/// Reads all suites, or returns the problems of all of them.
fn read(args: &TestArgs) -> anyhow::Result<Vec<Suite>> {
    let (mut suites, mut problems) = (Vec::new(), Vec::new());
    for file in files(&args.files)? {
        match Suite::from_file(&file) {
            Ok(suite) => suites.push(suite),
            Err(error) => problems.push(error.to_string()),
        }
    }
    if problems.is_empty() {
        return Ok(suites);
    }
    Err(BadConfig(format!("suites that cannot be used\n{}", problems.join("\n"))).into())
}

fn files(named: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        visit_files(path, &mut |file| {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if ["suite.yaml", "suite.yml", "suite.json"].iter().any(|end| name.ends_with(end)) {
                files.push(file.to_owned());
            }
        });
        if files.len() == before {
            return Err(BadConfig(format!(
                "{} holds no suite; their names end in suite.yaml, suite.yml or suite.json",
                path.display()
            ))
            .into());
        }
    }
    Ok(files)
}

/// Visits the files below a directory in order of their names, without directories of generated files.
fn visit_files(dir: &Path, found: &mut impl FnMut(&Path)) {
    const LEFT_OUT: [&str; 4] = ["node_modules", "target", "__pycache__", "venv"];
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let Ok(kind) = entry.file_type() else { continue };
        if name.starts_with('.') || LEFT_OUT.contains(&name.as_ref()) {
            continue;
        }
        match kind.is_dir() {
            true => visit_files(&path, found),
            false => found(&path),
        }
    }
}

/// Prints the reports, and writes the report files.
fn print_reports(args: &TestArgs, reports: &[SuiteReport]) -> anyhow::Result<()> {
    let format = if args.json { TestFormat::Json } else { args.format };
    let text = match format {
        TestFormat::Readable => suite::readable(reports, std::io::stdout().is_terminal()),
        TestFormat::Tap => suite::tap(reports),
        TestFormat::Junit => suite::junit(reports),
        TestFormat::Json => format!("{:#}\n", suite::json(reports)),
    };
    // The files of reports are written, and the exit code says the same, if nobody reads this one.
    let _ = output::raw(text.as_bytes());
    for (file, text) in [(&args.junit, suite::junit(reports)), (&args.tap, suite::tap(reports))] {
        if let Some(file) = file {
            std::fs::write(file, text).with_context(|| format!("{} cannot be written", file.display()))?;
        }
    }
    Ok(())
}

/// Runs the suites whenever a file changes.
async fn watch(args: &TestArgs, options: &RunOptions, stop: &CancellationToken) -> anyhow::Result<ExitCode> {
    let mut rerun = Rerun::new(args.junit.iter().chain(&args.tap));
    loop {
        let before = file_states(&args.files);
        let outcome = tokio::select! {
            outcome = once(args, options) => outcome,
            () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
        };
        if let Err(error) = outcome {
            // A suite may be invalid while it is being edited.
            exit::report(&error);
        }
        rerun.ran(before, &file_states(&args.files));
        let _ = outln!("waiting for changes; Ctrl-C stops");
        loop {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(200)) => {}
                () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
            }
            if rerun.is_due(&file_states(&args.files)) {
                break;
            }
        }
    }
}

/// States of the suites and of the files in their directories.
fn file_states(named: &[PathBuf]) -> FileStates {
    const MOST: usize = 5_000;
    let mut found = FileStates::new();
    for path in named {
        let dir = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) };
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        visit_files(dir, &mut |file| {
            if found.len() < MOST
                && let Ok(facts) = file.metadata()
            {
                found.insert(rerun::plain(file), (facts.modified().ok(), facts.len()));
            }
        });
    }
    found
}
