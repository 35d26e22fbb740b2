//! The semantic search itself: keeps vectors up to date in the background and blends at query time.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use arc_swap::ArcSwap;
use gatewright_search::{Hit, Index, MAX_TOP_K, Query, SearchResult, Visible};
use serde::Serialize;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{Embedder, EmbeddingError, Fusion, Key, VectorStore, fusion::Places, text};

/// Texts embedded between two writes to the store.
const BATCH: usize = 32;
/// Characters of a query that are embedded.
const MAX_QUERY: usize = 2000;

/// How far the vectors are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum Status {
    /// Vectors are being made; answers are lexical.
    Building {
        /// Texts that have their vector.
        done: usize,
        /// Texts there are.
        total: usize,
    },
    /// Answers are blended.
    Ready,
    /// The model or the store failed; answers are lexical.
    Unavailable {
        /// Stable code of the error.
        code: &'static str,
    },
}

/// An answer, and what it was made with.
#[derive(Debug, Clone, PartialEq)]
pub struct SemanticResult {
    /// Hits and count, as the lexical search gives them.
    pub result: SearchResult,
    /// [`Status::Ready`] if the hits are blended, else why they are lexical.
    pub status: Status,
}

/// Everything that belongs to one snapshot of the tools.
struct State {
    index: Index,
    /// For each tool, by name: its vector's key.
    keys: HashMap<String, Key>,
    /// Tools with the same text share a vector.
    names: HashMap<Key, Vec<String>>,
    /// Keys that earlier snapshots had and this one no longer needs.
    gone: Vec<Key>,
    status: Status,
}

struct Inner {
    embedder: Arc<dyn Embedder>,
    store: Arc<dyn VectorStore>,
    fusion: Fusion,
    state: ArcSwap<State>,
    /// One update at a time.
    updating: tokio::sync::Mutex<()>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// Semantic search over the tools of an [`Index`]. Clones share everything.
#[derive(Clone)]
pub struct SemanticSearch {
    inner: Arc<Inner>,
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
        let state = State {
            index: Index::default(),
            keys: HashMap::new(),
            names: HashMap::new(),
            gone: Vec::new(),
            status: Status::Ready,
        };
        Self {
            inner: Arc::new(Inner {
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

    /// How far the vectors are.
    #[must_use]
    pub fn status(&self) -> Status {
        self.inner.state.load().status.clone()
    }

    /// Searches `index` from now on; vectors that are missing are made in the background. Must be called within a
    /// tokio runtime.
    pub fn replace(&self, index: Index) {
        let this = self.clone();
        self.show(index, None);
        self.inner.tasks.spawn(async move {
            if this.inner.stop.run_until_cancelled(this.update()).await.is_none() {
                tracing::debug!("embedding stopped");
            }
        });
    }

    /// Searches `index` from now on and returns when all vectors are there.
    ///
    /// # Errors
    /// When the model or the store fails; searches are lexical until a later update succeeds.
    pub async fn replace_now(&self, index: Index) -> Result<(), EmbeddingError> {
        self.show(index, None);
        self.update().await
    }

    /// Ends background work and waits for it.
    pub async fn close(&self) {
        self.inner.stop.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    /// Makes a snapshot the one that is searched.
    fn show(&self, index: Index, status: Option<Status>) {
        let model = self.inner.embedder.id();
        let mut keys = HashMap::new();
        let mut names: HashMap<Key, Vec<String>> = HashMap::new();
        for entry in index.entries() {
            let key = text::key(model, &text::of(&entry));
            keys.insert(entry.name.to_owned(), key);
            names.entry(key).or_default().push(entry.name.to_owned());
        }
        let status = status.unwrap_or(Status::Building { done: 0, total: names.len() });
        let before = self.inner.state.load();
        let gone =
            before.names.keys().chain(&before.gone).filter(|key| !names.contains_key(key)).copied().collect();
        self.inner.state.store(Arc::new(State { index, keys, names, gone, status }));
    }

    fn set_status(&self, of: &Arc<State>, status: Status) {
        self.inner.state.rcu(|state| {
            if state.names.len() == of.names.len() && state.keys == of.keys {
                Arc::new(State {
                    index: state.index.clone(),
                    keys: state.keys.clone(),
                    names: state.names.clone(),
                    gone: if status == Status::Ready { Vec::new() } else { state.gone.clone() },
                    status: status.clone(),
                })
            } else {
                Arc::clone(state)
            }
        });
    }

    /// Makes what vectors the current snapshot lacks.
    async fn update(&self) -> Result<(), EmbeddingError> {
        let _one = self.inner.updating.lock().await;
        let state = self.inner.state.load_full();
        let made = self.make_missing(&state).await;
        match &made {
            Ok(()) => self.set_status(&state, Status::Ready),
            Err(error) => {
                tracing::error!(error.code = error.code(), error = %error, "vectors could not be made");
                self.set_status(&state, Status::Unavailable { code: error.code() });
            }
        }
        made
    }

    async fn make_missing(&self, state: &Arc<State>) -> Result<(), EmbeddingError> {
        let all: Vec<Key> = state.names.keys().copied().collect();
        let missing: HashSet<Key> = self.inner.store.missing(&all).await?.into_iter().collect();
        let mut seen = HashSet::new();
        let work: Vec<(Key, String)> = state
            .index
            .entries()
            .map(|entry| text::of(&entry))
            .map(|text| (text::key(self.inner.embedder.id(), &text), text))
            .filter(|(key, _)| missing.contains(key) && seen.insert(*key))
            .collect();
        let mut done = all.len() - work.len();
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
            self.inner.store.put(vectors).await?;
            if done < all.len() {
                self.set_status(state, Status::Building { done, total: all.len() });
            }
        }
        if !state.gone.is_empty() {
            self.inner.store.forget(&state.gone).await?;
        }
        Ok(())
    }

    /// The best tools for a query: blended if every vector is there, else lexical.
    pub async fn search(&self, query: &Query<'_>) -> SemanticResult {
        let state = self.inner.state.load_full();
        if state.status != Status::Ready {
            return SemanticResult { result: state.index.search(query), status: state.status.clone() };
        }
        match self.blended(&state, query).await {
            Ok(result) => SemanticResult { result, status: Status::Ready },
            Err(error) => {
                tracing::warn!(error.code = error.code(), error = %error, "semantic search failed; answering lexically");
                let status = Status::Unavailable { code: error.code() };
                SemanticResult { result: state.index.search(query), status }
            }
        }
    }

    async fn blended(&self, state: &State, query: &Query<'_>) -> Result<SearchResult, EmbeddingError> {
        let total_indexed = state.index.count_visible(query.visible);
        if query.text.trim().is_empty() {
            return Ok(SearchResult { hits: Vec::new(), total_indexed });
        }
        let wide = Query { top_k: MAX_TOP_K, min_score: 0.0, ..*query };
        let mut documents: HashMap<String, Places> = HashMap::new();
        for one in state.index.rank(&wide) {
            let places = Places { order: Some(one.order), score: one.score, cosine: None, exact: one.exact };
            documents.insert(one.name, places);
        }
        let allowed = allowed(&state.index, query);
        let among: Option<Vec<Key>> = allowed.as_ref().map(|names| {
            let mut keys: Vec<Key> = names.iter().filter_map(|name| state.keys.get(*name)).copied().collect();
            keys.sort_unstable();
            keys.dedup();
            keys
        });
        let vector = self.embed(query.text).await?;
        let store = &self.inner.store;
        let mut near = store.nearest(&vector, MAX_TOP_K, among.as_deref()).await?;
        // Candidates of the lexical ranking need their cosine too.
        let known: HashSet<Key> = near.iter().map(|(key, _)| *key).collect();
        let mut rest: Vec<Key> = documents.keys().filter_map(|name| state.keys.get(name)).copied().collect();
        rest.retain(|key| !known.contains(key));
        rest.sort_unstable();
        rest.dedup();
        if !rest.is_empty() {
            near.extend(store.nearest(&vector, rest.len(), Some(&rest)).await?);
        }
        for (key, cosine) in near {
            for name in state.names.get(&key).into_iter().flatten() {
                if allowed.as_ref().is_none_or(|names| names.contains(name.as_str())) {
                    documents.entry(name.clone()).or_default().cosine = Some(cosine);
                }
            }
        }
        // One vector says less about a request the more parts it has.
        let parts = gatewright_search::clauses(query.text).len().max(1);
        let fusion = Fusion { semantic: self.inner.fusion.semantic / parts as f32, ..self.inner.fusion };
        let best = fusion.blend(documents, query.min_score);
        let hits = best
            .into_iter()
            .take(query.top_k.clamp(1, MAX_TOP_K))
            .filter_map(|(name, score)| {
                let entry = state.index.entry(&name)?;
                Some(Hit {
                    name: entry.name.to_owned(),
                    app_id: entry.app_id.to_owned(),
                    description: entry.description.to_owned(),
                    score,
                })
            })
            .collect();
        Ok(SearchResult { hits, total_indexed })
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

/// Names the filters leave, or `None` if they leave all.
fn allowed<'i>(index: &'i Index, query: &Query<'i>) -> Option<HashSet<&'i str>> {
    if query.app_ids.is_none() && matches!(query.visible, Visible::All) {
        return None;
    }
    Some(index.visible_names(query.app_ids, query.visible).collect())
}

#[cfg(test)]
mod tests {
    use gatewright_search::Document;

    use super::*;
    use crate::MemoryStore;

    /// Knows two topics.
    struct Topics {
        fails: bool,
    }

    impl Embedder for Topics {
        fn id(&self) -> &str {
            "topics"
        }

        fn dimensions(&self) -> usize {
            2
        }

        fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
            if self.fails {
                return Err(EmbeddingError::Model("broken".to_owned()));
            }
            let music = ["music", "song", "tune", "melody"];
            let vector = |text: &&str| match music.iter().any(|word| text.to_lowercase().contains(word)) {
                true => vec![1.0, 0.0],
                false => vec![0.0, 1.0],
            };
            Ok(texts.iter().map(vector).collect())
        }
    }

    fn index() -> Index {
        let tool = |name: &str, description: &str| Document {
            name: name.to_owned(),
            app_id: name.split(':').next().unwrap_or_default().to_owned(),
            description: description.to_owned(),
            input_schema: serde_json::Value::Null,
        };
        Index::build([
            tool("radio:play_song", "Play a song"),
            tool("files:read", "Read a file"),
            tool("files:copy", "Copy a file"),
            tool("hidden:play_song", "Play a song"),
        ])
    }

    fn search(fails: bool) -> SemanticSearch {
        SemanticSearch::new(Arc::new(Topics { fails }), Arc::new(MemoryStore::new(2)), Fusion::default())
    }

    fn assert_send<T: Send>(_: &T) {}

    #[tokio::test]
    async fn a_search_can_run_on_any_thread() {
        let search = search(false);
        let sees = |_: &str| true;
        let query = Query::new("melody").visible(Visible::By(&sees));
        let future = search.search(&query);
        assert_send(&future);
        assert!(future.await.result.hits.is_empty());
    }

    #[tokio::test]
    async fn meaning_is_found_without_a_common_word() {
        let search = search(false);
        search.replace_now(index()).await.unwrap();
        let answer = search.search(&Query::new("put on some melody").top_k(1)).await;
        assert_eq!(answer.status, Status::Ready);
        assert_eq!(answer.result.hits[0].description, "Play a song");
    }

    #[tokio::test]
    async fn filters_hold_for_meaning_too() {
        let search = search(false);
        search.replace_now(index()).await.unwrap();
        let sees = |name: &str| !name.starts_with("hidden:");
        let query = Query::new("melody").visible(Visible::By(&sees)).top_k(10);
        let result = search.search(&query).await.result;
        assert_eq!(result.hits.iter().map(|hit| hit.name.as_str()).collect::<Vec<_>>(), ["radio:play_song"]);
        assert_eq!(result.total_indexed, 3);
        let apps = ["files".to_owned()];
        let result = search.search(&Query::new("melody").app_ids(Some(&apps))).await.result;
        assert!(result.hits.iter().all(|hit| hit.app_id == "files"));
    }

    #[tokio::test]
    async fn answers_are_lexical_while_vectors_are_made_and_when_they_cannot_be() {
        let search = search(true);
        search.show(index(), None);
        let answer = search.search(&Query::new("copy a file")).await;
        assert_eq!(answer.status, Status::Building { done: 0, total: 3 });
        assert_eq!(answer.result.hits[0].name, "files:copy");
        search.replace(index());
        search.inner.tasks.close();
        search.inner.tasks.wait().await;
        let answer = search.search(&Query::new("copy a file")).await;
        assert_eq!(answer.status, Status::Unavailable { code: "embedding.model" });
        assert_eq!(answer.result.hits[0].name, "files:copy");
    }

    #[tokio::test]
    async fn a_changed_tool_leaves_no_vector_behind() {
        let store = Arc::new(MemoryStore::new(2));
        let search = SemanticSearch::new(Arc::new(Topics { fails: false }), store.clone(), Fusion::default());
        search.replace_now(index()).await.unwrap();
        assert_eq!(store.len(), 3);
        let without =
            gatewright_search::Change::ReplaceApp { app_id: "files".to_owned(), documents: Vec::new() };
        search.replace_now(index().updated([without])).await.unwrap();
        assert_eq!(store.len(), 1);
    }

    #[tokio::test]
    async fn a_restart_embeds_nothing_again() {
        let store = Arc::new(MemoryStore::new(2));
        let first = SemanticSearch::new(Arc::new(Topics { fails: false }), store.clone(), Fusion::default());
        first.replace_now(index()).await.unwrap();
        // A model that fails when asked shows that it is not asked.
        let second = SemanticSearch::new(Arc::new(Topics { fails: true }), store, Fusion::default());
        second.replace_now(index()).await.unwrap();
        assert_eq!(second.status(), Status::Ready);
    }
}
