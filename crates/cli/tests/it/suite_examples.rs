//! The Node and Python servers under `examples/`, tested by their suites with the binary: whole they pass, and each broken
//! variant fails the test that should find it, with a report that says why.

use std::path::Path;

use serde_json::Value;
use tokio::process::Command;

use crate::support::gatewright;

async fn run(example: &str, broken: &str, format: &str) -> (i32, String) {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example).join("suite.yaml");
    let output = Command::new(gatewright())
        .arg("test")
        .arg(suite.canonicalize().unwrap())
        .args(["--format", format])
        .env("BREAK", broken)
        .output()
        .await
        .unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

async fn passes_whole_and_fails_broken(example: &str, variants: &[(&str, &str, &[&str])]) {
    let (code, text) = run(example, "", "readable").await;
    assert_eq!(code, 0, "{text}");
    for (broken, test, reasons) in variants {
        let (code, text) = run(example, broken, "json").await;
        assert_eq!(code, 1, "{broken}: {text}");
        let report: Value = serde_json::from_str(&text).unwrap();
        let tests = report["suites"][0]["tests"].as_array().unwrap();
        let found =
            tests.iter().find(|one| one["name"] == *test).unwrap_or_else(|| panic!("{broken}: {text}"));
        assert_eq!(found["outcome"], "failed", "{broken}: {text}");
        let said = found["message"].as_str().unwrap();
        for reason in *reasons {
            assert!(said.contains(reason), "{broken}: {reason}: {said}");
        }
        assert!(said.contains("suite.yaml:") && said.contains("requests:"), "{broken}: {said}");
    }
}

#[tokio::test]
#[ignore = "needs `npm install` in `examples/testing-node`"]
async fn a_node_server_that_calls_a_mocked_https_api() {
    passes_whole_and_fails_broken(
        "testing-node",
        &[
            ("name", "offers the weather", &["did you mean `wether`?"]),
            (
                "unit",
                "tells the degrees of the API",
                &["Oslo: 21 °F", "expected: a text that holds \"Oslo: 21 °C\""],
            ),
            (
                "url",
                "tells the degrees of the API",
                &["no HTTP mock wants: GET https://api.other.example/v1/now?city=Oslo"],
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
            ("text", "reads a note", &["BUY TEA"]),
            ("missing", "says when there is no note", &["expected: an error"]),
            ("mime", "shows notes as resources", &["text/html"]),
        ],
    )
    .await;
}
