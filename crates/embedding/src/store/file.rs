//! Vectors in one file, read at the start and written anew after each change: write, sync, rename.
//!
//! Layout, little-endian: magic, dimensions (u32), count (u64), keys (16 bytes each), numbers (i8), then the
//! SHA-256 of all that.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;

use super::{Key, MemoryStore, VectorStore, table::Table};
use crate::EmbeddingError;

const MAGIC: &[u8; 8] = b"GWVEC\0\0\x01";
const HEADER: usize = 8 + 4 + 8;
const DIGEST: usize = 32;

/// A [`MemoryStore`] that outlives the process. One process writes a file at a time; of two, the last one's wins.
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
    dimensions: usize,
    memory: Arc<MemoryStore>,
    /// Held while the file is written.
    writing: Mutex<()>,
}

impl FileStore {
    /// Opens or creates a file. One that is damaged, or holds vectors of other dimensions, is started anew with a
    /// warning: vectors can always be made again.
    ///
    /// # Errors
    /// When the file is there but cannot be read.
    pub fn open(path: impl Into<PathBuf>, dimensions: usize) -> Result<Self, EmbeddingError> {
        let path = path.into();
        let table = read(&path, dimensions)?;
        Ok(Self {
            path,
            dimensions,
            memory: Arc::new(MemoryStore::with_table(dimensions, table)),
            writing: Mutex::new(()),
        })
    }

    async fn save(&self) -> Result<(), EmbeddingError> {
        let _writing = self.writing.lock().await;
        let bytes = self.memory.read(|table| encode(table, self.dimensions));
        let path = self.path.clone();
        tokio::task::spawn_blocking(move || replace(&path, &bytes))
            .await
            .map_err(|error| EmbeddingError::store_because("vector file was not written", error))?
            .map_err(|error| EmbeddingError::store_because("vector file cannot be written", error))
    }
}

/// The vectors of a file; none, with a warning, if it is damaged or holds others.
pub(super) fn read(path: &Path, dimensions: usize) -> Result<Table, EmbeddingError> {
    match fs::read(path) {
        Ok(bytes) => Ok(decode(&bytes, dimensions).unwrap_or_else(|why| {
            tracing::warn!(file.path = %path.display(), why, "vector file is not usable and is built anew");
            Table::default()
        })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Table::default()),
        Err(error) => Err(EmbeddingError::store_because("vector file cannot be read", error)),
    }
}

pub(super) fn encode(table: &Table, dimensions: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + table.keys.len() * (16 + dimensions) + DIGEST);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&(dimensions as u32).to_le_bytes());
    bytes.extend_from_slice(&(table.keys.len() as u64).to_le_bytes());
    table.keys.iter().for_each(|key| bytes.extend_from_slice(&key.0));
    bytes.extend(table.numbers.iter().map(|number| number.cast_unsigned()));
    let digest = Sha256::digest(&bytes);
    bytes.extend_from_slice(&digest);
    bytes
}

fn decode(bytes: &[u8], dimensions: usize) -> Result<Table, &'static str> {
    let (body, digest) = bytes.split_last_chunk::<DIGEST>().ok_or("it is too short")?;
    if *Sha256::digest(body) != digest[..] {
        return Err("its checksum is wrong");
    }
    let (magic, rest) = body.split_first_chunk::<8>().ok_or("it is too short")?;
    let (stored, rest) = rest.split_first_chunk::<4>().ok_or("it is too short")?;
    let (count, rest) = rest.split_first_chunk::<8>().ok_or("it is too short")?;
    if magic != MAGIC {
        return Err("it is of another kind");
    }
    if u32::from_le_bytes(*stored) as usize != dimensions {
        return Err("it is of other dimensions");
    }
    let count = usize::try_from(u64::from_le_bytes(*count)).map_err(|_| "it is too long")?;
    let size = count.checked_mul(16).filter(|size| *size <= rest.len()).ok_or("it is too short")?;
    let (keys, numbers) = rest.split_at(size);
    let keys = keys.as_chunks::<16>().0.iter().map(|key| Key(*key)).collect();
    let numbers = numbers.iter().map(|byte| byte.cast_signed()).collect();
    Table::new(dimensions, keys, numbers).ok_or("its parts do not fit")
}

/// Puts new contents in place of a file so that a crash leaves the old or the new.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, |new| File::create(new)?.write_all(bytes))
}

/// The same with contents that `write` puts into the file it is given.
pub(crate) fn replace_with(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = folder.join(name);
    let written = (|| {
        write(&new)?;
        File::open(&new)?.sync_all()?;
        fs::rename(&new, path)?;
        File::open(folder)?.sync_all()
    })();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

#[async_trait]
impl VectorStore for FileStore {
    async fn missing(&self, keys: &[Key]) -> Result<Vec<Key>, EmbeddingError> {
        self.memory.missing(keys).await
    }

    async fn put(&self, vectors: Vec<(Key, Vec<f32>)>) -> Result<(), EmbeddingError> {
        self.memory.put(vectors).await?;
        self.save().await
    }

    async fn nearest(
        &self,
        query: &[f32],
        limit: usize,
        among: Option<&[Key]>,
    ) -> Result<Vec<(Key, f32)>, EmbeddingError> {
        self.memory.nearest(query, limit, among).await
    }

    async fn forget(&self, keys: &[Key]) -> Result<(), EmbeddingError> {
        self.memory.forget(keys).await?;
        self.save().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn filled(path: &Path) -> FileStore {
        let store = FileStore::open(path, 3).unwrap();
        store.put(vec![(Key([7; 16]), vec![0.0, 1.0, 0.0])]).await.unwrap();
        store
    }

    #[tokio::test]
    async fn keeps_the_contract_of_a_store() {
        let folder = tempfile::tempdir().unwrap();
        super::super::contract::check(&FileStore::open(folder.path().join("deep/v.bin"), 3).unwrap(), true)
            .await;
    }

    #[tokio::test]
    async fn what_was_put_is_there_after_reopening() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.bin");
        drop(filled(&path).await);
        let again = FileStore::open(&path, 3).unwrap();
        assert!(again.missing(&[Key([7; 16])]).await.unwrap().is_empty());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no file is left over");
    }

    #[tokio::test]
    async fn a_file_cut_short_or_changed_anywhere_is_started_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.bin");
        drop(filled(&path).await);
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(FileStore::open(&path, 3).unwrap().memory.is_empty(), "cut to {length}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&path, changed).unwrap();
            assert!(FileStore::open(&path, 3).unwrap().memory.is_empty(), "byte {at} changed");
        }
        fs::write(&path, &whole).unwrap();
        assert!(FileStore::open(&path, 4).unwrap().memory.is_empty(), "other dimensions");
        assert_eq!(FileStore::open(&path, 3).unwrap().memory.len(), 1);
    }
}
