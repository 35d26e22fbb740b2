//! Tests that run more than once: cases, repetition, retries, steps at the same time.

use gatewright_testing::suite::{RunOptions, Suite, SuiteReport, TestOutcome, readable};

use crate::support::script;

fn bank(rest: &str) -> String {
    format!("server: {{ command: {}, transport: stdio, args: [--stdio] }}\n{rest}", script("bank.mjs"))
}

async fn run(rest: &str) -> SuiteReport {
    let suite = Suite::parse("bank.yaml", &bank(rest)).unwrap_or_else(|error| panic!("{error}"));
    suite.run(&RunOptions::default()).await
}

fn names(report: &SuiteReport) -> Vec<&str> {
    report.tests.iter().map(|test| test.name.as_str()).collect()
}

#[tokio::test]
async fn a_test_runs_once_for_each_case_and_is_named_by_its_values() {
    let report = run(
        "tests:\n  - name: adds ${a} and ${b}\n    cases:\n      - { a: 1, b: 2, sum: 3 }\n      - { a: -1, b: 1, sum: 1 }\n    steps: [{ call: add, with: { a: \"${a}\", b: \"${b}\" }, expect: [toHaveTextContent: \"${sum}\"] }]\n\
         \x20 - name: plain\n    cases: [{ a: 1 }, { a: 1 }]\n    steps: [{ call: add, with: { a: \"${a}\", b: 0 } }]\n",
    )
    .await;
    assert_eq!(names(&report), ["adds 1 and 2", "adds -1 and 1", "plain [a=1]", "plain [a=1] #2"]);
    assert_eq!(
        report.tests[0].outcome,
        TestOutcome::Passed,
        "{}",
        readable(std::slice::from_ref(&report), false)
    );
    let failure = report.tests[1].failure.as_ref().unwrap();
    assert_eq!((report.tests[1].line, failure.line), (Some(6), Some(7)));
    assert_eq!(failure.step.as_deref(), Some("step 1 (call)"));
    assert!(failure.expected.is_some() && failure.actual.is_some(), "{failure:?}");
}

#[tokio::test]
async fn cases_come_from_csv_and_json_files() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).unwrap();
        dir.path().join(name)
    };
    write("sums.csv", "a,b,sum\n1,2,3\n20,22,42\n");
    write("sums.json", "[{\"a\": 1, \"b\": 1, \"sum\": 2}]");
    let tests = |file: &str| {
        format!(
            "tests: [{{ name: \"${{a}}+${{b}}\", cases: {file}, steps: [{{ call: add, with: {{ a: \"${{a}}\", b: \"${{b}}\" }}, expect: [toHaveTextContent: \"${{sum}}\"] }}] }}]"
        )
    };
    for (file, expected) in [("sums.csv", vec!["1+2", "20+22"]), ("sums.json", vec!["1+1"])] {
        let suite = Suite::from_file(write("a.suite.yaml", &bank(&tests(file)))).unwrap();
        let report = suite.run(&RunOptions::default()).await;
        assert!(report.passed() && names(&report) == expected, "{}", readable(&[report], false));
    }
    write("odd.csv", "a,b\n1\n");
    for (file, problem) in [
        ("none.csv", "none.csv cannot be read"),
        ("odd.csv", "odd.csv: CSV error: record 1 (line: 2"),
        ("a.suite.yaml", "the name of a file with cases ends in .csv or .json"),
        ("[]", "there is no case"),
    ] {
        let error = Suite::from_file(write("b.suite.yaml", &bank(&tests(file)))).unwrap_err().to_string();
        assert!(error.contains("b.suite.yaml:2: tests.0.cases: ") && error.contains(problem), "{error}");
    }
}

#[tokio::test]
async fn repetition_ends_at_the_first_failure_and_has_a_number() {
    let report = run(
        "serial: true\ntests:\n  - { name: steps, steps: [{ call: count, repeat: 3, expect: [toHaveTextContent: \"${repetition}\"] }] }\n\
         \x20 - { name: test, repeat: 5, steps: [{ call: count, expect: [not: { toHaveTextContent: \"6\" }] }] }\n",
    )
    .await;
    assert_eq!(report.tests[0].outcome, TestOutcome::Passed, "{report:?}");
    let TestOutcome::Failed(why) = &report.tests[1].outcome else { panic!("{report:?}") };
    assert!(why.starts_with("repetition 3 of 5: bank.yaml:5: step 1 (call): "), "{why}");
}

#[tokio::test]
async fn a_step_is_retried_until_its_expectations_are_met() {
    let report = run(
        "tests:\n  - { name: soon, steps: [{ call: count, retry: { everyMs: 1 }, expect: [toHaveTextContent: \"5\"] }] }\n\
         \x20 - { name: never, steps: [{ call: add, with: { a: 1, b: 1 }, retry: { timeoutMs: 50, everyMs: 10 }, expect: [toHaveTextContent: \"5\"] }] }\n",
    )
    .await;
    assert_eq!(report.tests[0].outcome, TestOutcome::Passed, "{report:?}");
    let TestOutcome::Failed(why) = &report.tests[1].outcome else { panic!("{report:?}") };
    assert!(why.contains("not met within 50ms, attempt ") && why.contains("toHaveTextContent"), "{why}");
}

#[tokio::test]
async fn a_race_shows_in_steps_at_the_same_time() {
    let pays = |expected: &str| {
        format!(
            "tests:\n  - name: pays once\n    steps:\n      - parallel: [{{ call: withdraw, with: {{ amount: 100 }}, copies: 2 }}]\n        expect: [toMatchJson: {expected}]\n"
        )
    };
    // The bank lets both through, which is its bug.
    let report = run(&pays("{ succeeded: 2, failed: 0 }")).await;
    assert!(report.passed(), "{}", readable(&[report], false));
    let report = run(&pays("{ succeeded: 1, failed: 1 }")).await;
    assert!(!report.passed());
    let report = run(
        "tests:\n  - name: fails\n    steps: [{ parallel: [{ call: count }, { call: withdraw, with: { amount: 1000 } }] }]\n\
         \x20 - name: counted\n    steps: [{ parallel: [{ call: withdraw, with: { amount: 1000 } }, { call: pid, save: { pid: /content/0/text } }], expect: [toMatchJson: { failed: 1 }] }, { call: pid, expect: [toHaveTextContent: \"${pid}\"] }]\n",
    )
    .await;
    let TestOutcome::Failed(why) = &report.tests[0].outcome else { panic!("{report:?}") };
    assert!(why.contains("step 1 (parallel): parallel step 2 (call): the tool failed"), "{why}");
    assert_eq!(report.tests[1].outcome, TestOutcome::Passed, "{report:?}");
}

#[tokio::test]
async fn fail_fast_begins_no_further_test_and_a_stopped_run_is_reported() {
    let tests = "serial: true\ntests:\n  - { name: a, steps: [] }\n  - { name: b, steps: [{ call: nope }] }\n  - { name: c, steps: [] }\n";
    let suite = Suite::parse("bank.yaml", &bank(tests)).unwrap();
    let options = RunOptions { fail_fast: true, ..RunOptions::default() };
    let report = suite.run(&options).await;
    assert_eq!(report.tests[0].outcome, TestOutcome::Passed);
    assert_eq!(report.tests[2].outcome, TestOutcome::Skipped("not run: an earlier test failed".into()));

    let tests = "serial: true\nteardown: [{ call: count }]\ntests:\n  - { name: long, steps: [{ call: count }, { call: slow, with: { ms: 600000 } }] }\n  - { name: next, steps: [] }\n";
    let suite = Suite::parse("bank.yaml", &bank(tests)).unwrap();
    let options = RunOptions::default();
    let stop = options.stop.clone();
    let (report, ()) = tokio::join!(suite.run(&options), async {
        // Long enough for the process to start on an idle machine; on a busy one the run is stopped while it starts.
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        stop.cancel();
    });
    assert!(report.interrupted && !report.passed());
    let TestOutcome::Failed(why) = &report.tests[0].outcome else { panic!("{report:?}") };
    assert!(why.contains("the run was interrupted"), "{why}");
    assert_eq!(report.tests[1].outcome, TestOutcome::Skipped("not run: the run was interrupted".into()));
}
