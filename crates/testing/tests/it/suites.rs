//! Suites in YAML.

use gatewright_testing::suite::{RunOptions, Suite, SuiteReport, TestOutcome, junit, readable, tap};

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
        "suite.yaml:3: step 1 (list): toContainTool\nexpected: a tool `ecko`",
        "did you mean `echo`?",
        "requests:\n  tools/list",
        "| listening on",
    ] {
        assert!(why.contains(part), "{part:?} is not in\n{why}");
    }
    let text = tap(std::slice::from_ref(&report));
    assert!(
        text.starts_with(
            "TAP version 14\n1..1\nnot ok 1 - everything > a <b>\n  ---\n  message: |\n    suite.yaml:3: step 1"
        ),
        "{text}"
    );
    let xml = junit(&[report]);
    assert!(
        xml.contains("<testsuite name=\"everything\" tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\""),
        "{xml}"
    );
    assert!(
        xml.contains("name=\"a &lt;b&gt;\"")
            && xml.contains("<failure type=\"expectation\" message=\"suite.yaml:3: step 1"),
        "{xml}"
    );
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

/// What is wrong with a suite, as one text.
fn wrong(text: &str) -> String {
    Suite::parse("bad.yaml", text).unwrap_err().to_string()
}

#[test]
fn a_bad_suite_says_where_and_what_was_meant() {
    let rows = [
        ("tests: []", "bad.yaml:1: \"server\" is a required property"),
        (
            "server: { comand: x }\ntests: []",
            "bad.yaml:1: server.comand: unknown key; did you mean `command`?",
        ),
        (
            "server:\n  command: x\ntests:\n  - nam: t\n",
            "bad.yaml:4: tests.0.nam: unknown key; did you mean `name`?",
        ),
        ("server: {}\ntests: []", "server: it needs exactly one of `command` and `url`"),
        ("server: { command: x, url: 'http://a/mcp' }\ntests: []", "exactly one of `command` and `url`"),
        ("server: { url: example }\ntests: []", "server.url: `example` is no http or https URL"),
        ("server: [", "bad.yaml:1: "),
        (
            "server: { command: x }\nauth: { audiense: y }\ntests: []",
            "auth.audiense: unknown key; did you mean `audience`?",
        ),
        ("server: { command: x }\nauth: { issuer: 'http://a' }\ntests: []", "need its `key`"),
        (
            "server: { command: x }\nas: admim\ntests: []",
            "bad.yaml:2: as: `admim`: unknown user; did you mean `admin`?",
        ),
        (
            "server: { command: x }\nhttpMocks:\n  - { urlRegex: '(' }\ntests: []",
            "bad.yaml:3: httpMocks.0.urlRegex: this is no regular expression",
        ),
        (
            "server: { url: 'http://a/mcp' }\nhttpMocks: [{ url: x }]\ntests: []",
            "calls of a server that runs already cannot be mocked",
        ),
        (
            "server: { command: x, transport: stdo }\ntests: []",
            "server.transport: `stdo`: unknown value; did you mean `stdio`?",
        ),
        ("", "bad.yaml:1: "),
        ("- a\n- b", "bad.yaml:1: "),
        ("server: { command: x }\ntests: {}", "bad.yaml:2: tests: "),
        ("server: { command: x }\ntests: []\ntests: []", "bad.yaml:3: "),
        ("server:\n\tcommand: x", "bad.yaml:2: "),
        (
            "server: { command: x, logLevel: loud }\ntests: []",
            "bad.yaml:1: server.logLevel: `loud`: unknown value",
        ),
        ("server: { command: x, port: 70000 }\ntests: []", "bad.yaml:1: server.port"),
        (
            "server: { command: x }\ntests:\n  - { name: t, steps: [] }\n  - { name: t, steps: [] }",
            "bad.yaml:4: tests.1.name: there is a test `t` already",
        ),
        (
            "server: { command: x }\ntests:\n  - { name: a, record: f, steps: [] }\n  - { name: b, record: f, steps: [] }",
            "bad.yaml:4: tests.1.record: another test has this cassette",
        ),
        (
            "server: { command: x, perTest: true }\nrecordHttp: f\ntests: []",
            "bad.yaml:2: recordHttp: with `perTest`",
        ),
        ("server: { url: 'http://a/mcp' }\nrecordHttp: f\ntests: []", "start it with `command`"),
        (
            "server: { command: x }\nhttpMocks:\n  - { url: a, json: 1, text: b }\ntests: []",
            "bad.yaml:3: httpMocks.0: `json` and `text` exclude each other",
        ),
        ("server: { command: x }\nhttpMocks: [{ json: 1 }]\ntests: []", "it needs `url` or `urlRegex`"),
        (
            "server: { command: x }\ntests:\n  - name: t\n    steps: []\n    mocks:\n      - { tool: a, resource: b, response: c }",
            "bad.yaml:6: tests.0.mocks.0: it needs exactly one of `tool`, `resource` and `method`",
        ),
        (
            "server: { command: x }\ntests:\n  - name: t\n    steps: []\n    mocks:\n      - { tool: a }",
            "bad.yaml:6: tests.0.mocks.0: it needs exactly one of `response` and `error`",
        ),
        (
            "server: { command: x }\ntests: [{ name: t, steps: [], elicitation: { action: yes } }]",
            "bad.yaml:2: tests.0.elicitation.action",
        ),
    ];
    for (text, part) in rows {
        let told = wrong(text);
        assert!(told.contains(part), "{part}\n{told}");
        for line in told.lines() {
            let place = line.strip_prefix("bad.yaml:").and_then(|rest| rest.split_once(": "));
            assert!(place.is_some_and(|(line, _)| line.parse::<usize>().is_ok()), "no line: {told}");
        }
    }
    assert!(
        Suite::from_file("/no/such.yaml")
            .unwrap_err()
            .to_string()
            .contains("/no/such.yaml: it cannot be read")
    );
}

#[test]
fn a_bad_step_says_where_and_what_was_meant() {
    let of = |step: &str| {
        wrong(&format!("server: {{ command: x }}\ntests:\n  - name: t\n    steps:\n      - {step}\n"))
    };
    let rows = [
        (
            "{ list: tools, expect: [toContainTol: a] }",
            "bad.yaml:5: tests.0.steps.0.expect.0: `toContainTol`: unknown expectation; did you mean `toContainTool`?",
        ),
        ("{ list: tools, call: a }", "this one is `list` and `call`"),
        ("{ expect: [toBeError] }", "this one is none"),
        ("{ list: tool }", "tests.0.steps.0.list"),
        (
            "{ call: a, expect: [toBeError: soon] }",
            "`toBeError` takes a whole number, such as -32602, or nothing, not \"soon\"",
        ),
        ("{ get: a, expect: [toHaveMessages: many] }", "`toHaveMessages` takes a whole number of 0 or more"),
        ("{ list: tools, expect: [toContainTool] }", "`toContainTool` takes a text, not null"),
        ("{ call: a, expect: [toBeSuccessful: yes] }", "`toBeSuccessful` takes no argument"),
        (
            "{ call: a, expect: [{ toBeError: 1, toHaveError: 1 }] }",
            "an expectation is a name or a name with an argument",
        ),
        ("{ list: tools, with: { a: 1 } }", "`with` belongs to `call`, `get`, `notify`, not to `list`"),
        ("{ call: a, count: 2 }", "`count` belongs to `wait`, `httpCalls`"),
        (
            "{ call: a, save: { x: structuredContent.id } }",
            "is no JSON pointer; did you mean `/structuredContent/id`?",
        ),
        ("{ httpCalls: x }", "without `httpMocks` or `recordHttp`"),
        ("{ authenticate: nobody }", "`nobody`: unknown user"),
    ];
    for (step, part) in rows {
        assert!(of(step).contains(part) && of(step).starts_with("bad.yaml:5: "), "{part}\n{}", of(step));
    }
}

#[test]
fn every_problem_of_a_suite_is_told_at_once_in_the_order_of_the_file() {
    let text = wrong("server: { comand: x }\ntests:\n  - name: t\n    stps: []\n    steps: []\n");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(
        lines[0].starts_with("bad.yaml:1: server.comand") && lines[1].starts_with("bad.yaml:4: tests.0.stps"),
        "{text}"
    );
}

#[test]
fn the_schema_knows_every_key_and_every_expectation() {
    let schema = gatewright_testing::suite::schema();
    for key in
        ["server", "auth", "users", "setup", "beforeEach", "afterEach", "teardown", "tests", "httpMocks"]
    {
        assert!(schema["properties"][key]["description"].is_string(), "{key}: {schema:#}");
    }
    let names = schema["$defs"]["Expectation"]["anyOf"][0]["enum"].as_array().unwrap();
    assert!(names.len() >= 19 && names.contains(&"toBeRefused".into()), "{names:?}");
    assert!(schema["$defs"]["Step"]["properties"]["listen"]["description"].is_string());
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
async fn a_setup_that_fails_fails_every_test_and_says_so() {
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
async fn a_failure_nobody_expects_fails_the_test_whatever_else_holds() {
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
async fn only_tags_and_filters_choose_tests() {
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
async fn users_good_and_bad_and_a_change_of_user() {
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
async fn tokens_of_users_say_what_the_suite_says() {
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
async fn every_test_gets_a_server_of_its_own_when_it_should() {
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
async fn a_test_that_takes_too_long_is_ended() {
    let suite =
        everything("tests: [{ name: slow, timeoutMs: 100, steps: [{ wait: never, timeoutMs: 60000 }] }]");
    let report = suite.run(&RunOptions::default()).await;
    assert!(
        matches!(&report.tests[0].outcome, TestOutcome::Failed(why) if why.contains("longer than 100ms")),
        "{report:?}"
    );
}

fn why(report: &SuiteReport) -> &str {
    match &report.tests[0].outcome {
        TestOutcome::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

/// A suite for the small server over standard input and output.
fn tiny(broken: &str, rest: &str) -> Suite {
    let text = format!(
        "server: {{ command: {}, args: [--stdio], transport: stdio, env: {{ BREAK: \"{broken}\" }}, startupTimeoutMs: 60000 }}\n{rest}",
        script("tiny.mjs")
    );
    Suite::parse("suite.yaml", &text).unwrap()
}

#[tokio::test]
async fn a_test_that_takes_too_long_says_at_which_step_and_what_it_waited_for() {
    for (broken, says) in [
        ("silence", "no answer: the test waited no longer"),
        ("words", "where only messages belong (log to standard error instead): let me see"),
        ("other-id", "wrong on the wire: an answer nobody waits for: {\"id\":\"other\""),
    ] {
        // A machine under load may need longer until the server has started.
        for seconds in [1, 4, 16, 64] {
            let suite = tiny(
                broken,
                &format!("tests: [{{ name: t, timeoutMs: {seconds}000, steps: [{{ list: tools }}] }}]"),
            );
            let report = suite.run(&RunOptions::default()).await;
            let why = why(&report);
            if why.starts_with("while it connected: ") && seconds < 64 {
                continue;
            }
            let head = format!("suite.yaml:2: step 1 (list): the test took longer than {seconds}s");
            assert!(why.starts_with(&head) && why.contains("tools/list {}") && why.contains(says), "{why}");
            break;
        }
    }
}

#[tokio::test]
async fn a_stdio_server_that_does_not_answer_in_the_time_to_start_is_told_with_its_command() {
    let text = format!(
        "server: {{ command: {}, args: [--stdio], transport: stdio, env: {{ BREAK: mute }}, startupTimeoutMs: 300 }}\n\
         tests: [{{ name: t, steps: [{{ list: tools }}] }}]",
        script("tiny.mjs")
    );
    let report = Suite::parse("suite.yaml", &text).unwrap().run(&RunOptions::default()).await;
    let why = why(&report);
    for part in [
        "`initialize` was not answered within 300ms",
        "command: node ",
        "try: it must answer on its standard output",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
}

#[tokio::test]
async fn answers_that_are_no_json_rpc_fail_the_test() {
    for (broken, says) in [
        ("bare", "it has no `\"jsonrpc\": \"2.0\"`"),
        ("both", "it has both `result` and `error`"),
        ("revision", "which this client does not speak"),
    ] {
        let suite = tiny(broken, "tests: [{ name: t, steps: [{ list: tools }] }]");
        let report = suite.run(&RunOptions::default()).await;
        assert!(why(&report).contains(says), "{broken}: {}", why(&report));
    }
}

#[tokio::test]
async fn what_is_wrong_on_the_wire_is_noted_though_the_test_passes() {
    let suite = tiny("twice", "tests: [{ name: t, steps: [{ list: tools }, { raw: { method: ping } }] }]");
    let report = suite.run(&RunOptions::default()).await;
    report.assert_passed();
    assert!(report.tests[0].notes[0].starts_with("an answer nobody waits for"), "{report:?}");
    let (text, lines) = (readable(std::slice::from_ref(&report), false), tap(&[report]));
    assert!(text.contains("\n      ! an answer nobody waits for"), "{text}");
    assert!(lines.contains("\n# an answer nobody waits for"), "{lines}");
}

#[tokio::test]
async fn a_server_that_dies_during_a_test_is_told_with_its_end() {
    let text = format!(
        "server: {{ command: {}, env: {{ BREAK: die }} }}\ntests: [{{ name: t, steps: [{{ list: tools }}] }}]",
        script("tiny.mjs")
    );
    let report = Suite::parse("suite.yaml", &text).unwrap().run(&RunOptions::default()).await;
    assert!(why(&report).contains("the server ended: signal: 9 (SIGKILL)"), "{}", why(&report));
}

#[tokio::test]
async fn a_script_that_is_not_there_is_named_with_the_one_that_is() {
    let near = script("tiny.mjs").replace("tiny.mjs", "tinny.mjs");
    let text = format!("server: {{ command: {near} }}\ntests: [{{ name: t, steps: [{{ list: tools }}] }}]");
    let report = Suite::parse("suite.yaml", &text).unwrap().run(&RunOptions::default()).await;
    let why = why(&report);
    assert!(
        why.contains(&format!("there is no file {near}")) && why.contains("did you mean `tiny.mjs`"),
        "{why}"
    );
}

#[tokio::test]
async fn a_refusal_is_told_before_what_was_expected_instead() {
    let text = format!(
        "server: {{ command: {}, env: {{ BREAK: auth }} }}\n\
         tests: [{{ name: t, steps: [{{ list: tools, expect: [toContainTool: env] }}] }}]",
        script("tiny.mjs")
    );
    let report = Suite::parse("suite.yaml", &text).unwrap().run(&RunOptions::default()).await;
    let why = why(&report);
    let says = "step 1 (list): the server refused the request: HTTP 401";
    assert!(why.contains(says) && why.contains("expect it with `toBeRefused`"), "{why}");
}

#[tokio::test]
async fn variables_hold_variables_and_mocks_of_tools_have_times() {
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

#[test]
fn a_suite_that_cannot_work_is_told_before_it_runs() {
    let wrong = |text: &str| {
        Suite::parse("x.yaml", &format!("server: {{ command: x }}\n{text}")).unwrap_err().to_string()
    };
    assert_eq!(wrong("tests: []"), "x.yaml:2: tests: a suite holds at least one test");
    let text = wrong("variables: { a: \"${b}\", b: \"${a}\" }\ntests: [{ name: t, steps: [] }]");
    assert!(
        text.starts_with("x.yaml:2: variables.a: the variable `a` leads back to itself: `a` → `b` → `a`"),
        "{text}"
    );
    let text = wrong(
        "httpMocks: [{ url: x, status: 9999, headers: { \"a b\": c } }]\ntests: [{ name: t, steps: [] }]",
    );
    assert!(
        text.contains("9999 is no HTTP status") && text.contains("`a b` is no name of an HTTP header"),
        "{text}"
    );
    assert_eq!(wrong("tests: []\ntests: []"), "x.yaml:3: duplicate mapping key: tests");
}

#[tokio::test]
async fn a_suite_runs_against_a_server_that_runs_already() {
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
async fn reports_for_people_and_machines_agree() {
    let suite = everything(
        "tests:\n  - { name: good, steps: [] }\n  - { name: bad, steps: [{ call: nope }] }\n  - { name: later, skip: why, steps: [] }",
    );
    let report = suite.run(&RunOptions::default()).await;
    let text = readable(std::slice::from_ref(&report), false);
    assert!(
        text.contains("✓ good") && text.contains("✗ bad") && text.contains("- later (skipped: why)"),
        "{text}"
    );
    assert!(text.ends_with("1 passed, 1 failed, 1 skipped\n"), "{text}");
    let machine = gatewright_testing::suite::json(std::slice::from_ref(&report));
    assert_eq!(machine["passed"], false);
    assert_eq!(machine["suites"][0]["tests"][1]["line"], 5);
    assert_eq!(machine["suites"][0]["tests"][1]["outcome"], "failed");
    // Jenkins' schema (junit-10.xsd) wants `errors`, and knows no file or line of a test.
    let xml = junit(std::slice::from_ref(&report));
    assert!(xml.contains("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{xml}");
    let cases: Vec<&str> = xml.split("<testcase ").skip(1).collect();
    assert!(cases.iter().all(|case| !case.contains(" line=") && !case.contains(" file=")), "{xml}");
    assert!(tap(&[report]).contains("ok 3 - everything > later # SKIP why"));
}
