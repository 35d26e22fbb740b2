//! Suites in YAML.

use gatewright_testing::suite::{RunOptions, Suite, TestOutcome, junit, tap};

use crate::support::script;

fn everything(tests: &str) -> Suite {
    Suite::parse(
        "suite.yaml",
        &format!("name: everything\nserver: {{ command: everything_server }}\n{tests}"),
    )
    .unwrap()
}

#[tokio::test]
async fn every_kind_of_step_and_expectation() {
    let suite = everything(
        r#"
variables: { who: Ada }
tests:
  - name: lists
    steps:
      - { list: tools, expect: [toContainTool: echo, not: { toContainTool: nope }] }
      - { list: resources, expect: [toContainResource: "note://1"] }
      - { list: resourceTemplates, expect: [toContainResourceTemplate: "note://{id}"] }
      - { list: prompts, expect: [toContainPrompt: greet] }
  - name: calls with variables
    steps:
      - call: echo
        with: { text: "hello ${who}" }
        expect: [toBeSuccessful, toHaveTextContent: "hello ${who}", toMatchJson: { from: structured }]
        save: { said: /structuredContent/text }
      - { call: echo, with: { text: "${said}!" }, expect: [toHaveTextContent: "hello Ada!"] }
      - { call: fail, expect: [toBeError, not: toBeSuccessful] }
      - { call: nope, expect: [to_be_error: -32602] }
      - { call: picture, expect: [toHaveImageContent, toHaveResourceContent, toHaveMimeType: image/png] }
  - name: reads, gets and raw messages
    steps:
      - { read: "note://1", expect: [toHaveTextContent, toHaveMimeType: text/plain] }
      - { read: "note://9", expect: [toHaveErrorCode: -32002] }
      - { get: greet, with: { who: "${who}" }, expect: [toHaveMessages: 2, toHaveRole: assistant, toContainText: Hello Ada] }
      - { raw: { method: ping }, expect: [toBeValidJsonRpc, toHaveResult] }
      - { raw: { method: no/such }, expect: [toHaveError, toHaveErrorCode: -32601] }
  - name: mocks
    mocks:
      - { tool: echo, response: mocked }
      - { tool: work, error: { code: -32000, message: down } }
    steps:
      - { call: echo, expect: [toHaveTextContent: mocked] }
      - { call: work, expect: [toBeError: -32000] }
  - { name: later, skip: not yet, steps: [] }
"#,
    );
    let report = suite.run(&RunOptions::default()).await;
    assert!(report.passed(), "{}", tap(&[report]));
    assert_eq!(report.tests.len(), 5);
    assert_eq!(report.tests[4].outcome, TestOutcome::Skipped("not yet".into()));
    let one = RunOptions { filter: Some("mock".into()), ..RunOptions::default() };
    assert_eq!(suite.run(&one).await.tests.len(), 1);
}

#[tokio::test]
async fn a_failure_names_step_expectation_and_what_was_seen() {
    let suite =
        everything("tests: [{ name: \"a <b>\", steps: [{ list: tools, expect: [toContainTool: ecko] }] }]");
    let report = suite.run(&RunOptions::default()).await;
    assert!(!report.passed());
    let TestOutcome::Failed(why) = &report.tests[0].outcome else { panic!("{report:?}") };
    for part in [
        "step 1 (list): toContainTool\nexpected: a tool `ecko`",
        "did you mean `echo`?",
        "requests:\n  tools/list",
        "| listening on",
    ] {
        assert!(why.contains(part), "{part:?} is not in\n{why}");
    }
    let text = tap(std::slice::from_ref(&report));
    assert!(
        text.starts_with(
            "TAP version 14\n1..1\nnot ok 1 - everything > a <b>\n  ---\n  message: |\n    step 1"
        ),
        "{text}"
    );
    let xml = junit(&[report]);
    assert!(xml.contains("<testsuite name=\"everything\" tests=\"1\" failures=\"1\" skipped=\"0\""), "{xml}");
    assert!(xml.contains("name=\"a &lt;b&gt;\"") && xml.contains("<failure message=\"step 1"), "{xml}");
}

#[tokio::test]
async fn users_of_a_mock_issuer_and_http_mocks_reach_the_server() {
    let text = format!(
        r#"
server: {{ command: {}, env: {{ MODE: suite }} }}
auth: true
httpMocks: [{{ url: "https://api.example.com", json: {{ a: 1 }} }}]
tests:
  - name: the environment is whole
    as: admin
    steps:
      - {{ call: env, with: {{ name: MODE }}, expect: [toHaveTextContent: suite] }}
      - {{ call: env, with: {{ name: IDP_EXPECTED_AUDIENCE }}, expect: [toHaveTextContent: test-audience] }}
      - {{ call: env, with: {{ name: HTTPS_PROXY }}, expect: [toHaveTextContent: "http://127.0.0.1:"] }}
"#,
        script("tiny.mjs")
    );
    let report = Suite::parse("x", &text).unwrap().run(&RunOptions::default()).await;
    assert!(report.passed(), "{}", tap(&[report]));
}

#[tokio::test]
async fn a_server_that_does_not_start_fails_every_test_with_its_last_words() {
    let text = format!(
        "server: {{ command: {}, env: {{ BREAK: exit }} }}\ntests: [{{ name: a, steps: [] }}, {{ name: b, steps: [] }}]",
        script("tiny.mjs")
    );
    let report = Suite::parse("x", &text).unwrap().run(&RunOptions::default()).await;
    for test in report.tests {
        assert!(matches!(test.outcome, TestOutcome::Failed(why) if why.contains("no database: giving up")));
    }
}

#[test]
fn a_bad_suite_says_where() {
    let of = |text: &str| Suite::parse("bad.yaml", text).unwrap_err().to_string();
    assert!(of("tests: []").contains("missing field `server`"), "{}", of("tests: []"));
    let misspelt = of("server: { comand: x }\ntests: []");
    assert!(misspelt.contains("bad.yaml") && misspelt.contains("comand"), "{misspelt}");
    let text =
        "server: { command: x }\ntests: [{ name: t, steps: [{ list: tools, expect: [toContainTol: a] }] }]";
    assert!(of(text).contains("test `t`, step 1: there is no expectation `tocontaintol`"), "{}", of(text));
    let text = "server: { command: x }\ntests: [{ name: t, steps: [{ list: tools, call: a }] }]";
    assert!(of(text).contains("this one is [\"list\", \"call\"]"), "{}", of(text));
    assert!(of("server: {}\ntests: []").contains("`command` or `baseUrl`"));
    assert!(Suite::from_file("/no/such.yaml").unwrap_err().to_string().contains("/no/such.yaml"));
}
