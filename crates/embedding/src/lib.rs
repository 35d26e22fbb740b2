//! Semantic tool search: sentences become vectors, vectors are kept in a store, and their nearness is blended with
//! the lexical ranking of `gatewright-search`.
//!
//! [`SemanticSearch`] is the whole; [`Embedder`] and [`VectorStore`] are the two places to plug into. Until every
//! tool has its vector, and whenever the model or the store fails, answers are lexical and say so ([`Status`]).
//!
//! Features, none on by default: `hub` (models by hub id), `pgvector` (vectors in PostgreSQL, shared between instances).
#![forbid(unsafe_code)]

mod bert;
mod embedder;
mod error;
mod fusion;
#[cfg(feature = "hub")]
mod hub;
mod layers;
mod linear;
mod safetensors;
mod search;
mod state;
mod store;
#[cfg(test)]
#[cfg(feature = "hub")]
mod testing;
mod text;
mod wordpiece;

pub use bert::BertEmbedder;
pub use embedder::Embedder;
pub use error::EmbeddingError;
pub use fusion::{Blended, Fusion};
#[cfg(feature = "hub")]
pub use hub::{Hub, Progress};
pub use search::{SemanticResult, SemanticSearch};
pub use state::Status;
#[cfg(feature = "pgvector")]
pub use store::pgvector::PgVectorStore;
pub use store::{ExactStore, Key, VectorStore};
