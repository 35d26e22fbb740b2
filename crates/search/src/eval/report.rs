//! Report of an evaluation, for programs and for people.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// Measures of one run. Shares are 0-1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Queries run.
    pub queries: usize,
    /// Mean share of the relevant documents at rank 1.
    pub recall_at_1: f64,
    /// ... among the first 3.
    pub recall_at_3: f64,
    /// ... among the first 5.
    pub recall_at_5: f64,
    /// ... among the first 10.
    pub recall_at_10: f64,
    /// Normalised discounted cumulative gain of the first 5.
    pub ndcg_at_5: f64,
    /// ... of the first 10.
    pub ndcg_at_10: f64,
    /// Mean reciprocal rank of the first relevant document, within ten.
    pub mrr: f64,
    /// Time per query.
    pub latency: Latency,
    /// Measures of queries without an answer; there when some case has nothing relevant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswerable: Option<Unanswerable>,
    /// Queries that found least, worst first.
    pub worst: Vec<Miss>,
}

/// Queries without an answer against those with one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unanswerable {
    /// Queries without an answer.
    pub queries: usize,
    /// Probability that a query with an answer has a better best score than one without (area under the receiver
    /// operating characteristic). Absent when every query is without.
    pub area_under_roc: Option<f64>,
    /// Share of the queries without an answer for which nothing was returned.
    pub left_empty: f64,
    /// Share of the queries with an answer for which nothing was returned.
    pub lost: f64,
}

/// Percentiles of the time one query took, in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Latency {
    /// Half the queries are faster.
    pub p50_ms: f64,
    /// Nine in ten are faster.
    pub p90_ms: f64,
    /// 99 in 100 are faster.
    pub p99_ms: f64,
    /// The slowest.
    pub max_ms: f64,
}

impl Latency {
    /// Percentiles of some times; zero if there are none.
    #[must_use]
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let index = (times.len() * percent).div_ceil(100).saturating_sub(1);
            times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
        };
        Self { p50_ms: at(50), p90_ms: at(90), p99_ms: at(99), max_ms: at(100) }
    }
}

/// A query that did not find all it should among the first five.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Miss {
    /// The query.
    pub query: String,
    /// The relevant documents.
    pub relevant: Vec<String>,
    /// The first five hits.
    pub found: Vec<String>,
}

/// A table for people, with the worst misses below it.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "queries        {:>8}", self.queries)?;
        for (label, share) in [
            ("Recall@1", self.recall_at_1),
            ("Recall@3", self.recall_at_3),
            ("Recall@5", self.recall_at_5),
            ("Recall@10", self.recall_at_10),
            ("nDCG@5", self.ndcg_at_5),
            ("nDCG@10", self.ndcg_at_10),
            ("MRR", self.mrr),
        ] {
            writeln!(f, "{label:<14} {:>7.1}%", share * 100.0)?;
        }
        if let Some(none) = &self.unanswerable {
            writeln!(f, "unanswerable   {:>8}", none.queries)?;
            if let Some(area) = none.area_under_roc {
                writeln!(f, "AUC            {area:>8.3}")?;
            }
            writeln!(f, "left empty     {:>7.1}%", none.left_empty * 100.0)?;
            writeln!(f, "lost           {:>7.1}%", none.lost * 100.0)?;
        }
        for (label, ms) in [
            ("p50", self.latency.p50_ms),
            ("p90", self.latency.p90_ms),
            ("p99", self.latency.p99_ms),
            ("max", self.latency.max_ms),
        ] {
            writeln!(f, "latency {label:<6} {ms:>8.3} ms")?;
        }
        for miss in &self.worst {
            let query: String = miss.query.chars().take(100).collect();
            writeln!(f, "\nmissed: {}", query.escape_debug())?;
            writeln!(f, "  wanted {}", miss.relevant.join(", "))?;
            writeln!(
                f,
                "  found  {}",
                if miss.found.is_empty() { "nothing".to_owned() } else { miss.found.join(", ") }
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_hundred_times_are_those_times() {
        let latency = Latency::of((1..=100).rev().map(Duration::from_millis).collect());
        assert_eq!((latency.p50_ms, latency.p99_ms, latency.max_ms), (50.0, 99.0, 100.0));
        assert_eq!(Latency::of(Vec::new()), Latency::default());
    }

    #[test]
    fn the_table_shows_measures_and_misses_without_control_characters() {
        let report = Report {
            queries: 1,
            recall_at_5: 0.5,
            worst: vec![Miss {
                query: "a\u{1b}[31m".to_owned(),
                relevant: vec!["x".to_owned()],
                found: vec![],
            }],
            ..Report::default()
        };
        let table = report.to_string();
        assert!(table.contains("Recall@5          50.0%"), "{table}");
        assert!(table.contains("found  nothing") && !table.contains('\u{1b}'), "{table}");
    }
}
