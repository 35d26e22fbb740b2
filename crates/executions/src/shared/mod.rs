//! Executions in records that instances share.
//!
//! An execution is a head, a lease and numbered records of its journal. A head changes by compare-and-swap; a record of the journal is written only
//! where there is none, so that its number is a fencing token: whoever takes an execution over writes the next, empty record, and the
//! instance before cannot add any more.
//!
//! `journals` has the records of single executions, sealed by `seal`; `directory` lists them in the records of `index`. `lease` has the steps of a holder,
//! and `recorder` keeps the executions that ended.

mod directory;
mod index;
mod journals;
mod lease;
mod recorder;
mod seal;

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use gatewright_core::{Claimant, NewRecord, SealKey, SharedRecords};
use tokio_util::sync::CancellationToken;

pub(crate) use self::lease::SharedLease;
use self::{
    directory::Directory,
    index::Entry,
    journals::{BATCH, Journals, MOST_TRIES, Read, Stored, all_keys, chunk_key, head_key, lease_key},
    recorder::Recorder,
    seal::{Sealer, owner_tag, party_tags},
};
use crate::{
    Ending, ExecutionError, ExecutionId, ExecutionsConfig, Head, State, Terms,
    clock::Clock,
    journal::Journal,
    reading::{Execution, Listed, Reader},
};

/// Heads that one list reads.
const MOST_READ: usize = 2_000;
/// Executions that one search for abandoned ones looks at.
const MOST_LOOKED_AT: usize = 256;

/// The shared executions, as one instance sees them.
pub(crate) struct Shared {
    journals: Arc<Journals>,
    directory: Arc<Directory>,
    recorder: Recorder,
    /// The place at which the next search for abandoned executions begins.
    look_at: AtomicUsize,
}

impl Shared {
    pub(crate) fn new(
        config: ExecutionsConfig,
        clock: Clock,
        records: Arc<dyn SharedRecords>,
        key: SealKey,
        instance: String,
    ) -> Self {
        let journals = Arc::new(Journals::new(config, clock, records, key, instance));
        let directory = Arc::new(Directory::new(journals.clone()));
        let recorder = Recorder::start(directory.clone());
        Self { journals, directory, recorder, look_at: AtomicUsize::default() }
    }

    /// Ends background work, once what is to be kept has been written.
    pub(crate) async fn close(&self) {
        self.recorder.close().await;
    }

    /// Adds an execution that goes on.
    pub(crate) async fn begin(
        &self,
        head: &Head,
        journal: &Journal,
        lost: CancellationToken,
    ) -> Result<SharedLease, ExecutionError> {
        let head = Head { records: 1, bytes: journal.bytes(), ..head.clone() };
        let (id, sealer) = (head.id, Sealer::new(&self.journals.key, head.id));
        let entry = self.directory.entry(&head);
        self.directory.reserve(&head, false).await?;
        let written = async {
            let life = self.journals.life(&head)?;
            let (first, token) = (sealer.chunk(0, journal.frames().to_vec()), self.journals.token());
            let lease = self.journals.config.lease;
            let first = NewRecord { key: chunk_key(id, 0), value: first, ttl: life };
            let lease = NewRecord { key: lease_key(id), value: token.clone(), ttl: lease };
            self.journals.records.put_many(&[first, lease]).await?;
            // Written last: what has no head does not exist.
            let record = sealer.head(&head);
            let head = NewRecord { key: head_key(id), value: record.clone(), ttl: life };
            self.journals.records.put_many(&[head]).await?;
            Ok((token, record))
        };
        match written.await {
            Ok((token, record)) => {
                let read = Read { chunks: Vec::new(), bytes: journal.bytes(), next: 1 };
                Ok(SharedLease::new(self.directory.clone(), Stored { head, record }, &read, token, lost))
            }
            Err(error) => {
                let _ = self.directory.unlist(&entry).await;
                let _ = self.journals.records.remove_many(&all_keys(id, 1)).await;
                Err(error)
            }
        }
    }

    pub(crate) fn keep(&self, head: Head, journal: Journal) {
        self.recorder.keep(head, journal);
    }

    pub(crate) async fn open(
        &self,
        id: ExecutionId,
        reader: Reader<'_>,
    ) -> Result<Execution, ExecutionError> {
        if let Some(execution) = self.recorder.get(id) {
            return if reader.may_see(&execution.head) {
                reader.check_scopes(&execution.head).map(|()| execution)
            } else {
                Err(ExecutionError::NotFound)
            };
        }
        let Stored { mut head, .. } = self.journals.visible(id, reader).await?;
        reader.check_scopes(&head)?;
        let mut read = Read::default();
        self.journals.read_journal(&head, &mut read).await?;
        head.bytes = read.bytes;
        Ok(Execution { head, chunks: read.chunks })
    }

    pub(crate) async fn head(&self, id: ExecutionId, reader: Reader<'_>) -> Result<Head, ExecutionError> {
        match self.recorder.get(id) {
            Some(execution) if reader.may_see(&execution.head) => Ok(execution.head),
            Some(_) => Err(ExecutionError::NotFound),
            None => Ok(self.journals.visible(id, reader).await?.head),
        }
    }

    pub(crate) async fn acquire(
        &self,
        id: ExecutionId,
        reader: Reader<'_>,
        terms: Terms,
        lost: CancellationToken,
    ) -> Result<(SharedLease, Execution), ExecutionError> {
        self.recorder.check(id, reader)?;
        let token = self.journals.token();
        let stored = self.journals.visible(id, reader).await?;
        reader.check_scopes(&stored.head)?;
        if !stored.head.is_open() {
            return Err(ExecutionError::Ended);
        }
        if !self.journals.take_lease(id, &token).await? {
            return Err(ExecutionError::Busy);
        }
        match self.take_over(id, reader, terms).await {
            Ok((stored, read)) => {
                let head = Head { bytes: read.bytes, ..stored.head.clone() };
                let lease = SharedLease::new(self.directory.clone(), stored, &read, token, lost);
                Ok((lease, Execution { head, chunks: read.chunks }))
            }
            Err(error) => {
                self.journals.release(id, &token).await;
                Err(error)
            }
        }
    }

    /// Makes the holder of the lease the only one who can change the execution: with the next head, and the next record of the journal.
    async fn take_over(
        &self,
        id: ExecutionId,
        reader: Reader<'_>,
        terms: Terms,
    ) -> Result<(Stored, Read), ExecutionError> {
        let mut stored = self.journals.visible(id, reader).await?;
        reader.check_scopes(&stored.head)?;
        if !stored.head.is_open() {
            return Err(ExecutionError::Ended);
        }
        let mut head = stored.head.clone();
        head.run_again(reader, terms, self.journals.clock.now_ms());
        if !self.journals.swap(&mut stored, head).await? {
            return Err(ExecutionError::Busy);
        }
        let read = self.journals.fence(&stored.head).await?;
        Ok((stored, read))
    }

    pub(crate) async fn cancel(
        &self,
        id: ExecutionId,
        reader: Reader<'_>,
        ending: &Ending,
    ) -> Result<(), ExecutionError> {
        self.recorder.check(id, reader)?;
        for _ in 0..MOST_TRIES {
            let mut stored = self.journals.visible(id, reader).await?;
            if !stored.head.is_open() {
                return Err(ExecutionError::Ended);
            }
            let mut head = stored.head.clone();
            head.end(ending, None, self.journals.clock.now_ms());
            if self.journals.swap(&mut stored, head).await? {
                // The holder's next renewal and its next chunk fail.
                let taken = NewRecord {
                    key: lease_key(id),
                    value: b"cancelled".to_vec(),
                    ttl: self.journals.config.lease,
                };
                let lease = self.journals.records.put_many(&[taken]).await;
                let fenced = self.journals.fence(&stored.head).await;
                let records = fenced.as_ref().map_or(stored.head.records, |read| read.next);
                stored.head.records = records;
                self.directory.list_as_ended(&stored.head).await;
                lease?;
                return match fenced {
                    // Nobody can go on with a journal that cannot be read.
                    Ok(_) | Err(ExecutionError::Unreadable) => Ok(()),
                    Err(error) => Err(error),
                };
            }
        }
        Err(ExecutionError::Busy)
    }

    pub(crate) async fn remove(&self, id: ExecutionId, reader: Reader<'_>) -> Result<(), ExecutionError> {
        match self.cancel(id, reader, &Ending::new("removed")).await {
            Ok(()) | Err(ExecutionError::Ended) => {}
            Err(error) => return Err(error),
        }
        let stored = self.journals.visible(id, reader).await?;
        let mut read = Read::default();
        // A journal that cannot be read expires.
        let _ = self.journals.read_journal(&stored.head, &mut read).await;
        self.journals.remove_records(&all_keys(id, read.next.max(stored.head.records))).await?;
        self.directory.forget(&stored.head).await
    }

    pub(crate) async fn list(
        &self,
        reader: Reader<'_>,
        state: Option<State>,
        most: usize,
    ) -> Result<Vec<Listed>, ExecutionError> {
        let (mut open, mut ended) = (self.directory.open().await?, Vec::new());
        if state.is_none_or(|state| state == State::Ended) {
            ended = self.directory.ended().await?;
        }
        if state == Some(State::Ended) {
            open.clear();
        }
        let key = &self.journals.key;
        match reader {
            Reader::Owner(owner) => {
                let tag = owner_tag(key, owner);
                open.retain(|entry| entry.owner == tag);
                ended.retain(|entry| entry.owner == tag);
            }
            Reader::Subject(subject) => {
                let tags = party_tags(key, &Claimant::new(Some(subject.into()), None, &[]));
                open.retain(|entry| entry.parties[0] == tags[0]);
                ended.retain(|entry| entry.parties[0] == tags[0]);
            }
            Reader::Operator => {}
        }
        // One whose instance died in between is in both.
        let known: HashSet<ExecutionId> = ended.iter().map(|entry| entry.id).collect();
        open.retain(|entry| !known.contains(&entry.id));
        open.sort_by_key(|entry| std::cmp::Reverse(entry.created_ms));
        ended.sort_by_key(|entry| std::cmp::Reverse(entry.created_ms));
        let ids: Vec<ExecutionId> = open.iter().chain(&ended).map(|entry| entry.id).take(MOST_READ).collect();
        let mut listed = Vec::new();
        for ids in ids.chunks(BATCH) {
            let heads = self.journals.heads(ids).await?.into_iter().flatten();
            let heads: Vec<Head> = heads
                .filter(|head| reader.may_see(head) && state.is_none_or(|state| head.state == state))
                .take(most - listed.len())
                .collect();
            let held = self.journals.held(heads.iter().map(|head| head.id)).await?;
            let all = heads.into_iter().zip(held);
            listed
                .extend(all.map(|(head, held)| Listed { held: held && head.state == State::Running, head }));
            if listed.len() >= most {
                break;
            }
        }
        Ok(listed)
    }

    pub(crate) async fn abandoned(&self) -> Result<Vec<Head>, ExecutionError> {
        let mut entries = self.directory.open().await?;
        entries.sort_by_key(|entry| entry.id);
        let start = self.look_at.load(Ordering::Relaxed);
        let start = if start < entries.len() { start } else { 0 };
        let entries: Vec<Entry> = entries.into_iter().skip(start).take(MOST_LOOKED_AT).collect();
        self.look_at.store(start + entries.len(), Ordering::Relaxed);
        let held = self.journals.held(entries.iter().map(|entry| entry.id)).await?;
        let free: Vec<Entry> =
            entries.into_iter().zip(held).filter(|(_, held)| !held).map(|(entry, _)| entry).collect();
        let ids: Vec<ExecutionId> = free.iter().map(|entry| entry.id).collect();
        let heads = self.journals.heads(&ids).await?;
        let mut abandoned = Vec::new();
        for (entry, head) in free.iter().zip(heads) {
            match head {
                // While it ran, its size was listed, and not in the head.
                Some(head) if head.state == State::Running && head.about.detached => {
                    abandoned.push(Head { bytes: head.bytes.max(entry.bytes), ..head });
                }
                Some(head) if head.is_open() => {}
                head => self.directory.tidy(entry, head.as_ref()).await?,
            }
        }
        Ok(abandoned)
    }
}
