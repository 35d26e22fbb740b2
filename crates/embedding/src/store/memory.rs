//! Vectors in memory, compared one by one: exact, and fast enough to about 50,000.

use std::sync::{PoisonError, RwLock};

use async_trait::async_trait;

use super::{
    Key, VectorStore,
    table::{Table, check, small},
};
use crate::EmbeddingError;

/// Keeps vectors as 8-bit numbers (one byte a dimension; the cosine is off by less than 0.01) until it is dropped.
#[derive(Debug)]
pub struct MemoryStore {
    dimensions: usize,
    table: RwLock<Table>,
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
}

#[async_trait]
impl VectorStore for MemoryStore {
    async fn missing(&self, keys: &[Key]) -> Result<Vec<Key>, EmbeddingError> {
        Ok(self.read(|table| keys.iter().filter(|key| !table.places.contains_key(key)).copied().collect()))
    }

    async fn put(&self, vectors: Vec<(Key, Vec<f32>)>) -> Result<(), EmbeddingError> {
        vectors.iter().try_for_each(|(_, vector)| check(self.dimensions, vector))?;
        self.write(|table| vectors.iter().for_each(|(key, vector)| table.put(*key, &small(vector))));
        Ok(())
    }

    async fn nearest(
        &self,
        query: &[f32],
        limit: usize,
        among: Option<&[Key]>,
    ) -> Result<Vec<(Key, f32)>, EmbeddingError> {
        check(self.dimensions, query)?;
        let query = small(query);
        Ok(self.read(|table| table.nearest(&query, limit, among, |_| true)))
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
