//! Expectations in suites: how they are written, checked and applied.

use gatewright_testing::suite::{RunOptions, Suite, TestOutcome, tap};

use crate::support::suite_of_everything as everything;

/// Runs one step, and returns why it failed.
async fn failure_of(step: &str) -> Option<String> {
    let suite = everything(&format!("tests: [{{ name: t, steps: [{step}] }}]"));
    match suite.run(&RunOptions::default()).await.tests.remove(0).outcome {
        TestOutcome::Passed => None,
        TestOutcome::Failed(why) => Some(why),
        TestOutcome::Skipped(why) => panic!("{why}"),
    }
}

fn problems_of(tests: &str) -> String {
    let text = format!("server: {{ command: x }}\n{tests}");
    Suite::parse("s.yaml", &text).unwrap_err().to_string()
}

#[tokio::test]
async fn an_expectation_is_a_name_a_mapping_or_a_list() {
    for expect in [
        "toBeSuccessful",
        "{ toBeSuccessful: , toHaveTextContent: hi }",
        "{ toBeSuccessful: true, not: { toHaveTextContent: bye, toBeError: } }",
        "[toBeSuccessful, { toHaveTextContent: hi, toMatchRegex: ^hi$ }, not: [toBeError, toHaveImageContent]]",
        "[]",
    ] {
        let step = format!("{{ call: echo, with: {{ text: hi }}, expect: {expect} }}");
        assert_eq!(failure_of(&step).await, None, "{expect}");
    }
    let why = failure_of(
        "{ call: echo, with: { text: hi }, expect: { toBeSuccessful: , toHaveTextContent: bye } }",
    )
    .await;
    assert!(why.unwrap().contains("toHaveTextContent\nexpected: a text that holds \"bye\""));
}

#[tokio::test]
async fn paths_reach_every_part_of_a_result_from_one_root() {
    let suite = everything(
        r#"
variables: { said: hi }
tests:
  - name: parts
    steps:
      - call: echo
        with: { text: hi }
        expect:
          at:
            content.0.text: "${said}"
            content.*.type: { toMatchRegex: ^text$, toHaveLength: 4 }
            structuredContent.text: { toEqual: hi, not: { toMatchRegex: bye } }
            structuredContent: { at: { text: hi } }
            /structuredContent/text: hi
            content: { toHaveLength: 1, containing: { toHaveTextContent: hi }, each: { at: { type: text } } }
          toMatchJson: { structuredContent: { text: hi } }
          not: { toHaveProperty: structuredContent.password }
      - { list: tools, expect: { containing: { at: { name: echo } }, at: { "*.inputSchema.type": object } } }
  - { name: a failure is expected by its path, steps: [{ call: fail, expect: { at: { isError: true } } }] }
  - { name: an error is expected by its path, steps: [{ read: "note://9", expect: { at: { error.code: { toBeInRange: { max: -1 } } } } }] }
"#,
    );
    let report = suite.run(&RunOptions::default()).await;
    assert!(report.passed(), "{}", tap(&[report]));
}

#[tokio::test]
async fn a_path_that_leads_nowhere_fails_under_not_and_a_failure_is_not_forgiven() {
    for (expect, why) in [
        ("{ at: { structuredContent.txet: hi } }", "did you mean `structuredContent.text`?"),
        ("{ not: { at: { structuredContent.txet: hi } } }", "did you mean `structuredContent.text`?"),
        (
            "{ at: { structuredContent.text: bye } }",
            "toEqual at `structuredContent.text`\nexpected: at `structuredContent.text`: \"bye\"",
        ),
        ("{ each: { toMatchJson: {} } }", "does not know this kind of value"),
    ] {
        let told =
            failure_of(&format!("{{ call: echo, with: {{ text: hi }}, expect: {expect} }}")).await.unwrap();
        assert!(told.contains(why), "{expect}: {told}");
    }
    let told = failure_of("{ call: fail, expect: { at: { content.0.type: text } } }").await.unwrap();
    assert!(told.contains("the tool failed"), "{told}");
}

#[tokio::test]
async fn a_suite_has_matchers_of_its_own_from_json_schemas() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("word.schema.json"), r#"{"type": "string", "minLength": 2}"#).unwrap();
    let path = dir.path().join("own.suite.yaml");
    let text = r#"
server: { command: everything_server }
matchers:
  toBeAnAnswer: { type: object, properties: { text: { type: string } }, required: [from, text] }
  toBeAWord: word.schema.json
tests:
  - name: t
    steps:
      - call: echo
        with: { text: hi }
        expect: { toBeAnAnswer: , at: { structuredContent.text: toBeAWord }, toMatchSchema: { type: object } }
      - { call: echo, with: { text: x }, expect: { at: { structuredContent: toBeAnAnswer, structuredContent.text: [not: toBeAWord] } } }
      - { call: echo, with: { text: x }, expect: { at: { structuredContent.text: toBeAWord } } }
"#;
    std::fs::write(&path, text).unwrap();
    let report = Suite::from_file(&path).unwrap().run(&RunOptions::default()).await;
    let TestOutcome::Failed(why) = &report.tests[0].outcome else { panic!("{report:?}") };
    assert!(why.contains("step 3 (call): toBeAWord at `structuredContent.text`"), "{why}");
}

#[test]
fn every_problem_of_expectations_is_told_with_its_line_before_anything_starts() {
    let told = problems_of(
        r#"matchers:
  toBeOld: { type: 7 }
  at: {}
tests:
  - name: t
    steps:
      - call: x
        expect:
          toContainTol: a
          at:
            structuredContent.a: { toMatchRegx: "a" }
            structuredContent.b: { toMatchRegex: "(" }
            structuredContent.c: { toBeInRange: { from: 1 } }
            structuredContent.d: { toBeInRange: { min: "${low}" } }
          each: { toHaveLength: many }
          toMatchSnapshot: ../secret
          toRespondWithin: { p42: 7 }
          not: {}
"#,
    );
    for part in [
        "s.yaml:3: matchers.toBeOld: the schema does not compile",
        "s.yaml:4: matchers.at: `at`: there is such a matcher already",
        "s.yaml:10: tests.0.steps.0.expect.toContainTol: `toContainTol`: unknown expectation; did you mean `toContainTool`?",
        "s.yaml:12: tests.0.steps.0.expect.at.structuredContent.a.toMatchRegx: `toMatchRegx`: unknown expectation; did you mean `toMatchRegex`?",
        "s.yaml:13: tests.0.steps.0.expect.at.structuredContent.b.toMatchRegex: `toMatchRegex`: is no regular expression: unclosed group",
        "s.yaml:14: tests.0.steps.0.expect.at.structuredContent.c.toBeInRange: `toBeInRange` takes a number or a range",
        "s.yaml:16: tests.0.steps.0.expect.each.toHaveLength: `toHaveLength` takes a number or a range",
        "s.yaml:17: tests.0.steps.0.expect.toMatchSnapshot: `toMatchSnapshot`: takes a name of letters",
        "s.yaml:18: tests.0.steps.0.expect.toRespondWithin: `toRespondWithin` takes milliseconds",
        "s.yaml:19: tests.0.steps.0.expect.not: an expectation is empty",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert!(!told.contains("s.yaml:15"), "a variable may become a number: {told}");
    assert!(
        problems_of("tests: [{ name: t, steps: [{ call: x, expect: 7 }] }]")
            .contains("an expectation is a name")
    );
}

#[tokio::test]
async fn snapshots_are_kept_beside_the_suite_and_written_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("echo.suite.yaml");
    let text = |said: &str| {
        format!(
            r#"
server: {{ command: everything_server }}
tests:
  - name: t
    steps:
      - call: echo
        with: {{ text: {said}, more: 1 }}
        expect: {{ toMatchSnapshot: {{ name: answer, mask: [content.*.text] }} }}
"#
        )
    };
    let run = async |said: &str, update: bool| {
        std::fs::write(&path, text(said)).unwrap();
        let options = RunOptions { update, ..RunOptions::default() };
        Suite::from_file(&path).unwrap().run(&options).await.tests.remove(0).outcome
    };
    let TestOutcome::Failed(why) = run("hi", false).await else { panic!("nothing to compare with") };
    assert!(why.contains("there is no such file") && why.contains("run with `--update`"), "{why}");
    assert_eq!(run("hi", true).await, TestOutcome::Passed);
    assert_eq!(run("hi", false).await, TestOutcome::Passed);
    let kept = std::fs::read_to_string(dir.path().join("echo.snapshots/answer.json")).unwrap();
    assert!(kept.contains("\"text\": \"[masked]\"") && kept.contains("\"text\": \"hi\""), "{kept}");
    let TestOutcome::Failed(why) = run("ho", false).await else { panic!("it differs") };
    assert!(why.contains("$.structuredContent.text: expected \"hi\", is \"ho\""), "{why}");
    assert!(!why.contains("$.content"), "masked: {why}");
}

#[tokio::test]
async fn two_steps_do_not_write_one_snapshot_with_different_values() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("two.yaml");
    let step = |said: &str| {
        format!("{{ call: echo, with: {{ text: {said} }}, expect: {{ toMatchSnapshot: one }} }}")
    };
    let suite = format!(
        "server: {{ command: everything_server }}\ntests: [{{ name: t, steps: [{}, {}] }}]",
        step("a"),
        step("b")
    );
    std::fs::write(&path, suite).unwrap();
    let options = RunOptions { update: true, ..RunOptions::default() };
    let report = Suite::from_file(&path).unwrap().run(&options).await;
    let TestOutcome::Failed(why) = &report.tests[0].outcome else { panic!("{report:?}") };
    assert!(why.contains("step 2") && why.contains("give each a name of its own"), "{why}");
}

#[tokio::test]
async fn what_a_server_asks_and_reports_is_expected_in_a_suite() {
    let suite = everything(
        r#"
tests:
  - name: questions
    elicitation: { action: accept, content: { name: Ada } }
    steps:
      - call: ask
        expect:
          toHaveAsked: { method: elicitation/create, times: 1 }
          not: { toHaveAsked: sampling/createMessage }
          toRespondWithin: 60000
  - name: progress
    steps:
      - { call: work, progress: 1, expect: { toHaveProgress: 2, toHaveNotified: notifications/progress } }
      - { wait: notifications/progress, count: 2, expect: { toHaveProgress: { min: 2 } } }
"#,
    );
    let report = suite.run(&RunOptions::default()).await;
    assert!(report.passed(), "{}", tap(&[report]));
}

#[tokio::test]
async fn the_durations_of_all_repetitions_have_limits_and_a_baseline() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slow.suite.yaml");
    let run = async |expect: &str, repeat: u32, update: bool| {
        let step = format!(
            "{{ call: echo, with: {{ text: a }}, repeat: {repeat}, expect: {{ toRespondWithin: {expect} }} }}"
        );
        let suite =
            format!("server: {{ command: everything_server }}\ntests: [{{ name: t, steps: [{step}] }}]");
        std::fs::write(&path, suite).unwrap();
        let options = RunOptions { update, ..RunOptions::default() };
        match Suite::from_file(&path).unwrap().run(&options).await.tests.remove(0).outcome {
            TestOutcome::Failed(why) => why,
            other => format!("{other:?}"),
        }
    };
    assert_eq!(run("{ p95: 60000, max: 60000 }", 12, false).await, "Passed");
    let why = run("{ p50: 0 }", 12, false).await;
    assert!(
        why.contains("toRespondWithin\nexpected: p50 of 0 ms at most") && why.contains("of 12 durations"),
        "{why}"
    );
    let why = run("{ baseline: echo }", 12, false).await;
    assert!(why.contains("run with `--update`"), "{why}");
    assert_eq!(run("{ baseline: echo }", 12, true).await, "Passed");
    let kept = std::fs::read_to_string(dir.path().join("slow.snapshots/echo.latency.json")).unwrap();
    assert!(kept.contains("\"durations\": 12"), "{kept}");
    assert_eq!(run("{ baseline: echo, tolerance: 10000000 }", 12, false).await, "Passed");
    let why = run("{ baseline: echo }", 9, false).await;
    assert!(why.contains("10 durations or more"), "{why}");
}
