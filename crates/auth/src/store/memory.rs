//! The store of one process, lost with it.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use super::{
    CodeStore, Counters, Digest, FamilyId, Hit, Key, Listing, Records, Redeemed, RefreshTokenStore,
    RevocationFeed, Rotated, Rotation, StoreError,
    atomic::{self, Transaction, ms},
};
use crate::clock::Clock;

/// Writes between two removals of expired records.
const SWEEP_EVERY: u64 = 4096;

struct Record {
    value: Vec<u8>,
    expires_ms: u64,
}

#[derive(Default)]
struct Table {
    records: HashMap<Key, Record>,
    writes: u64,
}

impl Table {
    fn sweep(&mut self, now_ms: u64) {
        self.records.retain(|_, record| record.expires_ms > now_ms);
        if self.records.capacity() > 4 * self.records.len().max(1024) {
            self.records.shrink_to_fit();
        }
    }

    /// Removes the half that expires first.
    fn halve(&mut self) {
        let mut ends: Vec<u64> = self.records.values().map(|record| record.expires_ms).collect();
        ends.sort_unstable();
        let median = ends.get(ends.len() / 2).copied().unwrap_or_default();
        self.records.retain(|_, record| record.expires_ms > median);
    }
}

/// Counters are apart from the other records, so that these do not take their room.
#[derive(Default)]
struct Tables {
    records: Table,
    counters: Table,
}

/// A store in memory, with a bounded number of records and as many counters. Expired ones make room first, and the counters that end the soonest then:
/// counting never fails.
pub struct MemoryStore {
    tables: Mutex<Tables>,
    clock: Arc<dyn Clock>,
    most: usize,
    revision: AtomicU64,
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").field("records", &self.len()).finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// Default number of records.
    pub const DEFAULT_MOST: usize = 1_000_000;

    /// An empty store for up to [`MemoryStore::DEFAULT_MOST`] records.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_room_for(clock, Self::DEFAULT_MOST)
    }

    /// An empty store for up to `most` records.
    pub fn with_room_for(clock: Arc<dyn Clock>, most: usize) -> Self {
        Self { tables: Mutex::default(), clock, most, revision: AtomicU64::new(0) }
    }

    /// Returns the number of records and counters, including expired ones that were not removed yet.
    pub fn len(&self) -> usize {
        let tables = self.lock();
        tables.records.records.len() + tables.counters.records.len()
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step<T>(&self, run: impl FnOnce(&mut Locked<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let now_ms = self.clock.now_ms();
        run(&mut Locked { tables: &mut self.lock(), now_ms, most: self.most, counts: false })
    }
}

struct Locked<'a> {
    tables: &'a mut Tables,
    now_ms: u64,
    most: usize,
    /// Tells that a counter is written, and no record.
    counts: bool,
}

impl Transaction for Locked<'_> {
    fn get(&mut self, key: &Key) -> Result<Option<(Vec<u8>, u64)>, StoreError> {
        let Tables { records, counters } = &*self.tables;
        let mut found = [records, counters].into_iter().filter_map(|table| table.records.get(key));
        let live = found.find(|record| record.expires_ms > self.now_ms);
        Ok(live.map(|record| (record.value.clone(), record.expires_ms)))
    }

    fn set(&mut self, key: &Key, value: &[u8], expires_ms: u64) -> Result<(), StoreError> {
        let Tables { records, counters } = &mut *self.tables;
        let table = if self.counts { counters } else { records };
        table.writes += 1;
        if table.writes.is_multiple_of(SWEEP_EVERY) {
            table.sweep(self.now_ms);
        }
        if table.records.len() >= self.most && !table.records.contains_key(key) {
            table.sweep(self.now_ms);
            if table.records.len() >= self.most {
                if !self.counts {
                    return Err(StoreError::Full);
                }
                table.halve();
            }
        }
        table.records.insert(key.clone(), Record { value: value.to_vec(), expires_ms });
        Ok(())
    }

    fn remove(&mut self, key: &Key) -> Result<(), StoreError> {
        let Tables { records, counters } = &mut *self.tables;
        records.records.remove(key);
        counters.records.remove(key);
        Ok(())
    }

    fn now_ms(&self) -> u64 {
        self.now_ms
    }
}

#[async_trait]
impl Records for MemoryStore {
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.step(|t| keys.iter().map(|key| Ok(t.get(key)?.map(|(value, _)| value))).collect())
    }

    async fn put(&self, key: &Key, value: &[u8], ttl: Duration) -> Result<(), StoreError> {
        self.step(|t| t.set(key, value, t.now_ms + ms(ttl)))
    }

    async fn put_new(&self, key: &Key, value: &[u8], ttl: Duration) -> Result<bool, StoreError> {
        self.step(|t| atomic::put_new(t, key, value, ttl))
    }

    async fn replace(
        &self,
        key: &Key,
        expected: &[u8],
        value: &[u8],
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        self.step(|t| atomic::replace(t, key, expected, value, ttl))
    }

    async fn take(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.step(|t| atomic::take(t, key))
    }

    async fn remove_many(&self, keys: &[Key]) -> Result<(), StoreError> {
        self.step(|t| keys.iter().try_for_each(|key| t.remove(key)))
    }
}

#[async_trait]
impl Listing for MemoryStore {
    async fn list(&self, kind: &'static str, most: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let (now_ms, prefix) = (self.clock.now_ms(), format!("{kind}:"));
        let tables = self.lock();
        let live = tables
            .records
            .records
            .iter()
            .filter(|(key, record)| key.as_str().starts_with(&prefix) && record.expires_ms > now_ms);
        Ok(live.map(|(_, record)| record.value.clone()).take(most).collect())
    }
}

#[async_trait]
impl Counters for MemoryStore {
    async fn hit(&self, key: &Key, window: Duration) -> Result<Hit, StoreError> {
        self.step(|t| {
            t.counts = true;
            atomic::hit(t, key, window)
        })
    }
}

#[async_trait]
impl CodeStore for MemoryStore {
    async fn redeem(
        &self,
        code: &Digest,
        family: &FamilyId,
        refresh: &Digest,
    ) -> Result<Redeemed, StoreError> {
        self.step(|t| atomic::redeem(t, code, family, refresh))
    }
}

#[async_trait]
impl RefreshTokenStore for MemoryStore {
    async fn rotate(&self, rotation: Rotation<'_>) -> Result<Rotated, StoreError> {
        self.step(|t| atomic::rotate(t, &rotation))
    }
}

#[async_trait]
impl RevocationFeed for MemoryStore {
    async fn announce(&self) {
        self.revision.fetch_add(1, Ordering::AcqRel);
    }

    fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }
}
