//! Processor time to read OpenAPI documents.
//!
//! `cargo bench -p gatewright-openapi --bench load -- PATH...` reads each document several times and prints the median of the CPU time
//! (Linux: `/proc/self`).
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

use std::{fs, time::Duration};

use gatewright_openapi::{Document, DocumentOptions, read};

const ROUNDS: usize = 7;

fn main() {
    let paths: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    println!("| document | bytes | operations | CPU time |\n|---|---|---|---|");
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let operations = parsed(&text).operations.len();
        let mut times: Vec<Duration> = (0..ROUNDS)
            .map(|_| {
                let begun = cpu();
                let document = parsed(&text);
                let used = cpu() - begun;
                assert_eq!(document.operations.len(), operations);
                used
            })
            .collect();
        times.sort_unstable();
        println!(
            "| {path} | {} | {operations} | {:.0} ms |",
            text.len(),
            times[ROUNDS / 2].as_secs_f64() * 1_000.0
        );
    }
}

fn parsed(text: &str) -> Document {
    read(text, &DocumentOptions::default(), &mut |url| Err(format!("{url} is not read"))).unwrap()
}

/// CPU time of this process so far.
fn cpu() -> Duration {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}
