//! Executions in the memory of one process.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gatewright_core::{Claimant, FreeMemory, Share, Shares};
use tokio_util::sync::CancellationToken;

use crate::{
    CallCounts, Ending, ExecutionError, ExecutionId, ExecutionsConfig, Head, State, Terms, WaitingFor,
    clock::Clock,
    journal::{HEAD_BYTES, Journal},
    reading::{Execution, Listed, Reader},
};

/// Executions added between two removals of expired ones.
const SWEEP_EVERY: u64 = 1_024;
/// Executions that one search for abandoned ones looks at.
const MOST_LOOKED_AT: usize = 256;

/// The executions of this process.
pub(crate) struct Memory {
    config: ExecutionsConfig,
    clock: Clock,
    /// Places of open executions, and their bytes.
    places: Arc<Shares>,
    bytes: Arc<Shares>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    all: HashMap<ExecutionId, Kept>,
    open: BTreeSet<ExecutionId>,
    /// The oldest first. May name some that were removed.
    ended: VecDeque<ExecutionId>,
    ended_count: usize,
    ended_bytes: u64,
    /// Those that have ended, by whoever they count for.
    ended_by: HashMap<Claimant, EndedOfOne>,
    added: u64,
    leases: u64,
    /// The execution that the last search for abandoned ones ended with.
    looked_at: Option<ExecutionId>,
}

/// Ended executions of one caller.
#[derive(Default)]
struct EndedOfOne {
    weight: u64,
    /// The oldest first. May name some that were removed.
    ids: VecDeque<ExecutionId>,
}

/// The part of an open execution in what all of them share.
struct Room {
    _place: Share,
    bytes: Share,
    /// Bytes that it may add without room.
    spare: u64,
}

/// Bytes that an execution may add when there is no room for more: one that was begun ends with its result, if that is short, and not because others
/// take the memory.
const SPARE: u64 = 8 * 1024;

impl Room {
    /// Takes room for `bytes` more.
    fn grow(&mut self, bytes: u64) -> Result<(), ExecutionError> {
        let grown = self.bytes.grow_whole(usize::try_from(bytes).unwrap_or(usize::MAX));
        if let Err(why) = grown {
            self.spare = self.spare.checked_sub(bytes).ok_or(why)?;
        }
        Ok(())
    }
}

struct Kept {
    head: Head,
    journal: Journal,
    lease: LeaseState,
    /// None once it has ended.
    room: Option<Room>,
}

enum LeaseState {
    Free,
    Taken(u64, CancellationToken),
    /// Its holder is gone.
    Until(u64),
}

impl Kept {
    fn bytes(&self) -> u64 {
        self.journal.bytes() + HEAD_BYTES
    }

    fn is_leased(&self, now_ms: u64) -> bool {
        match self.lease {
            LeaseState::Free => false,
            LeaseState::Taken(..) => true,
            LeaseState::Until(until_ms) => until_ms > now_ms,
        }
    }

    fn head(&self) -> Head {
        Head { bytes: self.journal.bytes(), ..self.head.clone() }
    }

    fn execution(&self) -> Execution {
        let head = self.head();
        Execution { head, chunks: self.journal.chunks() }
    }

    fn listed(&self, now_ms: u64) -> Listed {
        Listed { head: self.head(), held: self.is_leased(now_ms) }
    }
}

/// A lease of an execution in memory.
pub(crate) struct MemoryLease {
    memory: Arc<Memory>,
    id: ExecutionId,
    token: u64,
}

impl Memory {
    pub(crate) fn new(mut config: ExecutionsConfig, clock: Clock) -> Arc<Self> {
        // Those that wait or run, and those that ended, take as much each.
        let most = usize::try_from(config.max_bytes).unwrap_or(usize::MAX);
        config.max_bytes = FreeMemory::of_system().part(16, most) as u64;
        let places = Shares::new(config.max_executions as usize, config.count_share());
        let bytes =
            Shares::of_memory(usize::try_from(config.max_bytes).unwrap_or(usize::MAX), config.bytes_share());
        Arc::new(Self { config, clock, places, bytes, table: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an execution that goes on, and takes its journal.
    pub(crate) fn begin(
        self: &Arc<Self>,
        head: &Head,
        journal: &mut Journal,
        lost: CancellationToken,
    ) -> Result<MemoryLease, ExecutionError> {
        let now_ms = self.clock.now_ms();
        let mut table = self.lock();
        table.make_room(now_ms, &self.config);
        let bytes = journal.bytes() + HEAD_BYTES;
        let room = self.room(head, bytes).or_else(|_| {
            table.sweep(now_ms, &self.config);
            self.room(head, bytes)
        })?;
        table.leases += 1;
        let token = table.leases;
        table.open.insert(head.id);
        let (head, journal) = (head.clone(), std::mem::take(journal));
        let id = head.id;
        table.all.insert(id, Kept { head, journal, lease: LeaseState::Taken(token, lost), room: Some(room) });
        Ok(MemoryLease { memory: self.clone(), id, token })
    }

    /// Room for one more open execution.
    fn room(&self, head: &Head, bytes: u64) -> Result<Room, ExecutionError> {
        let place = self.places.take(head.claimant(), 1)?;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(Room { _place: place, bytes: self.bytes.take(head.claimant(), bytes)?, spare: SPARE })
    }

    /// Adds an execution that has ended.
    pub(crate) fn keep(&self, head: Head, journal: Journal) {
        let now_ms = self.clock.now_ms();
        let mut table = self.lock();
        table.make_room(now_ms, &self.config);
        let (id, kept) = (head.id, Kept { head, journal, lease: LeaseState::Free, room: None });
        table.all.insert(id, kept);
        table.count_ended(id, &self.config);
    }

    pub(crate) fn open(&self, id: ExecutionId, reader: Reader<'_>) -> Result<Execution, ExecutionError> {
        let mut table = self.lock();
        let kept = table.visible(id, reader, self.clock.now_ms())?;
        reader.check_scopes(&kept.head)?;
        Ok(kept.execution())
    }

    pub(crate) fn head(&self, id: ExecutionId, reader: Reader<'_>) -> Result<Head, ExecutionError> {
        let now_ms = self.clock.now_ms();
        Ok(self.lock().visible(id, reader, now_ms)?.listed(now_ms).head)
    }

    pub(crate) fn acquire(
        self: &Arc<Self>,
        id: ExecutionId,
        reader: Reader<'_>,
        terms: Terms,
        lost: CancellationToken,
    ) -> Result<(MemoryLease, Execution), ExecutionError> {
        let now_ms = self.clock.now_ms();
        let mut table = self.lock();
        let token = table.leases + 1;
        let kept = table.visible(id, reader, now_ms)?;
        reader.check_scopes(&kept.head)?;
        if !kept.head.is_open() {
            return Err(ExecutionError::Ended);
        }
        if kept.is_leased(now_ms) {
            return Err(ExecutionError::Busy);
        }
        kept.head.run_again(reader, terms, now_ms);
        kept.lease = LeaseState::Taken(token, lost);
        let execution = kept.execution();
        table.leases = token;
        Ok((MemoryLease { memory: self.clone(), id, token }, execution))
    }

    pub(crate) fn list(&self, reader: Reader<'_>, state: Option<State>, most: usize) -> Vec<Listed> {
        let now_ms = self.clock.now_ms();
        let table = self.lock();
        let fits = |kept: &&Kept| {
            let head = &kept.head;
            reader.may_see(head) && state.is_none_or(|state| head.state == state) && head.expires_ms > now_ms
        };
        let mut open: Vec<&Kept> =
            table.open.iter().filter_map(|id| table.all.get(id)).filter(fits).collect();
        open.sort_by_key(|kept| std::cmp::Reverse(kept.head.created_ms));
        let ended = table.ended.iter().rev().filter_map(|id| table.all.get(id)).filter(fits);
        open.into_iter().chain(ended).take(most).map(|kept| kept.listed(now_ms)).collect()
    }

    pub(crate) fn abandoned(&self) -> Vec<Head> {
        let now_ms = self.clock.now_ms();
        let mut table = self.lock();
        let after = table.looked_at.map_or(Bound::Unbounded, Bound::Excluded);
        let looked_at: Vec<ExecutionId> =
            table.open.range((after, Bound::Unbounded)).take(MOST_LOOKED_AT).copied().collect();
        table.looked_at = if looked_at.len() < MOST_LOOKED_AT { None } else { looked_at.last().copied() };
        let is_abandoned = |kept: &&Kept| {
            let head = &kept.head;
            head.about.detached
                && head.state == State::Running
                && head.expires_ms > now_ms
                && !kept.is_leased(now_ms)
        };
        looked_at.iter().filter_map(|id| table.all.get(id)).filter(is_abandoned).map(Kept::head).collect()
    }

    pub(crate) fn cancel(
        &self,
        id: ExecutionId,
        reader: Reader<'_>,
        ending: &Ending,
    ) -> Result<(), ExecutionError> {
        let now_ms = self.clock.now_ms();
        let mut table = self.lock();
        let kept = table.visible(id, reader, now_ms)?;
        if !kept.head.is_open() {
            return Err(ExecutionError::Ended);
        }
        kept.head.end(ending, None, now_ms);
        if let LeaseState::Taken(_, lost) = std::mem::replace(&mut kept.lease, LeaseState::Free) {
            lost.cancel();
        }
        table.move_to_ended(id, &self.config);
        Ok(())
    }

    pub(crate) fn remove(&self, id: ExecutionId, reader: Reader<'_>) -> Result<(), ExecutionError> {
        let mut table = self.lock();
        table.visible(id, reader, self.clock.now_ms())?;
        table.forget(id, &self.config);
        Ok(())
    }

    /// Changes the execution that `lease` is of.
    fn change<T>(
        &self,
        lease: &MemoryLease,
        change: impl FnOnce(&mut Table, u64) -> Result<T, ExecutionError>,
    ) -> Result<T, ExecutionError> {
        let now_ms = self.clock.now_ms();
        let mut table = self.lock();
        let kept = table.all.get(&lease.id).filter(|kept| kept.head.expires_ms > now_ms);
        match kept.map(|kept| &kept.lease) {
            Some(LeaseState::Taken(token, _)) if *token == lease.token => change(&mut table, now_ms),
            _ => Err(ExecutionError::LeaseLost),
        }
    }
}

impl MemoryLease {
    pub(crate) fn append(&self, chunk: &[u8]) -> Result<(), ExecutionError> {
        let config = &self.memory.config;
        self.memory.change(self, |table, _| {
            let Some(kept) = table.all.get_mut(&self.id) else { return Err(ExecutionError::LeaseLost) };
            let added = kept.journal.room_for(chunk, config.max_journal_bytes)?;
            if let Some(room) = &mut kept.room {
                room.grow(added)?;
            }
            kept.journal.push(chunk, config.max_journal_bytes)
        })
    }

    pub(crate) fn confirm(&self) -> Result<(), ExecutionError> {
        self.memory.change(self, |_, _| Ok(()))
    }

    pub(crate) fn read(&self) -> Result<Vec<Vec<u8>>, ExecutionError> {
        self.memory.change(self, |table, _| {
            table.all.get(&self.id).map(|kept| kept.journal.chunks()).ok_or(ExecutionError::LeaseLost)
        })
    }

    pub(crate) fn give_back(&self) -> Result<(), ExecutionError> {
        self.memory.change(self, |table, _| {
            let Some(kept) = table.all.get_mut(&self.id) else { return Err(ExecutionError::LeaseLost) };
            kept.lease = LeaseState::Free;
            Ok(())
        })
    }

    pub(crate) fn wait(&self, waiting: &[WaitingFor], calls: CallCounts) -> Result<(), ExecutionError> {
        self.memory.change(self, |table, now_ms| {
            let Some(kept) = table.all.get_mut(&self.id) else { return Err(ExecutionError::LeaseLost) };
            kept.head.wait(waiting, calls, now_ms);
            kept.lease = LeaseState::Free;
            Ok(())
        })
    }

    pub(crate) fn end(&self, ending: &Ending, calls: CallCounts) -> Result<(), ExecutionError> {
        self.memory.change(self, |table, now_ms| {
            let Some(kept) = table.all.get_mut(&self.id) else { return Err(ExecutionError::LeaseLost) };
            kept.head.end(ending, Some(calls), now_ms);
            kept.lease = LeaseState::Free;
            kept.journal.shrink();
            table.move_to_ended(self.id, &self.memory.config);
            Ok(())
        })
    }
}

impl Drop for MemoryLease {
    /// As when a process dies: the lease runs out.
    fn drop(&mut self) {
        let lease_ms = u64::try_from(self.memory.config.lease.as_millis()).unwrap_or(u64::MAX);
        let _ = self.memory.change(self, |table, now_ms| {
            if let Some(kept) = table.all.get_mut(&self.id) {
                kept.lease = LeaseState::Until(now_ms.saturating_add(lease_ms));
            }
            Ok(())
        });
    }
}

impl Table {
    fn visible(
        &mut self,
        id: ExecutionId,
        reader: Reader<'_>,
        now_ms: u64,
    ) -> Result<&mut Kept, ExecutionError> {
        let kept = self.all.get_mut(&id).filter(|kept| kept.head.expires_ms > now_ms);
        kept.filter(|kept| reader.may_see(&kept.head)).ok_or(ExecutionError::NotFound)
    }

    /// Counts an execution that has ended, and forgets others for which there is no room then.
    fn count_ended(&mut self, id: ExecutionId, config: &ExecutionsConfig) {
        let Some(kept) = self.all.get(&id) else { return };
        let (bytes, caller) = (kept.bytes(), kept.head.counts_for());
        self.ended.push_back(id);
        self.ended_count += 1;
        self.ended_bytes += bytes;
        let of_caller = self.ended_by.entry(caller).or_default();
        of_caller.weight += config.weight(bytes);
        of_caller.ids.push_back(id);
        while config.are_too_many(self.ended_count, self.ended_bytes, bytes, 1)
            && self.forget_of_heaviest(id, config)
        {}
    }

    /// Forgets the oldest execution of the caller whose ended ones take the most room, but not `newest`. Returns `false` where there is no other.
    fn forget_of_heaviest(&mut self, newest: ExecutionId, config: &ExecutionsConfig) -> bool {
        let all = &self.all;
        for of_caller in self.ended_by.values_mut() {
            while of_caller.ids.front().is_some_and(|id| !all.contains_key(id)) {
                of_caller.ids.pop_front();
            }
        }
        let others =
            self.ended_by.values().filter(|of_caller| of_caller.ids.front().is_some_and(|id| *id != newest));
        let heaviest =
            others.max_by_key(|of_caller| of_caller.weight).and_then(|of_caller| of_caller.ids.front());
        let Some(oldest) = heaviest.copied() else { return false };
        self.forget(oldest, config);
        true
    }

    fn uncount_open(&mut self, id: ExecutionId) {
        self.open.remove(&id);
        if let Some(kept) = self.all.get_mut(&id) {
            kept.room = None;
        }
    }

    fn move_to_ended(&mut self, id: ExecutionId, config: &ExecutionsConfig) {
        self.uncount_open(id);
        self.count_ended(id, config);
    }

    /// Removes an execution. An ended one leaves its id in `ended`.
    fn forget(&mut self, id: ExecutionId, config: &ExecutionsConfig) {
        self.uncount_open(id);
        let Some(kept) = self.all.remove(&id) else { return };
        if kept.head.is_open() {
            if let LeaseState::Taken(_, lost) = &kept.lease {
                lost.cancel();
            }
        } else {
            self.ended_count -= 1;
            self.ended_bytes -= kept.bytes();
            let caller = kept.head.counts_for();
            if let Some(of_caller) = self.ended_by.get_mut(&caller) {
                of_caller.weight -= config.weight(kept.bytes());
                if of_caller.weight == 0 {
                    self.ended_by.remove(&caller);
                }
            }
        }
    }

    /// Counts an execution that is to be added, and removes expired ones from time to time.
    fn make_room(&mut self, now_ms: u64, config: &ExecutionsConfig) {
        self.added += 1;
        if self.added.is_multiple_of(SWEEP_EVERY) {
            self.sweep(now_ms, config);
        }
    }

    fn sweep(&mut self, now_ms: u64, config: &ExecutionsConfig) {
        let expired = self.all.iter().filter(|(_, kept)| kept.head.expires_ms <= now_ms);
        let expired: Vec<ExecutionId> = expired.map(|(id, _)| *id).collect();
        expired.into_iter().for_each(|id| self.forget(id, config));
        self.ended.retain(|id| self.all.contains_key(id));
    }
}
