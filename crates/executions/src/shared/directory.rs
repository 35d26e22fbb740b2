//! The lists of executions: steps that change the indexes.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::sync::Mutex;

use super::{
    index::{self, Entry, OwnerTag, SHARDS},
    journals::{BATCH, Journals, MOST_TRIES, all_keys},
    seal::{owner_tag, party_tags},
};
use crate::{ExecutionError, ExecutionId, ExecutionsConfig, Head, journal::HEAD_BYTES};

/// Time after which an entry of an index without a head is a remnant.
const REMNANT_MS: u64 = 60_000;

/// The lists of the executions that are open, and of those that have ended.
pub(super) struct Directory {
    pub(super) journals: Arc<Journals>,
    /// One for each pair of index records: changes from this instance do not fail each other.
    changing: [Mutex<()>; SHARDS],
    /// Room of ended executions in each record of the index, and when it was read.
    ended: std::sync::Mutex<Option<(u64, [Taken; SHARDS])>>,
}

/// Time after which other instances may have added much to what was read.
const KNOWN_MS: u64 = 5_000;

fn open_key(shard: usize) -> String {
    format!("open {shard}")
}

fn ended_key(shard: usize) -> String {
    format!("ended {shard}")
}

/// Bytes that an execution takes.
fn size(entry: &Entry) -> u64 {
    entry.bytes + HEAD_BYTES
}

/// Moves ended executions to `evicted` until there is room for the last one: the oldest ones of the caller whose executions take the most room. A record of the
/// index may have more than its part as long as all together, with those `beside` it, are not too many.
fn make_room_for_last(
    entries: &mut Vec<Entry>,
    beside: Taken,
    config: &ExecutionsConfig,
    evicted: &mut Vec<Entry>,
) {
    let Some(newest) = entries.last().map(size) else { return };
    let mut bytes: u64 = entries.iter().map(size).sum();
    let are_all_too_many = |count: usize, bytes: u64| {
        beside.count + count > config.max_executions as usize
            || (beside.bytes as u64).saturating_add(bytes) > config.max_bytes
    };
    while config.are_too_many(entries.len(), bytes, newest, SHARDS) && are_all_too_many(entries.len(), bytes)
    {
        let mut weights: HashMap<OwnerTag, u64> = HashMap::new();
        for entry in &*entries {
            *weights.entry(entry.counts_for()).or_default() += config.weight(size(entry));
        }
        // Of several that take as much, the one that stands first.
        let others = entries[..entries.len() - 1].iter().enumerate().rev();
        let heaviest = others.max_by_key(|(_, entry)| weights[&entry.counts_for()]);
        let Some((_, heaviest)) = heaviest else { return };
        let caller = heaviest.counts_for();
        let Some(oldest) = entries.iter().position(|entry| entry.counts_for() == caller) else { return };
        let entry = entries.remove(oldest);
        bytes -= size(&entry);
        evicted.push(entry);
    }
}

/// Room that executions take.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    count: usize,
    bytes: usize,
}

impl Taken {
    fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        entries.into_iter().fold(Self::default(), |taken, entry| Self {
            count: taken.count + 1,
            bytes: taken.bytes.saturating_add(usize::try_from(size(entry)).unwrap_or(usize::MAX)),
        })
    }

    fn and(&self, other: &Self) -> Self {
        Self { count: self.count + other.count, bytes: self.bytes.saturating_add(other.bytes) }
    }

    /// Returns why there is no room for `more` beside these, of which the parties of its owner have `own`, each with the number of callers that it
    /// counts for.
    fn allows(
        &self,
        own: &[(Self, usize)],
        more: &Self,
        config: &ExecutionsConfig,
    ) -> Result<(), ExecutionError> {
        let most_bytes = usize::try_from(config.max_bytes).unwrap_or(usize::MAX);
        let after = self.and(more);
        let places = (config.max_executions as usize).checked_sub(after.count).ok_or(ExecutionError::Full)?;
        let bytes = most_bytes.checked_sub(after.bytes).ok_or(ExecutionError::Full)?;
        let has_share = own.iter().all(|(own, times)| {
            config.count_share().allows(own.count, *times, more.count, places)
                && config.bytes_share().allows(own.bytes, *times, more.bytes, bytes)
        });
        if has_share { Ok(()) } else { Err(ExecutionError::TooMany) }
    }
}

impl Directory {
    pub(super) fn new(journals: Arc<Journals>) -> Self {
        Self { journals, changing: std::array::from_fn(|_| Mutex::default()), ended: Default::default() }
    }

    /// The executions that are open.
    pub(super) async fn open(&self) -> Result<Vec<Entry>, ExecutionError> {
        self.entries(open_key).await
    }

    /// The executions that have ended.
    pub(super) async fn ended(&self) -> Result<Vec<Entry>, ExecutionError> {
        self.entries(ended_key).await
    }

    /// The entry of an execution.
    pub(super) fn entry(&self, head: &Head) -> Entry {
        let key = &self.journals.key;
        Entry::of(head, owner_tag(key, &head.owner), party_tags(key, &head.claimant()))
    }

    /// Removes an execution from the index of ended ones.
    pub(super) async fn forget(&self, head: &Head) -> Result<(), ExecutionError> {
        let entry = self.entry(head);
        self.change(entry.ended_shard(), ended_key(entry.ended_shard()), |entries| {
            entries.retain(|other| other.id != entry.id);
            Ok(())
        })
        .await
    }

    /// Lists an execution as open, if there is room for one more; or, if it `is_listed`, with more bytes.
    pub(super) async fn reserve(&self, head: &Head, is_listed: bool) -> Result<(), ExecutionError> {
        let (entry, claimant) = (self.entry(head), head.claimant());
        let parties: Vec<_> =
            entry.parties.into_iter().zip(claimant.parties().map(|(_, times)| times)).collect();
        let shard = entry.open_shard();
        let of_others = self.entries(open_key).await?;
        let of_others = Taken::of(of_others.iter().filter(|other| other.open_shard() != shard));
        let (config, mut tidied) = (&self.journals.config, false);
        loop {
            let reserved = self.change(shard, open_key(shard), |entries| {
                let before = entries.iter().position(|other| other.id == entry.id);
                if is_listed && before.is_none() {
                    // It has ended meanwhile.
                    return Ok(());
                }
                let others = || entries.iter().filter(|other| other.id != entry.id);
                let of = |party| Taken::of(others().filter(|other| other.parties.contains(party)));
                let own: Vec<_> = parties.iter().map(|(party, times)| (of(party), *times)).collect();
                let taken = of_others.and(&Taken::of(others()));
                taken.allows(&own, &Taken::of([&entry]), config)?;
                match before {
                    Some(at) => entries[at] = entry,
                    None => entries.push(entry),
                }
                Ok(())
            });
            match reserved.await {
                Err(ExecutionError::TooMany | ExecutionError::Full) if !tidied => {
                    tidied = true;
                    self.tidy_shard(shard, &entry).await?;
                }
                reserved => return reserved,
            }
        }
    }

    /// Lists an open execution with its present size.
    pub(super) async fn relist(&self, head: &Head) -> Result<(), ExecutionError> {
        let entry = self.entry(head);
        let shard = entry.open_shard();
        self.change(shard, open_key(shard), |entries| {
            entries.iter_mut().filter(|other| other.id == entry.id).for_each(|other| *other = entry);
            Ok(())
        })
        .await
    }

    /// Removes an execution from the index of open ones.
    pub(super) async fn unlist(&self, entry: &Entry) -> Result<(), ExecutionError> {
        let shard = entry.open_shard();
        self.change(shard, open_key(shard), |entries| {
            entries.retain(|other| other.id != entry.id);
            Ok(())
        })
        .await
    }

    /// Moves an execution from the open ones to the ended ones. What fails here is corrected later.
    pub(super) async fn list_as_ended(&self, head: &Head) {
        let entry = self.entry(head);
        let moved = async {
            self.add_ended(entry.ended_shard(), &[entry]).await?;
            self.unlist(&entry).await
        };
        if let Err(error) = moved.await {
            tracing::debug!(%error, "an execution that ended is still listed as open");
        }
    }

    /// Lists executions of one shard as ended, and removes those that find no room then.
    pub(super) async fn add_ended(&self, shard: usize, new: &[Entry]) -> Result<(), ExecutionError> {
        let mut evicted = Vec::new();
        let (beside, mut own) = (self.ended_beside(shard).await?, Taken::default());
        self.change(shard, ended_key(shard), |entries| {
            evicted.clear();
            entries.retain(|other| new.iter().all(|entry| entry.id != other.id));
            for entry in new {
                entries.push(*entry);
                make_room_for_last(entries, beside, &self.journals.config, &mut evicted);
            }
            own = Taken::of(&*entries);
            Ok(())
        })
        .await?;
        if let Some((_, all)) = &mut *self.ended.lock().unwrap_or_else(PoisonError::into_inner) {
            all[shard] = own;
        }
        let keys: Vec<String> = evicted.iter().flat_map(|entry| all_keys(entry.id, entry.records)).collect();
        self.journals.remove_records(&keys).await
    }

    /// Room of ended executions in the other records of the index, as it was known a few seconds ago.
    async fn ended_beside(&self, shard: usize) -> Result<Taken, ExecutionError> {
        let now_ms = self.journals.clock.now_ms();
        let known = *self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let all = match known {
            Some((at_ms, all)) if now_ms.saturating_sub(at_ms) < KNOWN_MS => all,
            _ => {
                let mut all = [Taken::default(); SHARDS];
                for entry in self.ended().await? {
                    let taken = &mut all[entry.ended_shard()];
                    *taken = taken.and(&Taken::of([&entry]));
                }
                *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some((now_ms, all));
                all
            }
        };
        let others = all.iter().enumerate().filter(|(other, _)| *other != shard);
        Ok(others.fold(Taken::default(), |sum, (_, taken)| sum.and(taken)))
    }

    /// Corrects the index where an instance died before it could: `head` has ended, or does not exist.
    pub(super) async fn tidy(&self, entry: &Entry, head: Option<&Head>) -> Result<(), ExecutionError> {
        match head {
            Some(head) => self.list_as_ended(head).await,
            None if entry.created_ms + REMNANT_MS < self.journals.clock.now_ms() => {
                self.unlist(entry).await?
            }
            None => {}
        }
        Ok(())
    }

    /// Corrects the entries that count for the same parties as `like`.
    async fn tidy_shard(&self, shard: usize, like: &Entry) -> Result<(), ExecutionError> {
        let record = self.journals.records.get_many(&[open_key(shard)]).await?.pop().flatten();
        let mut entries = index::read(record.as_deref(), self.journals.clock.now_ms());
        entries.retain(|entry| entry.owner == like.owner || entry.parties[0] == like.parties[0]);
        for entries in entries.chunks(BATCH) {
            let ids: Vec<ExecutionId> = entries.iter().map(|entry| entry.id).collect();
            for (entry, head) in entries.iter().zip(self.journals.heads(&ids).await?) {
                if head.as_ref().is_none_or(|head| !head.is_open()) {
                    self.tidy(entry, head.as_ref()).await?;
                }
            }
        }
        Ok(())
    }

    /// The entries of all records of an index.
    async fn entries(&self, key: fn(usize) -> String) -> Result<Vec<Entry>, ExecutionError> {
        let keys: Vec<String> = (0..SHARDS).map(key).collect();
        let (records, now_ms) = (self.journals.records.get_many(&keys).await?, self.journals.clock.now_ms());
        Ok(records.iter().flat_map(|record| index::read(record.as_deref(), now_ms)).collect())
    }

    /// Changes a record of an index by compare-and-swap. An error of `change` leaves it as it was.
    async fn change(
        &self,
        shard: usize,
        key: String,
        mut change: impl FnMut(&mut Vec<Entry>) -> Result<(), ExecutionError>,
    ) -> Result<(), ExecutionError> {
        let _alone = self.changing[shard].lock().await;
        for attempt in 0..MOST_TRIES {
            let now_ms = self.journals.clock.now_ms();
            let before = self.journals.records.get_many(std::slice::from_ref(&key)).await?.pop().flatten();
            let mut entries = index::read(before.as_deref(), now_ms);
            change(&mut entries)?;
            let after = index::write(&entries);
            if before.as_ref() == Some(&after) {
                return Ok(());
            }
            let last_ms = entries.iter().map(|entry| entry.expires_ms).max().unwrap_or(now_ms);
            let life = Duration::from_millis(last_ms.saturating_sub(now_ms).max(REMNANT_MS));
            if self.journals.records.replace(&key, before.as_deref(), &after, life).await? {
                return Ok(());
            }
            // Another instance was quicker. Those that were slower too wait for different times.
            let wait = after.len() as u64 % 7 + u64::from(self.journals.token()[0] % 8);
            tokio::time::sleep(Duration::from_millis(wait * attempt as u64 / 4)).await;
        }
        Err(ExecutionError::Unavailable)
    }
}
