//! Servers that tests share among processes.

use std::time::Duration;

use gatewright_testing::{HttpMock, Mcp, Server, Transport, expect, test_use};

use crate::{fixtures::outcome_of, support::script};

test_use! { server: "everything_server", env: [("SHARED", "by shared_servers")], shared: true }

#[gatewright_testing::test]
async fn a_shared_server_is_used_by_a_client_of_each_test(mcp: Mcp) {
    expect(&mcp.tools().list().await.unwrap()).to_contain_tool("echo");
}

#[gatewright_testing::test]
async fn tests_of_one_process_share_a_server(server: Server) {
    let again = Server::builder("everything_server").env("SHARED", "by shared_servers");
    let again = again.start_shared().await.unwrap();
    assert_eq!(again.info(), server.info());
    let other =
        Server::builder("everything_server").env("SHARED", "by another").start_shared().await.unwrap();
    assert_ne!(other.info().pid, server.info().pid);
    let problem = server.restart().await.unwrap_err().to_string();
    assert!(problem.contains("other tests share it"), "{problem}");
}

#[gatewright_testing::test(server = script("tiny.mjs"), shared = true, skip = "run by the tests below")]
async fn shares(server: Server) {
    eprintln!("server {}", server.info().pid);
    if std::env::var_os("SHARED_TEST_WAITS").is_some() {
        std::future::pending::<()>().await;
    }
}

/// Starts `shares` in a process of its own, as a run of nextest does, and reads the process id of its server.
async fn holder(run: &str) -> (tokio::process::Child, u32) {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    let mut test = tokio::process::Command::new(std::env::current_exe().unwrap());
    test.args(["--ignored", "--exact", "shared_servers::shares", "--nocapture"]);
    test.env("NEXTEST_RUN_ID", run).env("NEXTEST_TEST_NAME", gatewright_testing::json!(run).to_string());
    test.env("SHARED_TEST_WAITS", "1")
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null());
    let mut test = test.kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(test.stderr.take().unwrap()).lines();
    loop {
        let line = lines.next_line().await.unwrap().unwrap();
        if let Some(server) = line.strip_prefix("server ") {
            return (test, server.parse().unwrap());
        }
    }
}

/// Waits for the end of a process that is not ours.
async fn ended(pid: u32) {
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    let waiting = async {
        while runs(pid) {
            looks.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), waiting).await.unwrap();
}

fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn processes_of_a_run_share_a_server_that_survives_the_kill_of_any_holder_and_ends_after_the_last() {
    let id = format!("run-{}", std::process::id());
    let (mut first, server) = holder(&id).await;
    let (mut second, same) = holder(&id).await;
    assert_eq!(server, same, "one server for both");
    let (_other_run, other) = holder(&format!("{id}-other")).await;
    assert_ne!(server, other, "another run has its own");
    // The process that started it goes first.
    first.kill().await.unwrap();
    let (mut third, same) = holder(&id).await;
    assert_eq!(server, same);
    second.kill().await.unwrap();
    assert!(runs(server));
    third.kill().await.unwrap();
    ended(server).await;
}

#[tokio::test]
async fn a_shared_server_that_died_is_replaced() {
    let id = format!("dead-{}", std::process::id());
    let (_first, server) = holder(&id).await;
    let killed = std::process::Command::new("kill").args(["-KILL", &server.to_string()]).status().unwrap();
    assert!(killed.success());
    ended(server).await;
    let (_second, replaced) = holder(&id).await;
    assert_ne!(server, replaced);
    assert!(runs(replaced));
}

#[gatewright_testing::test(server = script("tiny.mjs"), shared = true, skip = "run by a test below")]
async fn with_a_mock(_server: Server, _http: HttpMock) {}

#[gatewright_testing::test(server = script("tiny.mjs"), shared = true, transport = Transport::Stdio, skip = "run by a test below")]
async fn over_stdio(_server: Server) {}

#[tokio::test]
async fn a_server_that_belongs_to_one_test_cannot_be_shared() {
    for (test, why) in [
        ("shared_servers::with_a_mock", "the mock belongs to one test"),
        ("shared_servers::over_stdio", "each client has a process of its own"),
    ] {
        let (passed, said) = outcome_of(test).await;
        assert!(!passed && said.contains(why), "{said}");
    }
}
