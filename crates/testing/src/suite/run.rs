//! Running suites: setup, tests at the same time, teardown.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::{
    RunOptions, Suite, SuiteReport, TestOutcome, TestReport,
    format::{ElicitationAction, Step, TestEntry, User},
    stage::{Stage, beside},
    step::Actor,
    variables::Variables,
};
use crate::{Elicited, HttpMock, Mcp, Server, lock};

type OnTest<'a> = &'a (dyn Fn(&Suite, &TestReport) + Sync);

/// How long a test may take when it does not say.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs many suites; their tests share `options.parallel`.
pub(super) async fn run_all(suites: &[Suite], options: &RunOptions, on_test: OnTest<'_>) -> Vec<SuiteReport> {
    let permits = Arc::new(Semaphore::new(options.parallel.max(1)));
    stream::iter(suites)
        .map(|suite| run(suite, options, permits.clone(), on_test))
        .buffered(options.parallel.max(1))
        .collect()
        .await
}

impl Suite {
    /// The indices of the tests that `options` and `only` choose.
    pub(super) fn chosen(&self, options: &RunOptions) -> Vec<usize> {
        let focused = self.has_only();
        let wanted = |test: &TestEntry| {
            (!focused || test.only)
                && options.filter.as_ref().is_none_or(|part| test.name.contains(part.as_str()))
                && (options.tags.is_empty() || test.tags.iter().any(|tag| options.tags.contains(tag)))
                && !test.tags.iter().any(|tag| options.exclude_tags.contains(tag))
        };
        let tests = self.file.tests.iter().enumerate();
        tests.filter(|(_, test)| wanted(test)).map(|(index, _)| index).collect()
    }
}

async fn run(
    suite: &Suite,
    options: &RunOptions,
    permits: Arc<Semaphore>,
    on_test: OnTest<'_>,
) -> SuiteReport {
    let chosen = suite.chosen(options);
    let mut report = SuiteReport {
        name: suite.name.clone(),
        file: suite.path.clone(),
        tests: Vec::new(),
        left_out: suite.file.tests.len() - chosen.len(),
    };
    let all_skipped = chosen.iter().all(|index| suite.file.tests[*index].skip.is_some());
    let mut variables = Variables::of_file(suite.file.variables.clone());
    variables.known.clone_from(&options.variables);
    let environment =
        options.environment.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    variables.known.insert("env".into(), Value::Object(environment.collect()));
    // One for all that is outside of tests.
    variables.known.insert("random".into(), crate::random_text().into());

    // Nothing is started for tests that do not run.
    let stage = match all_skipped {
        true => Err("every test is skipped".to_owned()),
        false => Stage::set(suite, options, &variables).await,
    };
    let stage = match stage {
        Ok(stage) => setup(suite, &stage, &mut variables).await.map(|()| stage),
        Err(problem) => Err(problem),
    };
    let shared = stage.as_ref();
    let variables = &variables;
    let at_once = if suite.file.serial { 1 } else { options.parallel.max(1) };
    report.tests = stream::iter(chosen)
        .map(|index| {
            let permits = permits.clone();
            async move {
                let permit = permits.acquire_owned().await;
                let test = &suite.file.tests[index];
                let started = Instant::now();
                let (outcome, notes) = match (&test.skip, shared) {
                    (Some(why), _) => (TestOutcome::Skipped(why.clone()), Vec::new()),
                    (None, Err(problem)) => (TestOutcome::Failed(problem.clone()), Vec::new()),
                    (None, Ok(stage)) => own_stage(suite, options, stage, index, variables).await,
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
    if let Ok(stage) = &stage {
        let skipped = |test: &TestReport| matches!(test.outcome, TestOutcome::Skipped(_));
        let whole = report.left_out == 0 && !report.tests.iter().any(skipped);
        let started = Instant::now();
        let torn_down = with_client(suite, stage, variables, "/teardown", &suite.file.teardown).await;
        stage.server.stop().await;
        if let Some(http) = &stage.http {
            http.save_cassette();
        }
        for (name, problem) in [("teardown", torn_down.err()), ("HTTP mocks", stage.http_problems(whole))] {
            if let Some(problem) = problem {
                let outcome = TestOutcome::Failed(problem);
                let (duration, notes) = (started.elapsed(), Vec::new());
                let one = TestReport { name: name.into(), line: None, outcome, duration, notes };
                on_test(suite, &one);
                report.tests.push(one);
            }
        }
    }
    report
}

/// The steps before the first test: what they save goes into `variables`.
async fn setup(suite: &Suite, stage: &Stage, variables: &mut Variables) -> Result<(), String> {
    variables.known.extend(stage.facts());
    match with_client(suite, stage, variables, "/setup", &suite.file.setup).await {
        Ok(saved) => {
            *variables = saved;
            Ok(())
        }
        Err(problem) => {
            stage.server.stop().await;
            Err(format!("setup: {problem}"))
        }
    }
}

/// Steps outside of tests, with a client of their own when there are any.
async fn with_client(
    suite: &Suite,
    stage: &Stage,
    variables: &Variables,
    place: &str,
    steps: &[Step],
) -> Result<Variables, String> {
    if steps.is_empty() {
        return Ok(variables.clone());
    }
    let mut actor = actor(suite, stage, suite.file.user.as_ref(), variables.clone(), None).await?;
    let outcome = walk(&mut actor, place, steps, &|_| {}).await;
    actor.mcp.disconnect().await;
    outcome.map(|()| actor.variables)
}

async fn actor<'a>(
    suite: &'a Suite,
    stage: &'a Stage,
    user: Option<&User>,
    variables: Variables,
    cassette: Option<&str>,
) -> Result<Actor<'a>, String> {
    let token = user.map(|user| stage.token(suite, user, &variables)).transpose()?;
    let cassette = cassette.map(|file| variables.text(file)).transpose()?;
    let cassette = cassette.map(|file| beside(suite.dir.as_deref(), &file));
    let mcp = stage
        .client(token, cassette)
        .await
        .map_err(|error| format!("the client does not connect: {error}"))?;
    Ok(Actor { suite, stage, mcp, variables, subscriptions: Vec::new() })
}

/// One test, with a server of its own when the suite wants that.
async fn own_stage(
    suite: &Suite,
    options: &RunOptions,
    shared: &Stage,
    index: usize,
    variables: &Variables,
) -> (TestOutcome, Vec<String>) {
    let after = suite.file.tests[index].timeout_ms.map_or(TEST_TIMEOUT, Duration::from_millis);
    let (server, http) = (shared.server.clone(), shared.http.clone());
    let on_stage = Mutex::new(Scene { at: String::new(), server, http, mcp: None });
    let played = async {
        if !suite.file.server.per_test {
            return play(suite, shared, index, variables.clone(), &on_stage).await;
        }
        let own = match Stage::set(suite, options, variables).await {
            Ok(own) => own,
            Err(problem) => return Err(problem),
        };
        {
            let mut scene = lock(&on_stage);
            (scene.server, scene.http) = (own.server.clone(), own.http.clone());
        }
        let mut variables = variables.clone();
        variables.known.extend(own.facts());
        let outcome = play(suite, &own, index, variables, &on_stage).await;
        own.server.stop().await;
        outcome.and_then(|()| own.http_problems(false).map_or(Ok(()), Err))
    };
    let outcome = tokio::time::timeout(after, played).await;
    let scene = on_stage.into_inner().unwrap_or_else(PoisonError::into_inner);
    match outcome {
        Ok(Ok(())) => {
            let notes = scene.mcp.map(|mcp| mcp.logs().complaints()).unwrap_or_default();
            (TestOutcome::Passed, notes.iter().map(|note| crate::shorten(note, 300)).collect())
        }
        Ok(Err(problem)) => (TestOutcome::Failed(problem), Vec::new()),
        Err(_) => {
            let at = match scene.at.as_str() {
                "" => "while it connected: ",
                at => at,
            };
            let seen = seen(&scene.server, scene.http.as_ref(), scene.mcp.as_ref()).await;
            let problem = format!(
                "{at}the test took longer than {after:?}; raise its `timeoutMs` when that is right{seen}"
            );
            (TestOutcome::Failed(problem), Vec::new())
        }
    }
}

/// Where a test is, for the report of one that takes too long.
struct Scene {
    at: String,
    /// Its own ones where each test has a server of its own.
    server: Server,
    http: Option<HttpMock>,
    mcp: Option<Mcp>,
}

async fn play(
    suite: &Suite,
    stage: &Stage,
    index: usize,
    mut variables: Variables,
    on_stage: &Mutex<Scene>,
) -> Result<(), String> {
    let test = &suite.file.tests[index];
    variables.known.insert("random".into(), crate::random_text().into());
    variables.add_own(&test.variables)?;
    let user = test.user.as_ref().or(suite.file.user.as_ref());
    let mut actor = actor(suite, stage, user, variables, test.record.as_deref()).await?;
    lock(on_stage).mcp = Some(actor.mcp.clone());
    actor.mock(&test.mocks)?;
    answer_questions(&actor.mcp, test, &actor.variables)?;
    let on_step = |at: String| lock(on_stage).at = at;
    let mut outcome = walk(&mut actor, "/beforeEach", &suite.file.before_each, &on_step).await;
    if outcome.is_ok() {
        outcome = walk(&mut actor, &format!("/tests/{index}/steps"), &test.steps, &on_step).await;
    }
    if outcome.is_ok() && test.steps.is_empty() && !actor.mcp.is_connected() {
        outcome = Err("the server refused the client".into());
    }
    let after = walk(&mut actor, "/afterEach", &suite.file.after_each, &on_step).await;
    actor.mcp.disconnect().await;
    outcome.and(after)
}

fn answer_questions(mcp: &Mcp, test: &TestEntry, variables: &Variables) -> Result<(), String> {
    if let Some(section) = &test.elicitation {
        let content = variables.fill(&Value::Object(section.content.clone()))?;
        let answer = match section.action {
            ElicitationAction::Accept => Elicited::Accept(content),
            ElicitationAction::Decline => Elicited::Decline,
            ElicitationAction::Cancel => Elicited::Cancel,
        };
        mcp.on_elicitation(move |_| std::future::ready(answer.clone()));
    }
    if let Some(answer) = &test.sampling {
        let answer = variables.fill(answer)?;
        mcp.on_sampling(move |_| std::future::ready(answer.clone()));
    }
    Ok(())
}

/// Takes steps until one fails; the error names its line, and what the client and the server saw. `on_step` is told of each.
async fn walk(
    actor: &mut Actor<'_>,
    place: &str,
    steps: &[Step],
    on_step: &(dyn Fn(String) + Sync),
) -> Result<(), String> {
    for (number, step) in steps.iter().enumerate() {
        let file = &actor.suite.path;
        let line = actor.suite.line(&format!("{place}/{number}"));
        let line = line.map_or_else(String::new, |line| format!(":{line}"));
        let kind = step.kinds().join(", ");
        let group = place.strip_prefix('/').filter(|group| !group.contains('/'));
        let group = group.map_or_else(String::new, |group| format!("{group}, "));
        let at = format!("{file}{line}: {group}step {} ({kind}): ", number + 1);
        on_step(at.clone());
        if let Err(problem) = actor.take(step).await {
            let seen = seen(&actor.stage.server, actor.stage.http.as_ref(), Some(&actor.mcp)).await;
            return Err(format!("{at}{problem}{seen}"));
        }
    }
    Ok(())
}

/// What the client, the server and the outside world saw.
async fn seen(server: &Server, http: Option<&HttpMock>, mcp: Option<&Mcp>) -> String {
    const LINES: usize = 20;
    let mut text = String::new();
    let requests = mcp.map(|mcp| mcp.trace().all()).unwrap_or_default();
    if !requests.is_empty() {
        text.push_str("\nrequests:");
    }
    for one in &requests {
        text.push_str(&format!("\n  {}", one.to_string().replace('\n', "\n  ")));
    }
    for complaint in mcp.map(|mcp| mcp.logs().complaints()).unwrap_or_default() {
        text.push_str(&format!("\nwrong on the wire: {}", crate::shorten(&complaint, 300)));
    }
    if let Some(status) = server.died(&requests).await {
        text.push_str(&format!("\nthe server ended: {status}"));
    }
    let logs = server.get_logs();
    if !logs.is_empty() {
        text.push_str("\nserver, its last lines:");
        for line in logs.iter().skip(logs.len().saturating_sub(LINES)) {
            text.push_str(&format!("\n  | {}", crate::shorten(line, 400)));
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
