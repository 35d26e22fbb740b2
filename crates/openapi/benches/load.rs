//! Processor time and memory to read OpenAPI documents.
//!
//! `cargo bench -p gatewright-openapi --bench load -- PATH...` reads each document several times and prints the median of the CPU time, and the
//! memory that is kept once the text is gone (Linux: `/proc/self`).
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

use std::{fs, time::Duration};

use gatewright_openapi::{Document, DocumentOptions, read};

const ROUNDS: usize = 7;

fn main() {
    let paths: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    println!("| document | bytes | operations | CPU time | memory |\n|---|---|---|---|---|");
    for path in paths {
        let before = resident();
        let (document, bytes) = load(&path);
        let kept = resident().saturating_sub(before);
        let operations = document.operations.len();
        drop(document);
        let text = fs::read_to_string(&path).unwrap();
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
            "| {path} | {bytes} | {operations} | {:.0} ms | {:.1} MB |",
            times[ROUNDS / 2].as_secs_f64() * 1_000.0,
            kept as f64 / 1e6
        );
    }
}

fn load(path: &str) -> (Document, usize) {
    let text = fs::read_to_string(path).unwrap();
    (parsed(&text), text.len())
}

fn parsed(text: &str) -> Document {
    read(text, &DocumentOptions::default(), &mut |url| Err(format!("{url} is not read"))).unwrap()
}

/// CPU time of this process so far.
fn cpu() -> Duration {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

/// Bytes of memory that this process has.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}
