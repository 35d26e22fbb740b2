//! Vectors side by side as 8-bit numbers, compared one by one.

use pulp::{Arch, Simd, WithSimd};
use rustc_hash::FxHashMap;

use super::Key;
use crate::EmbeddingError;

/// Vectors side by side, without gaps.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(super) keys: Vec<Key>,
    pub(super) numbers: Vec<i8>,
    pub(super) places: FxHashMap<Key, usize>,
}

impl Table {
    pub(super) fn new(dimensions: usize, keys: Vec<Key>, numbers: Vec<i8>) -> Option<Self> {
        let places: FxHashMap<Key, usize> = keys.iter().copied().zip(0..).collect();
        (numbers.len() == keys.len() * dimensions && places.len() == keys.len()).then_some(Self {
            keys,
            numbers,
            places,
        })
    }

    pub(super) fn put(&mut self, key: Key, vector: &[i8]) {
        if let Some(place) = self.places.get(&key) {
            let start = place * vector.len();
            self.numbers[start..start + vector.len()].copy_from_slice(vector);
        } else {
            self.places.insert(key, self.keys.len());
            self.keys.push(key);
            self.numbers.extend_from_slice(vector);
        }
    }

    pub(super) fn remove(&mut self, key: &Key, dimensions: usize) {
        let Some(place) = self.places.remove(key) else { return };
        let last = self.keys.len() - 1;
        self.keys.swap_remove(place);
        if place != last {
            self.places.insert(self.keys[place], place);
            let (front, back) = self.numbers.split_at_mut(last * dimensions);
            front[place * dimensions..(place + 1) * dimensions].copy_from_slice(back);
        }
        self.numbers.truncate(last * dimensions);
    }

    /// Returns up to `limit` vectors nearest to `query`, nearest first; with `among`, of these keys only.
    pub(super) fn nearest(&self, query: &[i8], limit: usize, among: Option<&[Key]>) -> Vec<(Key, f32)> {
        let places: Vec<usize> = match among {
            None => (0..self.keys.len()).collect(),
            Some(keys) => keys.iter().filter_map(|key| self.places.get(key)).copied().collect(),
        };
        let row = |place: &usize| &self.numbers[place * query.len()..(place + 1) * query.len()];
        let cosines = cosines(query, places.iter().map(row));
        best(places.iter().map(|place| self.keys[*place]).zip(cosines).collect(), limit)
    }
}

/// Returns the best `limit`, best first; equal ones in order of their keys.
fn best(mut found: Vec<(Key, f32)>, limit: usize) -> Vec<(Key, f32)> {
    let order = |a: &(Key, f32), b: &(Key, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if limit > 0 && found.len() > limit {
        found.select_nth_unstable_by(limit - 1, order);
    }
    found.truncate(limit);
    found.sort_by(order);
    found
}

/// Returns the cosine of each vector with `query`, all of length one.
fn cosines<'v>(query: &[i8], vectors: impl ExactSizeIterator<Item = &'v [i8]>) -> Vec<f32> {
    Arch::new().dispatch(Cosines { query, vectors })
}

struct Cosines<'q, V> {
    query: &'q [i8],
    vectors: V,
}

impl<'v, V: ExactSizeIterator<Item = &'v [i8]>> WithSimd for Cosines<'_, V> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Vec<f32> {
        let mut cosines = Vec::with_capacity(self.vectors.len());
        // Plain loops: a closure given to an iterator might be compiled by itself, without wide instructions.
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            for vector in self.vectors {
                cosines.push(fast_dot(simd, self.query, vector) as f32 / (127.0 * 127.0));
            }
            return cosines;
        }
        for vector in self.vectors {
            cosines.push(dot(self.query, vector) as f32 / (127.0 * 127.0));
        }
        cosines
    }
}

#[inline(always)]
fn dot(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

/// [`dot`] with instructions that multiply and add sixteen numbers at once.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn fast_dot(simd: pulp::x86::V3, a: &[i8], b: &[i8]) -> i32 {
    let ((a, rest_of_a), (b, rest_of_b)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    let mut sums = simd.avx._mm256_setzero_si256();
    for (a, b) in a.iter().zip(b) {
        let a = simd.avx2._mm256_cvtepi8_epi16(pulp::cast(*a));
        let b = simd.avx2._mm256_cvtepi8_epi16(pulp::cast(*b));
        sums = simd.avx2._mm256_add_epi32(sums, simd.avx2._mm256_madd_epi16(a, b));
    }
    let sums: [i32; 8] = pulp::cast(sums);
    sums.iter().sum::<i32>() + dot(rest_of_a, rest_of_b)
}

/// Refuses a vector of another length than the store's.
pub(super) fn check(dimensions: usize, vector: &[f32]) -> Result<(), EmbeddingError> {
    if vector.len() == dimensions {
        return Ok(());
    }
    Err(EmbeddingError::Dimension { stored: dimensions, model: vector.len() })
}

/// Scales a vector of length one to numbers from -127 to 127.
pub(super) fn quantize(vector: &[f32]) -> Vec<i8> {
    vector.iter().map(|value| (value * 127.0).round().clamp(-127.0, 127.0) as i8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosines_are_the_same_on_every_processor_and_for_any_length() {
        for length in [0_usize, 1, 3, 15, 16, 17, 100, 384] {
            let numbers = |seed: usize| -> Vec<i8> {
                (0..length).map(|at| ((at * 53 + seed * 29) % 255) as u8 as i8).collect()
            };
            let (query, some) = (numbers(1), [numbers(2), numbers(3)]);
            let wanted: Vec<f32> = some.iter().map(|one| dot(&query, one) as f32 / (127.0 * 127.0)).collect();
            assert_eq!(cosines(&query, some.iter().map(Vec::as_slice)), wanted);
        }
    }
}
