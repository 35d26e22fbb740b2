//! The file behind an [`ExactStore`](super::ExactStore): written anew, synced and renamed.
//!
//! Layout, little-endian: magic, dimensions (u32), count (u64), keys (16 bytes each), numbers (i8), then the
//! SHA-256 of all that.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

use sha2::{Digest as _, Sha256};

use super::{Key, table::Table};
use crate::EmbeddingError;

const MAGIC: &[u8; 8] = b"GWVEC\0\0\x01";
const HEADER: usize = 8 + 4 + 8;
const DIGEST: usize = 32;

/// Reads the vectors of a file; none, with a warning, if it is damaged or its vectors are of other dimensions.
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

/// The contents of the file for `table`, without the digest.
pub(super) fn encode(table: &Table, dimensions: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + table.keys.len() * (16 + dimensions) + DIGEST);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&(dimensions as u32).to_le_bytes());
    bytes.extend_from_slice(&(table.keys.len() as u64).to_le_bytes());
    table.keys.iter().for_each(|key| bytes.extend_from_slice(&key.0));
    bytes.extend(table.numbers.iter().map(|number| number.cast_unsigned()));
    bytes
}

/// Appends the digest of `bytes`.
pub(super) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
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
        return Err("it is no vector file");
    }
    if u32::from_le_bytes(*stored) as usize != dimensions {
        return Err("its vectors have other dimensions");
    }
    let count = usize::try_from(u64::from_le_bytes(*count)).map_err(|_| "it is too long")?;
    let size = count.checked_mul(16).filter(|size| *size <= rest.len()).ok_or("it is too short")?;
    let (keys, numbers) = rest.split_at(size);
    let keys = keys.as_chunks::<16>().0.iter().map(|key| Key(*key)).collect();
    if dimensions == 0 || numbers.chunks(dimensions).any(|vector| vector.iter().all(|number| *number == 0)) {
        return Err("it has a vector of zeros");
    }
    let numbers = numbers.iter().map(|byte| byte.cast_signed()).collect();
    Table::new(dimensions, keys, numbers).ok_or("its parts do not fit")
}

/// Replaces the contents of a file so that a crash leaves the old or the new.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = folder.join(name);
    let written = (|| {
        let mut file = File::create(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        File::open(folder)?.sync_all()
    })();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}
