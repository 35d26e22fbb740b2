//! Vectors side by side as 8-bit numbers, compared one by one.

use gatewright_search::vectors::cosines;
pub(super) use gatewright_search::vectors::quantize;
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

/// Refuses a vector of another length than the store's.
pub(super) fn check(dimensions: usize, vector: &[f32]) -> Result<(), EmbeddingError> {
    if vector.len() == dimensions {
        return Ok(());
    }
    Err(EmbeddingError::Dimension { stored: dimensions, model: vector.len() })
}
