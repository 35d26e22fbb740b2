//! Times building and querying a large index made from the tools of a folder: `bench_large FOLDER SIZE [words]`; `words` leaves out nearness in meaning.
use std::{error::Error, fs::File, io::BufReader, path::Path, time::Instant};

use gatewright_search::{
    Document, Index, Query, Weights,
    eval::{Latency, read_cases, read_corpus},
};

/// Runs of each query.
const RUNS: usize = 7;

/// Resident memory of this process, in MiB.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: bench_large FOLDER SIZE [words]")?;
    let size: usize = arguments.next().ok_or("SIZE missing")?.parse()?;
    let meaning = arguments.next().is_none_or(|word| word != "words");
    let (mut corpus, mut queries): (Vec<Document>, Vec<(String, Vec<String>)>) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(Path::new(&folder))? {
        let path = entry?.path();
        corpus.extend(read_corpus(BufReader::new(File::open(path.join("corpus.jsonl"))?))?);
        let cases = read_cases(BufReader::new(File::open(path.join("queries.jsonl"))?))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        queries.push((name, cases.into_iter().take(200).map(|case| case.query).collect()));
    }
    // Copies of the same tools under other apps; every twelfth word of a description is made new.
    let made = |number: usize| {
        let mut document = corpus[number % corpus.len()].clone();
        let copy = number / corpus.len();
        if copy > 0 {
            document.app_id = format!("{}-{copy}", document.app_id);
            document.name = format!("{}:{}_{copy}", document.app_id, document.name);
            document.description.push_str(&format!(" variant{}", number % 5000));
        }
        document
    };
    let before = resident();
    let start = Instant::now();
    let mut making = std::time::Duration::ZERO;
    let weights = Weights { meaning, ..Weights::default() };
    let index = Index::build_with(
        weights,
        (0..size).map(|number| {
            let start = Instant::now();
            let document = made(number);
            making += start.elapsed();
            document
        }),
    );
    println!(
        "{size} tools: built in {:.2} s (without making them), {:.0} MiB more resident",
        (start.elapsed() - making).as_secs_f64(),
        resident() - before
    );
    // The best of some runs of each query: what it takes when nothing else uses the processor.
    for (name, set) in &queries {
        let times: Vec<_> = set
            .iter()
            .map(|text| {
                let run = || {
                    let start = Instant::now();
                    let _ = index.search(&Query::new(text));
                    start.elapsed()
                };
                (0..RUNS).map(|_| run()).min().unwrap_or_default()
            })
            .collect();
        let words = set.iter().map(|text| text.split_whitespace().count()).sum::<usize>() / set.len().max(1);
        let latency = Latency::of(times);
        println!(
            "{name:<8} {words:>3} words a query: p50 {:.3} p90 {:.3} p99 {:.3} max {:.3} ms",
            latency.p50_ms, latency.p90_ms, latency.p99_ms, latency.max_ms
        );
    }
    let start = Instant::now();
    let app = "redis".to_owned();
    let documents: Vec<Document> = corpus.iter().filter(|one| one.app_id == app).cloned().collect();
    let count = documents.len();
    let next = index.updated([gatewright_search::Change::ReplaceApp { app_id: app, documents }]);
    println!("replacing an app of {count} tools: {:.3} ms", start.elapsed().as_secs_f64() * 1000.0);
    println!("{} documents", next.len());
    Ok(())
}
