//! Answers of a suite to what the server asks, and expectations of what it asked.

use gatewright_testing::suite::{RunOptions, Suite, TestOutcome, readable};

use crate::support::script;

async fn passes(rest: &str) {
    let text =
        format!("server: {{ command: {}, transport: stdio, args: [--stdio] }}\n{rest}", script("bank.mjs"));
    let suite = Suite::parse("bank.yaml", &text).unwrap_or_else(|error| panic!("{error}"));
    let report = suite.run(&RunOptions::default()).await;
    assert!(report.passed(), "{}", readable(&[report], false));
}

#[tokio::test]
async fn the_first_answer_that_matches_and_has_uses_left_is_given() {
    passes(
        r#"
answers:
  - { elicitation: { action: cancel } }
tests:
  - name: by rule
    answers:
      - { when: { message: "first" }, elicitation: { action: accept, content: { name: Ada } }, times: 1 }
      - { when: { message: "first" }, elicitation: { action: decline } }
      - { sampling: "a poem" }
      - { roots: ["file:///a", { uri: "file:///b", name: b }] }
    steps:
      - { call: ask, with: { message: "your first name?" }, expect: [toHaveTextContent: Ada] }
      - { call: ask, with: { message: "your first name?" }, expect: [toHaveTextContent: decline] }
      - { call: ask, with: { message: "another" }, expect: [toHaveTextContent: cancel] }
      - { call: sample, with: { prompt: write }, expect: [toHaveTextContent: "a poem"] }
      - { call: roots, expect: [toHaveTextContent: "file:///a file:///b"] }
  - name: an error
    answers: [{ method: sampling/createMessage, error: { code: -1, message: "no ${random}" } }]
    steps: [{ call: sample, with: { prompt: x }, expect: [toHaveTextContent: "no ${random}"] }]
"#,
    )
    .await;
}

#[tokio::test]
async fn a_suite_sees_what_the_server_asked_and_logged() {
    passes(
        r#"
tests:
  - name: asked
    steps:
      - { call: ask, with: { message: "who?" } }
      - { asked: elicitation/create, expect: [toMatchJson: [{ method: elicitation/create, params: { message: "who?" } }]] }
  - name: asks nothing else
    steps:
      - { call: ask, with: { message: "a" } }
      - { call: ask, with: { message: "b" } }
      - { asked: elicitation/create, count: 2, expect: [toMatchJson: [{ params: { message: a } }, { params: { message: b } }]] }
  - name: logs
    steps:
      - { call: say, with: { text: hello } }
      - { wait: notifications/message, expect: [toMatchJson: [{ params: { level: info, data: hello } }]] }
"#,
    )
    .await;
}

#[tokio::test]
async fn what_was_not_asked_is_reported_with_what_was() {
    let text = format!(
        "server: {{ command: {}, transport: stdio, args: [--stdio] }}\n\
         tests: [{{ name: t, steps: [{{ call: ask, with: {{ message: x }} }}, {{ asked: roots/list, timeoutMs: 50 }}] }}]",
        script("bank.mjs")
    );
    let report = Suite::parse("bank.yaml", &text).unwrap().run(&RunOptions::default()).await;
    let TestOutcome::Failed(why) = &report.tests[0].outcome else { panic!("{report:?}") };
    assert!(why.contains("the server asked for [\"elicitation/create\"]"), "{why}");
}

#[test]
fn an_answer_without_a_kind_or_a_method_is_reported() {
    let text = "server: { command: x }\nanswers:\n  - { when: {} }\n  - { error: { code: 1, message: a } }\ntests: [{ name: t, steps: [] }]";
    let error = Suite::parse("bad.yaml", text).unwrap_err().to_string();
    assert!(error.contains("bad.yaml:3: answers.0: it needs exactly one of `elicitation`"), "{error}");
    assert!(error.contains("bad.yaml:4: answers.1: `error` needs the `method`"), "{error}");
}
