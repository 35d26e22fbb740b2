//! The commands for those who run and package it.

use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    process::{Command, Output, Stdio},
};

use crate::support::gatewright;

fn run(arguments: &[&str]) -> Output {
    Command::new(gatewright()).args(arguments).output().unwrap()
}

#[test]
fn health_tells_a_server_that_answers_from_one_that_does_not() {
    let mut server = Command::new(gatewright())
        .args(["demo", "--port", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains("MCP endpoint")).unwrap();
    let base = line.split_whitespace().last().unwrap().trim_end_matches("/mcp").to_owned();
    let alive = run(&["health", "--url", &base]);
    let ready = run(&["health", "--ready", "--url", &format!("{base}/")]);
    let wrong = run(&["health", "--url", &format!("{base}/nothing")]);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(alive.status.success() && String::from_utf8(alive.stdout).unwrap().contains("ok"));
    assert!(ready.status.success() && String::from_utf8(ready.stdout).unwrap().contains("\"ready\""));
    assert_eq!(wrong.status.code(), Some(1), "an answer that is no 200 is not health");
    let gone = run(&["health", "--url", &base]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(String::from_utf8(gone.stderr).unwrap().contains("no server responds"));
}

#[test]
fn health_gives_up_on_a_server_that_accepts_and_says_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let output = run(&["health", "--timeout", "1", "--url", &url]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["man", "--folder", folder.path().to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    for page in ["gatewright.1", "gatewright-serve.1", "gatewright-tools-call.1", "gatewright-health.1"] {
        let text = std::fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{page}");
    }
    assert!(!folder.path().join("gatewright-reference.1").exists(), "hidden commands have none");
    let printed = run(&["man"]);
    assert!(String::from_utf8(printed.stdout).unwrap().contains(".TH gatewright 1"));
}
