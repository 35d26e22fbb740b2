//! Sharing learned shapes between instances: each adds what is new to a record that all of them read.

use std::{collections::HashSet, fmt::Write as _, sync::Arc, time::Duration};

use data_encoding::HEXLOWER;
use gatewright_core::{Audience, RecordsError, Registry, SharedRecords};

use super::{Shapes, declared, learned::Key, slot::Learned};
use crate::rounds::Round;

/// Records that are read at once.
const BATCH: usize = 64;
/// Tries to add to a record that other instances write as well.
const MOST_TRIES: usize = 5;
/// Longest record that is read or written, in bytes.
const LONGEST: usize = 256 * 1024;
/// Tools that are remembered as having been looked up.
const MOST_LOOKED_UP: usize = 20_000;
/// Time after which a shape is forgotten that nobody adds to.
const TTL: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Shapes that are shared through a store.
pub(crate) struct SharedShapes {
    shapes: Arc<Shapes>,
    registry: Arc<Registry>,
    store: Arc<dyn SharedRecords>,
    /// Tools of everyone whose records have been looked for.
    looked_up: HashSet<[u8; 16]>,
    /// The latest use of a slot that the last round saw.
    clock: u64,
}

impl SharedShapes {
    /// `shapes` of the tools of `registry`, shared through `store` from now on.
    pub(crate) fn new(shapes: Arc<Shapes>, registry: Arc<Registry>, store: Arc<dyn SharedRecords>) -> Self {
        shapes.set_shared();
        Self { shapes, registry, store, looked_up: HashSet::new(), clock: 0 }
    }

    /// Tools without an output schema whose records have not been looked for.
    fn new_tools(&mut self) -> HashSet<Key> {
        if self.looked_up.len() > MOST_LOOKED_UP {
            self.looked_up.clear();
        }
        let snapshot = self.registry.operator_snapshot();
        let learning = snapshot.tools.iter().filter(|tool| declared::declared(tool).is_none());
        let versions =
            learning.map(|tool| tool.version()).filter(|version| !self.looked_up.contains(version));
        versions.map(|version| Key { version, audience: Audience::Everyone }).collect()
    }

    /// Adds what is new here to the record, and takes over the outcome.
    async fn exchange(
        &self,
        key: &Key,
        name: &String,
        mut record: Option<Vec<u8>>,
    ) -> Result<(), RecordsError> {
        for _ in 0..MOST_TRIES {
            let shared = record.as_deref().and_then(read);
            let slot = match self.shapes.unused(key) {
                Some(slot) => slot,
                None if shared.is_some() => self.shapes.slot(key),
                None => return Ok(()),
            };
            let fresh = slot.lock().take_fresh();
            if fresh.is_empty() {
                shared.into_iter().for_each(|shared| slot.take_over(shared));
                self.shapes.recount(&slot);
                return Ok(());
            }
            let mut together = shared.unwrap_or_default();
            together.merge(fresh.clone());
            match self.write(name, record.as_deref(), &together).await {
                Ok(true) => {
                    slot.take_over(together);
                    self.shapes.recount(&slot);
                    return Ok(());
                }
                is_written => {
                    slot.lock().put_back(fresh);
                    is_written?;
                }
            }
            // Another instance was quicker.
            record = self.store.get_many(std::slice::from_ref(name)).await?.pop().flatten();
        }
        Ok(())
    }

    async fn write(
        &self,
        name: &str,
        before: Option<&[u8]>,
        together: &Learned,
    ) -> Result<bool, RecordsError> {
        match serde_json::to_vec(together) {
            Ok(after) if after.len() <= LONGEST => self.store.replace(name, before, &after, TTL).await,
            _ => Ok(false),
        }
    }
}

impl Round for SharedShapes {
    const PERIOD: Duration = Duration::from_secs(5);
    const NAME: &'static str = "shapes of results";

    /// Shares what is new here, and reads the records of tools that were used, asked for or are new.
    async fn round(&mut self) -> Result<(), RecordsError> {
        if !self.shapes.is_on() {
            return Ok(());
        }
        let mut keys = self.new_tools();
        keys.extend(self.shapes.take_wanted());
        let slots = self.shapes.slots();
        let since = self.clock;
        let used = slots.iter().filter(|(_, slot)| slot.used() >= since || slot.lock().has_fresh());
        keys.extend(used.map(|(key, _)| key.clone()));
        self.clock = slots.iter().map(|(_, slot)| slot.used() + 1).max().unwrap_or(since);
        let named: Vec<(Key, String)> =
            keys.into_iter().filter_map(|key| Some((key.clone(), name(&key)?))).collect();
        for batch in named.chunks(BATCH) {
            let names: Vec<String> = batch.iter().map(|(_, name)| name.clone()).collect();
            let records = self.store.get_many(&names).await?;
            for ((key, name), record) in batch.iter().zip(records) {
                self.exchange(key, name, record).await?;
                self.looked_up.insert(key.version);
            }
        }
        Ok(())
    }
}

/// A record; none for one that cannot be read, such as one of another version. It is written anew.
fn read(record: &[u8]) -> Option<Learned> {
    if record.len() > LONGEST {
        return None;
    }
    serde_json::from_slice(record).ok()
}

/// The key of a tool's record; none for what belongs to one session, which other instances do not know.
fn name(key: &Key) -> Option<String> {
    let mut name = format!("v1 {}", HEXLOWER.encode(&key.version));
    let _ = match &key.audience {
        Audience::Everyone => Ok(()),
        Audience::Subject(subject) => write!(name, " subject {}:{subject}", subject.len()),
        Audience::Principal(subject, client) => {
            let client = client.as_deref().map(|client| format!(" client {client}")).unwrap_or_default();
            write!(name, " principal {}:{subject}{client}", subject.len())
        }
        _ => return None,
    };
    Some(name)
}
