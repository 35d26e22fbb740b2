//! Servers that tests share among processes.

use std::time::Duration;

use gatewright_testing::{ClientOptions, HttpMock, Mcp, Server, Transport, expect, test_use};

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

/// A test of this module in a process of its own, as in a run of nextest.
fn in_a_process(test: &str, run: &str) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", test, "--nocapture"]).kill_on_drop(true);
    command.env("NEXTEST_RUN_ID", run).env("NEXTEST_TEST_NAME", gatewright_testing::json!(run).to_string());
    command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    command
}

/// Starts `shares` and reads the process id of its server.
async fn holder(run: &str) -> (tokio::process::Child, u32) {
    holder_of("shared_servers::shares", run).await
}

async fn holder_of(test: &str, run: &str) -> (tokio::process::Child, u32) {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    let mut test = in_a_process(test, run).env("SHARED_TEST_WAITS", "1").spawn().unwrap();
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

#[tokio::test]
async fn a_server_that_belongs_to_one_test_cannot_be_shared() {
    let (passed, said) = outcome_of("shared_servers::with_a_mock").await;
    assert!(!passed && said.contains("the mock belongs to one test"), "{said}");
}

#[gatewright_testing::test(
    server = script("bank.mjs"), args = ["--stdio"], transport = Transport::Stdio, shared = true, skip = "run by the tests below"
)]
async fn counts(mcp: Mcp, server: Server) {
    let text = async |client: &Mcp, tool: &str| {
        let result = client.tools().call(tool, ()).await.unwrap();
        result.text()
    };
    // A second client in the same turn.
    let other = server.create_client(ClientOptions::default()).await.unwrap();
    let pid = text(&other, "pid").await;
    assert_eq!(pid, server.info().pid.to_string());
    eprintln!("count {} of {pid}", text(&mcp, "count").await);
    // Its answer comes when another test has the turn.
    let _late = mcp.tools().call("slow", gatewright_testing::json!({"ms": 100})).begin().await.unwrap();
    eprintln!("server {pid}");
    if std::env::var_os("SHARED_TEST_WAITS").is_some() {
        std::future::pending::<()>().await;
    }
}

const COUNTS: &str = "shared_servers::counts";

#[tokio::test]
async fn processes_of_a_run_take_turns_at_one_server_over_standard_input_and_output() {
    let run = format!("turns-{}", std::process::id());
    let tests = (0..6).map(|_| in_a_process(COUNTS, &run).output());
    let mut counts = Vec::new();
    for output in futures::future::join_all(tests).await {
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        counts.push(said.lines().find_map(|line| line.strip_prefix("count ")).unwrap().to_owned());
    }
    counts.sort();
    let server = counts[0].strip_prefix("1 of ").unwrap();
    let wanted: Vec<String> = (1..=6).map(|n| format!("{n} of {server}")).collect();
    assert_eq!(counts, wanted, "one process for all, and each call reached it once");
    ended(server.parse().unwrap()).await;
}

#[tokio::test]
async fn a_server_whose_test_was_killed_in_its_turn_is_replaced() {
    let run = format!("killed-{}", std::process::id());
    let (mut first, server) = holder_of(COUNTS, &run).await;
    let waits = tokio::spawn(async move { holder_of(COUNTS, &run).await });
    first.kill().await.unwrap();
    let (_second, replaced) = waits.await.unwrap();
    assert_ne!(server, replaced);
    ended(server).await;
    assert!(runs(replaced));
}

#[tokio::test]
async fn a_shared_server_over_stdio_that_ends_at_once_is_told_with_its_last_lines() {
    let server = Server::builder("sh").arg("-c").arg("echo out of order >&2; exit 3");
    let server =
        server.transport(Transport::Stdio).env("SHARED", "ends at once").start_shared().await.unwrap();
    let problem = server.create_client(ClientOptions::default()).await.unwrap_err().to_string();
    assert!(
        problem.contains("the shared server has ended") || problem.contains("closed its standard output"),
        "{problem}"
    );
    let line = server.wait_for_log("out of order", Duration::from_secs(60)).await;
    line.unwrap();
}
