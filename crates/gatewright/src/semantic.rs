//! Opens search by meaning: the sentence encoder and the vector store of `codecall.embedding`.

use std::{path::Path, sync::Arc};

use gatewright_codecall::{EmbeddingConfig, ModelSource, StoreConfig};
use gatewright_embedding::{
    BertEmbedder, Embedder as _, EmbeddingError, ExactStore, Fusion, Hub, PgVectorStore, Progress,
    SemanticSearch, VectorStore,
};

/// Opens the semantic search that a configuration describes, with no tools yet: give it to
/// [`CodeCall::use_semantic`](gatewright_codecall::CodeCall::use_semantic). Downloads the model to `cache` if it is not there, and reports the
/// download to `report`.
///
/// # Errors
/// The model or the store cannot be opened.
pub async fn open_semantic_search(
    config: &EmbeddingConfig,
    cache: &Path,
    mut report: impl FnMut(&Progress) + Send,
) -> Result<SemanticSearch, EmbeddingError> {
    let cache = config.cache.as_deref().unwrap_or(cache);
    let folder = match config.model() {
        ModelSource::Folder(folder) => folder.to_owned(),
        ModelSource::Hub(id) => {
            let hub = config.hub.as_deref().unwrap_or(EmbeddingConfig::DEFAULT_HUB);
            Hub::new(hub, cache.join("models"))?.fetch(id, |progress| report(&progress)).await?
        }
    };
    let embedder = tokio::task::spawn_blocking(move || BertEmbedder::load(&folder))
        .await
        .map_err(|error| EmbeddingError::Model(format!("the model cannot be loaded: {error}")))??;
    let (id, dimensions) = (embedder.id().to_owned(), embedder.dimensions());
    let store: Arc<dyn VectorStore> = match &config.store {
        StoreConfig::File { path } => {
            let folder = path.clone().unwrap_or_else(|| cache.join("vectors"));
            let file = folder.join(format!("{id}.vectors"));
            let open = tokio::task::spawn_blocking(move || ExactStore::open(file, dimensions));
            Arc::new(open.await.map_err(|error| EmbeddingError::Model(format!("no vectors: {error}")))??)
        }
        StoreConfig::Pgvector { url, table } => {
            let table = table.as_deref().unwrap_or(EmbeddingConfig::DEFAULT_TABLE);
            Arc::new(PgVectorStore::open(url.expose(), table, dimensions).await?)
        }
    };
    tracing::info!(model.id = %id, model.dimensions = dimensions, "sentence encoder loaded");
    Ok(SemanticSearch::new(Arc::new(embedder), store, Fusion::default()))
}
