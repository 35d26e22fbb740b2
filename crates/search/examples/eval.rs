//! Measures the ranking on the sets of a folder: `eval FOLDER [NAME=VALUE ...]`.
use std::{error::Error, fs::File, io::BufReader, path::Path};

use gatewright_search::{
    Document, Index, Query, Weights,
    eval::{Bm25, Case, Report, Searcher, TfIdfCosine, area_under_roc, evaluate, read_cases, read_corpus},
};

struct Set {
    name: String,
    corpus: Vec<Document>,
    cases: Vec<Case>,
}

fn load(folder: &Path) -> Result<Vec<Set>, Box<dyn Error>> {
    let mut sets = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        sets.push(Set {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            corpus: read_corpus(BufReader::new(File::open(path.join("corpus.jsonl"))?))?,
            cases: read_cases(BufReader::new(File::open(path.join("queries.jsonl"))?))?,
        });
    }
    sets.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(sets)
}

fn line(label: &str, report: &Report) {
    println!(
        "{label:<22} R@1 {:5.1} R@3 {:5.1} R@5 {:5.1} R@10 {:5.1} nDCG@5 {:5.1} nDCG@10 {:5.1} MRR {:5.1} p50 {:.3} p99 {:.3} ms",
        report.recall_at_1 * 100.0,
        report.recall_at_3 * 100.0,
        report.recall_at_5 * 100.0,
        report.recall_at_10 * 100.0,
        report.ndcg_at_5 * 100.0,
        report.ndcg_at_10 * 100.0,
        report.mrr * 100.0,
        report.latency.p50_ms,
        report.latency.p99_ms
    );
}

fn mean(reports: &[Report]) -> Report {
    let n = reports.len().max(1) as f64;
    let of = |field: fn(&Report) -> f64| reports.iter().map(field).sum::<f64>() / n;
    Report {
        recall_at_1: of(|r| r.recall_at_1),
        recall_at_3: of(|r| r.recall_at_3),
        recall_at_5: of(|r| r.recall_at_5),
        recall_at_10: of(|r| r.recall_at_10),
        ndcg_at_5: of(|r| r.ndcg_at_5),
        ndcg_at_10: of(|r| r.ndcg_at_10),
        mrr: of(|r| r.mrr),
        ..Report::default()
    }
}

fn top(searcher: &dyn Searcher, text: &str) -> f32 {
    searcher.find(text, 1).first().map_or(0.0, |hit| hit.1)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: eval FOLDER [baselines] [worst=N] [NAME=VALUE ...]")?;
    let sets = load(Path::new(&folder))?;
    let mut weights = Weights::default();
    let mut json: Option<String> = None;
    let (mut baselines, mut worst, mut cut, mut dump) = (false, 0, 0.0, 0);
    for argument in arguments {
        if let Some(path) = argument.strip_prefix("json=") {
            json = Some(path.to_owned());
            continue;
        }
        if argument == "baselines" {
            baselines = true;
            continue;
        }
        let (name, value) = argument.split_once('=').ok_or("NAME=VALUE expected")?;
        let value: f32 = value.parse()?;
        match name {
            "worst" => worst = value as usize,
            "cut" => cut = value,
            "dump" => dump = value as usize,
            _ => weights = weights.with(name, value).ok_or("unknown NAME")?,
        }
    }
    let indexes: Vec<Index> =
        sets.iter().map(|set| Index::build_with(weights.clone(), set.corpus.iter().cloned())).collect();
    if dump == 1 {
        for (set, index) in sets.iter().zip(&indexes) {
            for (number, case) in set.cases.iter().enumerate() {
                for (name, row) in index.training_rows(&Query::new(&case.query)) {
                    let label = u8::from(case.relevant.contains(&name));
                    let row: Vec<String> = row.iter().map(|value| format!("{value:.4}")).collect();
                    println!("{}\t{number}\t{}\t{label}\t{}", set.name, case.relevant.len(), row.join("\t"));
                }
            }
        }
        return Ok(());
    }
    if dump == 2 {
        for (set, index) in sets.iter().zip(&indexes) {
            for other in &sets {
                for case in other.cases.iter().step_by(other.cases.len() / 150 + 1) {
                    let rows = index.training_rows(&Query::new(&case.query));
                    let best = rows.iter().max_by(|a, b| a.1[0].total_cmp(&b.1[0]));
                    let row: Vec<String> = best
                        .map_or_else(Vec::new, |best| best.1.clone())
                        .iter()
                        .map(|value| format!("{value:.4}"))
                        .collect();
                    println!("{}\t{}\t{}", set.name, other.name, row.join("\t"));
                }
            }
        }
        return Ok(());
    }
    if let Some(path) = json {
        let of = |find: &dyn Fn(usize) -> Box<dyn Searcher>| {
            let reports: Vec<Report> = sets
                .iter()
                .enumerate()
                .map(|(at, set)| evaluate(&*find(at), &set.cases, 0, |_, _| {}))
                .collect();
            let each: serde_json::Map<String, serde_json::Value> = sets
                .iter()
                .zip(&reports)
                .map(|(set, report)| (set.name.clone(), serde_json::json!(report.recall_at_5)))
                .collect();
            serde_json::json!({"recallAt5": mean(&reports).recall_at_5, "ndcgAt10": mean(&reports).ndcg_at_10, "sets": each})
        };
        let all = serde_json::json!({
            "TF-IDF cosine": of(&|at| Box::new(TfIdfCosine::new(&sets[at].corpus))),
            "BM25": of(&|at| Box::new(Bm25::new(&sets[at].corpus))),
            "tfidf (default)": of(&|at| Box::new(indexes[at].clone())),
        });
        std::fs::write(path, serde_json::to_string_pretty(&all)?)?;
        return Ok(());
    }
    let mut reports = Vec::new();
    for (set, index) in sets.iter().zip(&indexes) {
        let find = |text: &str, top_k: usize| -> Vec<(String, f32)> {
            let hits = index.search(&Query::new(text).top_k(top_k).min_score(cut)).hits;
            hits.into_iter().map(|hit| (hit.name, hit.score)).collect()
        };
        let report = evaluate(&find, &set.cases, worst, |_, _| {});
        line(&set.name, &report);
        if worst > 0 {
            println!("{report}");
        }
        reports.push(report);
        if baselines {
            let peer = TfIdfCosine::new(&set.corpus);
            let mine: Vec<f32> = set.cases.iter().take(150).map(|case| top(&peer, &case.query)).collect();
            let theirs: Vec<f32> = sets
                .iter()
                .filter(|other| other.name != set.name)
                .flat_map(|other| other.cases.iter().step_by(other.cases.len() / 100 + 1))
                .map(|case| top(&peer, &case.query))
                .collect();
            println!("  tf-idf AUC {:.3}", area_under_roc(&mine, &theirs).unwrap_or(0.0));
            line("  bm25", &evaluate(&Bm25::new(&set.corpus), &set.cases, 0, |_, _| {}));
            line("  tf-idf", &evaluate(&TfIdfCosine::new(&set.corpus), &set.cases, 0, |_, _| {}));
        }
    }
    line("MEAN", &mean(&reports));
    // Unanswerable: a set's queries against another set's tools.
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    let mut areas = Vec::new();
    for (at, index) in indexes.iter().enumerate() {
        let mine: Vec<f32> = sets[at].cases.iter().map(|case| top(index, &case.query)).collect();
        let mut theirs = Vec::new();
        for (other, set) in sets.iter().enumerate().filter(|(other, _)| *other != at) {
            let _ = other;
            theirs.extend(
                set.cases.iter().step_by(set.cases.len() / 100 + 1).map(|case| top(index, &case.query)),
            );
        }
        areas.push(area_under_roc(&mine, &theirs).unwrap_or(0.0));
        good.extend(mine.iter().step_by(mine.len() / 150 + 1).copied());
        bad.extend(theirs);
    }
    println!("AUC {:.4} per set {areas:.3?}", area_under_roc(&good, &bad).unwrap_or(0.0));
    for cut in [0.05_f32, 0.08, 0.1, 0.12, 0.15, 0.2] {
        let share = |scores: &[f32]| scores.iter().filter(|s| **s < cut).count() as f32 / scores.len() as f32;
        println!("cut {cut}: answerable lost {:.3}, unanswerable cut {:.3}", share(&good), share(&bad));
    }
    Ok(())
}
