//! Documents that may answer a query, before and after a close look.

/// A document under consideration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) part: usize,
    pub(crate) document: u32,
    pub(crate) score: f32,
    /// Sort key of candidates; not comparable between queries.
    pub(crate) order: f32,
    /// Named exactly by the query.
    pub(crate) exact: bool,
}

/// The best so many candidates.
pub(crate) struct Best {
    pub(crate) candidates: Vec<Candidate>,
    keep: usize,
    /// Scores up to this no longer get in.
    pub(crate) bar: f32,
}

impl Best {
    pub(crate) fn new(keep: usize) -> Self {
        Self { candidates: Vec::with_capacity(keep * 2), keep, bar: 0.0 }
    }

    pub(crate) fn offer(&mut self, candidate: Candidate) {
        self.candidates.push(candidate);
        if self.candidates.len() >= self.keep * 2 {
            self.trim();
        }
    }

    /// No more than are to be kept.
    pub(crate) fn finish(mut self) -> Vec<Candidate> {
        if self.candidates.len() > self.keep {
            self.trim();
        }
        self.candidates
    }

    fn trim(&mut self) {
        let by_score = |a: &Candidate, b: &Candidate| {
            b.score.total_cmp(&a.score).then(a.part.cmp(&b.part)).then(a.document.cmp(&b.document))
        };
        self.candidates.select_nth_unstable_by(self.keep - 1, by_score);
        self.candidates.truncate(self.keep);
        self.bar = self.candidates[self.keep - 1].score;
    }
}
