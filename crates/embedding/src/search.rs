//! The semantic search itself: keeps vectors up to date in the background and blends at query time.
//!
//! One snapshot of the tools is in `state`, the weights of the rankings in `fusion`.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use gatewright_search::{Hit, Index, MAX_TOP_K, Query, SearchResult};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Embedder, EmbeddingError, Fusion, Key, Status, VectorStore,
    fusion::{Blended, Places},
    state::{Snapshot, Tools},
};

/// Texts embedded in one go.
const BATCH: usize = 32;
/// Vectors are written when this much time has passed, or twenty times what the last write took.
const WRITE_EVERY: Duration = Duration::from_secs(2);
/// After a failure the next try comes after this time, then after twice as long each time.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(60);
/// Characters of a query that are embedded.
const MAX_QUERY: usize = 2000;

/// An answer, and what it was made with.
#[derive(Debug, Clone, PartialEq)]
pub struct SemanticResult {
    /// Hits and count, as the lexical search gives them.
    pub result: SearchResult,
    /// [`Status::Ready`] if the hits are blended, else why they are lexical.
    pub status: Status,
}

struct Service {
    embedder: Arc<dyn Embedder>,
    store: Arc<dyn VectorStore>,
    fusion: Fusion,
    state: ArcSwap<Snapshot>,
    /// One update at a time.
    updating: tokio::sync::Mutex<()>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// Semantic search over the tools of an [`Index`]. Clones share everything.
#[derive(Clone)]
pub struct SemanticSearch {
    inner: Arc<Service>,
}

impl std::fmt::Debug for SemanticSearch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SemanticSearch").field("status", &self.status()).finish_non_exhaustive()
    }
}

impl SemanticSearch {
    /// A search over nothing yet.
    #[must_use]
    pub fn new(embedder: Arc<dyn Embedder>, store: Arc<dyn VectorStore>, fusion: Fusion) -> Self {
        let state = Snapshot { tools: Arc::default(), status: Status::Ready, generation: 0 };
        Self {
            inner: Arc::new(Service {
                embedder,
                store,
                fusion,
                state: ArcSwap::from_pointee(state),
                updating: tokio::sync::Mutex::new(()),
                tasks: TaskTracker::new(),
                stop: CancellationToken::new(),
            }),
        }
    }

    /// Returns the progress of the vectors.
    #[must_use]
    pub fn status(&self) -> Status {
        self.inner.state.load().status.clone()
    }

    /// Searches `index` from now on; vectors that are missing are made in the background, and a model or store that
    /// fails is tried again after 1 s, 2 s and so on up to a minute. Must be called within a Tokio runtime, by one
    /// caller at a time.
    pub fn replace(&self, index: Index) {
        let this = self.clone();
        let generation = self.set_index(index);
        self.inner.tasks.spawn(async move {
            let stop = this.inner.stop.clone();
            if stop.run_until_cancelled(this.update_until_done(generation)).await.is_none() {
                tracing::debug!("embedding stopped");
            }
        });
    }

    /// Searches `index` from now on and returns when all vectors are there.
    ///
    /// # Errors
    /// When the model or the store fails; searches are lexical until a later update succeeds.
    pub async fn replace_now(&self, index: Index) -> Result<(), EmbeddingError> {
        self.set_index(index);
        self.update().await
    }

    /// Ends background work and waits for it.
    pub async fn close(&self) {
        self.inner.stop.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    /// Makes a snapshot the one that is searched, and returns its number.
    fn set_index(&self, index: Index) -> u64 {
        let before = self.inner.state.load();
        let tools = Arc::new(Tools::of(index, self.inner.embedder.id(), &before.tools));
        let status = Status::Building { done: 0, total: tools.names.len() };
        let generation = before.generation + 1;
        self.inner.state.store(Arc::new(Snapshot { tools, status, generation }));
        generation
    }

    fn set_status(&self, generation: u64, status: &Status) {
        self.inner.state.rcu(|state| {
            let mut next = Snapshot::clone(state);
            if state.generation == generation {
                next.status = status.clone();
            }
            next
        });
    }

    /// Updates until it succeeds or another snapshot takes the place of this one.
    async fn update_until_done(&self, generation: u64) {
        let mut wait = FIRST_RETRY;
        while self.inner.state.load().generation == generation && self.update().await.is_err() {
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LAST_RETRY);
        }
    }

    /// Makes what vectors the current snapshot lacks.
    async fn update(&self) -> Result<(), EmbeddingError> {
        let _one = self.inner.updating.lock().await;
        let state = self.inner.state.load_full();
        let made = self.make_missing(&state).await;
        match &made {
            Ok(()) => self.set_status(state.generation, &Status::Ready),
            Err(error) => {
                tracing::error!(error.code = error.code(), error = %error, "vectors could not be made");
                self.set_status(state.generation, &Status::Unavailable { code: error.code() });
            }
        }
        made
    }

    async fn make_missing(&self, state: &Snapshot) -> Result<(), EmbeddingError> {
        let (tools, store) = (&state.tools, &self.inner.store);
        let all: Vec<Key> = tools.names.keys().copied().collect();
        let missing: HashSet<Key> = store.missing(&all).await?.into_iter().collect();
        let work = tools.texts(&missing);
        let start = Instant::now();
        let mut done = all.len() - work.len();
        let (mut made, mut written, mut every) = (Vec::new(), Instant::now(), WRITE_EVERY);
        for batch in work.chunks(BATCH) {
            let batch = batch.to_vec();
            let embedder = Arc::clone(&self.inner.embedder);
            let vectors = tokio::task::spawn_blocking(move || {
                let texts: Vec<&str> = batch.iter().map(|(_, text)| text.as_str()).collect();
                let vectors = embedder.embed(&texts)?;
                Ok::<_, EmbeddingError>(batch.iter().map(|(key, _)| *key).zip(vectors).collect::<Vec<_>>())
            })
            .await
            .map_err(|error| EmbeddingError::Model(format!("the model failed: {error}")))??;
            done += vectors.len();
            made.extend(vectors);
            if written.elapsed() >= every {
                let begun = Instant::now();
                store.put(std::mem::take(&mut made)).await?;
                written = Instant::now();
                every = WRITE_EVERY.max(20 * (written - begun));
            }
            if done < all.len() {
                self.set_status(state.generation, &Status::Building { done, total: all.len() });
            }
        }
        if !made.is_empty() {
            store.put(made).await?;
        }
        if !work.is_empty() {
            let seconds = start.elapsed().as_secs_f64();
            tracing::info!(tools = all.len(), made = work.len(), seconds, "tools have their vectors");
        }
        let forget = tools.to_forget();
        if !forget.is_empty() {
            store.forget(forget).await?;
        }
        Ok(())
    }

    /// The best tools for a query: blended if every vector is there, else lexical.
    pub async fn search(&self, query: &Query<'_>) -> SemanticResult {
        let state = self.inner.state.load_full();
        if state.status != Status::Ready {
            return SemanticResult { result: state.tools.index.search(query), status: state.status.clone() };
        }
        match self.blended(&state.tools, query).await {
            Ok(best) => {
                let hits = best
                    .into_iter()
                    .filter_map(|one| {
                        let entry = state.tools.index.entry(&one.name)?;
                        Some(Hit {
                            name: entry.name.to_owned(),
                            app_id: entry.app_id.to_owned(),
                            description: entry.description.to_owned(),
                            score: one.score,
                        })
                    })
                    .collect();
                let total_indexed = state.tools.index.count_visible(query.visible);
                SemanticResult { result: SearchResult { hits, total_indexed }, status: Status::Ready }
            }
            Err(error) => {
                tracing::warn!(error.code = error.code(), error = %error, "semantic search failed; answering lexically");
                let status = Status::Unavailable { code: error.code() };
                SemanticResult { result: state.tools.index.search(query), status }
            }
        }
    }

    /// Explains the place of each hit of [`SemanticSearch::search`]. `None` while answers are lexical.
    pub async fn explain(&self, query: &Query<'_>) -> Option<Vec<Blended>> {
        let state = self.inner.state.load_full();
        if state.status != Status::Ready {
            return None;
        }
        self.blended(&state.tools, query).await.ok()
    }

    async fn blended(&self, tools: &Tools, query: &Query<'_>) -> Result<Vec<Blended>, EmbeddingError> {
        if query.text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let wide = Query { top_k: MAX_TOP_K, min_score: 0.0, min_best: 0.0, ..*query };
        let mut documents: HashMap<String, Places> = HashMap::new();
        for one in tools.index.rank(&wide) {
            let places = Places { order: Some(one.order), score: one.score, cosine: None, exact: one.exact };
            documents.insert(one.name, places);
        }
        let among = tools.among(query);
        let vector = self.embed(query.text).await?;
        let mut near = self.nearest(tools, &vector, among.as_deref()).await?;
        // Candidates of the lexical ranking need their cosine too.
        let known: HashSet<Key> = near.iter().map(|(key, _)| *key).collect();
        let mut rest = tools.keys_of(documents.keys().map(String::as_str));
        rest.retain(|key| !known.contains(key));
        if !rest.is_empty() {
            near.extend(self.inner.store.nearest(&vector, rest.len(), Some(&rest)).await?);
        }
        for (key, cosine) in near {
            for name in tools.names.get(&key).into_iter().flatten() {
                if among.is_none() || tools.index.is_visible(name, query.app_ids, query.visible) {
                    documents.entry(name.clone()).or_default().cosine = Some(cosine);
                }
            }
        }
        // One vector says less about a request the more parts it has.
        let parts = gatewright_search::clauses(query.text).len().max(1);
        let fusion = Fusion { semantic: self.inner.fusion.semantic / parts as f32, ..self.inner.fusion };
        // Thresholds of their own are for the query to set; else near-misses are judged by the blended score.
        let min_best = if query.min_best > query.min_score { fusion.min_best } else { query.min_best };
        let mut best = fusion.blend(documents, query.min_score, min_best);
        best.truncate(query.top_k.clamp(1, MAX_TOP_K));
        Ok(best)
    }

    /// The nearest of these tools, or of all. A store may hold vectors of other tools too: those of another process,
    /// or of tools that are gone.
    async fn nearest(
        &self,
        tools: &Tools,
        vector: &[f32],
        among: Option<&[Key]>,
    ) -> Result<Vec<(Key, f32)>, EmbeddingError> {
        let store = &self.inner.store;
        let limit = MAX_TOP_K + if among.is_none() { tools.gone.len() } else { 0 };
        let mut near = store.nearest(vector, limit, among).await?;
        let full = near.len() == limit;
        near.retain(|(key, _)| tools.names.contains_key(key));
        if full && near.len() < MAX_TOP_K && among.is_none() {
            let own: Vec<Key> = tools.names.keys().copied().collect();
            near = store.nearest(vector, MAX_TOP_K, Some(&own)).await?;
        }
        near.truncate(MAX_TOP_K);
        Ok(near)
    }

    async fn embed(&self, query: &str) -> Result<Vec<f32>, EmbeddingError> {
        let embedder = Arc::clone(&self.inner.embedder);
        let text: String = query.chars().take(MAX_QUERY).collect();
        tokio::task::spawn_blocking(move || embedder.embed(&[text.as_str()]))
            .await
            .map_err(|error| EmbeddingError::Model(format!("the model failed: {error}")))??
            .pop()
            .ok_or_else(|| EmbeddingError::Model("the model made no vector".to_owned()))
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
