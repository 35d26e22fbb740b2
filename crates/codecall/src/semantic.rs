//! The semantic search behind `codecall:search`: loaded in the background, lexical answers until then.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use gatewright_embedding::{EmbeddingError, SemanticSearch, Status};
use gatewright_search::Index;
use serde_json::{Value, json};
use tokio::{sync::Notify, task::JoinHandle};

/// After a failure that may pass, the next try comes after this time, then after twice as long each time.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(60);

/// State of the semantic search.
#[derive(Debug, Clone)]
enum SearchState {
    /// The strategy does not use it.
    Off,
    /// The model or the store is being opened.
    Loading,
    /// It cannot be used; the code says why.
    Failed(&'static str),
    /// Made, but without the tools yet.
    Arrived(SemanticSearch),
    /// Made, and fed by the live index.
    On(SemanticSearch),
}

/// The place the semantic search comes to once it is loaded. Clones share it.
#[derive(Clone)]
pub(crate) struct Semantic {
    state: Arc<ArcSwap<SearchState>>,
    /// Told when the search came.
    came: Arc<Notify>,
    loader: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl fmt::Debug for Semantic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.load().fmt(f)
    }
}

impl Semantic {
    pub(crate) fn new(wanted: bool) -> Self {
        let state = if wanted { SearchState::Loading } else { SearchState::Off };
        Self { state: Arc::new(ArcSwap::from_pointee(state)), came: Arc::default(), loader: Arc::default() }
    }

    /// The search, once it is there and knows the tools.
    pub(crate) fn search(&self) -> Option<SemanticSearch> {
        match &**self.state.load() {
            SearchState::On(search) => Some(search.clone()),
            SearchState::Off | SearchState::Loading | SearchState::Failed(_) | SearchState::Arrived(_) => {
                None
            }
        }
    }

    /// Hands the search the tools, once it is there. For one caller: the live index.
    pub(crate) fn feed(&self, index: &Index) {
        let state = self.state.load_full();
        if let SearchState::Arrived(search) | SearchState::On(search) = &*state {
            search.replace(index.clone());
            if let SearchState::Arrived(search) = &*state {
                // Not if it was closed or exchanged in the meantime.
                self.state.compare_and_swap(&state, Arc::new(SearchState::On(search.clone())));
            }
        }
    }

    /// Returns when the search came.
    pub(crate) async fn came(&self) {
        self.came.notified().await;
    }

    /// Why answers are lexical though they should not be. `answered` is the status of the answer in question, if the
    /// search gave it.
    pub(crate) fn status(&self, answered: Option<&Status>) -> Option<Value> {
        let unavailable = |code: &str| Some(json!({"state": "unavailable", "code": code}));
        match (&**self.state.load(), answered) {
            (_, Some(Status::Ready)) | (SearchState::Off, _) => None,
            (_, Some(Status::Building { done, total })) => {
                Some(json!({"state": "building", "done": done, "total": total}))
            }
            (_, Some(Status::Unavailable { code })) | (SearchState::Failed(code), None) => unavailable(code),
            // The search came while the question was being answered.
            (SearchState::Loading | SearchState::Arrived(_) | SearchState::On(_), None) => {
                Some(json!({"state": "loading"}))
            }
        }
    }

    pub(crate) fn set(&self, search: SemanticSearch) {
        self.state.store(Arc::new(SearchState::Arrived(search)));
        self.came.notify_one();
    }

    /// Opens the search in the background, in place of one that is being opened.
    pub(crate) fn start_loading<O, F>(&self, open: O)
    where
        O: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = Result<SemanticSearch, EmbeddingError>> + Send + 'static,
    {
        self.stop_loading();
        let task = tokio::spawn(self.clone().load(open));
        *self.loader.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    /// Opens it, again and again while the failure may pass.
    async fn load<O, F>(self, open: O)
    where
        O: Fn() -> F,
        F: Future<Output = Result<SemanticSearch, EmbeddingError>>,
    {
        let mut wait = FIRST_RETRY;
        loop {
            match open().await {
                Ok(search) => return self.set(search),
                Err(error) => {
                    let code = error.code();
                    let source = std::error::Error::source(&error).map(ToString::to_string);
                    let again = error.may_pass();
                    tracing::error!(error.code = code, error = %error, cause = source, again,
                        "semantic search cannot be loaded; codecall:search answers lexically");
                    self.state.store(Arc::new(SearchState::Failed(code)));
                    if !again {
                        return;
                    }
                }
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LAST_RETRY);
        }
    }

    pub(crate) fn stop_loading(&self) {
        let loader = self.loader.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(loader) = loader {
            loader.abort();
        }
    }

    pub(crate) async fn close(&self) {
        self.stop_loading();
        let before = self.state.swap(Arc::new(SearchState::Off));
        if let SearchState::Arrived(search) | SearchState::On(search) = &*before {
            search.close().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use gatewright_embedding::{Embedder, ExactStore, Fusion};
    use gatewright_search::Document;

    use super::*;

    struct Nothing;

    impl Embedder for Nothing {
        fn id(&self) -> &str {
            "nothing"
        }

        fn dimensions(&self) -> usize {
            1
        }

        fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
            Ok(vec![vec![1.0]; texts.len()])
        }
    }

    #[tokio::test]
    async fn a_search_that_came_is_not_asked_before_it_knows_the_tools() {
        let semantic = Semantic::new(true);
        assert_eq!(semantic.status(None), Some(json!({"state": "loading"})));
        let store = Arc::new(ExactStore::in_memory(1));
        semantic.set(SemanticSearch::new(Arc::new(Nothing), store, Fusion::default()));
        semantic.came().await;
        assert!(semantic.search().is_none());
        assert_eq!(semantic.status(None), Some(json!({"state": "loading"})));
        let document = Document {
            name: "a:b".to_owned(),
            app_id: "a".to_owned(),
            description: String::new(),
            input_schema: Arc::default(),
        };
        semantic.feed(&Index::build([document]));
        assert!(semantic.search().is_some());
        semantic.close().await;
        assert!(semantic.search().is_none() && semantic.status(None).is_none());
    }
}
