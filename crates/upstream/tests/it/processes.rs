//! The end of processes: none is left behind, whatever ends first.

use std::process::Stdio;

use gatewright_core::AppHealth;
use gatewright_upstream::UpstreamApp;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::support::{Bench, LONG, environment, eventually, runs, server, text, until};

fn pids(text: &str) -> Vec<u32> {
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

#[tokio::test]
async fn shutdown_ends_a_server_that_ignores_its_cues_and_all_it_started() {
    let bench = Bench::new();
    let mut config = server(&["--stay"]);
    let program = config.command.replace("sh".to_owned()).unwrap();
    let ignoring = "trap '' TERM; exec \"$0\" \"$@\"".to_owned();
    config.args = ["-c".to_owned(), ignoring, program].into_iter().chain(config.args).collect();
    bench.add("a", config).await;
    let pids = pids(&text(&bench.client().await, "a:child").await);
    assert!(pids.iter().all(|pid| runs(*pid)), "{pids:?}");
    bench.registry.shutdown().await;
    eventually("both processes are gone", || !pids.iter().any(|pid| runs(*pid))).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn where_memory_runs_out_a_server_and_what_it_started_end_before_the_gateway() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let pids = pids(&text(&bench.client().await, "a:child").await);
    let of = |process: String| -> i32 {
        let text = std::fs::read_to_string(format!("/proc/{process}/oom_score_adj")).unwrap();
        text.trim().parse().unwrap()
    };
    let own = of("self".to_owned());
    assert!(pids.iter().all(|pid| of(pid.to_string()) >= own.max(500)), "{pids:?}");
}

#[tokio::test]
async fn shutdown_of_a_server_that_listens_is_quick_and_leaves_no_zombie() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let pids = pids(&text(&bench.client().await, "a:child").await);
    bench.registry.shutdown().await;
    assert!(!std::path::Path::new(&format!("/proc/{}", pids[0])).exists(), "the server was reaped");
    eventually("its child is gone", || !runs(pids[1])).await;
}

#[tokio::test]
async fn what_a_dead_server_started_is_gone_before_it_is_started_again() {
    let bench = Bench::new();
    let app = bench.add("a", server(&[])).await;
    let client = bench.client().await;
    let pids = pids(&text(&client, "a:child").await);
    let _ = client.tools().call("a:die", serde_json::json!({})).await;
    until(&app, |health| *health == AppHealth::Up).await;
    eventually("its child is gone", || !runs(pids[1])).await;
}

#[tokio::test]
async fn dropping_an_app_without_shutdown_ends_its_process() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let config = server(&["--stay", "--pids", file.to_str().unwrap()]);
    let app = UpstreamApp::start("a", config, environment());
    assert_eq!(app.wait_ready(LONG).await, AppHealth::Up);
    let pids = pids(&std::fs::read_to_string(&file).unwrap());
    drop(app);
    eventually("both processes are gone", || !pids.iter().any(|pid| runs(*pid))).await;
}

#[tokio::test]
async fn a_killed_gateway_takes_its_servers_and_all_they_started_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let mut parent = tokio::process::Command::new(env!("CARGO_BIN_EXE_upstream-test-server"))
        .arg("--parent")
        .arg(&file)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let up = tokio::time::timeout(LONG, lines.next_line()).await.unwrap().unwrap();
    assert!(up.is_some_and(|line| line.starts_with("up")));
    let pids = pids(&std::fs::read_to_string(&file).unwrap());
    assert!(pids.len() == 2 && pids.iter().all(|pid| runs(*pid)), "{pids:?}");
    // SIGKILL: nothing of the gateway can run any more.
    parent.kill().await.unwrap();
    eventually("both processes are gone", || !pids.iter().any(|pid| runs(*pid))).await;
}
