//! Measures a search: recall, ranking quality, latency and the worst misses over a labelled set.
//!
//! A set is a corpus of documents and a list of queries with the names they should find, both as JSON lines.
//! Whatever answers queries can be measured: it implements [`Searcher`].

mod baselines;
mod metrics;
mod report;
mod sets;

pub use baselines::{Bm25, TfIdfCosine};
pub use metrics::{area_under_roc, evaluate};
pub use report::{Latency, Miss, Report, Unanswerable};
pub use sets::{Case, ReadError, read_cases, read_corpus};

use crate::{Index, Query};

/// Something that answers queries and can be measured.
pub trait Searcher {
    /// Up to `top_k` names with their scores, best first.
    fn find(&self, text: &str, top_k: usize) -> Vec<(String, f32)>;

    /// Score of the best hit, also of one too bad to be returned; 0 if there is none.
    fn best(&self, text: &str) -> f32 {
        self.find(text, 1).first().map_or(0.0, |hit| hit.1)
    }
}

impl Searcher for Index {
    fn find(&self, text: &str, top_k: usize) -> Vec<(String, f32)> {
        let hits = self.search(&Query::new(text).top_k(top_k)).hits;
        hits.into_iter().map(|hit| (hit.name, hit.score)).collect()
    }

    fn best(&self, text: &str) -> f32 {
        self.search(&Query::new(text).top_k(1).min_score(0.0)).hits.first().map_or(0.0, |hit| hit.score)
    }
}

impl<F: Fn(&str, usize) -> Vec<(String, f32)>> Searcher for F {
    fn find(&self, text: &str, top_k: usize) -> Vec<(String, f32)> {
        self(text, top_k)
    }
}
