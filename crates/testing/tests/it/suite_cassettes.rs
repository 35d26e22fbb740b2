//! Cassettes in suites: when they are written, and stale ones.

use std::path::Path;

use gatewright_testing::{
    RecordMode,
    suite::{RunOptions, Suite, SuiteReport, TestOutcome},
};

/// Runs a suite for the server of the examples, whose tests are `tests`, from a file in `dir`.
async fn run(dir: &Path, tests: &str, record: Option<RecordMode>) -> SuiteReport {
    let file = dir.join("x.suite.yaml");
    std::fs::write(&file, format!("server: {{ command: everything_server }}\n{tests}")).unwrap();
    Suite::from_file(&file).unwrap().run(&RunOptions { record, ..RunOptions::default() }).await
}

const ECHO: &str = "tests: [{ name: t, record: session.json, steps: [{ call: echo, with: { text: hi }, expect: [toHaveTextContent: hi] }] }]";

#[tokio::test]
async fn a_cassette_is_written_only_when_its_test_passed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("session.json");
    let report =
        run(dir.path(), &ECHO.replace("[toHaveTextContent: hi]", "[toHaveTextContent: other]"), None).await;
    assert!(!report.passed() && !file.exists());
    assert!(run(dir.path(), ECHO, None).await.passed());
    let first = std::fs::read_to_string(&file).unwrap();
    assert!(first.contains("\"hi\""), "{first}");
    // A failure while it is recorded again leaves the old one.
    let failing = ECHO.replace("text: hi", "text: ho");
    assert!(!run(dir.path(), &failing, Some(RecordMode::All)).await.passed());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), first);
    let changed = failing.replace("toHaveTextContent: hi", "toHaveTextContent: ho");
    let error = run(dir.path(), &changed, None).await;
    assert!(
        matches!(&error.tests[0].outcome, TestOutcome::Failed(why) if why.contains("record it again")),
        "{error:?}"
    );
    assert!(run(dir.path(), &changed, Some(RecordMode::All)).await.passed());
    assert!(run(dir.path(), &changed, Some(RecordMode::None)).await.passed());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file is left");
}

#[tokio::test]
async fn stale_answers_are_named_and_a_missing_cassette_fails_in_the_mode_none() {
    let dir = tempfile::tempdir().unwrap();
    let two = ECHO.replace("steps: [", "steps: [{ call: echo, with: { text: more } }, ");
    assert!(run(dir.path(), &two, None).await.passed());
    let report = run(dir.path(), ECHO, None).await;
    assert!(report.passed(), "{report:?}");
    let notes = report.tests[0].notes.join("\n");
    assert!(
        notes.contains("session.json has 1 answers that nothing asked for") && notes.contains("more"),
        "{notes}"
    );
    std::fs::remove_file(dir.path().join("session.json")).unwrap();
    let written = ECHO.replace("record: session.json", "record: { file: session.json, mode: none }");
    let report = run(dir.path(), &written, None).await;
    assert!(
        matches!(&report.tests[0].outcome, TestOutcome::Failed(why) if why.contains("does not exist")),
        "{report:?}"
    );
}
