//! Running suites: setup, concurrent tests, teardown.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::{
    environment::{Environment, resolve_path},
    file::Suite,
    format::{ElicitationAction, Step, TestEntry, User},
    options::RunOptions,
    results::{SuiteReport, TestOutcome, TestReport},
    step::StepRunner,
    variables::Variables,
};
use crate::{
    base::{
        lock,
        text::{random_text, shorten},
    },
    client::{ElicitResult, Mcp},
    http_mock::HttpMock,
    server::Server,
    shapes::Strict,
};

type OnTest<'a> = &'a (dyn Fn(&Suite, &TestReport) + Sync);

/// Default time limit of a test.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

impl Suite {
    /// Starts the server, runs the tests, stops the server. If the server does not start, every test fails.
    pub async fn run(&self, options: &RunOptions) -> SuiteReport {
        let mut reports = run_all(std::slice::from_ref(self), options, |_, _| {}).await;
        reports.swap_remove(0)
    }
}

/// Runs several suites concurrently; together they run at most `options.parallel` tests at a time. `on_test` is called after each
/// test.
pub async fn run_all(
    suites: &[Suite],
    options: &RunOptions,
    on_test: impl Fn(&Suite, &TestReport) + Sync,
) -> Vec<SuiteReport> {
    let on_test: OnTest<'_> = &on_test;
    let permits = Arc::new(Semaphore::new(options.parallel.max(1)));
    stream::iter(suites)
        .map(|suite| run_suite(suite, options, permits.clone(), on_test))
        .buffered(options.parallel.max(1))
        .collect()
        .await
}

async fn run_suite(
    suite: &Suite,
    options: &RunOptions,
    permits: Arc<Semaphore>,
    on_test: OnTest<'_>,
) -> SuiteReport {
    let selected = suite.selected(options);
    let mut report = SuiteReport {
        name: suite.name.clone(),
        file: suite.path.clone(),
        tests: Vec::new(),
        left_out: suite.file.tests.len() - selected.len(),
    };
    let all_skipped = selected.iter().all(|index| suite.file.tests[*index].skip.is_some());
    let mut variables = Variables::of_file(suite.file.variables.clone());
    variables.known.clone_from(&options.variables);
    let env = options.environment.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    variables.known.insert("env".into(), Value::Object(env.collect()));
    // Shared by everything outside of tests.
    variables.known.insert("random".into(), random_text().into());

    // Nothing is started if no test runs.
    let environment = match all_skipped {
        true => Err("every test is skipped".to_owned()),
        false => Environment::start(suite, options, &variables).await,
    };
    let environment = match environment {
        Ok(started) => setup(suite, &started, &mut variables).await.map(|()| started),
        Err(problem) => Err(problem),
    };
    let shared = environment.as_ref();
    let variables = &variables;
    let at_once = if suite.file.serial { 1 } else { options.parallel.max(1) };
    report.tests = stream::iter(selected)
        .map(|index| {
            let permits = permits.clone();
            async move {
                let permit = permits.acquire_owned().await;
                let test = &suite.file.tests[index];
                let started = Instant::now();
                let (outcome, notes) = match (&test.skip, shared) {
                    (Some(why), _) => (TestOutcome::Skipped(why.clone()), Vec::new()),
                    (None, Err(problem)) => (TestOutcome::Failed(problem.clone()), Vec::new()),
                    (None, Ok(shared)) => run_test(suite, options, shared, index, variables).await,
                };
                drop(permit);
                let report = TestReport {
                    name: test.name.clone(),
                    line: suite.line(&format!("/tests/{index}")),
                    outcome,
                    duration: started.elapsed(),
                    notes,
                };
                on_test(suite, &report);
                report
            }
        })
        .buffered(at_once)
        .collect()
        .await;
    if let Ok(environment) = &environment {
        let skipped = |test: &TestReport| matches!(test.outcome, TestOutcome::Skipped(_));
        let complete = report.left_out == 0 && !report.tests.iter().any(skipped);
        for one in tear_down(suite, environment, variables, complete).await {
            on_test(suite, &one);
            report.tests.push(one);
        }
    }
    report
}

/// Runs the steps after the last test and stops the server. Returns a report for each failure.
async fn tear_down(
    suite: &Suite,
    environment: &Environment,
    variables: &Variables,
    complete: bool,
) -> Vec<TestReport> {
    let started = Instant::now();
    let steps = with_client(suite, environment, variables, "/teardown", &suite.file.teardown).await;
    environment.server.stop().await;
    if let Some(http) = &environment.http {
        http.save_cassette();
    }
    let failed = |name: &str, problem: Option<String>| {
        problem.map(|problem| TestReport {
            name: name.to_owned(),
            line: None,
            outcome: TestOutcome::Failed(problem),
            duration: started.elapsed(),
            notes: Vec::new(),
        })
    };
    let mocks = environment.mock_problems(complete);
    failed("teardown", steps.err()).into_iter().chain(failed("mocks", mocks)).collect()
}

/// Runs the steps before the first test, and keeps the variables they save.
async fn setup(suite: &Suite, environment: &Environment, variables: &mut Variables) -> Result<(), String> {
    variables.known.extend(environment.variables());
    match with_client(suite, environment, variables, "/setup", &suite.file.setup).await {
        Ok(saved) => {
            *variables = saved;
            Ok(())
        }
        Err(problem) => {
            environment.server.stop().await;
            Err(format!("setup: {problem}"))
        }
    }
}

/// Runs steps outside of tests, with their own client.
async fn with_client(
    suite: &Suite,
    environment: &Environment,
    variables: &Variables,
    place: &str,
    steps: &[Step],
) -> Result<Variables, String> {
    if steps.is_empty() {
        return Ok(variables.clone());
    }
    let user = suite.file.user.as_ref();
    let mut runner = runner(suite, environment, user, variables.clone(), None, None).await?;
    let outcome = run_steps(&mut runner, place, steps, &|_| {}).await;
    runner.mcp.disconnect().await;
    outcome.map(|()| runner.variables)
}

/// Connects a client for steps.
async fn runner<'a>(
    suite: &'a Suite,
    environment: &'a Environment,
    user: Option<&User>,
    variables: Variables,
    cassette: Option<&str>,
    strict: Option<&Strict>,
) -> Result<StepRunner<'a>, String> {
    let token = user.map(|user| environment.token(suite, user, &variables)).transpose()?;
    let cassette = cassette.map(|file| variables.text(file)).transpose()?;
    let cassette = cassette.map(|file| resolve_path(suite.dir.as_deref(), &file));
    let mcp = environment
        .client(token, cassette, strict)
        .await
        .map_err(|error| format!("the client does not connect: {error}"))?;
    Ok(StepRunner { suite, environment, mcp, variables, subscriptions: Vec::new() })
}

/// Runs a test within its time limit, with its own server if the suite has `perTest`.
async fn run_test(
    suite: &Suite,
    options: &RunOptions,
    shared: &Environment,
    index: usize,
    variables: &Variables,
) -> (TestOutcome, Vec<String>) {
    let limit = suite.file.tests[index].timeout_ms.map_or(TEST_TIMEOUT, Duration::from_millis);
    let (server, http) = (shared.server.clone(), shared.http.clone());
    let progress = Mutex::new(Progress { step: String::new(), server, http, mcp: None });
    let running = async {
        if !suite.file.server.per_test {
            return run_client(suite, shared, index, variables.clone(), &progress).await;
        }
        let own = Environment::start(suite, options, variables).await?;
        {
            let mut progress = lock(&progress);
            (progress.server, progress.http) = (own.server.clone(), own.http.clone());
        }
        let mut variables = variables.clone();
        variables.known.extend(own.variables());
        let outcome = run_client(suite, &own, index, variables, &progress).await;
        own.server.stop().await;
        outcome.and_then(|()| own.mock_problems(false).map_or(Ok(()), Err))
    };
    let outcome = tokio::time::timeout(limit, running).await;
    let progress = progress.into_inner().unwrap_or_else(PoisonError::into_inner);
    match outcome {
        Ok(Ok(())) => {
            let notes = progress.mcp.map(|mcp| mcp.logs().violations()).unwrap_or_default();
            (TestOutcome::Passed, notes.iter().map(|note| shorten(note, 300)).collect())
        }
        Ok(Err(problem)) => (TestOutcome::Failed(problem), Vec::new()),
        Err(_) => {
            let step = match progress.step.as_str() {
                "" => "while it connected: ",
                step => step,
            };
            let observed =
                observations(&progress.server, progress.http.as_ref(), progress.mcp.as_ref()).await;
            let problem = format!(
                "{step}the test took longer than {limit:?}; raise its `timeoutMs` when that is right{observed}"
            );
            (TestOutcome::Failed(problem), Vec::new())
        }
    }
}

/// The progress of a test, for the report after a timeout.
struct Progress {
    /// The prefix of errors in the current step; empty before the first step.
    step: String,
    server: Server,
    http: Option<HttpMock>,
    mcp: Option<Mcp>,
}

/// Connects the client of a test and runs its steps.
async fn run_client(
    suite: &Suite,
    environment: &Environment,
    index: usize,
    mut variables: Variables,
    progress: &Mutex<Progress>,
) -> Result<(), String> {
    let test = &suite.file.tests[index];
    variables.known.insert("random".into(), random_text().into());
    variables.add_own(&test.variables)?;
    let user = test.user.as_ref().or(suite.file.user.as_ref());
    let (cassette, strict) = (test.record.as_deref(), test.strict.as_ref());
    let mut runner = runner(suite, environment, user, variables, cassette, strict).await?;
    lock(progress).mcp = Some(runner.mcp.clone());
    runner.mock(&test.mocks)?;
    set_handlers(&runner.mcp, test, &runner.variables)?;
    let on_step = |step: String| lock(progress).step = step;
    let mut outcome = run_steps(&mut runner, "/beforeEach", &suite.file.before_each, &on_step).await;
    if outcome.is_ok() {
        outcome = run_steps(&mut runner, &format!("/tests/{index}/steps"), &test.steps, &on_step).await;
    }
    if outcome.is_ok() && test.steps.is_empty() && !runner.mcp.is_connected() {
        outcome = Err("the server refused the client".into());
    }
    let after = run_steps(&mut runner, "/afterEach", &suite.file.after_each, &on_step).await;
    runner.mcp.disconnect().await;
    outcome
        .and(after)
        .and_then(|()| runner.mcp.untold_violations().map_or(Ok(()), |error| Err(error.to_string())))
}

/// Sets the answers to elicitations and sampling.
fn set_handlers(mcp: &Mcp, test: &TestEntry, variables: &Variables) -> Result<(), String> {
    if let Some(section) = &test.elicitation {
        let content = variables.fill(&Value::Object(section.content.clone()))?;
        let answer = match section.action {
            ElicitationAction::Accept => ElicitResult::Accept(content),
            ElicitationAction::Decline => ElicitResult::Decline,
            ElicitationAction::Cancel => ElicitResult::Cancel,
        };
        mcp.on_elicitation(move |_| std::future::ready(answer.clone()));
    }
    if let Some(answer) = &test.sampling {
        let answer = variables.fill(answer)?;
        mcp.on_sampling(move |_| std::future::ready(answer.clone()));
    }
    Ok(())
}

/// Runs steps until one fails; the error names its line, the requests and the server's log. `on_step` is called before each.
async fn run_steps(
    runner: &mut StepRunner<'_>,
    place: &str,
    steps: &[Step],
    on_step: &(dyn Fn(String) + Sync),
) -> Result<(), String> {
    for (number, step) in steps.iter().enumerate() {
        let file = &runner.suite.path;
        let line = runner.suite.line(&format!("{place}/{number}"));
        let line = line.map_or_else(String::new, |line| format!(":{line}"));
        let action = step.actions().join(", ");
        let group = place.strip_prefix('/').filter(|group| !group.contains('/'));
        let group = group.map_or_else(String::new, |group| format!("{group}, "));
        let step_name = format!("{file}{line}: {group}step {} ({action}): ", number + 1);
        on_step(step_name.clone());
        if let Err(problem) = runner.run(step).await {
            let environment = runner.environment;
            let observed =
                observations(&environment.server, environment.http.as_ref(), Some(&runner.mcp)).await;
            return Err(format!("{step_name}{problem}{observed}"));
        }
    }
    Ok(())
}

/// Requests, protocol violations, server log and unmatched HTTP calls, for the report of a failure.
async fn observations(server: &Server, http: Option<&HttpMock>, mcp: Option<&Mcp>) -> String {
    const LINES: usize = 20;
    let mut text = String::new();
    let requests = mcp.map(|mcp| mcp.trace().all()).unwrap_or_default();
    if !requests.is_empty() {
        text.push_str("\nrequests:");
    }
    for one in &requests {
        text.push_str(&format!("\n  {}", one.to_string().replace('\n', "\n  ")));
    }
    for violation in mcp.map(|mcp| mcp.logs().violations()).unwrap_or_default() {
        text.push_str(&format!("\nwrong on the wire: {}", shorten(&violation, 300)));
    }
    if let Some(status) = server.unexpected_exit(&requests).await {
        text.push_str(&format!("\nthe server ended: {status}"));
    }
    let logs = server.get_logs();
    if !logs.is_empty() {
        text.push_str("\nserver, its last lines:");
        for line in logs.iter().skip(logs.len().saturating_sub(LINES)) {
            text.push_str(&format!("\n  | {}", shorten(line, 400)));
        }
    }
    for call in http.iter().flat_map(|http| http.unmatched()) {
        text.push_str(&format!("\nno HTTP mock wants: {call}"));
    }
    for problem in http.iter().flat_map(|http| http.unreachable()) {
        text.push_str(&format!("\n{problem}"));
    }
    text
}
