//! The documents nearest to a query in meaning: first those whose vectors have the most signs in common with the query's, then ordered by the whole vectors.
//!
//! The signs of a vector are 24 bytes, so that comparing them takes about a tenth of the time.

use std::ops::Range;

use crate::{
    candidates::{Best, Candidate},
    document_vectors::{distances, signs},
    index::Index,
    meaning::DIMENSIONS,
    query::Query,
    vectors::cosines,
};

/// Documents whose whole vectors are compared, for each one that is returned.
const COMPARED: usize = 8;
/// If so few of them may be seen that too few are left, so many times as many are compared.
const WIDER: usize = 8;

/// The smallest distance within which there are as many as `wanted`, or all.
fn limit(counts: &[usize], wanted: usize) -> usize {
    let mut within = 0;
    for (distance, count) in counts.iter().enumerate() {
        within += count;
        if within >= wanted {
            return distance;
        }
    }
    counts.len()
}

impl Index {
    /// Up to `most` documents that are near to `vector`. A near one whose vector has many other signs may be missed.
    pub(crate) fn nearest(
        &self,
        vector: &[i8],
        most: usize,
        ranges: &[Vec<Range<u32>>],
        query: &Query<'_>,
    ) -> Vec<Candidate> {
        let query_signs = signs(vector);
        let parts = || self.inner.parts.iter().zip(ranges).enumerate();
        let mut all = Vec::new();
        for (_, (part, ranges)) in parts() {
            for range in ranges {
                distances(&query_signs, part.segment.vectors.signs_of(range.clone()), &mut all);
            }
        }
        let mut counts = [0_usize; DIMENSIONS + 1];
        for distance in &all {
            counts[usize::from(*distance)] += 1;
        }
        let mut wanted = most * COMPARED;
        loop {
            let limit = limit(&counts, wanted);
            let mut best = Best::new(most);
            let mut left = all.iter();
            let mut close: Vec<(usize, u32)> = Vec::new();
            for (number, (part, ranges)) in parts() {
                for (document, distance) in ranges.iter().cloned().flatten().zip(left.by_ref()) {
                    if usize::from(*distance) <= limit && part.sees(query.visible, document) {
                        close.push((number, document));
                    }
                }
            }
            if close.len() < most && limit < counts.len() {
                wanted = wanted.saturating_mul(WIDER);
                continue;
            }
            let vectors =
                close.iter().map(|(part, document)| self.inner.parts[*part].segment.vectors.of(*document));
            for (score, (part, document)) in cosines(vector, vectors).into_iter().zip(&close) {
                if score > best.bar {
                    best.offer(Candidate {
                        part: *part,
                        document: *document,
                        score,
                        order: score,
                        exact: false,
                    });
                }
            }
            return best.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_smallest_distance_with_enough_documents() {
        let counts = [1, 0, 2, 5];
        assert_eq!([0, 1, 2, 3, 4, 8, 9].map(|wanted| limit(&counts, wanted)), [0, 0, 2, 2, 3, 3, 4]);
    }
}
