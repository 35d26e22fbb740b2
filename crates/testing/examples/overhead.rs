//! Measures the overhead of a test: run with `cargo run -p gatewright-testing --example overhead`.
#![expect(
    deprecated,
    reason = "the older era still has logging and sampling, which SEP-2577 marks as deprecated"
)]
#![allow(missing_docs, clippy::unwrap_used, reason = "a measurement")]

#[path = "../tests/it/support/everything.rs"]
mod everything;

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use everything::Everything;
use gatewright_testing::{Mcp, Server, ServerBuilder, TokenFactory, Transport, http_mock};
use serde_json::json;

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let ms = |at: usize| times[at].as_secs_f64() * 1e3;
    let (middle, late) = (times.len() / 2, times.len() * 95 / 100);
    println!("{what:<52} median {:>8.2} ms   p95 {:>8.2} ms   n {}", ms(middle), ms(late), times.len());
}

async fn measure<F: Future<Output = ()>>(what: &str, count: usize, one: impl Fn() -> F) {
    let mut times = Vec::new();
    for _ in 0..count {
        let started = Instant::now();
        one().await;
        times.push(started.elapsed());
    }
    report(what, times);
}

async fn in_memory() {
    let mcp = Mcp::in_memory(Everything).connect().await.unwrap();
    mcp.tools().call("echo", json!({"text": "a"})).await.unwrap();
    mcp.disconnect().await;
}

async fn spawned(server: ServerBuilder) {
    let server = server.start().await.unwrap();
    let mcp = server.client().connect().await.unwrap();
    mcp.tools().call("echo", json!({"text": "a"})).await.unwrap();
    mcp.disconnect().await;
    server.stop().await;
}

fn rust() -> ServerBuilder {
    Server::builder("everything_server")
}

#[tokio::main]
async fn main() {
    measure("in memory: connect, one call, disconnect", 500, in_memory).await;
    measure("spawned Rust server, HTTP: the same, start and stop", 50, || spawned(rust())).await;
    let stdio = || rust().arg("--stdio").transport(Transport::Stdio);
    measure("spawned Rust server, stdio: the same", 50, || spawned(stdio())).await;
    measure("any process: spawn `true` and wait for its end", 50, || async {
        let mut command = tokio::process::Command::new("true");
        command.stdin(Stdio::null()).stdout(Stdio::null()).status().await.unwrap();
    })
    .await;
    let started = Instant::now();
    futures::future::join_all((0..100).map(|_| spawned(rust()))).await;
    println!(
        "{:<52} {:>8.2} ms in all",
        "100 spawned servers at once",
        started.elapsed().as_secs_f64() * 1e3
    );

    let mcp = Mcp::in_memory(Everything).connect().await.unwrap();
    measure("one call, in memory", 2000, || async {
        mcp.tools().call("echo", json!({"text": "a"})).await.unwrap();
    })
    .await;
    let server = rust().start().await.unwrap();
    let http = server.client().connect().await.unwrap();
    measure("one call, Streamable HTTP", 1000, || async {
        http.tools().call("echo", json!({"text": "a"})).await.unwrap();
    })
    .await;

    let started = Instant::now();
    let factory = TokenFactory::default();
    factory.create_user_token();
    println!(
        "{:<52} {:>8.2} ms once",
        "first token (makes the RSA key)",
        started.elapsed().as_secs_f64() * 1e3
    );
    measure("each further token", 200, || async {
        factory.create_user_token();
    })
    .await;
    measure("HTTP mock: start", 50, || async {
        http_mock::interceptor().unwrap();
    })
    .await;
    let mock = http_mock::interceptor().unwrap();
    mock.any("https://api.example.com/", json!({}));
    let client = mock.client().unwrap();
    measure("HTTP mock: one HTTPS call, connection kept", 500, || async {
        client.get("https://api.example.com/").send().await.unwrap().bytes().await.unwrap();
    })
    .await;
}
