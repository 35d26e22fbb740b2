//! The servers under `examples/`: whole they pass, and each broken variant fails the test that should find it.

use std::path::Path;

use gatewright_testing::suite::{RunOptions, Suite, SuiteReport, TestOutcome, tap};

/// Runs an example's suite from its directory, with `BREAK` set.
async fn run(example: &str, broken: &str) -> SuiteReport {
    let dir =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example).canonicalize().unwrap();
    let text = std::fs::read_to_string(dir.join("suite.yaml")).unwrap();
    let server = |file: &str| {
        format!("server: {{ command: {}, env: {{ BREAK: \"{broken}\" }} }}", dir.join(file).display())
    };
    let text = text
        .replace("server: { command: server.mjs }", &server("server.mjs"))
        .replace("server: { command: server.py }", &server("server.py"));
    Suite::parse(example, &text).unwrap().run(&RunOptions::default()).await
}

/// The tests that failed, and why.
fn failures(report: &SuiteReport) -> Vec<(&str, &str)> {
    let failed = report.tests.iter().filter_map(|test| match &test.outcome {
        TestOutcome::Passed | TestOutcome::Skipped(_) => None,
        TestOutcome::Failed(why) => Some((test.name.as_str(), why.as_str())),
    });
    failed.collect()
}

async fn passes_whole_and_fails_broken(example: &str, variants: &[(&str, &str, &str)]) {
    let whole = run(example, "").await;
    assert!(whole.passed(), "{}", tap(&[whole]));
    for (broken, test, why) in variants {
        let report = run(example, broken).await;
        let failures = failures(&report);
        let found = failures.iter().find(|(name, _)| name == test);
        assert!(found.is_some_and(|(_, said)| said.contains(why)), "{broken}: {failures:?}");
    }
}

#[tokio::test]
#[ignore = "needs `npm install` in `examples/testing-node`"]
async fn a_node_server_that_calls_a_mocked_https_api() {
    passes_whole_and_fails_broken(
        "testing-node",
        &[
            ("name", "offers the weather", "did you mean `wether`?"),
            ("unit", "tells the degrees of the API", "Oslo: 21 °F"),
            (
                "url",
                "tells the degrees of the API",
                "no HTTP mock wants: GET https://api.other.example/v1/now?city=Oslo",
            ),
        ],
    )
    .await;
}

#[tokio::test]
#[ignore = "needs `python3 -m venv .venv && .venv/bin/pip install -r requirements.txt` in `examples/testing-python`"]
async fn a_python_server_with_fastmcp() {
    passes_whole_and_fails_broken(
        "testing-python",
        &[
            ("text", "reads a note", "BUY TEA"),
            ("missing", "says when there is no note", "expected: an error"),
            ("mime", "shows notes as resources", "text/html"),
        ],
    )
    .await;
}
