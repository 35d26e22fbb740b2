//! Many vectors in one file that is mapped into memory: a `usearch` index (HNSW; Malkov and Yashunin 2016), with the
//! keys and a checksum behind it. Immutable; [`LargeStore`](super::LargeStore) keeps what changed since.
//!
//! Layout: the index as `usearch` writes it, keys (16 bytes each, ascending), then little-endian: length of the index
//! (u64), count (u64), dimensions (u32), magic, and the SHA-256 of all that. A vector's label in the index is its
//! key's place among the keys.

use std::{
    fs::{self, File},
    io::{self, Read, Write as _},
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use rustc_hash::FxHashSet;
use sha2::{Digest as _, Sha256};
use tokio::sync::{Mutex, Semaphore};
use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

use super::{
    Key,
    file::replace_with,
    table::{best, cosines},
};

const MAGIC: &[u8; 8] = b"GWHNSW\0\x01";
const TAIL: usize = 8 + 8 + 4 + 8;
const DIGEST: usize = 32;
/// Neighbours of a vector, and how many candidates are looked at when one is added.
const CONNECTIVITY: usize = 16;
const EXPANSION_ADD: usize = 128;
/// How many candidates a search looks at; more find more of the nearest and take longer.
const EXPANSION_SEARCH: usize = 192;
/// Vectors asked for by label that are read out of the index one by one; for more, all are kept side by side.
const ONE_BY_ONE: usize = 500;
/// Searches that run at a time; more wait.
const SEARCHES: usize = 64;

/// See the module.
pub(super) struct Graph {
    index: Index,
    dimensions: usize,
    /// Ascending.
    keys: Vec<Key>,
    /// For each first two bytes of a key, where such keys start.
    starts: Vec<u32>,
    /// All vectors in order of their labels, from the first time that many are asked for by label.
    rows: OnceLock<Vec<i8>>,
    /// Held while `rows` are read.
    reading: Arc<Mutex<()>>,
    /// The threads that did.
    #[cfg(test)]
    pub(super) readers: std::sync::Mutex<Vec<thread::ThreadId>>,
    searching: Semaphore,
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("vectors", &self.keys.len()).finish_non_exhaustive()
    }
}

fn options(dimensions: usize) -> IndexOptions {
    IndexOptions {
        dimensions,
        // Of vectors of length one: the cosine.
        metric: MetricKind::IP,
        quantization: ScalarKind::I8,
        connectivity: CONNECTIVITY,
        expansion_add: EXPANSION_ADD,
        expansion_search: EXPANSION_SEARCH,
        multi: false,
    }
}

fn other(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl Graph {
    /// Maps a file. `InvalidData` if it is damaged or of another kind.
    pub(super) fn open(path: &Path, dimensions: usize) -> io::Result<Self> {
        let (length, keys) = checked(path, dimensions)?;
        let index = Index::new(&options(dimensions)).map_err(other)?;
        index.reserve_capacity_and_threads(0, SEARCHES).map_err(other)?;
        index.view(utf8(path)?).map_err(other)?;
        let fits = index.dimensions() == dimensions
            && index.size() == keys.len()
            && index.scalar_kind() == ScalarKind::I8
            && index.metric_kind() == MetricKind::IP
            && index.serialized_length() as u64 == length;
        if !fits {
            return Err(invalid("its parts do not fit"));
        }
        index.change_expansion_search(EXPANSION_SEARCH);
        let mut starts = vec![0_u32; (1 << 16) + 1];
        for key in &keys {
            starts[first(key) + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        Ok(Self {
            index,
            dimensions,
            keys,
            starts,
            rows: OnceLock::new(),
            reading: Arc::default(),
            #[cfg(test)]
            readers: std::sync::Mutex::default(),
            searching: Semaphore::new(SEARCHES),
        })
    }

    /// Writes a file of these vectors, in place of the one that is there, and maps it. `None` if it was told to stop.
    pub(super) fn build(
        path: &Path,
        dimensions: usize,
        mut vectors: Vec<(Key, Vec<i8>)>,
        stop: &AtomicBool,
    ) -> io::Result<Option<Self>> {
        utf8(path)?;
        vectors.sort_unstable_by_key(|(key, _)| *key);
        let threads = (thread::available_parallelism().map_or(1, usize::from) / 2).max(1);
        let index = Index::new(&options(dimensions)).map_err(other)?;
        index.reserve_capacity_and_threads(vectors.len(), threads).map_err(other)?;
        let next = AtomicUsize::new(0);
        let add = || {
            while !stop.load(Ordering::Relaxed)
                && let at = next.fetch_add(1, Ordering::Relaxed)
                && let Some((_, vector)) = vectors.get(at)
            {
                index.add(at as u64, vector).map_err(other)?;
            }
            Ok::<_, io::Error>(())
        };
        thread::scope(|scope| {
            let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(add)).collect();
            let own = add();
            let joined = helpers
                .into_iter()
                .map(|helper| helper.join().unwrap_or_else(|_| Err(invalid("a thread failed"))));
            joined.fold(own, Result::and)
        })?;
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let keys: Vec<Key> = vectors.into_iter().map(|(key, _)| key).collect();
        replace_with(path, |new| write(new, &index, dimensions, &keys))?;
        drop(index);
        Self::open(path, dimensions).map(Some)
    }

    pub(super) fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The label of a key's vector.
    pub(super) fn label(&self, key: &Key) -> Option<u32> {
        let at = first(key);
        let from = self.starts[at] as usize;
        let found = self.keys[from..self.starts[at + 1] as usize].binary_search(key).ok()?;
        Some((from + found) as u32)
    }

    /// A vector by its label.
    pub(super) fn vector(&self, label: u32) -> io::Result<Vec<i8>> {
        let mut vector = vec![0; self.dimensions];
        match self.index.get(u64::from(label), &mut vector).map_err(other)? {
            1 => Ok(vector),
            _ => Err(invalid("a vector is missing")),
        }
    }

    /// Vectors by their labels, side by side.
    fn read(&self, labels: impl ExactSizeIterator<Item = u32>) -> io::Result<Vec<i8>> {
        let mut vectors = vec![0; labels.len() * self.dimensions];
        for (label, vector) in labels.zip(vectors.chunks_exact_mut(self.dimensions)) {
            if self.index.get(u64::from(label), vector).map_err(other)? != 1 {
                return Err(invalid("a vector is missing"));
            }
        }
        Ok(vectors)
    }

    /// Up to `limit` vectors near `query`, nearest first, but for those whose label is hidden: hardly ever all of the
    /// nearest.
    pub(super) async fn near(
        &self,
        query: &[i8],
        limit: usize,
        hidden: &FxHashSet<u32>,
        among: Option<&Labels>,
    ) -> io::Result<Vec<(Key, f32)>> {
        let _permit = self.searching.acquire().await.map_err(other)?;
        let matches = if hidden.is_empty() && among.is_none() {
            self.index.search(query, limit)
        } else {
            self.index.filtered_search(query, limit, |label| {
                let label = label as u32;
                !hidden.contains(&label) && among.is_none_or(|among| among.has(label))
            })
        };
        let matches = matches.map_err(other)?;
        // The distance is one minus the product of the 8-bit numbers.
        let found = matches.keys.iter().zip(&matches.distances).filter_map(|(label, distance)| {
            Some((*self.keys.get(*label as usize)?, (1.0 - distance) / (127.0 * 127.0)))
        });
        Ok(best(found.collect(), limit))
    }

    /// The nearest of some vectors, each compared.
    pub(super) async fn nearest_of(
        self: &Arc<Self>,
        query: &[i8],
        limit: usize,
        labels: &[u32],
    ) -> io::Result<Vec<(Key, f32)>> {
        let cosines = if labels.len() <= ONE_BY_ONE {
            let vectors = self.read(labels.iter().copied())?;
            cosines(query, vectors.chunks_exact(self.dimensions))
        } else {
            let rows = self.rows().await?;
            let row = |label: &u32| &rows[*label as usize * self.dimensions..][..self.dimensions];
            cosines(query, labels.iter().map(row))
        };
        Ok(best(labels.iter().map(|label| self.keys[*label as usize]).zip(cosines).collect(), limit))
    }

    /// All vectors side by side. Read at the first time only, on a thread that may wait for the disk, whoever asks meanwhile
    /// or gives up.
    async fn rows(self: &Arc<Self>) -> io::Result<&[i8]> {
        if self.rows.get().is_none() {
            let reading = Arc::clone(&self.reading).lock_owned().await;
            if self.rows.get().is_none() {
                let this = Arc::clone(self);
                let read = move || {
                    #[cfg(test)]
                    if let Ok(mut readers) = this.readers.lock() {
                        readers.push(thread::current().id());
                    }
                    let rows = this.read(0..this.keys.len() as u32)?;
                    // Nobody else sets it while this is held.
                    let _ = this.rows.set(rows);
                    drop(reading);
                    Ok::<_, io::Error>(())
                };
                tokio::task::spawn_blocking(read).await.map_err(other)??;
            }
        }
        self.rows.get().map(Vec::as_slice).ok_or_else(|| invalid("its vectors were not read"))
    }
}

/// A set of labels.
pub(super) struct Labels(Vec<u64>);

impl Labels {
    pub(super) fn new(graph: &Graph, labels: &[u32]) -> Self {
        let mut bits = vec![0; graph.keys.len().div_ceil(64)];
        labels.iter().for_each(|label| bits[*label as usize / 64] |= 1 << (label % 64));
        Self(bits)
    }

    fn has(&self, label: u32) -> bool {
        self.0.get(label as usize / 64).is_some_and(|bits| bits >> (label % 64) & 1 == 1)
    }
}

fn utf8(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| invalid("its path is not UTF-8"))
}

fn first(key: &Key) -> usize {
    usize::from(u16::from_be_bytes([key.0[0], key.0[1]]))
}

fn write(path: &Path, index: &Index, dimensions: usize, keys: &[Key]) -> io::Result<()> {
    index.save(utf8(path)?).map_err(other)?;
    let length = fs::metadata(path)?.len();
    let mut tail = Vec::with_capacity(keys.len() * 16 + TAIL);
    keys.iter().for_each(|key| tail.extend_from_slice(&key.0));
    tail.extend_from_slice(&length.to_le_bytes());
    tail.extend_from_slice(&(keys.len() as u64).to_le_bytes());
    tail.extend_from_slice(&(dimensions as u32).to_le_bytes());
    tail.extend_from_slice(MAGIC);
    let mut hash = Sha256::new();
    feed(&mut hash, File::open(path)?)?;
    hash.update(&tail);
    tail.extend_from_slice(&hash.finalize());
    File::options().append(true).open(path)?.write_all(&tail)
}

fn feed(hash: &mut Sha256, mut from: impl Read) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            length => hash.update(&buffer[..length]),
        }
    }
}

/// Length of a file's index and its keys, once its checksum was found right: `usearch` trusts what it maps.
fn checked(path: &Path, dimensions: usize) -> io::Result<(u64, Vec<Key>)> {
    let mut file = File::open(path)?;
    let whole = file.metadata()?.len();
    let short = || invalid("it is too short");
    let body = whole.checked_sub(DIGEST as u64).ok_or_else(short)?;
    let mut hash = Sha256::new();
    feed(&mut hash, (&mut file).take(body))?;
    let mut digest = [0; DIGEST];
    file.read_exact(&mut digest)?;
    if hash.finalize()[..] != digest {
        return Err(invalid("its checksum is wrong"));
    }
    let start = body.checked_sub(TAIL as u64).ok_or_else(short)?;
    let mut tail = [0; TAIL];
    read_at(&mut file, start, &mut tail)?;
    let (length, rest) = tail.split_first_chunk::<8>().ok_or_else(short)?;
    let (count, rest) = rest.split_first_chunk::<8>().ok_or_else(short)?;
    let (stored, magic) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    if magic != MAGIC {
        return Err(invalid("it is of another kind"));
    }
    if u32::from_le_bytes(*stored) as usize != dimensions {
        return Err(invalid("it is of other dimensions"));
    }
    let (length, count) = (u64::from_le_bytes(*length), u64::from_le_bytes(*count));
    let size = count.checked_mul(16).filter(|size| length.checked_add(*size) == Some(start));
    let size =
        size.and_then(|size| usize::try_from(size).ok()).ok_or_else(|| invalid("its parts do not fit"))?;
    let mut bytes = vec![0; size];
    read_at(&mut file, length, &mut bytes)?;
    let keys: Vec<Key> = bytes.as_chunks::<16>().0.iter().map(|key| Key(*key)).collect();
    if !keys.is_sorted_by(|a, b| a < b) {
        return Err(invalid("its keys are not in order"));
    }
    Ok((length, keys))
}

fn read_at(file: &mut File, at: u64, buffer: &mut [u8]) -> io::Result<()> {
    io::Seek::seek(file, io::SeekFrom::Start(at))?;
    file.read_exact(buffer)
}
