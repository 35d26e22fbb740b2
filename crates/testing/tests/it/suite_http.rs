//! Suites on the wire: HTTP steps, headers of clients and users, HTTP mocks with sequences and failures.

use gatewright_testing::{
    http_mock, http_response,
    suite::{RunOptions, Suite, SuiteReport, TestOutcome},
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

#[tokio::test]
async fn http_mocks_answer_in_sequence_and_match_query_parameters() {
    let text = format!(
        "server: {{ command: {:?}, transport: stdio }}
httpMocks:
  - {{ url: 'https://api.example/', query: {{ city: Oslo }}, responses: [{{ status: 503 }}, {{ failure: reset }}, {{ json: {{ n: 3 }} }}] }}
tests: [{{ name: t, steps: [] }}]",
        script("tiny.mjs")
    );
    assert!(Suite::parse("x.yaml", &text).is_ok());
    let wrong = text.replace("query:", "status: 200, query:");
    let error = Suite::parse("x.yaml", &wrong).unwrap_err().to_string();
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
