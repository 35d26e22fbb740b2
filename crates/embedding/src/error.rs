//! Everything that can go wrong with models and vector stores.

use std::path::PathBuf;

/// A failure of the semantic search. Search falls back to the lexical one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddingError {
    /// A file of the model is missing or cannot be read.
    #[error("model file {} cannot be read", path.display())]
    ModelFile {
        /// The file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A file of the model is truncated, of the wrong shape or of a kind that is not supported.
    #[error("model is not usable: {0}")]
    Model(String),
    /// The model could not be downloaded, or what came is not what was asked for.
    #[error("model could not be downloaded: {0}")]
    Download(String),
    /// The vector store did not answer, or answered with an error.
    #[error("vector store is unavailable: {message}")]
    Store {
        /// Message of the store.
        message: String,
        /// Cause.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The vector store holds vectors of another length than the model makes.
    #[error("vector store holds vectors of {stored} dimensions, the model makes {model}")]
    Dimension {
        /// Length of the store's vectors.
        stored: usize,
        /// Length of the model's.
        model: usize,
    },
}

impl EmbeddingError {
    /// Stable code for programs and logs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::ModelFile { .. } => "embedding.model_file",
            Self::Model(_) => "embedding.model",
            Self::Download(_) => "embedding.download",
            Self::Store { .. } => "embedding.store",
            Self::Dimension { .. } => "embedding.dimension",
        }
    }

    /// Returns true if trying again later may help: a hub or a store that does not answer may come back, a broken model
    /// stays broken.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Download(_) | Self::Store { .. } => true,
            Self::ModelFile { .. } | Self::Model(_) | Self::Dimension { .. } => false,
        }
    }

    #[cfg(feature = "pgvector")]
    pub(crate) fn store(message: impl Into<String>) -> Self {
        Self::Store { message: message.into(), source: None }
    }

    pub(crate) fn store_because(
        message: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::Store { message: message.into(), source: Some(Box::new(source)) }
    }
}
