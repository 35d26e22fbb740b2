//! Measures a suite of 50 cases over standard input and output, on one process and on a process for each case: run with
//! `cargo run -p gatewright-testing --example suite_speed`.
#![allow(missing_docs, clippy::unwrap_used, reason = "a measurement")]

use std::time::Instant;

use gatewright_testing::suite::{RunOptions, Suite};

const CASES: usize = 50;

async fn measure(what: &str, server: &str, tool: &str) {
    let cases: Vec<String> = (0..CASES).map(|n| format!("{{ n: {n} }}")).collect();
    let text = format!(
        "server: {{ transport: stdio, args: [--stdio], {server} }}\n\
         tests: [{{ name: \"case ${{n}}\", cases: [{}], steps: [{{ {tool}, expect: [toHaveTextContent: \"${{n}}\"] }}] }}]",
        cases.join(", ")
    );
    let suite = Suite::parse("speed.yaml", &text).unwrap();
    let mut times = Vec::new();
    for _ in 0..5 {
        let started = Instant::now();
        let report = suite.run(&RunOptions::default()).await;
        times.push(started.elapsed().as_secs_f64());
        report.assert_passed();
        assert_eq!(report.tests.len(), CASES);
    }
    times.sort_by(f64::total_cmp);
    println!("{what:<44} median {:>6.2} s   slowest {:>6.2} s", times[2], times[4]);
}

#[tokio::main]
async fn main() {
    let bank = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/bank.mjs");
    let add = "call: add, with: { a: \"${n}\", b: 0 }";
    let echo = "call: echo, with: { text: \"number ${n}\" }";
    measure("Node server, one process", &format!("command: {bank}"), add).await;
    measure("Node server, a process for each case", &format!("command: {bank}, perTest: true"), add).await;
    measure("Rust server, one process", "command: everything_server", echo).await;
    measure("Rust server, a process for each case", "command: everything_server, perTest: true", echo).await;
}
