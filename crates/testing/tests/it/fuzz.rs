//! Fuzzing of a server whose tools break a promise each.

use std::time::Duration;

use gatewright_testing::{
    fuzz::{FuzzOptions, FuzzReport, Promise, Target, fuzz},
    suite::{RunOptions, Suite, TestOutcome},
};

use crate::support::script;

async fn target() -> Target {
    Target::command(&script("fragile.mjs"), &[], Duration::from_secs(30)).await.unwrap()
}

/// The report of a run of a few calls of each tool.
async fn report(tools: &[&str], seed: u64) -> FuzzReport {
    let mut options = FuzzOptions::default();
    // Enough on a busy machine; the number of calls ends the run.
    (options.time, options.call_timeout) = (Duration::from_secs(600), Duration::from_secs(2));
    (options.max_calls, options.seed) = (Some(60), seed);
    options.tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    let target = target().await;
    let report = fuzz(&target, &options).await.unwrap();
    target.stop().await;
    report
}

fn broken(report: &FuzzReport) -> Vec<(&str, Promise)> {
    report.findings.iter().map(|one| (one.tool.as_str(), one.promise)).collect()
}

#[tokio::test]
async fn each_broken_promise_is_found_and_its_input_shrunk() {
    for (tool, promise, arguments) in [
        ("get_crash", Promise::Alive, r#"{"text":"a\u0000b"}"#),
        ("get_trace", Promise::NoTrace, "{}"),
        ("get_env", Promise::NoSecret, "{}"),
        ("get_wrong", Promise::Shape, "{}"),
        ("get_anything", Promise::RefusesInvalid, ""),
        ("get_count", Promise::ReadOnly, ""),
    ] {
        let report = report(&[tool], 1).await;
        let found = report.findings.iter().find(|one| one.tool == tool && one.promise == promise);
        let found = found.unwrap_or_else(|| panic!("{tool}: {:?}", report.findings));
        if !arguments.is_empty() {
            assert_eq!(found.arguments.to_string(), arguments, "{tool}");
        }
    }
}

#[tokio::test]
async fn a_call_that_is_never_answered_does_not_hold_up_the_run() {
    let report = report(&["get_never"], 1).await;
    assert!(broken(&report).contains(&("get_never", Promise::Answers)), "{:?}", report.findings);
    assert!(report.calls() <= 5, "it is left after a few");
}

#[tokio::test]
async fn a_good_tool_keeps_every_promise() {
    assert_eq!(broken(&report(&["get_good"], 1).await), []);
}

#[tokio::test]
async fn the_same_seed_gives_the_same_findings() {
    let (one, other) =
        tokio::join!(report(&["get_crash", "get_anything"], 3), report(&["get_crash", "get_anything"], 3));
    assert_eq!(one.findings, other.findings);
    assert_eq!(one.tools, other.tools);
}

#[tokio::test]
async fn tools_that_may_destroy_are_left_out_unless_they_are_asked_for() {
    let mut options = FuzzOptions::default();
    (options.time, options.max_calls) = (Duration::from_secs(600), Some(1));
    let target = target().await;
    let report = fuzz(&target, &options).await.unwrap();
    let left_out: Vec<&str> =
        report.tools.iter().filter(|tool| tool.left_out.is_some()).map(|tool| tool.name.as_str()).collect();
    assert_eq!(left_out, ["delete_all"]);
    options.tools = vec!["delete_all".into()];
    let report = fuzz(&target, &options).await.unwrap();
    assert_eq!(report.calls(), 1);
    options.tools = vec!["get_god".into()];
    let error = fuzz(&target, &options).await.unwrap_err().to_string();
    assert!(error.contains("did you mean `get_good`"), "{error}");
}

#[tokio::test]
async fn the_suite_of_a_report_fails_as_long_as_the_server_breaks_its_promises() {
    let report = report(&["get_crash", "get_trace", "get_wrong", "get_anything"], 1).await;
    let suite = Suite::parse("fuzz.suite.yaml", &report.suite).unwrap();
    let repeated = suite.run(&RunOptions::default()).await;
    assert_eq!(repeated.tests.len(), report.findings.len());
    for test in &repeated.tests {
        assert!(matches!(test.outcome, TestOutcome::Failed(_)), "{}: {}", test.name, report.suite);
    }
}
