//! Vectors in the process, compared one by one: exact, and fast to some 200,000 (docs/adr/0004).

use std::{
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use async_trait::async_trait;
use tokio::{sync::Mutex, task::spawn_blocking};

use super::{
    Key, VectorStore,
    file::{encode, read, replace, seal},
    table::{Table, check, quantize},
};
use crate::EmbeddingError;

/// Vectors that are compared on the caller's thread; more take too long for a runtime's thread.
const COMPARED_IN_PLACE: usize = 20_000;

/// A store of one process, in memory or with a file behind it.
///
/// A number of a vector takes one byte; the cosine is off by less than 0.01. The file is read when the store is opened and
/// written anew after each change. One process writes a file at a time; of two, the last one's wins.
#[derive(Debug)]
pub struct ExactStore {
    dimensions: usize,
    table: Arc<RwLock<Table>>,
    file: Option<Arc<PathBuf>>,
    /// Locked while the file is written.
    writing: Mutex<()>,
}

impl ExactStore {
    /// Creates an empty store for vectors of `dimensions` numbers, without a file.
    #[must_use]
    pub fn in_memory(dimensions: usize) -> Self {
        Self { dimensions, table: Arc::default(), file: None, writing: Mutex::new(()) }
    }

    /// Opens or creates a file. One that is damaged, or has vectors of other dimensions, is replaced with a warning:
    /// vectors can always be made again.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    pub fn open(path: impl Into<PathBuf>, dimensions: usize) -> Result<Self, EmbeddingError> {
        let path = path.into();
        let table = Arc::new(RwLock::new(read(&path, dimensions)?));
        Ok(Self { table, file: Some(Arc::new(path)), ..Self::in_memory(dimensions) })
    }

    /// Number of vectors.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.table).keys.len()
    }

    /// True without any vector.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    async fn save(&self) -> Result<(), EmbeddingError> {
        let Some(path) = self.file.clone() else { return Ok(()) };
        let _writing = self.writing.lock().await;
        let (table, dimensions) = (self.table.clone(), self.dimensions);
        let write = move || {
            // The digest is computed after the table is unlocked.
            let bytes = encode(&lock(&table), dimensions);
            replace(&path, &seal(bytes))
        };
        spawn_blocking(write)
            .await
            .map_err(|error| EmbeddingError::store_because("vector file was not written", error))?
            .map_err(|error| EmbeddingError::store_because("vector file cannot be written", error))
    }
}

fn lock(table: &RwLock<Table>) -> RwLockReadGuard<'_, Table> {
    table.read().unwrap_or_else(PoisonError::into_inner)
}

fn lock_mut(table: &RwLock<Table>) -> RwLockWriteGuard<'_, Table> {
    table.write().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl VectorStore for ExactStore {
    async fn missing(&self, keys: &[Key]) -> Result<Vec<Key>, EmbeddingError> {
        let table = lock(&self.table);
        Ok(keys.iter().filter(|key| !table.places.contains_key(key)).copied().collect())
    }

    async fn put(&self, vectors: Vec<(Key, Vec<f32>)>) -> Result<(), EmbeddingError> {
        vectors.iter().try_for_each(|(_, vector)| check(self.dimensions, vector))?;
        {
            let mut table = lock_mut(&self.table);
            vectors.iter().for_each(|(key, vector)| table.put(*key, &quantize(vector)));
        }
        self.save().await
    }

    async fn nearest(
        &self,
        query: &[f32],
        limit: usize,
        among: Option<&[Key]>,
    ) -> Result<Vec<(Key, f32)>, EmbeddingError> {
        check(self.dimensions, query)?;
        let query = quantize(query);
        if among.map_or_else(|| self.len(), <[Key]>::len) <= COMPARED_IN_PLACE {
            return Ok(lock(&self.table).nearest(&query, limit, among));
        }
        let (table, among) = (self.table.clone(), among.map(<[Key]>::to_vec));
        spawn_blocking(move || lock(&table).nearest(&query, limit, among.as_deref()))
            .await
            .map_err(|error| EmbeddingError::store_because("vectors were not compared", error))
    }

    async fn forget(&self, keys: &[Key]) -> Result<(), EmbeddingError> {
        {
            let mut table = lock_mut(&self.table);
            keys.iter().for_each(|key| table.remove(key, self.dimensions));
        }
        self.save().await
    }
}

#[cfg(test)]
#[path = "exact_tests.rs"]
mod tests;
