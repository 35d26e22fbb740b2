//! Measures what search learns from calls, on the sets of a folder: `usage FOLDER [uses=N] [NAME=VALUE ...]`.
//!
//! Half of the requests of a set are made, each by `uses` callers, and followed by calls of the tools that answer them. Then the other half is
//! measured, and the first one again. A fifth of the calls may be wrong: of the best hit that does not answer the request.
use std::{
    error::Error,
    fs::File,
    io::BufReader,
    path::Path,
    time::{Duration, SystemTime},
};

use gatewright_search::{
    Index, Query, Usage, UsedDocument, Weights,
    eval::{Case, Report, area_under_roc, evaluate, read_cases},
};
use sets::{Set, load};

mod sets;

/// Hits among which a wrong call is chosen.
const SHOWN: usize = 5;
/// Weights of which one is chosen.
const WEIGHTS: [f32; 9] = [0.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0];

/// The calls of a simulation.
#[derive(Clone, Copy)]
struct Calls {
    /// Callers who make each request.
    uses: u32,
    /// One of so many requests is followed by a wrong call; 0 for none.
    wrong: u64,
    /// Only tools among the hits are called.
    only_shown: bool,
}

/// One set, its index, and the halves of its requests.
struct Halves {
    name: String,
    index: Index,
    made: Vec<Case>,
    others: Vec<Case>,
}

/// A number that differs from request to request, and is the same in each run.
fn number(text: &str) -> u64 {
    let mixed = text.bytes().fold(7_u64, |all, byte| all.wrapping_mul(31).wrapping_add(u64::from(byte)));
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

impl Halves {
    fn new(set: Set, weights: &Weights) -> Self {
        let index = Index::build_with(weights.clone(), set.corpus);
        let cases = set.cases.into_iter().filter(|case| !case.relevant.is_empty());
        let (made, others) = cases.partition(|case| number(&case.query).is_multiple_of(2));
        Self { name: set.name, index, made, others }
    }

    fn usage(&self, calls: Calls) -> Usage {
        let mut usage = Usage::default();
        for case in &self.made {
            let hits: Vec<String> = self
                .index
                .search(&Query::new(&case.query).top_k(SHOWN))
                .hits
                .into_iter()
                .map(|hit| hit.name)
                .collect();
            let is_wrong = calls.wrong > 0 && (number(&case.query) / 2).is_multiple_of(calls.wrong);
            let wrong = hits.iter().filter(|name| !case.relevant.contains(name)).take(usize::from(is_wrong));
            let right =
                case.relevant.iter().filter(|name| !is_wrong && (!calls.only_shown || hits.contains(name)));
            let terms = self.index.usage_terms(&case.query);
            for name in wrong.chain(right) {
                for _ in 0..calls.uses {
                    usage.count(terms.iter().copied(), UsedDocument::of(name), now());
                }
            }
        }
        usage
    }

    fn measure(&self, cases: &[Case], usage: &Usage) -> Report {
        let find = |text: &str, top_k: usize| -> Vec<(String, f32)> {
            let hits = self.index.search(&Query::new(text).top_k(top_k).usage(usage, now())).hits;
            hits.into_iter().map(|hit| (hit.name, hit.score)).collect()
        };
        evaluate(&find, cases, 0, |_, _| {})
    }

    /// The share of the other half whose tools are called after some request of the first.
    fn overlap(&self) -> f64 {
        let called = |name: &String| self.made.iter().any(|case| case.relevant.contains(name));
        let known = self.others.iter().filter(|case| case.relevant.iter().any(called)).count();
        known as f64 / self.others.len().max(1) as f64
    }

    /// The area under the ROC curve of the best scores of requests with an answer and of texts without.
    fn auc(&self, usage: &Usage, without: &[Case]) -> f64 {
        let best = |case: &Case| {
            let query = Query::new(&case.query).top_k(1).min_score(0.0).usage(usage, now());
            self.index.search(&query).hits.first().map_or(0.0, |hit| hit.score)
        };
        let with: Vec<f32> = self.others.iter().map(best).collect();
        let without: Vec<f32> = without.iter().map(best).collect();
        area_under_roc(&with, &without).unwrap_or(0.0)
    }
}

fn cell(report: &Report) -> String {
    format!("{:5.1} / {:5.1}", report.recall_at_5 * 100.0, report.ndcg_at_10 * 100.0)
}

fn time(report: &Report) -> String {
    format!("{:.3} {:.3}", report.latency.p50_ms, report.latency.p99_ms)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: usage FOLDER [uses=N] [choose=1] [NAME=VALUE ...]")?;
    let (mut weights, mut uses, mut choose) = (Weights::default(), 3, false);
    for argument in arguments {
        let (name, value) = argument.split_once('=').ok_or("NAME=VALUE expected")?;
        match name {
            "uses" => uses = value.parse()?,
            "choose" => choose = true,
            _ => weights = weights.with(name, value.parse()?).ok_or("unknown NAME")?,
        }
    }
    if choose {
        return choose_weight(&folder, &weights, uses);
    }
    let unanswerable = concat!(env!("CARGO_MANIFEST_DIR"), "/data/unanswerable.jsonl");
    let without = read_cases(BufReader::new(File::open(unanswerable)?))?;
    println!("Recall@5 / nDCG@10, each request by {uses} callers");
    println!(
        "Columns: known tools; others, and then the same again: without, with, a fifth wrong, of these only shown, all wrong; AUC without, with; ms p50 and p99 without, with; pairs"
    );
    let mut rows: Vec<[Report; 10]> = Vec::new();
    for set in load(Path::new(&folder))? {
        let halves = Halves::new(set, &weights);
        let none = Usage::default();
        let learned = [(0, false), (5, false), (5, true), (1, false)]
            .map(|(wrong, only_shown)| halves.usage(Calls { uses, wrong, only_shown }));
        let of = |cases: &[Case]| {
            let [all, wrong, shown, only_wrong] =
                learned.each_ref().map(|usage| halves.measure(cases, usage));
            [halves.measure(cases, &none), all, wrong, shown, only_wrong]
        };
        let (others, made) = (of(&halves.others), of(&halves.made));
        println!(
            "{:<15} {:4.0} %  {}  {}  {:.3} {:.3}  {}  {}",
            halves.name,
            halves.overlap() * 100.0,
            others.each_ref().map(cell).join(" | "),
            made.each_ref().map(cell).join(" | "),
            halves.auc(&none, &without),
            halves.auc(&learned[1], &without),
            others[..2].iter().map(time).collect::<Vec<_>>().join(", "),
            learned[1].len(),
        );
        let [a, b, c, d, e] = others;
        let [f, g, h, i, j] = made;
        rows.push([a, b, c, d, e, f, g, h, i, j]);
    }
    let mean = |at: usize| {
        let of = |field: fn(&Report) -> f64| {
            rows.iter().map(|row| field(&row[at])).sum::<f64>() / rows.len().max(1) as f64
        };
        Report { recall_at_5: of(|r| r.recall_at_5), ndcg_at_10: of(|r| r.ndcg_at_10), ..Report::default() }
    };
    let cells: Vec<String> = (0..10).map(|at| cell(&mean(at))).collect();
    println!("MEAN                    {}", cells.join(" | "));
    Ok(())
}

/// Chooses the weight for each set by the others: that with the best nDCG@10 of requests that were not made, with a fifth of the calls wrong.
/// Repeated requests want any weight to be higher.
fn choose_weight(folder: &str, weights: &Weights, uses: u32) -> Result<(), Box<dyn Error>> {
    // For each weight, the sets' figures: nDCG@10 of the others and the repeated requests.
    let mut gains: Vec<Vec<(String, [f64; 2])>> = Vec::new();
    for weight in WEIGHTS {
        let weights = weights.clone().with("used", weight).ok_or("no such weight")?;
        let mut sets = Vec::new();
        for set in load(Path::new(folder))? {
            let halves = Halves::new(set, &weights);
            let usage = halves.usage(Calls { uses, wrong: 5, only_shown: false });
            let figures =
                [&halves.others, &halves.made].map(|cases| halves.measure(cases, &usage).ndcg_at_10 * 100.0);
            sets.push((halves.name, figures));
        }
        let shown: Vec<String> = sets.iter().map(|(name, [a, b])| format!("{name} {a:.1} {b:.1}")).collect();
        println!("used={weight}: {}", shown.join(", "));
        gains.push(sets);
    }
    for left_out in 0..gains[0].len() {
        let of_others = |sets: &Vec<(String, [f64; 2])>| {
            let others = sets.iter().enumerate().filter(|(at, _)| *at != left_out);
            others.map(|(_, (_, [others, _]))| others).sum::<f64>()
        };
        let best = (0..WEIGHTS.len())
            .max_by(|a, b| of_others(&gains[*a]).total_cmp(&of_others(&gains[*b])))
            .unwrap_or(0);
        let ((name, before), (_, after)) = (&gains[0][left_out], &gains[best][left_out]);
        println!(
            "{name}: {} by the others; {:.1} {:.1} instead of {:.1} {:.1}",
            WEIGHTS[best], after[0], after[1], before[0], before[1]
        );
    }
    Ok(())
}
