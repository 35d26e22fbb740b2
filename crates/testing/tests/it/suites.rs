//! Running suites in YAML. Invalid suites are in `suite_files`, reports in `suite_reports`.

use gatewright_testing::suite::{RunOptions, Suite, TestOutcome, tap};

use crate::support::{script, suite_of_everything as everything};

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
async fn setup_is_shared_teardown_runs_and_steps_surround_each_test() {
    let suite = everything(
        r#"
setup: [{ call: echo, with: { text: seven }, save: { shared: /structuredContent/text } }]
beforeEach: [{ call: echo, with: { text: "before ${random}" }, save: { before: /structuredContent/text } }]
afterEach: [{ call: echo, with: { text: "${before} after" }, expect: [toHaveTextContent: after] }]
teardown: [{ call: nope }]
tests:
  - name: knows what setup saved
    variables: { own: "${shared}!" }
    steps: [{ call: echo, with: { text: "${own} ${server.port}" }, expect: [toHaveTextContent: "seven!"] }]
"#,
    );
    let report = suite.run(&RunOptions::default()).await;
    assert_eq!(report.tests.len(), 2, "{report:?}");
    assert_eq!(report.tests[0].outcome, TestOutcome::Passed);
    let TestOutcome::Failed(why) = &report.tests[1].outcome else { panic!("{report:?}") };
    assert!(
        report.tests[1].name == "teardown" && why.contains("suite.yaml:7: teardown, step 1 (call): "),
        "{why}"
    );
}

#[tokio::test]
async fn a_failed_setup_fails_every_test() {
    let suite = everything(
        "setup: [{ call: nope }]\ntests: [{ name: a, steps: [] }, { name: b, skip: why, steps: [] }]",
    );
    let report = suite.run(&RunOptions::default()).await;
    assert!(
        matches!(&report.tests[0].outcome, TestOutcome::Failed(why) if why.starts_with("setup: suite.yaml:3: ")),
        "{report:?}"
    );
    assert_eq!(report.tests[1].outcome, TestOutcome::Skipped("why".into()));
}

#[tokio::test]
async fn an_unexpected_failure_fails_the_test_whatever_else_matches() {
    let suite = everything(
        r#"
tests:
  - { name: tool, steps: [{ call: fail, expect: [toHaveTextContent] }] }
  - { name: code, steps: [{ read: "note://9" }] }
  - { name: raw, steps: [{ raw: { method: no/such } }] }
  - { name: meant, steps: [{ call: fail, expect: [not: toBeSuccessful] }, { raw: { method: no/such }, expect: [toBeValidJsonRpc] }] }
"#,
    );
    let report = suite.run(&RunOptions::default()).await;
    for test in &report.tests[..3] {
        assert!(
            matches!(&test.outcome, TestOutcome::Failed(why) if why.contains("failed: ") && why.contains("`toBeError`")),
            "{test:?}"
        );
    }
    assert_eq!(report.tests[3].outcome, TestOutcome::Passed);
}

#[tokio::test]
async fn only_tags_and_filters_select_tests() {
    let tests = "tests:\n  - { name: a slow one, tags: [slow], steps: [] }\n  - { name: b, tags: [fast], steps: [] }\n  - { name: c, steps: [] }";
    let suite = everything(tests);
    let names = |options: RunOptions| {
        suite.tests(&options).into_iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
    };
    let tag = |tag: &str| vec![tag.to_owned()];
    assert_eq!(names(RunOptions { tags: tag("fast"), ..RunOptions::default() }), ["b"]);
    assert_eq!(names(RunOptions { exclude_tags: tag("slow"), ..RunOptions::default() }), ["b", "c"]);
    assert_eq!(names(RunOptions { filter: Some("slow".into()), ..RunOptions::default() }), ["a slow one"]);
    let focused = everything(&tests.replace("name: c,", "name: c, only: true,"));
    assert!(focused.has_only() && !suite.has_only());
    let report = focused.run(&RunOptions::default()).await;
    assert_eq!((report.tests.len(), report.left_out), (1, 2));
}

#[tokio::test]
async fn notifications_progress_questions_and_subscriptions() {
    let suite = everything(
        r#"
tests:
  - name: progress
    steps:
      - { call: work, progress: 5 }
      - { wait: notifications/progress, count: 2, expect: [toMatchJson: [{ params: { progress: 1 } }, { params: { progress: 2 } }]] }
  - name: questions
    elicitation: { action: accept, content: { name: "Ada" } }
    steps: [{ call: ask, expect: [toHaveTextContent: Ada] }]
  - name: too few
    steps: [{ wait: notifications/progress, timeoutMs: 50 }]
  - name: notify
    steps: [{ notify: notifications/roots/list_changed }, { raw: { method: ping } }]
"#,
    );
    let report = suite.run(&RunOptions::default()).await;
    for index in [0, 1, 3] {
        assert_eq!(
            report.tests[index].outcome,
            TestOutcome::Passed,
            "{}",
            tap(std::slice::from_ref(&report))
        );
    }
    let TestOutcome::Failed(why) = &report.tests[2].outcome else { panic!("{report:?}") };
    assert!(why.contains("1 were wanted, 0 came"), "{why}");
}

#[tokio::test]
async fn valid_and_invalid_users_and_a_change_of_user() {
    let text = format!(
        r#"
server: {{ command: {}, env: {{ BREAK: auth }} }}
users: {{ guest: {{ sub: guest }} }}
as: {{ token: good }}
tests:
  - {{ name: default, steps: [{{ list: tools, expect: [toContainTool: env] }}] }}
  - {{ name: refused, as: {{ token: bad }}, steps: [{{ list: tools, expect: [toBeRefused: 401] }}] }}
  - {{ name: not meant, as: {{ token: bad }}, steps: [{{ list: tools }}] }}
  - {{ name: no step, as: {{ token: bad }}, steps: [] }}
  - name: changes
    steps:
      - {{ authenticate: {{ token: bad }}, expect: [toBeRefused] }}
      - {{ authenticate: {{ token: better }} }}
      - {{ list: tools }}
"#,
        script("tiny.mjs")
    );
    let report = Suite::parse("x.yaml", &text).unwrap().run(&RunOptions::default()).await;
    let passed: Vec<bool> = report.tests.iter().map(|test| test.outcome == TestOutcome::Passed).collect();
    assert_eq!(passed, [true, true, false, false, true], "{}", tap(std::slice::from_ref(&report)));
    assert!(matches!(&report.tests[2].outcome, TestOutcome::Failed(why) if why.contains("HTTP 401")));
}

#[tokio::test]
async fn tokens_have_the_claims_of_the_suite() {
    let text = format!(
        r#"
server: {{ command: {} }}
auth: {{ audience: crm }}
users: {{ ada: {{ sub: ada, scopes: [a, b], claims: {{ team: "${{team}}" }} }} }}
variables: {{ team: red }}
tests:
  - {{ name: t, as: ada, steps: [{{ call: env, with: {{ name: IDP_EXPECTED_AUDIENCE }}, expect: [toHaveTextContent: crm] }}] }}
"#,
        script("tiny.mjs")
    );
    Suite::parse("x.yaml", &text).unwrap().run(&RunOptions::default()).await.assert_passed();
}

#[tokio::test]
async fn per_test_starts_a_server_for_each_test() {
    let text = format!(
        r#"
server: {{ command: {}, perTest: true }}
tests:
  - {{ name: a, steps: [{{ log: up as, expect: [toMatchJson: "up as ${{server.pid}}"] }}] }}
  - {{ name: b, steps: [{{ log: up as, expect: [toMatchJson: "up as ${{server.pid}}"] }}] }}
"#,
        script("tiny.mjs")
    );
    Suite::parse("x.yaml", &text).unwrap().run(&RunOptions::default()).await.assert_passed();
}

#[tokio::test]
async fn variables_may_contain_variables_and_mocks_have_times() {
    let suite = everything(
        r#"
variables: { host: a.example, url: "https://${host}", all: ["${url}/1", { n: "${n}" }], n: 7 }
tests:
  - name: t
    mocks: [{ tool: echo, response: mocked, times: 1, delayMs: 1 }]
    steps:
      - { call: echo, with: { text: x }, expect: [toHaveTextContent: mocked] }
      - { call: echo, with: { text: "${all.0} ${all.1.n}" }, expect: [toHaveTextContent: "https://a.example/1 7"] }
"#,
    );
    suite.run(&RunOptions::default()).await.assert_passed();
}

#[tokio::test]
async fn a_suite_runs_against_a_server_that_is_already_running() {
    let server = crate::support::everything().start().await.unwrap();
    let url = format!("{}/mcp", server.info().base_url);
    let text = format!(
        "server: {{ url: \"{url}\" }}\ntests: [{{ name: t, steps: [{{ list: tools, expect: [toContainTool: echo] }}] }}]"
    );
    Suite::parse("x.yaml", &text).unwrap().run(&RunOptions::default()).await.assert_passed();
    let other = everything("tests: [{ name: t, steps: [{ list: tools, expect: [toContainTool: echo] }] }]");
    other.run(&RunOptions { url: Some(url), ..RunOptions::default() }).await.assert_passed();
}

#[tokio::test]
async fn own_variables_refer_to_each_other_and_random_is_fixed_within_a_test() {
    let suite = everything(
        r#"
variables: { who: Ada, seen: "${random}" }
setup: [{ call: echo, with: { text: "${random}" }, save: { outside: /structuredContent/text } }]
tests:
  - name: t
    variables: { mail: "${user}@a.example", user: "${who}-${random}", who: "the ${who}" }
    steps:
      - call: echo
        with: { text: "${mail}" }
        expect: [toHaveTextContent: "the Ada-${random}@a.example"]
        save: { first: /structuredContent/text }
      - { call: echo, with: { text: "${user}@a.example" }, expect: [toHaveTextContent: "${first}"] }
      - { call: echo, with: { text: "${random}" }, expect: [toHaveTextContent: "${seen}", not: { toHaveTextContent: "${outside}" }] }
"#,
    );
    suite.run(&RunOptions::default()).await.assert_passed();
}

#[tokio::test]
async fn upstreams_answer_calls_of_the_server_and_their_misses_fail_the_suite() {
    let text = |with: &str| {
        format!(
            r#"
server:
  command: {}
  args: ["{{config}}"]
  config: {{ crm: "${{upstreams.crm}}" }}
upstreams:
  crm:
    tools:
      get:
        description: Gets a user.
        annotations: {{ readOnlyHint: true }}
        answers:
          - {{ with: {{ id: 7 }}, value: {{ name: Ada }}, times: 1, required: true }}
          - {{ with: {{ id: 7 }}, error: {{ code: GONE, message: gone }} }}
          - {{ with: {{ id: 8 }}, value: [1], required: true }}
          - {{ with: {{ id: 9 }}, response: {{ content: [{{ type: text, text: "$${{x}}" }}] }} }}
tests:
  - name: calls
    steps:
      - {{ call: forward, with: {{ tool: get, with: {{ id: 7 }} }}, expect: [toMatchJson: {{ structuredContent: {{ name: Ada }} }}] }}
      - {{ call: forward, with: {{ tool: get, with: {{ id: 7 }} }}, expect: [toMatchJson: {{ isError: true, structuredContent: {{ code: GONE }} }}] }}
      - {{ call: forward, with: {{ tool: get, with: {{ id: 8 }} }}, expect: [toMatchJson: {{ structuredContent: {{ result: [1] }} }}] }}
      - {{ call: forward, with: {{ tool: get, with: {with} }}, expect: [toMatchJson: {{ content: [{{ text: "$${{x}}" }}] }}] }}
"#,
            script("forward.mjs")
        )
    };
    let suite = Suite::parse("up.yaml", &text("{ id: 9 }")).unwrap();
    let report = suite.run(&RunOptions::default()).await;
    assert!(report.passed(), "{}", tap(&[report]));
    let missed =
        Suite::parse("up.yaml", &text("{ id: 9, more: 1 }").replace("id: 8 } }", "id: 80 } }")).unwrap();
    let report = tap(&[missed.run(&RunOptions::default()).await]);
    for part in [
        "upstream `crm`: not called: get {\"id\":8} (called 0 of 1 times)",
        "upstream `crm`: no answer left for get {\"id\":80}",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
}

#[test]
fn mistakes_in_upstreams_and_configurations_are_found_before_anything_starts() {
    let all = "server: { url: \"http://127.0.0.1:1/mcp\", config: {} }\nupstreams: { a: { tools: { b: { answers: [{ with: {} }, { value: 1, error: {} }] } } } }\ntests: [{ name: x, steps: [] }]\n";
    let told = Suite::parse("up.yaml", all).unwrap_err().to_string();
    for part in [
        "server.config: `config` needs `{config}` in `args`",
        "upstreams: a server that runs already does not know their addresses",
        "upstreams.a.tools.b.answers.0: it needs exactly one of",
        "upstreams.a.tools.b.answers.1: it needs exactly one of",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}
