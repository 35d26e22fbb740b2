//! The trait of sentence encoders.

use crate::EmbeddingError;

/// Turns texts into vectors of length one, so that near meanings are near vectors.
///
/// Called from a blocking thread; it may take as long as it needs.
pub trait Embedder: Send + Sync + 'static {
    /// Names the model and version: vectors of different names are never compared.
    fn id(&self) -> &str;

    /// Length of every vector.
    fn dimensions(&self) -> usize;

    /// One vector for each text, in order.
    ///
    /// # Errors
    /// When the model cannot run.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbeddingError>;
}
