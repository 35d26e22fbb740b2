//! The vectors of a segment's documents, and how many signs of each differ from those of a query.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use crate::meaning::DIMENSIONS;

/// A bit for each number of a vector: if it is positive.
pub(crate) type Signs = [u64; DIMENSIONS / 64];

/// Vectors of the documents of a segment, in their order; none where words alone count.
#[derive(Debug, Default)]
pub(crate) struct Vectors {
    numbers: Vec<i8>,
    signs: Vec<Signs>,
}

impl Vectors {
    pub(crate) fn with_capacity(documents: usize) -> Self {
        Self { numbers: Vec::with_capacity(documents * DIMENSIONS), signs: Vec::with_capacity(documents) }
    }

    /// Adds the vector of the next document.
    pub(crate) fn push(&mut self, vector: &[i8]) {
        if !vector.is_empty() {
            self.numbers.extend_from_slice(vector);
            self.signs.push(signs(vector));
        }
    }

    /// The vector of a document; empty where words alone count.
    pub(crate) fn of(&self, document: u32) -> &[i8] {
        let at = document as usize * DIMENSIONS;
        self.numbers.get(at..at + DIMENSIONS).unwrap_or_default()
    }

    pub(crate) fn signs_of(&self, documents: Range<u32>) -> &[Signs] {
        self.signs.get(documents.start as usize..documents.end as usize).unwrap_or_default()
    }
}

/// The signs of a vector.
pub(crate) fn signs(vector: &[i8]) -> Signs {
    let mut signs = Signs::default();
    for (at, number) in vector.iter().enumerate() {
        signs[at / 64] |= u64::from(*number > 0) << (at % 64);
    }
    signs
}

/// Adds to `out` how many signs each of `all` has that `query` has not.
pub(crate) fn distances(query: &Signs, all: &[Signs], out: &mut Vec<u8>) {
    Arch::new().dispatch(Distances { query, all, out });
}

struct Distances<'d> {
    query: &'d Signs,
    all: &'d [Signs],
    out: &'d mut Vec<u8>,
}

impl WithSimd for Distances<'_> {
    type Output = ();

    // Compiled for each kind of processor, and so with its instruction that counts bits.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.out.reserve(self.all.len());
        for signs in self.all {
            let mut distance = 0;
            for (a, b) in signs.iter().zip(self.query) {
                distance += (a ^ b).count_ones();
            }
            self.out.push(distance as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_counted_where_they_differ() {
        let mut vector = vec![1_i8; DIMENSIONS];
        let all_positive = signs(&vector);
        (vector[0], vector[64], vector[DIMENSIONS - 1]) = (0, -1, -127);
        let mut out = Vec::new();
        let all = [signs(&vector), all_positive, Signs::default()];
        distances(&all_positive, &all, &mut out);
        assert_eq!(out, [3, 0, 192]);
    }
}
