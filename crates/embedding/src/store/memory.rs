//! Vectors in memory, compared one by one: exact, and fast enough to about 50,000.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

use async_trait::async_trait;

use super::{Key, VectorStore};
use crate::EmbeddingError;

/// Keeps vectors as 8-bit numbers (one byte a dimension; the cosine is off by less than 0.01) until it is dropped.
#[derive(Debug)]
pub struct MemoryStore {
    dimensions: usize,
    table: RwLock<Table>,
}

/// Vectors side by side, without gaps.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) keys: Vec<Key>,
    pub(super) numbers: Vec<i8>,
    places: HashMap<Key, usize>,
}

impl Table {
    pub(super) fn new(dimensions: usize, keys: Vec<Key>, numbers: Vec<i8>) -> Option<Self> {
        let places: HashMap<Key, usize> = keys.iter().copied().zip(0..).collect();
        (numbers.len() == keys.len() * dimensions && places.len() == keys.len()).then_some(Self {
            keys,
            numbers,
            places,
        })
    }

    fn put(&mut self, key: Key, vector: &[i8]) {
        if let Some(place) = self.places.get(&key) {
            let start = place * vector.len();
            self.numbers[start..start + vector.len()].copy_from_slice(vector);
        } else {
            self.places.insert(key, self.keys.len());
            self.keys.push(key);
            self.numbers.extend_from_slice(vector);
        }
    }

    fn remove(&mut self, key: &Key, dimensions: usize) {
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

    fn cosine(&self, place: usize, query: &[i8]) -> f32 {
        let start = place * query.len();
        let own = &self.numbers[start..start + query.len()];
        let sum: i32 = own.iter().zip(query).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        sum as f32 / (127.0 * 127.0)
    }
}

/// A vector of length one as numbers from -127 to 127.
fn small(vector: &[f32]) -> Vec<i8> {
    vector.iter().map(|value| (value * 127.0).round().clamp(-127.0, 127.0) as i8).collect()
}

impl MemoryStore {
    /// An empty store for vectors of so many dimensions.
    #[must_use]
    pub fn new(dimensions: usize) -> Self {
        Self { dimensions, table: RwLock::default() }
    }

    pub(super) fn with_table(dimensions: usize, table: Table) -> Self {
        Self { dimensions, table: RwLock::new(table) }
    }

    pub(super) fn read<T>(&self, look: impl FnOnce(&Table) -> T) -> T {
        look(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write(&self, change: impl FnOnce(&mut Table)) {
        change(&mut self.table.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// How many vectors there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read(|table| table.keys.len())
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn check(&self, vector: &[f32]) -> Result<(), EmbeddingError> {
        if vector.len() == self.dimensions {
            return Ok(());
        }
        Err(EmbeddingError::Dimension { stored: self.dimensions, model: vector.len() })
    }
}

#[async_trait]
impl VectorStore for MemoryStore {
    async fn missing(&self, keys: &[Key]) -> Result<Vec<Key>, EmbeddingError> {
        Ok(self.read(|table| keys.iter().filter(|key| !table.places.contains_key(key)).copied().collect()))
    }

    async fn put(&self, vectors: Vec<(Key, Vec<f32>)>) -> Result<(), EmbeddingError> {
        vectors.iter().try_for_each(|(_, vector)| self.check(vector))?;
        self.write(|table| vectors.iter().for_each(|(key, vector)| table.put(*key, &small(vector))));
        Ok(())
    }

    async fn nearest(
        &self,
        query: &[f32],
        limit: usize,
        among: Option<&[Key]>,
    ) -> Result<Vec<(Key, f32)>, EmbeddingError> {
        self.check(query)?;
        let query = small(query);
        let mut found: Vec<(Key, f32)> = self.read(|table| match among {
            None => {
                (0..table.keys.len()).map(|place| (table.keys[place], table.cosine(place, &query))).collect()
            }
            Some(keys) => keys
                .iter()
                .filter_map(|key| Some((*key, table.cosine(*table.places.get(key)?, &query))))
                .collect(),
        });
        let order = |a: &(Key, f32), b: &(Key, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if limit > 0 && found.len() > limit {
            found.select_nth_unstable_by(limit - 1, order);
        }
        found.truncate(limit);
        found.sort_by(order);
        Ok(found)
    }

    async fn forget(&self, keys: &[Key]) -> Result<(), EmbeddingError> {
        self.write(|table| keys.iter().for_each(|key| table.remove(key, self.dimensions)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keeps_the_contract_of_a_store() {
        super::super::contract::check(&MemoryStore::new(3), true).await;
    }

    #[tokio::test]
    async fn vectors_of_another_length_are_refused() {
        let store = MemoryStore::new(3);
        let error = store.put(vec![(Key([0; 16]), vec![1.0])]).await.unwrap_err();
        assert!(matches!(error, EmbeddingError::Dimension { stored: 3, model: 1 }));
        assert!(store.nearest(&[1.0, 0.0], 1, None).await.is_err());
    }
}
