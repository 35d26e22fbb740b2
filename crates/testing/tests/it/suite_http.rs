//! Suites on the wire: HTTP steps, headers of clients and users, HTTP mocks with sequences and failures.

use gatewright_testing::{
    http_mock, http_response,
    suite::{RunOptions, Suite, SuiteReport, TestOutcome, readable},
};
use serde_json::json;

use crate::support::script;

/// Runs tests for a server that runs already at `url`.
async fn run_at(url: &str, text: &str) -> SuiteReport {
    let suite = Suite::parse("x.yaml", &format!("server: {{ url: \"{url}/mcp\" }}\n{text}")).unwrap();
    suite.run(&RunOptions::default()).await
}

#[tokio::test]
async fn http_steps_check_status_headers_and_json_and_save_variables() {
    let service = http_mock::interceptor().unwrap();
    let challenge =
        http_response::error(401, "no").header("www-authenticate", "Bearer resource_metadata=\"x\"");
    service.post("/guarded", challenge);
    service.get("/meta?v=1", json!({"issuer": "https://i.example", "list": [1, 2]}));
    service.post("/form", http_response::json(json!({"ok": true})).status(201));
    service.get("/moved", http_response::text("").status(302).header("location", "/meta"));
    service.any("/mcp", http_response::error(401, "no token"));
    let url = service.proxy_url();
    let text = "tests:
  - name: wire
    steps:
      - { http: { method: POST, path: /guarded, headers: { origin: 'https://evil.example' }, json: { a: 1 } },
          expect: [toMatchJson: { status: 401, json: { error: 'no' } }], save: { how: /headers/www-authenticate } }
      - { http: { path: /meta, query: { v: '1' } }, expect: [toMatchJson: { status: 200, json: { list: [1, 2] } }], save: { issuer: /json/issuer } }
      - { http: { path: /form, form: { who: '${issuer}' }, headers: { x-how: '${how}' } }, expect: [toMatchJson: { status: 201 }] }
      - { http: /moved, expect: [toMatchJson: { status: 302, headers: { location: /meta } }] }";
    let report = run_at(&url, text).await;
    assert!(report.passed(), "{report:?}");
    let calls = service.calls();
    let call = |part: &str| calls.iter().find(|call| call.url.contains(part)).unwrap();
    assert_eq!(call("/guarded").header("origin"), Some("https://evil.example"));
    assert_eq!(call("/guarded").header("authorization"), None);
    assert_eq!(call("/form").form("who"), ["https://i.example"]);
    assert_eq!(call("/form").header("x-how"), Some("Bearer resource_metadata=\"x\""));
    let failing = "tests: [{ name: t, steps: [{ http: { method: POST, path: /guarded } }] }]";
    let report = run_at(&url, failing).await;
    let TestOutcome::Failed(why) = &report.tests[0].outcome else { panic!("{report:?}") };
    assert!(why.contains("gave 401") && why.contains("expect the status when it is meant"), "{why}");
}

#[tokio::test]
async fn clients_and_http_steps_send_the_headers_of_server_and_user() {
    let service = http_mock::interceptor().unwrap();
    service.any("/", http_response::error(401, "no token"));
    let url = service.proxy_url();
    let text = format!(
        "server: {{ url: \"{url}/mcp\", headers: {{ x-tenant: red, x-api-key: shared }} }}
users: {{ ada: {{ headers: {{ X-Api-Key: k-ada }} }} }}
tests:
  - {{ name: shared, steps: [{{ list: tools, expect: [toBeRefused: 401] }}] }}
  - {{ name: own, as: ada, steps: [{{ list: tools, expect: [toBeRefused: 401] }}] }}
  - {{ name: none, as: anonymous, steps: [{{ list: tools, expect: [toBeRefused: 401] }}] }}
  - {{ name: step, steps: [{{ http: /plain, expect: [toMatchJson: {{ status: 401 }}] }}, {{ http: /as, as: ada, expect: [toMatchJson: {{ status: 401 }}] }}] }}
serial: true"
    );
    let report = Suite::parse("x.yaml", &text).unwrap().run(&RunOptions::default()).await;
    assert!(report.passed(), "{report:?}");
    let calls = service.calls();
    let seen: Vec<(Option<&str>, Option<&str>)> = calls
        .iter()
        .filter(|call| call.url.ends_with("/mcp"))
        .map(|call| (call.header("x-tenant"), call.header("x-api-key")))
        .collect();
    for wanted in [(Some("red"), Some("shared")), (Some("red"), Some("k-ada")), (None, None)] {
        assert!(seen.contains(&wanted), "{wanted:?} {seen:?}");
    }
    let of = |path: &str| calls.iter().find(|call| call.url.ends_with(path)).unwrap().header("x-api-key");
    assert_eq!((of("/plain"), of("/as")), (None, Some("k-ada")));
}

/// Runs tests with `httpMocks` for the bank, which is another process.
async fn run_with_mocks(server: &str, rest: &str) -> SuiteReport {
    let text = format!(
        "server: {{ command: {:?}, {server} }}
httpMocks:
  - {{ method: GET, url: 'https://api.example/jobs', query: {{ city: Oslo }}, responses: [{{ status: 503, text: busy }}, {{ failure: reset }}, {{ json: {{ n: 3 }} }}] }}
  - {{ method: POST, url: 'https://api.example/orders', requestHeaders: {{ x-key: abc }}, requestJson: {{ item: {{ id: 7 }} }}, status: 201, json: {{ id: 1 }} }}
  - {{ url: 'http://form.example/', requestForm: {{ who: Ada Lovelace }}, text: posted }}
  - {{ urlRegex: 'text[.]example/[0-9]+$', requestText: needle, text: found, times: 1 }}
tests:
{rest}",
        script("bank.mjs")
    );
    let suite = Suite::parse("x.yaml", &text).unwrap_or_else(|error| panic!("{error}"));
    suite.run(&RunOptions::default()).await
}

const TRANSPORTS: [&str; 2] =
    ["transport: stdio, args: [--stdio], startupTimeoutMs: 60000", "startupTimeoutMs: 60000"];

#[tokio::test]
async fn http_mocks_of_a_suite_answer_calls_of_a_child_process_in_sequence_and_by_query_and_body() {
    for server in TRANSPORTS {
        let report = run_with_mocks(
            server,
            "  - name: sequence
    steps:
      - { call: fetch, with: { url: 'https://api.example/jobs?b=1&city=Oslo' }, expect: [toHaveTextContent: 503 busy] }
      - { call: fetch, with: { url: 'https://api.example/jobs?city=Oslo' }, expect: [toBeError, toHaveTextContent: ECONNRESET] }
      - { call: fetch, with: { url: 'https://api.example/jobs?city=Oslo' }, repeat: 2, expect: [toHaveTextContent: '200 {\"n\":3}'] }
  - name: bodies
    steps:
      - call: fetch
        with: { url: 'https://api.example/orders', method: POST, headers: { x-key: abc }, body: '{\"item\": {\"id\": 7, \"n\": 2}}' }
        expect: [toHaveTextContent: '201 {\"id\":1}']
      - call: fetch
        with: { url: 'http://form.example/', method: POST, headers: { content-type: application/x-www-form-urlencoded }, body: who=Ada+Lovelace }
        expect: [toHaveTextContent: 200 posted]
      - { call: fetch, with: { url: 'https://text.example/12', method: PUT, body: hay needle hay }, expect: [toHaveTextContent: 200 found] }",
        )
        .await;
        assert!(report.passed(), "{}", readable(&[report], false));
    }
}

#[tokio::test]
async fn an_unmatched_call_is_reported_once_with_the_nearest_mock_and_advice_for_suites() {
    let wrong = "{ call: fetch, with: { url: 'https://api.example/jobs?city=Bergen', method: PUT }";
    for server in TRANSPORTS {
        let failing = run_with_mocks(
            server,
            &format!("  - {{ name: wrong, steps: [{wrong}, expect: [toHaveTextContent: '200'] }}] }}"),
        )
        .await;
        let text = readable(&[failing], false);
        assert_eq!(
            text.matches("no HTTP mock wants: PUT https://api.example/jobs?city=Bergen").count(),
            1,
            "{text}"
        );
        for part in [
            "nearest mock: GET https://api.example/jobs",
            "expected GET, is PUT",
            "`city`: expected \"Oslo\", is \"Bergen\"",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.contains("add one to `httpMocks`") && !text.contains("allow_passthrough"), "{text}");
        // The server swallowed the failure of one test; the suite tells what the tests have not.
        let swallowed = run_with_mocks(
            server,
            &format!(
                "  - {{ name: wrong, steps: [{wrong}, expect: [toHaveTextContent: '200'] }}] }}
  - {{ name: swallows, steps: [{{ call: fetch, with: {{ url: 'https://other.example/' }} }}] }}
serial: true"
            ),
        )
        .await;
        let names: Vec<_> = swallowed.tests.iter().map(|test| (test.name.as_str(), &test.outcome)).collect();
        assert!(
            matches!(
                names[..],
                [
                    ("wrong", TestOutcome::Failed(_)),
                    ("swallows", TestOutcome::Passed),
                    ("mocks", TestOutcome::Failed(_))
                ]
            ),
            "{names:?}"
        );
        let TestOutcome::Failed(why) = names[2].1 else { unreachable!() };
        assert_eq!(why, "no HTTP mock wants: GET https://other.example/");
    }
}

#[test]
fn responses_of_an_http_mock_exclude_a_status_beside_them() {
    let text = "server: { command: x }\nhttpMocks: [{ url: x, status: 200, responses: [{ status: 503 }] }]\ntests: [{ name: t, steps: [] }]";
    let error = Suite::parse("x.yaml", text).unwrap_err().to_string();
    assert!(error.contains("`responses` takes the place of `status`"), "{error}");
}

#[test]
fn wrong_http_steps_and_headers_are_reported_with_their_place() {
    let wrong = |text: &str| Suite::parse("x.yaml", text).unwrap_err().to_string();
    let step =
        |step: &str| wrong(&format!("server: {{ command: x }}\ntests: [{{ name: t, steps: [{step}] }}]"));
    let error = step("{ http: { method: GET } }");
    assert!(error.contains("x.yaml:2: tests.0.steps.0.http: it needs exactly one of `path`"), "{error}");
    let error = step("{ http: { path: /x, json: {}, text: a } }");
    assert!(error.contains("exclude each other"), "{error}");
    let error = step("{ http: { path: /x, headers: { 'a b': c } } }");
    assert!(error.contains("`a b` is no name of an HTTP header"), "{error}");
    let error =
        wrong("server: { command: x, transport: stdio, headers: { a: b } }\ntests: [{ name: t, steps: [] }]");
    assert!(error.contains("a server over stdio gets no headers"), "{error}");
    let error = wrong("server: { command: x }\nusers: { ada: {} }\ntests: [{ name: t, steps: [] }]");
    assert!(error.contains("it needs `sub`, for a token, or `headers`"), "{error}");
}

#[tokio::test]
async fn a_test_of_http_steps_alone_connects_no_client_and_names_of_headers_have_variables() {
    let service = http_mock::interceptor().unwrap();
    service.any("/", json!({"ok": true}));
    let url = service.proxy_url();
    let text = "tests:
  - name: header
    cases: [{ header: x-a, value: '${one}' }]
    variables: { path: /plain }
    steps: [{ http: { path: '${path}', headers: { '${header}': '${value}' } } }]
variables: { one: first }";
    let report = run_at(&url, text).await;
    assert!(report.passed(), "{report:?}");
    let calls = service.calls();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(calls[0].header("x-a"), Some("first"));
}
