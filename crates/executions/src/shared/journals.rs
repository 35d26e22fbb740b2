//! The records of single executions: heads, journals and leases.

use std::{sync::Arc, time::Duration};

use gatewright_core::{RecordsError, SealKey, SharedRecords};

use super::seal::Sealer;
use crate::{
    ExecutionError, ExecutionId, ExecutionsConfig, Head, clock::Clock, journal::Journal, reading::Reader,
};

/// Tries to change a record that others change as well.
pub(super) const MOST_TRIES: usize = 32;
/// Waits before the next try when the store does not answer.
const RETRIES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];
/// Records that are read or removed at once.
pub(super) const BATCH: usize = 64;
/// A lease that its holder gave up, for the moment until the record is gone.
const RELEASED: &[u8] = b"";

/// The records of executions, one by one.
pub(super) struct Journals {
    pub(super) config: ExecutionsConfig,
    pub(super) clock: Clock,
    pub(super) records: Arc<dyn SharedRecords>,
    pub(super) key: SealKey,
    instance: String,
}

/// A head, and the record that it was read from or written as.
pub(super) struct Stored {
    pub(super) head: Head,
    pub(super) record: Vec<u8>,
}

/// The records of a journal.
#[derive(Default)]
pub(super) struct Read {
    pub(super) chunks: Vec<Vec<u8>>,
    pub(super) bytes: u64,
    /// Number of the first record that does not exist.
    pub(super) next: u32,
}

pub(super) fn head_key(id: ExecutionId) -> String {
    format!("head {id}")
}

pub(super) fn lease_key(id: ExecutionId) -> String {
    format!("lease {id}")
}

pub(super) fn chunk_key(id: ExecutionId, number: u32) -> String {
    format!("chunk {id} {number}")
}

/// Names of all records of an execution with `records` records in its journal.
pub(super) fn all_keys(id: ExecutionId, records: u32) -> Vec<String> {
    let mut keys = vec![head_key(id), lease_key(id)];
    keys.extend((0..records).map(|number| chunk_key(id, number)));
    keys
}

impl Journals {
    pub(super) fn new(
        config: ExecutionsConfig,
        clock: Clock,
        records: Arc<dyn SharedRecords>,
        key: SealKey,
        instance: String,
    ) -> Self {
        Self { config, clock, records, key, instance }
    }

    /// The head of an execution that `reader` may see.
    pub(super) async fn visible(
        &self,
        id: ExecutionId,
        reader: Reader<'_>,
    ) -> Result<Stored, ExecutionError> {
        let record = self.records.get_many(&[head_key(id)]).await?.pop().flatten();
        let stored = record.and_then(|record| {
            let head = Sealer::new(&self.key, id).open_head(record.clone())?;
            Some(Stored { head, record })
        });
        let now_ms = self.clock.now_ms();
        stored
            .filter(|stored| stored.head.expires_ms > now_ms && reader.may_see(&stored.head))
            .ok_or(ExecutionError::NotFound)
    }

    /// The heads of `ids`, in their order.
    pub(super) async fn heads(&self, ids: &[ExecutionId]) -> Result<Vec<Option<Head>>, ExecutionError> {
        let keys: Vec<String> = ids.iter().map(|id| head_key(*id)).collect();
        let mut heads = Vec::with_capacity(ids.len());
        for (ids, keys) in ids.chunks(BATCH).zip(keys.chunks(BATCH)) {
            let records = self.records.get_many(keys).await?;
            let head = |(id, record): (&ExecutionId, Option<Vec<u8>>)| {
                Sealer::new(&self.key, *id).open_head(record?)
            };
            heads.extend(ids.iter().zip(records).map(head));
        }
        Ok(heads)
    }

    /// Reads on in a journal, to its end.
    pub(super) async fn read_journal(&self, head: &Head, read: &mut Read) -> Result<(), ExecutionError> {
        let sealer = Sealer::new(&self.key, head.id);
        loop {
            // All that are known to be there, and whether there is another.
            let known = head.records.saturating_sub(read.next).saturating_add(1);
            let batch = known.clamp(8, BATCH as u32);
            let keys: Vec<String> = (read.next..read.next + batch).map(|n| chunk_key(head.id, n)).collect();
            for record in self.records.get_many(&keys).await? {
                let Some(record) = record else { return Ok(()) };
                let frames = sealer.open_chunk(read.next, record);
                let journal = frames.and_then(Journal::read).ok_or(ExecutionError::Unreadable)?;
                read.bytes += journal.bytes();
                read.chunks.extend(journal.chunks());
                read.next += 1;
            }
        }
    }

    /// Reads the journal and ends it with an empty record, which nobody else can write then.
    pub(super) async fn fence(&self, head: &Head) -> Result<Read, ExecutionError> {
        let (sealer, life) = (Sealer::new(&self.key, head.id), self.life(head)?);
        let mut read = Read::default();
        for _ in 0..MOST_TRIES {
            self.read_journal(head, &mut read).await?;
            let fence = sealer.chunk(read.next, Vec::new());
            if self.write_new(&chunk_key(head.id, read.next), &fence, life).await? {
                read.next += 1;
                return Ok(read);
            }
        }
        Err(ExecutionError::Busy)
    }

    /// Puts `head` in the place of the stored one. Returns `false` if that has changed.
    pub(super) async fn swap(&self, stored: &mut Stored, head: Head) -> Result<bool, ExecutionError> {
        let (key, life) = (head_key(head.id), self.life(&head)?);
        let record = Sealer::new(&self.key, head.id).head(&head);
        if !self.write(&key, Some(&stored.record), &record, life).await? {
            return Ok(false);
        }
        *stored = Stored { head, record };
        Ok(true)
    }

    /// Writes a record that does not exist yet. Returns `false` if it does.
    pub(super) async fn write_new(
        &self,
        key: &str,
        record: &[u8],
        life: Duration,
    ) -> Result<bool, ExecutionError> {
        self.write(key, None, record, life).await
    }

    /// Replaces a record, and tries again while the store does not answer. `after` is unique, so a try that succeeded although its answer was lost is
    /// recognised.
    pub(super) async fn write(
        &self,
        key: &str,
        before: Option<&[u8]>,
        after: &[u8],
        life: Duration,
    ) -> Result<bool, ExecutionError> {
        let mut retries = RETRIES.into_iter();
        loop {
            let written = async {
                if self.records.replace(key, before, after, life).await? {
                    return Ok(true);
                }
                let found = self.records.get_many(&[key.to_owned()]).await?.pop().flatten();
                Ok(found.as_deref() == Some(after))
            };
            match (written.await, retries.next()) {
                (Err(RecordsError::Unavailable), Some(wait)) => tokio::time::sleep(wait).await,
                (written, _) => return Ok(written?),
            }
        }
    }

    /// Returns for each execution whether an instance has its lease.
    pub(super) async fn held(
        &self,
        ids: impl Iterator<Item = ExecutionId>,
    ) -> Result<Vec<bool>, ExecutionError> {
        let keys: Vec<String> = ids.map(lease_key).collect();
        let leases = self.records.get_many(&keys).await?.into_iter();
        Ok(leases.map(|lease| lease.is_some_and(|lease| lease != RELEASED)).collect())
    }

    /// Takes a lease that nobody has. Of two concurrent calls at most one returns `true`.
    pub(super) async fn take_lease(&self, id: ExecutionId, token: &[u8]) -> Result<bool, ExecutionError> {
        for before in [None, Some(RELEASED), None] {
            if self.records.replace(&lease_key(id), before, token, self.config.lease).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives a lease up, if it is still that of `token`.
    pub(super) async fn release(&self, id: ExecutionId, token: &[u8]) {
        let gone =
            self.records.replace(&lease_key(id), Some(token), RELEASED, Duration::from_millis(1)).await;
        if let Err(error) = gone {
            tracing::debug!(%error, "a lease was not released: it runs out");
        }
    }

    /// Time for which the records of an execution are kept from now on.
    pub(super) fn life(&self, head: &Head) -> Result<Duration, ExecutionError> {
        match head.expires_ms.saturating_sub(self.clock.now_ms()) {
            0 => Err(ExecutionError::NotFound),
            left => Ok(Duration::from_millis(left)),
        }
    }

    /// A name for a new lease: random bytes, then the instance.
    pub(super) fn token(&self) -> Vec<u8> {
        let mut token = ExecutionId::random().bytes().to_vec();
        token.extend_from_slice(self.instance.as_bytes());
        token
    }

    pub(super) async fn remove_records(&self, keys: &[String]) -> Result<(), ExecutionError> {
        for keys in keys.chunks(BATCH) {
            self.records.remove_many(keys).await?;
        }
        Ok(())
    }
}
