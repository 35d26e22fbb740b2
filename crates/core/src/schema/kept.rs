//! Values that were made from schemas, kept for later. Their memory is bounded: those that were not used for long are made again.

use std::{borrow::Borrow, collections::HashMap, hash::Hash, sync::Arc};

/// Values that were used lately, and those that were before. Either half takes at most half of the memory.
#[derive(Debug)]
pub(super) struct Kept<K, V> {
    most_bytes: usize,
    recent: HashMap<K, Entry<V>>,
    older: HashMap<K, Entry<V>>,
    recent_bytes: usize,
}

#[derive(Debug)]
struct Entry<V> {
    value: Arc<V>,
    bytes: usize,
}

impl<K: Eq + Hash, V> Kept<K, V> {
    /// Keeps values of `most_bytes` in all.
    pub(super) fn new(most_bytes: usize) -> Self {
        Self { most_bytes, recent: HashMap::new(), older: HashMap::new(), recent_bytes: 0 }
    }

    pub(super) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
    {
        if let Some(entry) = self.recent.get(key) {
            return Some(entry.value.clone());
        }
        let (key, Entry { value, bytes }) = self.older.remove_entry(key)?;
        self.insert(key, value.clone(), bytes);
        Some(value)
    }

    /// Keeps a value of `bytes` bytes. One that takes more than half of the memory is not kept.
    pub(super) fn insert(&mut self, key: K, value: Arc<V>, bytes: usize) {
        if bytes > self.most_bytes / 2 {
            return;
        }
        if self.recent_bytes + bytes > self.most_bytes / 2 {
            self.older = std::mem::take(&mut self.recent);
            self.recent_bytes = 0;
        }
        self.recent_bytes += bytes;
        if let Some(before) = self.recent.insert(key, Entry { value, bytes }) {
            self.recent_bytes -= before.bytes;
        }
    }

    pub(super) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.older.remove(key);
        if let Some(entry) = self.recent.remove(key) {
            self.recent_bytes -= entry.bytes;
        }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.recent.values().chain(self.older.values()).map(|entry| entry.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_what_is_not_leaves_room() {
        let mut kept = Kept::new(16 << 20);
        let mut most = 0;
        for n in 0..4_000 {
            kept.insert(n, Arc::new(n), 10_000);
            assert!(kept.get(&0).is_some(), "used all the time");
            most = most.max(kept.bytes());
        }
        assert!(most > 8 << 20 && most <= 16 << 20, "{most}");
        assert!(kept.get(&1).is_none() && kept.get(&3_999).is_some());
        kept.insert(1, Arc::new(1), (8 << 20) + 1);
        assert!(kept.get(&1).is_none(), "too large to be kept");
        for n in 0..4_000 {
            kept.remove(&n);
        }
        assert_eq!((kept.bytes(), kept.recent_bytes), (0, 0));
        kept.insert(1, Arc::new(1), 5);
        kept.insert(1, Arc::new(1), 7);
        assert_eq!((kept.bytes(), kept.recent_bytes), (7, 7));
    }
}
