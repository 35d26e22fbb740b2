//! Everything a suite can say, run by `gatewright test` against a server that is no Rust.

use std::{path::PathBuf, process::Output};

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::gatewright;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/suite-server.mjs");

/// A directory with one suite, `it.suite.yaml`; `SERVER` in it is the server's file.
struct Suite {
    dir: tempfile::TempDir,
}

impl Suite {
    fn new(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("it.suite.yaml"), text.replace("SERVER", SERVER)).unwrap();
        Self { dir }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    async fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(gatewright());
        command.args(["test", "it.suite.yaml"]).args(args).current_dir(self.dir.path());
        command.kill_on_drop(true).output().await.unwrap()
    }

    /// Each test's outcome, and what was said of it.
    async fn outcomes(&self, args: &[&str]) -> Vec<(String, String)> {
        let output = self.run(&[&["--json"], args].concat()).await;
        let body: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        let tests = body["suites"][0]["tests"].as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        tests.iter().map(|test| (text(&test["outcome"]), text(&test["message"]))).collect()
    }

    async fn passes(&self) {
        let output = self.run(&[]).await;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[tokio::test]
async fn a_subscription_brings_notifications_and_a_missing_one_is_told() {
    let suite = Suite::new(
        r#"
server: { command: SERVER, protocolVersion: "2026-07-28" }
tests:
  - name: is told of changes
    steps:
      - { listen: { toolsListChanged: true }, expect: [toMatchJson: { notifications: { toolsListChanged: true } }] }
      - { call: change }
      - { wait: notifications/tools/list_changed, expect: [toMatchJson: [{ method: notifications/tools/list_changed }]] }
  - name: was not told
    steps:
      - { call: count }
      - { wait: notifications/tools/list_changed, timeoutMs: 100 }
  - name: an older server does not know it
    steps: [{ raw: { method: subscriptions/no }, expect: [toHaveErrorCode: -32601] }]
"#,
    );
    let outcomes = suite.outcomes(&[]).await;
    assert_eq!((outcomes[0].0.as_str(), outcomes[2].0.as_str()), ("passed", "passed"), "{outcomes:?}");
    assert_eq!(outcomes[1].0, "failed");
    for part in ["it.suite.yaml:12: step 2 (wait)", "1 were wanted, 0 came", "tools/call", "| up as"] {
        assert!(outcomes[1].1.contains(part), "{part}: {}", outcomes[1].1);
    }
}

#[tokio::test]
async fn calls_to_the_outside_are_answered_seen_and_must_be_expected() {
    let suite = Suite::new(
        r#"
server: { command: SERVER, env: { API_KEY: abc } }
httpMocks:
  - { method: GET, url: "https://api.example/a", json: { a: 1 }, requestHeaders: { x-key: abc }, required: true, times: 1 }
  - { urlRegex: "/items/[0-9]+$", status: 404, text: gone }
tests:
  - name: mocked
    steps:
      - { call: fetch, with: { url: "https://api.example/a" }, expect: [toHaveTextContent: '200 {"a":1}'] }
      - { httpCalls: api.example/a, expect: [toMatchJson: [{ method: GET, headers: { x-key: abc } }]] }
      - { call: fetch, with: { url: "http://api.example/items/7" }, expect: [toHaveTextContent: 404 gone] }
  - name: too few
    steps: [{ httpCalls: never.example, timeoutMs: 50 }]
  - name: nobody expects it
    steps: [{ call: fetch, with: { url: "https://other.example/" }, expect: [toHaveTextContent: "200"] }]
"#,
    );
    let outcomes = suite.outcomes(&["--jobs", "1"]).await;
    assert_eq!(outcomes[0].0, "passed", "{outcomes:?}");
    assert!(outcomes[1].1.contains("1 calls with `never.example` in the URL did not come"), "{outcomes:?}");
    assert!(outcomes[2].1.contains("no HTTP mock wants: GET https://other.example/"), "{outcomes:?}");
    assert_eq!(outcomes.len(), 3, "the suite does not fail for it once more: {outcomes:?}");

    let unused = Suite::new(
        "server: { command: SERVER }\nhttpMocks: [{ url: x, json: 1, required: true }]\ntests: [{ name: t, steps: [] }]",
    );
    let outcomes = unused.outcomes(&[]).await;
    assert!(outcomes[1].1.contains("not used: any method x (used 0 of 1 times)"), "{outcomes:?}");
}

#[tokio::test]
async fn serial_tests_run_in_order_whatever_the_jobs() {
    let tests: String = (1..=6)
        .map(|n| {
            format!(
                "  - {{ name: t{n}, steps: [{{ call: count, expect: [toHaveTextContent: \"{n}\"] }}] }}\n"
            )
        })
        .collect();
    let suite = Suite::new(&format!("server: {{ command: SERVER }}\nserial: true\ntests:\n{tests}"));
    let output = suite.run(&["--jobs", "6"]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[tokio::test]
async fn answers_of_the_server_are_mocked_for_one_test() {
    Suite::new(
        r#"
server: { command: SERVER }
tests:
  - name: mocked
    mocks:
      - { tool: count, response: "a hundred" }
      - { tool: change, error: { code: -32000, message: not today } }
      - { resource: "note://1", response: text }
      - { method: tools/list, response: { tools: [] }, times: 1, delayMs: 1 }
    steps:
      - { call: count, expect: [toHaveTextContent: a hundred] }
      - { call: change, expect: [toBeError: -32000] }
      - { read: "note://1", expect: [toHaveTextContent: text] }
      - { list: tools, expect: [not: { toContainTool: count }] }
      - { list: tools, expect: [toContainTool: count] }
  - { name: not mocked, steps: [{ call: count, expect: [not: { toHaveTextContent: hundred }] }] }
"#,
    )
    .passes()
    .await;
}

#[tokio::test]
async fn users_of_the_mock_issuer_are_who_they_say_and_bad_tokens_are_nobody() {
    Suite::new(
        r#"
server: { command: SERVER, env: { CLOSED: "yes" } }
auth: true
users: { ada: { sub: ada } }
as: ada
tests:
  - { name: ada, steps: [{ call: whoami, expect: [toHaveTextContent: ada] }] }
  - { name: admin, as: admin, steps: [{ call: whoami, expect: [toHaveTextContent: test-admin] }] }
  - { name: expired, as: { sub: eve, expired: true }, steps: [{ call: whoami, expect: [toHaveTextContent: a stranger] }] }
  - { name: forged, as: { sub: eve, invalidSignature: true }, steps: [{ call: whoami, expect: [toHaveTextContent: a stranger] }] }
  - name: changes
    steps: [{ authenticate: readOnly }, { call: whoami, expect: [toHaveTextContent: test-readonly] }]
"#,
    )
    .passes()
    .await;
    let nobody = "server: { command: SERVER, env: { CLOSED: \"yes\" } }\ntests: [{ name: t, steps: [{ list: tools, expect: [toBeRefused: 401] }] }]";
    Suite::new(nobody).passes().await;
}

#[tokio::test]
async fn a_session_and_the_calls_to_the_outside_are_recorded_and_replayed() {
    // The outside: a server on this machine that goes away. Its name is not of this machine, so the proxy is asked.
    let outside = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = outside.local_addr().unwrap().port();
    let served = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = outside.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 7\r\nconnection: close\r\n\r\noutside";
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let suite = Suite::new(&format!(
        r#"
server: {{ command: SERVER, env: {{ API_KEY: secret-key }} }}
recordHttp: http.json
tests:
  - name: outside
    steps:
      - {{ call: fetch, with: {{ url: "http://0.0.0.0:{port}/x" }}, expect: [toHaveTextContent: 200 outside] }}
      - {{ httpCalls: "/x", expect: [toMatchJson: [{{ method: GET }}]] }}
  - name: session
    record: session.json
    steps: [{{ call: count, expect: [toHaveTextContent: "1"] }}, {{ call: count, expect: [toHaveTextContent: "2"] }}]
"#
    ));
    suite.passes().await;
    served.join().unwrap();
    let written = std::fs::read_to_string(suite.file("http.json")).unwrap();
    assert!(written.contains("outside") && !written.contains("secret-key"), "{written}");
    assert!(std::fs::read_to_string(suite.file("session.json")).unwrap().contains("tools/call"));
    // Nobody listens there any more, and the server would count on.
    suite.passes().await;
    suite.passes().await;

    for (file, test, part) in [("session.json", 1, "cannot be used"), ("http.json", 0, "cannot be used")] {
        let whole = std::fs::read_to_string(suite.file(file)).unwrap();
        std::fs::write(suite.file(file), "{oops").unwrap();
        let outcomes = suite.outcomes(&[]).await;
        let said = &outcomes[test].1;
        for part in [part, file, "delete it to record a new one"] {
            assert!(outcomes[test].0 == "failed" && said.contains(part), "{part}: {outcomes:?}");
        }
        std::fs::write(suite.file(file), whole).unwrap();
    }
}

#[tokio::test]
async fn reports_for_machines_hold_every_outcome() {
    let suite = Suite::new(
        "name: a <suite>\nserial: true\nserver: { command: SERVER }\ntests:\n  - { name: good, steps: [] }\n  - { name: \"bad & worse\", steps: [{ call: change, expect: [toBeError] }] }\n  - { name: later, skip: \"not # yet\", steps: [] }\n",
    );
    let output = suite.run(&["--format", "tap", "--junit", "junit.xml"]).await;
    assert_eq!(output.status.code(), Some(1));
    let tap = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = tap.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(
        lines,
        [
            "TAP version 14",
            "ok 1 - a <suite> > good",
            "not ok 2 - a <suite> > bad & worse",
            "ok 3 - a <suite> > later # SKIP not # yet",
            "1..3",
        ]
    );
    // Any XML reader must take it: the one of Python's library does.
    let read = "import sys, json, xml.etree.ElementTree as e; s = e.parse(sys.argv[1]).getroot().find('testsuite'); \
                print(json.dumps([s.attrib['name'], s.attrib['tests'], s.attrib['failures'], s.attrib['skipped'], \
                [[c.attrib['name'], [k.tag for k in c]] for c in s.findall('testcase')]]))";
    let read =
        Command::new("python3").args(["-c", read]).arg(suite.file("junit.xml")).output().await.unwrap();
    let found: Value = serde_json::from_slice(&read.stdout).unwrap_or_else(|_| panic!("{read:?}"));
    let cases = json!([["good", []], ["bad & worse", ["failure"]], ["later", ["skipped"]]]);
    assert_eq!(found, json!(["a <suite>", "3", "1", "1", cases]));
}
