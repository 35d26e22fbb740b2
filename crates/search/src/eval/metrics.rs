//! The measures themselves.

use std::time::Instant;

use super::{Case, Latency, Miss, Report, Searcher, Unanswerable};

/// Number of hits of each ranking that are looked at.
const DEPTH: usize = 10;

/// Runs every case and reports. `worst` misses are listed; `progress` is told (done, of) after each query.
///
/// Recall@k is the mean share of a query's relevant documents among its first k. nDCG is binary, against the
/// best possible ranking. MRR looks at the first ten. Cases with nothing relevant count in latency and in
/// [`Report::unanswerable`].
pub fn evaluate(
    searcher: &(impl Searcher + ?Sized),
    cases: &[Case],
    worst: usize,
    mut progress: impl FnMut(usize, usize),
) -> Report {
    let mut report = Report { queries: cases.len(), ..Report::default() };
    let mut times = Vec::with_capacity(cases.len());
    let mut misses = Vec::new();
    let mut judged = 0_usize;
    let mut unanswerable = Answerable::new(searcher, cases);
    for (at, case) in cases.iter().enumerate() {
        let start = Instant::now();
        let found: Vec<String> =
            searcher.find(&case.query, DEPTH).into_iter().map(|(name, _)| name).collect();
        times.push(start.elapsed());
        unanswerable.see(case, found.is_empty());
        progress(at + 1, cases.len());
        if case.relevant.is_empty() {
            continue;
        }
        judged += 1;
        let good: Vec<bool> = found.iter().map(|name| case.relevant.contains(name)).collect();
        let all = case.relevant.len();
        let recall = |k: usize| good.iter().take(k).filter(|good| **good).count() as f64 / all as f64;
        report.recall_at_1 += recall(1);
        report.recall_at_3 += recall(3);
        report.recall_at_5 += recall(5);
        report.recall_at_10 += recall(10);
        report.ndcg_at_5 += ndcg(&good, all, 5);
        report.ndcg_at_10 += ndcg(&good, all, 10);
        let first = good.iter().position(|good| *good);
        report.mrr += first.map_or(0.0, |at| 1.0 / (at + 1) as f64);
        if recall(5) < 1.0 {
            misses.push((recall(5), recall(10), at, found));
        }
    }
    let divide = |value: &mut f64| *value /= judged.max(1) as f64;
    divide(&mut report.recall_at_1);
    divide(&mut report.recall_at_3);
    divide(&mut report.recall_at_5);
    divide(&mut report.recall_at_10);
    divide(&mut report.ndcg_at_5);
    divide(&mut report.ndcg_at_10);
    divide(&mut report.mrr);
    report.latency = Latency::of(times);
    report.unanswerable = unanswerable.report();
    misses.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
    report.worst = misses
        .into_iter()
        .take(worst)
        .map(|(_, _, at, found)| Miss {
            query: cases[at].query.clone(),
            relevant: cases[at].relevant.clone(),
            found: found.into_iter().take(5).collect(),
        })
        .collect();
    report
}

/// Tells queries that have an answer from those that have none, if the cases hold both.
struct Answerable<'s, S: ?Sized> {
    searcher: &'s S,
    wanted: bool,
    /// Best scores of queries without and with an answer.
    scores: [Vec<f32>; 2],
    /// Number of either that were answered with nothing.
    empty: [usize; 2],
}

impl<'s, S: Searcher + ?Sized> Answerable<'s, S> {
    fn new(searcher: &'s S, cases: &[Case]) -> Self {
        let wanted = cases.iter().any(|case| case.relevant.is_empty());
        Self { searcher, wanted, scores: [Vec::new(), Vec::new()], empty: [0, 0] }
    }

    fn see(&mut self, case: &Case, empty: bool) {
        if self.wanted {
            let has_answer = usize::from(!case.relevant.is_empty());
            self.scores[has_answer].push(self.searcher.best(&case.query));
            self.empty[has_answer] += usize::from(empty);
        }
    }

    fn report(&self) -> Option<Unanswerable> {
        let share = |of: usize| self.empty[of] as f64 / self.scores[of].len().max(1) as f64;
        self.wanted.then(|| Unanswerable {
            queries: self.scores[0].len(),
            area_under_roc: area_under_roc(&self.scores[1], &self.scores[0]),
            left_empty: share(0),
            lost: share(1),
        })
    }
}

fn ndcg(good: &[bool], relevant: usize, k: usize) -> f64 {
    let gain = |at: usize| 1.0 / ((at + 2) as f64).log2();
    let got: f64 = good.iter().take(k).enumerate().filter(|(_, good)| **good).map(|(at, _)| gain(at)).sum();
    let best: f64 = (0..relevant.min(k)).map(gain).sum();
    if best > 0.0 { got / best } else { 0.0 }
}

/// The probability that a random score of `positive` is above a random one of `negative`; ties count half.
///
/// `None` if either is empty.
#[must_use]
pub fn area_under_roc(positive: &[f32], negative: &[f32]) -> Option<f64> {
    if positive.is_empty() || negative.is_empty() {
        return None;
    }
    let mut all: Vec<(f32, bool)> =
        positive.iter().map(|s| (*s, true)).chain(negative.iter().map(|s| (*s, false))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut below = 0.0;
    let mut wins = 0.0;
    for same in all.chunk_by(|a, b| a.0 == b.0) {
        let good = same.iter().filter(|(_, positive)| *positive).count() as f64;
        let bad = same.len() as f64 - good;
        wins += good * (below + bad / 2.0);
        below += bad;
    }
    Some(wins / (positive.len() as f64 * negative.len() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(query: &str, relevant: &[&str]) -> Case {
        Case { query: query.to_owned(), relevant: relevant.iter().map(ToString::to_string).collect() }
    }

    #[test]
    fn a_known_ranking_has_the_measures_worked_out_by_hand() {
        let searcher = |text: &str, _: usize| -> Vec<(String, f32)> {
            text.split(' ').map(|name| (name.to_owned(), 1.0)).collect()
        };
        let cases = [case("x a y b", &["a", "b"]), case("a", &["a"])];
        let mut seen = Vec::new();
        let report = evaluate(&searcher, &cases, 5, |done, of| seen.push((done, of)));
        assert_eq!(seen, [(1, 2), (2, 2)]);
        assert!((report.recall_at_1 - 0.5).abs() < 1e-9);
        assert!((report.recall_at_3 - 0.75).abs() < 1e-9);
        assert!((report.mrr - 0.75).abs() < 1e-9);
        let ndcg = (1.0 / 3_f64.log2() + 1.0 / 5_f64.log2()) / (1.0 + 1.0 / 3_f64.log2());
        assert!((report.ndcg_at_10 - f64::midpoint(ndcg, 1.0)).abs() < 1e-9);
    }

    #[test]
    fn queries_without_an_answer_are_told_apart_by_their_best_score() {
        let searcher = |text: &str, _: usize| -> Vec<(String, f32)> {
            let score: f32 = text.parse().unwrap();
            if score > 0.0 { vec![("tool".to_owned(), score)] } else { Vec::new() }
        };
        let cases = [case("0.9", &["tool"]), case("0.5", &["tool"]), case("0.6", &[]), case("0", &[])];
        let report = evaluate(&searcher, &cases, 0, |_, _| {});
        let wanted = Unanswerable { queries: 2, area_under_roc: Some(0.75), left_empty: 0.5, lost: 0.0 };
        assert_eq!(report.unanswerable, Some(wanted));
        assert!((report.recall_at_1 - 1.0).abs() < 1e-9, "they do not count as misses");
        assert_eq!(evaluate(&searcher, &cases[..2], 0, |_, _| {}).unanswerable, None);
    }

    #[test]
    fn the_area_counts_ties_half() {
        assert_eq!(area_under_roc(&[1.0, 2.0], &[0.0]), Some(1.0));
        assert_eq!(area_under_roc(&[1.0], &[1.0]), Some(0.5));
        assert_eq!(area_under_roc(&[], &[1.0]), None);
    }
}
