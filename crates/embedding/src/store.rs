//! Vector stores. A vector's key is the hash of the text and the model that it was made from.

mod exact;
mod file;
#[cfg(feature = "pgvector")]
pub(crate) mod pgvector;
mod table;

use std::fmt;

use async_trait::async_trait;
use data_encoding::HEXLOWER;

pub use exact::ExactStore;
#[cfg(feature = "hub")]
pub(crate) use file::replace;

use crate::EmbeddingError;

/// Key of a vector: the hash of its text and model. Equal in every process, so that stores can be shared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub [u8; 16]);

/// As a UUID, 8-4-4-4-12 hexadecimal digits.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e] = [&self.0[..4], &self.0[4..6], &self.0[6..8], &self.0[8..10], &self.0[10..]]
            .map(|part| HEXLOWER.encode(part));
        write!(f, "{a}-{b}-{c}-{d}-{e}")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

impl Key {
    /// Parses what `Display` writes; dashes are optional.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
        if digits.len() != 32 {
            return None;
        }
        let mut key = [0; 16];
        for (byte, pair) in key.iter_mut().zip(digits.as_chunks::<2>().0) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(key))
    }
}

/// A store of vectors that finds the nearest.
///
/// Several processes may share one store; each asks only for keys it knows.
#[async_trait]
pub trait VectorStore: Send + Sync + 'static {
    /// Returns those of `keys` that the store does not have.
    async fn missing(&self, keys: &[Key]) -> Result<Vec<Key>, EmbeddingError>;

    /// Stores vectors of length one; one already there under the same key is replaced. Durable when it returns.
    async fn put(&self, vectors: Vec<(Key, Vec<f32>)>) -> Result<(), EmbeddingError>;

    /// Returns up to `limit` vectors nearest to `query`, with their cosine (-1 to 1), nearest first. With `among`, only
    /// these keys are compared.
    async fn nearest(
        &self,
        query: &[f32],
        limit: usize,
        among: Option<&[Key]>,
    ) -> Result<Vec<(Key, f32)>, EmbeddingError>;

    /// Removes keys this process no longer needs. A store that others share may keep them.
    async fn forget(&self, keys: &[Key]) -> Result<(), EmbeddingError>;
}

#[cfg(test)]
pub(crate) mod contract {
    //! Checks that every store passes.

    use super::{Key, VectorStore};

    fn key(number: u8) -> Key {
        Key([number; 16])
    }

    /// `forgets` is false for stores that others share.
    pub(crate) async fn check(store: &dyn VectorStore, forgets: bool) {
        let (a, b, c) = (key(1), key(2), key(3));
        assert_eq!(store.missing(&[a, b]).await.unwrap(), [a, b]);
        assert!(store.nearest(&[1.0, 0.0, 0.0], 5, None).await.unwrap().is_empty());
        store
            .put(vec![(a, vec![1.0, 0.0, 0.0]), (b, vec![0.0, 1.0, 0.0]), (c, vec![0.8, 0.6, 0.0])])
            .await
            .unwrap();
        assert_eq!(store.missing(&[a, key(9), c]).await.unwrap(), [key(9)]);

        let near = store.nearest(&[1.0, 0.0, 0.0], 2, None).await.unwrap();
        assert_eq!(near.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [a, c]);
        assert!((near[0].1 - 1.0).abs() < 0.02 && (near[1].1 - 0.8).abs() < 0.02, "{near:?}");

        let near = store.nearest(&[1.0, 0.0, 0.0], 2, Some(&[b, c, key(9)])).await.unwrap();
        assert_eq!(near.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [c, b]);
        assert!(store.nearest(&[1.0, 0.0, 0.0], 2, Some(&[])).await.unwrap().is_empty());

        store.put(vec![(a, vec![0.0, 0.0, 1.0])]).await.unwrap();
        assert_eq!(store.nearest(&[0.0, 0.0, 1.0], 1, None).await.unwrap()[0].0, a);
        store.forget(&[a, key(9)]).await.unwrap();
        if !forgets {
            return;
        }
        assert_eq!(store.missing(&[a, b]).await.unwrap(), [a]);
        assert_eq!(store.nearest(&[0.0, 0.0, 1.0], 9, None).await.unwrap().len(), 2);
    }

    #[test]
    fn a_key_reads_back_from_its_text() {
        let key = key(0xab);
        assert_eq!(key.to_string(), "abababab-abab-abab-abab-abababababab");
        assert_eq!(Key::parse(&key.to_string()), Some(key));
        assert_eq!(Key::parse("abab"), None);
    }
}
