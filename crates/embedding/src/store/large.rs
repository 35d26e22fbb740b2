//! Vectors in a file, exact while they are few and in an HNSW graph when they are many.
//!
//! What was put lately is compared one by one and kept as [`FileStore`](super::FileStore) keeps it. When there is
//! much of it, it moves to a [`Graph`] in the background, in a file beside the first (`.usearch`): the graph is made
//! anew, so that it is as good as on the first day, and searches go on meanwhile. A vector of the graph that is
//! replaced or removed is hidden by a later one of its key; zeros mean removed.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Instant,
};

use async_trait::async_trait;
use rustc_hash::FxHashSet;
use tokio_util::task::TaskTracker;

use super::{
    Key, VectorStore,
    file::{encode, read, replace},
    graph::{Graph, Labels},
    table::{Table, best, check, small},
};
use crate::EmbeddingError;

/// Vectors beside a graph, compared one by one: at least so many, or one for so many of the graph.
const RECENT: usize = 5_000;
const RECENT_SHARE: usize = 8;
/// Tools asked for by key that are compared one by one, rather than looked for in the graph.
const FEW: usize = 50_000;

/// A store for any number of vectors, of one process. Exact while they are few; when they are many, a search finds
/// nearly all of the nearest in a fraction of the time.
#[derive(Debug)]
pub struct LargeStore {
    inner: Arc<Inner>,
    tasks: TaskTracker,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    dimensions: usize,
    exact: usize,
    state: RwLock<State>,
    /// Held while the file of recent vectors is written.
    writing: tokio::sync::Mutex<()>,
    moving: AtomicBool,
    /// Recent vectors up to which moving them is not tried again after a failure.
    failed_at: AtomicUsize,
    stop: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    graph: Option<Arc<Graph>>,
    /// Put since the graph was made. Zeros hide a vector of the graph.
    recent: Table,
    removed: FxHashSet<Key>,
    /// Labels of the graph that `recent` hides.
    hidden: Arc<FxHashSet<u32>>,
}

impl State {
    fn new(graph: Option<Arc<Graph>>, recent: Table) -> Self {
        let dimensions = recent.numbers.len() / recent.keys.len().max(1);
        let rows = recent.keys.iter().zip(recent.numbers.chunks(dimensions.max(1)));
        let removed =
            rows.filter(|(_, row)| row.iter().all(|number| *number == 0)).map(|(key, _)| *key).collect();
        let label = |key| graph.as_ref().and_then(|graph| graph.label(key));
        let hidden = recent.keys.iter().filter_map(label).collect();
        Self { graph, recent, removed, hidden: Arc::new(hidden) }
    }

    fn has(&self, key: &Key) -> bool {
        match self.recent.places.contains_key(key) {
            true => !self.removed.contains(key),
            false => self.graph.as_ref().is_some_and(|graph| graph.label(key).is_some()),
        }
    }

    fn put(&mut self, key: Key, vector: &[i8]) {
        self.recent.put(key, vector);
        self.removed.remove(&key);
        if let Some(label) = self.graph.as_ref().and_then(|graph| graph.label(&key)) {
            Arc::make_mut(&mut self.hidden).insert(label);
        }
    }

    fn remove(&mut self, key: Key, dimensions: usize) {
        if self.graph.as_ref().is_some_and(|graph| graph.label(&key).is_some()) {
            self.put(key, &vec![0; dimensions]);
            self.removed.insert(key);
        } else {
            self.recent.remove(&key, dimensions);
        }
    }

    /// What was put since the graph was made, zeros too.
    fn rows(&self, dimensions: usize) -> Vec<(Key, Vec<i8>)> {
        let rows = self.recent.keys.iter().zip(self.recent.numbers.chunks(dimensions));
        rows.map(|(key, row)| (*key, row.to_vec())).collect()
    }

    /// All vectors there are.
    fn vectors(&self, dimensions: usize) -> io::Result<Vec<(Key, Vec<i8>)>> {
        let mut all = self.rows(dimensions);
        all.retain(|(key, _)| !self.removed.contains(key));
        if let Some(graph) = &self.graph {
            for (label, key) in (0..).zip(graph.keys()).filter(|(label, _)| !self.hidden.contains(label)) {
                all.push((*key, graph.vector(label)?));
            }
        }
        Ok(all)
    }
}

impl LargeStore {
    /// Vectors up to which all are compared one by one, unless it is said otherwise.
    pub const EXACT_UP_TO: usize = 50_000;

    /// Opens or creates a file, with the graph beside it. More than `exact` vectors are not compared one by one. A file that is damaged, or holds vectors of other
    /// dimensions, is started anew with a warning: vectors can always be made again.
    ///
    /// # Errors
    /// When a file is there but cannot be read.
    pub fn open(path: impl Into<PathBuf>, dimensions: usize, exact: usize) -> Result<Self, EmbeddingError> {
        let path = path.into();
        let file = graph_file(&path);
        let graph = match Graph::open(&file, dimensions) {
            Ok(graph) => Some(Arc::new(graph)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(EmbeddingError::store_because("vector file cannot be read", error));
            }
            Err(error) => {
                tracing::warn!(file.path = %file.display(), why = %error, "vector file is not usable and is built anew");
                None
            }
        };
        let state = State::new(graph, read(&path, dimensions)?);
        Ok(Self {
            inner: Arc::new(Inner {
                path,
                dimensions,
                exact,
                state: RwLock::new(state),
                writing: tokio::sync::Mutex::new(()),
                moving: AtomicBool::new(false),
                failed_at: AtomicUsize::new(0),
                stop: AtomicBool::new(false),
            }),
            tasks: TaskTracker::new(),
        })
    }

    /// How many vectors there are.
    #[must_use]
    pub fn len(&self) -> usize {
        let state = self.inner.read();
        let graph = state.graph.as_ref().map_or(0, |graph| graph.keys().len());
        graph - state.hidden.len() + state.recent.keys.len() - state.removed.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until what is being moved to the graph is there.
    #[doc(hidden)]
    pub async fn settled(&self) {
        self.move_if_many();
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }

    /// How many vectors are in the graph, those that are hidden too.
    #[doc(hidden)]
    #[must_use]
    pub fn in_graph(&self) -> usize {
        self.inner.read().graph.as_ref().map_or(0, |graph| graph.keys().len())
    }

    /// Moves recent vectors to the graph, in the background, if there are many.
    fn move_if_many(&self) {
        let stopped = self.inner.stop.load(Ordering::Relaxed);
        if stopped || !self.inner.is_full() || self.inner.moving.swap(true, Ordering::AcqRel) {
            return;
        }
        let inner = Arc::clone(&self.inner);
        self.tasks.spawn(async move {
            if let Err(error) = inner.move_all().await {
                let path = inner.path.display();
                tracing::warn!(file.path = %path, error = %error, "vectors could not be moved to their graph");
                let count = inner.read().recent.keys.len();
                inner.failed_at.store(count + RECENT, Ordering::Relaxed);
            }
            inner.moving.store(false, Ordering::Release);
        });
    }
}

impl Drop for LargeStore {
    fn drop(&mut self) {
        self.inner.stop.store(true, Ordering::Relaxed);
    }
}

fn graph_file(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".usearch");
    PathBuf::from(name)
}

impl Inner {
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_full(&self) -> bool {
        let state = self.read();
        let limit = match &state.graph {
            Some(graph) => RECENT.max(graph.keys().len() / RECENT_SHARE).min(self.exact),
            None => self.exact,
        };
        state.recent.keys.len() > limit.max(self.failed_at.load(Ordering::Relaxed))
    }

    async fn save(&self) -> Result<(), EmbeddingError> {
        let _writing = self.writing.lock().await;
        let bytes = encode(&self.read().recent, self.dimensions);
        let path = self.path.clone();
        tokio::task::spawn_blocking(move || replace(&path, &bytes))
            .await
            .map_err(|error| EmbeddingError::store_because("vector file was not written", error))?
            .map_err(|error| EmbeddingError::store_because("vector file cannot be written", error))
    }

    /// Makes the graph anew of all vectors. What is put meanwhile stays recent. A crash at any time leaves each vector
    /// in one of the files.
    async fn move_all(self: &Arc<Self>) -> Result<(), EmbeddingError> {
        let this = Arc::clone(self);
        let built = tokio::task::spawn_blocking(move || this.build())
            .await
            .map_err(|error| EmbeddingError::store_because("vector graph was not built", error))?
            .map_err(|error| EmbeddingError::store_because("vector graph cannot be built", error))?;
        if built {
            self.save().await?;
            if self.read().graph.is_none() {
                // What it held is in the other file now.
                let _ = fs::remove_file(graph_file(&self.path));
            }
        }
        Ok(())
    }

    /// Whether it was done, rather than stopped.
    fn build(&self) -> io::Result<bool> {
        let start = Instant::now();
        let (all, moved) = {
            let state = self.read();
            (state.vectors(self.dimensions)?, state.rows(self.dimensions))
        };
        let count = all.len();
        if count <= self.exact {
            let mut state = self.write();
            let (keys, numbers): (Vec<Key>, Vec<Vec<i8>>) =
                state.vectors(self.dimensions)?.into_iter().unzip();
            let recent = Table::new(self.dimensions, keys, numbers.concat()).unwrap_or_default();
            *state = State::new(None, recent);
            return Ok(true);
        }
        let Some(graph) = Graph::build(&graph_file(&self.path), self.dimensions, all, &self.stop)? else {
            return Ok(false);
        };
        let mut state = self.write();
        let mut recent = std::mem::take(&mut state.recent);
        for (key, row) in moved {
            match recent.row(&key, self.dimensions) {
                Some(now) if *now == *row => recent.remove(&key, self.dimensions),
                Some(_) => {}
                // Removed meanwhile.
                None => recent.put(key, &vec![0; self.dimensions]),
            }
        }
        *state = State::new(Some(Arc::new(graph)), recent);
        drop(state);
        let seconds = start.elapsed().as_secs_f64();
        tracing::info!(vectors = count, seconds, "vectors were moved to their graph");
        Ok(true)
    }
}

#[async_trait]
impl VectorStore for LargeStore {
    async fn missing(&self, keys: &[Key]) -> Result<Vec<Key>, EmbeddingError> {
        self.move_if_many();
        let state = self.inner.read();
        Ok(keys.iter().filter(|key| !state.has(key)).copied().collect())
    }

    async fn put(&self, vectors: Vec<(Key, Vec<f32>)>) -> Result<(), EmbeddingError> {
        vectors.iter().try_for_each(|(_, vector)| check(self.inner.dimensions, vector))?;
        {
            let mut state = self.inner.write();
            vectors.iter().for_each(|(key, vector)| state.put(*key, &small(vector)));
        }
        self.inner.save().await?;
        self.move_if_many();
        Ok(())
    }

    async fn nearest(
        &self,
        query: &[f32],
        limit: usize,
        among: Option<&[Key]>,
    ) -> Result<Vec<(Key, f32)>, EmbeddingError> {
        check(self.inner.dimensions, query)?;
        let query = small(query);
        let (mut found, graph, hidden) = {
            let state = self.inner.read();
            let recent = state.recent.nearest(&query, limit, among, |key| !state.removed.contains(key));
            (recent, state.graph.clone(), Arc::clone(&state.hidden))
        };
        let Some(graph) = graph else { return Ok(found) };
        let labels = among.map(|keys| {
            let labels = keys.iter().filter_map(|key| graph.label(key));
            labels.filter(|label| !hidden.contains(label)).collect::<Vec<u32>>()
        });
        let more = match labels {
            None => graph.near(&query, limit, &hidden, None).await,
            Some(labels) if labels.len() <= FEW => graph.nearest_of(&query, limit, &labels).await,
            Some(labels) => graph.near(&query, limit, &hidden, Some(&Labels::new(&graph, &labels))).await,
        };
        found.extend(more.map_err(|error| EmbeddingError::store_because("vector graph failed", error))?);
        Ok(best(found, limit))
    }

    async fn forget(&self, keys: &[Key]) -> Result<(), EmbeddingError> {
        {
            let mut state = self.inner.write();
            keys.iter().for_each(|key| state.remove(*key, self.inner.dimensions));
        }
        self.inner.save().await?;
        self.move_if_many();
        Ok(())
    }

    async fn close(&self) {
        self.inner.stop.store(true, Ordering::Relaxed);
        self.tasks.close();
        self.tasks.wait().await;
    }
}

#[cfg(test)]
#[path = "large_tests.rs"]
mod tests;
