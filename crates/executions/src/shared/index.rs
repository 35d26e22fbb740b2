//! Indexes of executions: records that list ids, since a store of records cannot be searched.
//!
//! Those that are open are listed by owner, so that the bounds of one subject, or of one network, are counted in one step; those that have ended by id. Entries hold no
//! text: an owner is a keyed digest.

use crate::{ExecutionId, Head};

/// Records of each index.
pub(super) const SHARDS: usize = 16;
const VERSION: u8 = 2;
const ENTRY: usize = 16 + 8 + PARTIES * 8 + 8 + 8 + 8 + 4 + 1;
/// Parties of one claimant: a subject, or an address and the networks around it.
pub(super) const PARTIES: usize = 3;

/// A digest of an owner, or of a party that it counts for.
pub(super) type OwnerTag = [u8; 8];

/// One execution in an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: ExecutionId,
    pub(super) owner: OwnerTag,
    /// Whoever it counts for: the subject, or networks, the narrowest first. Zeros for none.
    pub(super) parties: [OwnerTag; PARTIES],
    pub(super) created_ms: u64,
    pub(super) expires_ms: u64,
    pub(super) bytes: u64,
    /// Records of the journal, as far as they are known.
    pub(super) records: u32,
    pub(super) detached: bool,
}

impl Entry {
    pub(super) fn of(head: &Head, owner: OwnerTag, parties: [OwnerTag; PARTIES]) -> Self {
        Self {
            id: head.id,
            owner,
            parties,
            created_ms: head.created_ms,
            expires_ms: head.expires_ms,
            bytes: head.bytes,
            records: head.records,
            detached: head.about.detached,
        }
    }

    /// The shard that lists it while it is open: that of its subject, or of the widest network around it.
    pub(super) fn open_shard(&self) -> usize {
        let widest = self.parties.iter().rev().find(|party| **party != OwnerTag::default());
        usize::from(widest.unwrap_or(&self.owner)[0]) % SHARDS
    }

    /// The one party that it counts for once it has ended.
    pub(super) fn counts_for(&self) -> OwnerTag {
        if self.parties[0] == OwnerTag::default() { self.owner } else { self.parties[0] }
    }

    /// The shard that lists it once it has ended.
    pub(super) fn ended_shard(&self) -> usize {
        usize::from(self.id.bytes()[0]) % SHARDS
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self.id.bytes());
        to.extend_from_slice(&self.owner);
        to.extend_from_slice(self.parties.as_flattened());
        for number in [self.created_ms, self.expires_ms, self.bytes] {
            to.extend_from_slice(&number.to_le_bytes());
        }
        to.extend_from_slice(&self.records.to_le_bytes());
        to.push(u8::from(self.detached));
    }

    fn read(bytes: &[u8; ENTRY]) -> Self {
        let mut rest = &bytes[..];
        Self {
            id: ExecutionId::of_bytes(part(&mut rest)),
            owner: part(&mut rest),
            parties: std::array::from_fn(|_| part(&mut rest)),
            created_ms: u64::from_le_bytes(part(&mut rest)),
            expires_ms: u64::from_le_bytes(part(&mut rest)),
            bytes: u64::from_le_bytes(part(&mut rest)),
            records: u32::from_le_bytes(part(&mut rest)),
            detached: rest == [1],
        }
    }
}

/// The first `N` bytes, which an entry has.
fn part<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let mut part = [0; N];
    let (first, after) = rest.split_at(N);
    part.copy_from_slice(first);
    *rest = after;
    part
}

/// The entries of a record without those that have expired. Empty for what cannot be read, such as a record of another version.
pub(super) fn read(record: Option<&[u8]>, now_ms: u64) -> Vec<Entry> {
    let Some((&VERSION, entries)) = record.and_then(<[u8]>::split_first) else { return Vec::new() };
    let (entries, _) = entries.as_chunks();
    entries.iter().map(Entry::read).filter(|entry| entry.expires_ms > now_ms).collect()
}

/// The record of `entries`.
pub(super) fn write(entries: &[Entry]) -> Vec<u8> {
    let mut record = Vec::with_capacity(1 + entries.len() * ENTRY);
    record.push(VERSION);
    entries.iter().for_each(|entry| entry.write(&mut record));
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(n: u64) -> Entry {
        Entry {
            id: ExecutionId::random(),
            owner: n.to_be_bytes(),
            parties: [n.to_be_bytes(), [7; 8], [0; 8]],
            created_ms: n,
            expires_ms: 1_000 + n,
            bytes: n << 40,
            records: 7,
            detached: n % 2 == 1,
        }
    }

    #[test]
    fn entries_are_read_back_without_those_that_expired() {
        let entries: Vec<Entry> = (0..10).map(entry).collect();
        let record = write(&entries);
        assert_eq!(read(Some(&record), 0), entries);
        assert_eq!(read(Some(&record), 1_004), entries[5..]);
        assert_eq!(read(None, 0), []);
        assert_eq!(read(Some(&[9; 90]), 0), [], "another version");
        assert_eq!(read(Some(&record[..record.len() - 1]), 0), entries[..9], "a record that was cut");
    }
}
