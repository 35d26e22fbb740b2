//! Measures the ranking on the sets of a folder: `eval FOLDER [NAME=VALUE ...]`.
use std::{
    collections::{HashMap, HashSet},
    error::Error,
    fs::File,
    io::BufReader,
    path::Path,
};

use gatewright_search::{
    Index, Query, Visible, Weights,
    eval::{Bm25, Case, Report, Searcher, TfIdfCosine, area_under_roc, evaluate, read_cases},
};
use sets::{Set, load};

mod sets;

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

/// Recall@5 of the requests that one tool answers and of those that several do, and the share of the latter with all of them among five.
fn several(set: &Set, searcher: &impl Searcher) {
    let recall = |case: &Case| {
        let found = searcher.find(&case.query, 5);
        let relevant = found.iter().filter(|(name, _)| case.relevant.contains(name)).count();
        relevant as f64 / case.relevant.len() as f64
    };
    let of = |is_in: fn(usize) -> bool| -> Vec<f64> {
        set.cases.iter().filter(|case| is_in(case.relevant.len())).map(recall).collect()
    };
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len().max(1) as f64 * 100.0;
    let (one, several) = (of(|relevant| relevant == 1), of(|relevant| relevant > 1));
    let whole: Vec<f64> = several.iter().map(|recall| f64::from(u8::from(*recall == 1.0))).collect();
    println!(
        "  R@5 of {} with one tool {:5.1}, of {} with several {:5.1}, all of them {:5.1}",
        one.len(),
        mean(&one),
        several.len(),
        mean(&several),
        mean(&whole)
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
    searcher.best(text)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: eval FOLDER [baselines] [worst=N] [NAME=VALUE ...]")?;
    let sets = load(Path::new(&folder))?;
    let mut weights = Weights::default();
    let mut json: Option<String> = None;
    let (mut baselines, mut worst, mut cut, mut dump) = (false, 0, gatewright_search::DEFAULT_MIN_BEST, 0);
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
            let print = |kind: &str, text: &str, hidden: &[String]| {
                let sees = |name: &str| !hidden.iter().any(|one| one == name);
                let rows = index.training_rows(&Query::new(text).visible(Visible::By(&sees)));
                let best = rows.iter().max_by(|a, b| weights.rank.of(&a.1).total_cmp(&weights.rank.of(&b.1)));
                let Some(best) = best else {
                    println!("{}\t{kind}\t", set.name);
                    return;
                };
                let row: Vec<String> = (0..best.1.len())
                    .map(|at| rows.iter().map(|row| row.1[at]).fold(0.0, f32::max))
                    .chain(best.1.iter().copied())
                    .map(|value| format!("{value:.4}"))
                    .collect();
                println!(
                    "{}\t{kind}\t{}\t{}\t{}",
                    set.name,
                    best.0,
                    text.replace(['\t', '\n'], " "),
                    row.join("\t")
                );
            };
            for case in set.cases.iter().step_by(set.cases.len() / 400 + 1) {
                print("own", &case.query, &[]);
                print("removed", &case.query, &case.relevant);
            }
            let clean = concat!(env!("CARGO_MANIFEST_DIR"), "/data/unanswerable.jsonl");
            for case in read_cases(BufReader::new(File::open(clean)?))? {
                print("clean", &case.query, &[]);
            }
            for other in sets.iter().filter(|other| other.name != set.name) {
                for case in other.cases.iter().step_by(other.cases.len() / 130 + 1) {
                    print(&other.name, &case.query, &[]);
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
            let mut query = Query::new(text).top_k(top_k);
            (query.min_best, query.min_score) = (cut, query.min_score.min(cut));
            let hits = index.search(&query).hits;
            hits.into_iter().map(|hit| (hit.name, hit.score)).collect()
        };
        let report = evaluate(&find, &set.cases, worst, |_, _| {});
        line(&set.name, &report);
        several(set, &find);
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
    unanswerable(&sets, &indexes)
}

/// Prints how well queries without an answer are told apart, by five meanings of the word: short and
/// longer texts that no tool answers, the other sets' queries (some of which do have an answer), and a set's own with the whole apps of
/// their tools taken away, or with these tools alone (for most of which another tool would do).
fn unanswerable(sets: &[Set], indexes: &[Index]) -> Result<(), Box<dyn Error>> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/data"));
    let read =
        |name: &str| Ok::<_, Box<dyn Error>>(read_cases(BufReader::new(File::open(folder.join(name))?))?);
    let (short, long) = (read("unanswerable.jsonl")?, read("unanswerable_long.jsonl")?);
    let mut good = Vec::new();
    let mut bad: [Vec<Vec<f32>>; 5] = Default::default();
    for (set, index) in sets.iter().zip(indexes) {
        let few = |set: &'_ Set| set.cases.len() / 400 + 1;
        good.push(
            set.cases.iter().step_by(few(set)).map(|case| index.best(&case.query)).collect::<Vec<f32>>(),
        );
        bad[0].push(short.iter().map(|case| index.best(&case.query)).collect());
        bad[1].push(long.iter().map(|case| index.best(&case.query)).collect());
        let others = sets.iter().filter(|other| other.name != set.name);
        bad[2].push(
            others
                .flat_map(|other| other.cases.iter().step_by(other.cases.len() / 130 + 1))
                .map(|case| index.best(&case.query))
                .collect(),
        );
        let among = |text: &str, sees: &(dyn Fn(&str) -> bool + Sync)| {
            let query = Query::new(text).top_k(1).min_score(0.0).visible(Visible::By(sees));
            index.search(&query).hits.first().map_or(0.0, |hit| hit.score)
        };
        let apps: HashMap<&str, &str> =
            set.corpus.iter().map(|tool| (tool.name.as_str(), tool.app_id.as_str())).collect();
        let without_apps = |case: &Case| {
            let gone: HashSet<Option<&&str>> =
                case.relevant.iter().map(|name| apps.get(name.as_str())).collect();
            among(&case.query, &|name| !gone.contains(&apps.get(name)))
        };
        let without_tools =
            |case: &Case| among(&case.query, &|name| !case.relevant.iter().any(|one| one == name));
        bad[3].push(set.cases.iter().step_by(few(set)).map(without_apps).collect());
        bad[4].push(set.cases.iter().step_by(few(set)).map(without_tools).collect());
    }
    let pooled: Vec<f32> = good.concat();
    let labels =
        ["short texts", "long texts", "other sets' queries", "whole apps taken away", "tools taken away"];
    for (label, bad) in labels.iter().zip(&bad) {
        let each: Vec<f64> =
            good.iter().zip(bad).map(|(good, bad)| area_under_roc(good, bad).unwrap_or(0.0)).collect();
        let all = bad.concat();
        let mean = each.iter().sum::<f64>() / each.len().max(1) as f64;
        println!("AUC {mean:.4} {label}, per set {each:.3?}");
        for cut in [0.05, 0.06, 0.07, 0.08, 0.1] {
            let share = |of: &[f32]| of.iter().filter(|score| **score < cut).count() as f32 / of.len() as f32;
            println!("  below {cut}: {:.3}, of the answerable {:.3}", share(&all), share(&pooled));
        }
    }
    Ok(())
}
