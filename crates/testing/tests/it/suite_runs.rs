//! What tests of a suite share and what not: processes, time limits, credentials, HTTP calls.

use gatewright_testing::suite::{RunOptions, Suite, SuiteReport, TestOutcome, readable};

use crate::support::script;

/// A suite for the bank, with more keys of `server`.
fn bank(server: &str, rest: &str) -> Suite {
    let text = format!("server: {{ command: {}, {server} }}\n{rest}", script("bank.mjs"));
    Suite::parse("bank.yaml", &text).unwrap_or_else(|error| panic!("{error}"))
}

const STDIO: &str = "transport: stdio, args: [--stdio], startupTimeoutMs: 60000";

async fn run(suite: &Suite) -> SuiteReport {
    suite.run(&RunOptions::default()).await
}

async fn passes(suite: &Suite) {
    run(suite).await.assert_passed();
}

fn why(report: &SuiteReport, index: usize) -> &str {
    match &report.tests[index].outcome {
        TestOutcome::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_call_may_take_as_long_as_its_test_or_its_step_allows() {
    let calls = |test: &str, step: &str| {
        let tests = format!(
            "tests: [{{ name: t, {test} steps: [{{ call: slow, with: {{ ms: 2000 }}, {step} expect: [toHaveTextContent: done] }}] }}]"
        );
        bank("", &tests)
    };
    passes(&calls("timeoutMs: 60000,", "")).await;
    let report = run(&calls("", "timeoutMs: 100,")).await;
    assert!(why(&report, 0).contains("`tools/call` was not answered within 100ms"), "{}", why(&report, 0));
    let longer = "timeoutMs: 60000, steps: [{ call: slow, with: { ms: 500 }, timeoutMs: 50000 }]";
    passes(&bank("", &format!("timeoutMs: 60000\ntests: [{{ name: t, {longer} }}]"))).await;
}

#[tokio::test]
async fn after_each_runs_after_a_test_that_took_too_long() {
    let suite = bank(
        STDIO,
        "serial: true\nafterEach: [{ call: count }]\ntests:\n\
         \x20 - { name: slow, timeoutMs: 300, steps: [{ call: slow, with: { ms: 60000 } }] }\n\
         \x20 - { name: next, steps: [{ call: count, expect: [toHaveTextContent: \"2\"] }] }\n",
    );
    let report = run(&suite).await;
    assert!(
        why(&report, 0).contains("step 1 (call): the test took longer than 300ms"),
        "{}",
        why(&report, 0)
    );
    assert_eq!(
        report.tests[1].outcome,
        TestOutcome::Passed,
        "{}",
        readable(std::slice::from_ref(&report), false)
    );
}

#[tokio::test]
async fn anonymous_sends_no_credential_whatever_the_suite_says() {
    let suite = bank(
        "env: { SHOW_HEADERS: \"1\" }",
        "auth: true\nas: admin\ntests:\n\
         \x20 - { name: nobody, as: anonymous, steps: [{ call: count }, { log: \"authorization: none\" }] }\n\
         \x20 - { name: changes, steps: [{ call: count }, { log: \"authorization: Bearer\" }, { authenticate: anonymous }] }\n",
    );
    let report = run(&suite).await;
    assert!(report.passed(), "{}", readable(std::slice::from_ref(&report), false));
    let only = RunOptions { filter: Some("nobody".into()), ..RunOptions::default() };
    let mut suite = suite.run(&only).await;
    assert_eq!(suite.tests.remove(0).outcome, TestOutcome::Passed);
    let error = Suite::parse(
        "x.yaml",
        "server: { command: x }\nusers: { anonymous: { sub: a } }\ntests: [{ name: t, steps: [] }]",
    );
    assert!(error.unwrap_err().to_string().contains("`anonymous` is nobody"));
}

#[tokio::test]
async fn tests_over_standard_input_and_output_share_a_process_with_setup() {
    let tests: String = (0..20)
        .map(|n| {
            format!(
                "  - {{ name: t{n}, steps: [{{ call: pid, expect: [toHaveTextContent: \"${{pid}}\"] }}] }}\n"
            )
        })
        .collect();
    let head = "setup: [{ call: pid, save: { pid: /content/0/text } }]\n";
    passes(&bank(STDIO, &format!("{head}tests:\n{tests}"))).await;
    // Each process has its own setup.
    let own = "tests:\n  - { name: a, steps: [{ call: count, expect: [toHaveTextContent: \"2\"] }] }\n  - { name: b, steps: [{ call: count, expect: [toHaveTextContent: \"2\"] }] }";
    passes(&bank(&format!("{STDIO}, perTest: true"), &format!("setup: [{{ call: count }}]\n{own}"))).await;
    passes(&bank("perTest: true", &format!("setup: [{{ call: count }}]\n{own}"))).await;
}

#[tokio::test]
async fn a_test_may_have_a_process_and_an_environment_of_its_own() {
    for server in [STDIO, ""] {
        let suite = bank(
            server,
            "serial: true\ntests:\n\
             \x20 - { name: shared, steps: [{ call: count, expect: [toHaveTextContent: \"1\"] }] }\n\
             \x20 - { name: own, isolated: true, steps: [{ call: count, expect: [toHaveTextContent: \"1\"] }] }\n\
             \x20 - { name: env, env: { MODE: \"${random}\" }, variables: { x: 1 }, steps: [{ call: env, with: { name: MODE }, expect: [not: { toHaveTextContent: unset }] }] }\n\
             \x20 - { name: shared still, steps: [{ call: count, expect: [toHaveTextContent: \"2\"] }] }\n",
        );
        passes(&suite).await;
    }
}

#[tokio::test]
async fn a_shared_process_that_died_is_replaced_and_set_up_again() {
    let suite = bank(
        STDIO,
        "serial: true\nsetup: [{ call: count }]\ntests:\n\
         \x20 - { name: kills, steps: [{ call: die }] }\n\
         \x20 - { name: next, steps: [{ call: count, expect: [toHaveTextContent: \"2\"] }] }\n",
    );
    let report = run(&suite).await;
    assert!(why(&report, 0).contains("exit status: 7"), "{}", why(&report, 0));
    assert_eq!(
        report.tests[1].outcome,
        TestOutcome::Passed,
        "{}",
        readable(std::slice::from_ref(&report), false)
    );
}

#[tokio::test]
async fn progress_and_cancellation_belong_to_one_test_of_a_shared_process() {
    let watch = |token: &str| {
        format!(
            "  - {{ name: {token}, steps: [{{ call: progress, progress: {token} }}, {{ wait: notifications/progress, count: 2, \
             expect: [toMatchJson: [{{ params: {{ progressToken: {token} }} }}, {{ params: {{ progressToken: {token} }} }}]] }}] }}\n"
        )
    };
    let tests: String = ["a", "b", "c", "d"].map(watch).concat();
    passes(&bank(STDIO, &format!("tests:\n{tests}"))).await;
    let cancelled = "serial: true\ntests:\n  - { name: gives up, steps: [{ call: slow, with: { ms: 60000 }, timeoutMs: 50 }] }\n  - { name: sees it, steps: [{ log: cancelled }] }";
    let report = run(&bank(STDIO, cancelled)).await;
    assert_eq!(
        report.tests[1].outcome,
        TestOutcome::Passed,
        "{}",
        readable(std::slice::from_ref(&report), false)
    );
}

#[tokio::test]
async fn http_calls_and_mocks_of_a_test_are_its_own() {
    for server in [STDIO, ""] {
        let one = |name: &str| {
            format!(
                "  - name: {name}\n    httpMocks: [{{ url: \"https://api.example/{name}\", text: {name}, required: true }}]\n    steps:\n\
                 \x20     - {{ call: fetch, with: {{ url: \"https://api.example/{name}\" }}, expect: [toHaveTextContent: {name}] }}\n\
                 \x20     - {{ httpCalls: api.example, count: 1, expect: [toMatchJson: [{{ url: \"https://api.example/{name}\" }}]] }}\n"
            )
        };
        let tests = ["one", "two", "three", "four"].map(one).concat();
        passes(&bank(server, &format!("tests:\n{tests}"))).await;
    }
    let missing = "tests:\n  - { name: t, httpMocks: [{ url: \"https://a.example\", required: true }], steps: [{ call: fetch, with: { url: \"https://b.example/x\" } }] }";
    let report = run(&bank("", missing)).await;
    let why = why(&report, 0);
    assert!(
        why.contains("not used: ") && why.contains("no HTTP mock wants: GET https://b.example/x"),
        "{why}"
    );
}

#[tokio::test]
async fn a_server_that_left_its_process_group_is_ended() {
    let name = format!("gatewright-{}", std::process::id());
    let suite = Suite::parse(
        "x.yaml",
        &format!(
            "server: {{ command: sh, args: [-c, \"setsid sleep 1000 & exec node '{}'\"], env: {{ NAME: {name} }} }}\n\
             tests: [{{ name: t, steps: [{{ call: count }}] }}]",
            script("bank.mjs")
        ),
    );
    passes(&suite.unwrap()).await;
    let left = std::fs::read_dir("/proc").unwrap().flatten().filter(|process| {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&name)
    });
    assert_eq!(left.count(), 0);
}

#[tokio::test]
async fn children_keep_the_python_path_and_the_node_options_of_the_test() {
    // Cargo runs each test of nextest in its own process; the variables of this one are read, not set.
    let suite = bank(
        "env: { NODE_OPTIONS: --no-deprecation }",
        "httpMocks: [{ url: x }]\ntests: [{ name: t, steps: [\
         { call: env, with: { name: NODE_OPTIONS }, expect: [toHaveTextContent: \"--no-deprecation\", toHaveTextContent: \"--require\"] }] }]",
    );
    passes(&suite).await;
}

#[tokio::test]
async fn tokens_of_users_are_variables_and_an_issuer_has_faults() {
    let suite = bank(
        "env: { TOKEN: \"${tokens.ada}\", KEYS: \"${auth.jwksUrl}\", URL: \"at {port}\" }",
        "auth: { faults: { jwks: \"status:503\" } }\nusers: { ada: { sub: ada } }\ntests:\n\
         \x20 - name: tokens\n    steps:\n\
         \x20     - { call: env, with: { name: TOKEN }, expect: [toHaveTextContent: \"${tokens.ada}\", toMatchRegex: '^ey.*[.].*[.]'] }\n\
         \x20     - { call: env, with: { name: KEYS }, expect: [toHaveTextContent: \"${auth.issuer}/.well-known/jwks.json\"] }\n\
         \x20     - { call: env, with: { name: URL }, expect: [toHaveTextContent: \"at ${server.port}\"] }\n\
         \x20 - name: faults\n    steps:\n\
         \x20     - { http: \"${auth.issuer}/.well-known/jwks.json\", expect: [toMatchJson: { status: 503 }] }\n",
    );
    passes(&suite).await;
}

#[tokio::test]
async fn secrets_fail_the_test_that_shows_them_and_are_hidden_in_its_report() {
    let suite = bank(
        &format!("{STDIO}, env: {{ KEY: very-secret }}"),
        "secrets: [very-secret]\nserial: true\ntests:\n\
         \x20 - { name: answer, steps: [{ call: env, with: { name: KEY }, expect: [toHaveTextContent: very-secret] }] }\n\
         \x20 - { name: message, steps: [{ call: say, with: { text: [very-secret] } }] }\n\
         \x20 - { name: fine, steps: [{ call: count }] }\n",
    );
    let report = run(&suite).await;
    assert!(
        why(&report, 0).contains("the outcome contains `secrets.0`, which is secret: [secret]"),
        "{}",
        why(&report, 0)
    );
    assert!(why(&report, 1).contains("which is secret"), "{}", why(&report, 1));
    assert_eq!(report.tests[2].outcome, TestOutcome::Passed);
    assert!(!why(&report, 0).contains("very-secret"), "{}", why(&report, 0));
}
