//! `gatewright test probe` and `gatewright test fuzz`: what the binary prints and writes, and its exit codes.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::process::Command;

use crate::support::gatewright;

/// A server whose tools break a promise each.
fn fragile() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/tests/servers/fragile.mjs").canonicalize().unwrap()
}

/// Exit code, standard output and standard error.
async fn run(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(gatewright()).arg("test").args(args).kill_on_drop(true).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn a_probe_prints_grades_and_fails_by_the_weight_of_its_findings() {
    let server = fragile().display().to_string();
    let (code, out, err) =
        run(&["probe", "--seconds", "600", "--calls", "5", "--json", "--", "node", &server]).await;
    assert_eq!(code, 1, "{out}{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (report["server"]["info"]["name"].as_str(), report["stopped"].as_str()),
        (Some("fragile"), None)
    );
    let tools = report["areas"].as_array().unwrap().iter().find(|one| one["area"] == "tools").unwrap();
    assert_eq!(tools["grade"], "F", "{report:#}");
    let few = [
        "probe",
        "--seconds",
        "600",
        "--calls",
        "1",
        "--tool",
        "get_good",
        "--fail-on",
        "error",
        "--",
        "node",
        &server,
    ];
    let (code, out, _) = run(&few).await;
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("fragile 1, revision 2025-11-25"), "{out}");
}

#[tokio::test]
async fn fuzzing_writes_a_suite_that_the_test_command_fails_on() {
    let dir = tempfile::tempdir().unwrap();
    let suite = dir.path().join("found.suite.yaml").display().to_string();
    let server = fragile().display().to_string();
    let limits = ["--seconds", "600", "--calls", "40", "--tool", "get_anything", "--fail-on", "warning"];
    let (code, out, err) =
        run(&[&["fuzz"], &limits[..], &["-o", &suite, "--", "node", &server]].concat()).await;
    assert_eq!(code, 1, "{out}{err}");
    assert!(
        out.contains("warning: get_anything: the tool takes input that its schema does not allow"),
        "{out}"
    );
    let (code, out, err) = run(&[&suite]).await;
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("get_anything: invalid input is refused"), "{out}");
    let of_suite = run(&[&["fuzz", &suite], &limits[..]].concat()).await;
    assert_eq!(of_suite.0, 1, "the server of a suite: {} {}", of_suite.1, of_suite.2);
}

#[tokio::test]
async fn a_command_line_without_a_server_is_refused_and_a_server_that_is_not_there_is_told() {
    for args in [
        &["probe"][..],
        &["fuzz"],
        &["probe", "--url", "nowhere"],
        &["probe", "--url", "http://127.0.0.1:1/mcp", "--", "x"],
    ] {
        let (code, _, err) = run(args).await;
        assert_eq!(code, 2, "{args:?}: {err}");
    }
    let (code, out, err) = run(&["probe", "--seconds", "1", "--", "gatewright-no-such-program"]).await;
    assert_eq!(code, 1, "{out}{err}");
    assert!(format!("{out}{err}").contains("gatewright-no-such-program"), "{out}{err}");
}
