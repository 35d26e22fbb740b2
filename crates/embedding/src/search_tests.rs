//! The semantic search with a model that knows two topics.

use std::sync::atomic::{AtomicBool, Ordering};

use gatewright_search::{Document, Visible};

use super::*;
use crate::ExactStore;

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
        input_schema: Arc::default(),
    };
    Index::build([
        tool("radio:play_song", "Play a song"),
        tool("files:read", "Read a file"),
        tool("files:copy", "Copy a file"),
        tool("hidden:play_song", "Play a song"),
    ])
}

fn search(fails: bool) -> SemanticSearch {
    SemanticSearch::new(Arc::new(Topics { fails }), Arc::new(ExactStore::in_memory(2)), Fusion::default())
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
    search.set_index(index());
    let answer = search.search(&Query::new("copy a file")).await;
    assert_eq!(answer.status, Status::Building { done: 0, total: 3 });
    assert_eq!(answer.result.hits[0].name, "files:copy");
    search.replace_now(index()).await.unwrap_err();
    let answer = search.search(&Query::new("copy a file")).await;
    assert_eq!(answer.status, Status::Unavailable { code: "embedding.model" });
    assert_eq!(answer.result.hits[0].name, "files:copy");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_fails_is_tried_again_until_it_works() {
    struct Flaky(Arc<AtomicBool>);
    impl Embedder for Flaky {
        fn id(&self) -> &str {
            "flaky"
        }

        fn dimensions(&self) -> usize {
            2
        }

        fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
            Topics { fails: !self.0.load(Ordering::SeqCst) }.embed(texts)
        }
    }
    let works = Arc::new(AtomicBool::new(false));
    let search = SemanticSearch::new(
        Arc::new(Flaky(works.clone())),
        Arc::new(ExactStore::in_memory(2)),
        Fusion::default(),
    );
    search.replace(index());
    // The clock is the test's: it runs on whenever nothing else does.
    while search.status() != (Status::Unavailable { code: "embedding.model" }) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    works.store(true, Ordering::SeqCst);
    while search.status() != Status::Ready {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    search.close().await;
}

#[tokio::test]
async fn vectors_of_tools_that_are_gone_are_kept_a_while_and_removed_when_there_are_many() {
    let many = |of: std::ops::Range<usize>| {
        Index::build(of.map(|number| Document {
            name: format!("app:tool{number}"),
            app_id: "app".to_owned(),
            description: format!("does number {number}"),
            input_schema: Arc::default(),
        }))
    };
    let store = Arc::new(ExactStore::in_memory(2));
    let search = SemanticSearch::new(Arc::new(Topics { fails: false }), store.clone(), Fusion::default());
    search.replace_now(many(0..600)).await.unwrap();
    search.replace_now(many(600..1200)).await.unwrap();
    assert_eq!(store.len(), 1200, "the first ones may come back");
    search.replace_now(many(1200..1800)).await.unwrap();
    assert_eq!(store.len(), 600, "but not for ever");
}

#[tokio::test]
async fn vectors_of_others_in_a_shared_store_do_not_displace_ours() {
    let store = Arc::new(ExactStore::in_memory(2));
    let foreign = |number: usize| {
        let mut key = [9; 16];
        key[..8].copy_from_slice(&number.to_le_bytes());
        (Key(key), vec![1.0, 0.0])
    };
    store.put((0..500).map(foreign).collect()).await.unwrap();
    let search = SemanticSearch::new(Arc::new(Topics { fails: false }), store, Fusion::default());
    search.replace_now(index()).await.unwrap();
    let answer = search.search(&Query::new("some melody").top_k(1)).await;
    assert_eq!(answer.result.hits[0].description, "Play a song");
}

#[tokio::test]
async fn a_restart_embeds_nothing_again() {
    let store = Arc::new(ExactStore::in_memory(2));
    let first = SemanticSearch::new(Arc::new(Topics { fails: false }), store.clone(), Fusion::default());
    first.replace_now(index()).await.unwrap();
    // A model that fails when asked shows that it is not asked.
    let second = SemanticSearch::new(Arc::new(Topics { fails: true }), store, Fusion::default());
    second.replace_now(index()).await.unwrap();
    assert_eq!(second.status(), Status::Ready);
}
