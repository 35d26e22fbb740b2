//! The workers that wait for a run.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use super::{line::Line, process::Worker};

/// A place for a worker.
pub(super) enum Slot {
    Ready(Worker),
    /// There was no need for a worker yet, or a replacement failed: the next run to take this slot starts one.
    Empty,
}

/// The workers' slots, shared by runs and the keeper's thread.
pub(super) struct WorkerSlots {
    slots: Mutex<VecDeque<Slot>>,
    /// Gives out the slots; closed when the pool is.
    pub(super) line: Arc<Line>,
    /// Workers ended and replaced.
    replaced: AtomicU64,
    /// The fewest workers that waited at a time, since surplus ones were last removed.
    least_idle: AtomicUsize,
}

impl WorkerSlots {
    /// No slots, of at most `workers`.
    pub(super) fn new(workers: usize) -> Self {
        Self {
            slots: Mutex::default(),
            line: Line::new(workers),
            replaced: AtomicU64::new(0),
            least_idle: AtomicUsize::new(0),
        }
    }

    pub(super) fn slots(&self) -> MutexGuard<'_, VecDeque<Slot>> {
        // Nothing panics while it holds the lock.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets nobody wait any more.
    pub(super) fn close(&self) {
        self.line.close();
    }

    /// Counts workers that were ended and replaced.
    pub(super) fn count_replaced(&self, workers: usize) {
        self.replaced.fetch_add(workers as u64, Ordering::Relaxed);
    }

    /// Makes a slot available. Returns it when the pool is closed.
    pub(super) fn put(&self, slot: Slot) -> Option<Slot> {
        let mut slots = self.slots();
        if self.line.is_closed() {
            return Some(slot);
        }
        match slot {
            // Workers that are there come before those to be started, and those that ran last before the others: their memory is in
            // the processor's caches. The very last one comes second, because it may still restore its realm.
            Slot::Ready(_) => {
                let place = count_ready(&slots).min(1);
                slots.insert(place, slot);
            }
            Slot::Empty => slots.push_back(slot),
        }
        drop(slots);
        self.line.put();
        None
    }

    /// Takes the next slot. It is the turn of the caller.
    pub(super) fn take(&self) -> Option<Slot> {
        let mut slots = self.slots();
        let slot = slots.pop_front();
        self.least_idle.fetch_min(count_ready(&slots), Ordering::Relaxed);
        slot
    }

    /// Removes workers that died while they waited, or did not give the memory of their last run back. Their slots stay, empty.
    pub(super) fn take_faulty(&self) -> Vec<Worker> {
        let mut slots = self.slots();
        let faulty = empty(&mut slots, |worker| worker.is_dead() || worker.is_large());
        self.count_replaced(faulty.len());
        faulty
    }

    /// Removes workers that no run needed since the last call, but leaves `wanted` of those that wait. Their slots stay, empty.
    pub(super) fn take_surplus(&self, wanted: usize) -> Vec<Worker> {
        let mut slots = self.slots();
        let ready = count_ready(&slots);
        let least = self.least_idle.swap(ready, Ordering::Relaxed);
        let mut surplus = least.min(ready).saturating_sub(wanted);
        empty(&mut slots, |_| {
            let one_less = surplus.checked_sub(1);
            surplus = one_less.unwrap_or(0);
            one_less.is_some()
        })
    }

    /// Workers that were ended and replaced.
    pub(super) fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }

    /// Workers that wait for a run.
    pub(super) fn idle(&self) -> usize {
        count_ready(&self.slots())
    }

    /// Puts a worker into an empty slot. Returns it when there is none.
    pub(super) fn fill(&self, worker: Worker) -> Option<Worker> {
        let mut slots = self.slots();
        match slots.iter().position(|slot| matches!(slot, Slot::Empty)) {
            Some(at) => {
                slots[at] = Slot::Ready(worker);
                None
            }
            None => Some(worker),
        }
    }
}

fn count_ready(slots: &VecDeque<Slot>) -> usize {
    slots.iter().filter(|slot| matches!(slot, Slot::Ready(_))).count()
}

/// Takes the workers that `unwanted` chooses out of their slots.
fn empty(slots: &mut VecDeque<Slot>, mut unwanted: impl FnMut(&mut Worker) -> bool) -> Vec<Worker> {
    let mut taken = Vec::new();
    for slot in slots.iter_mut() {
        let is_unwanted = match slot {
            Slot::Ready(worker) => unwanted(worker),
            Slot::Empty => false,
        };
        if is_unwanted && let Slot::Ready(worker) = std::mem::replace(slot, Slot::Empty) {
            taken.push(worker);
        }
    }
    slots.make_contiguous().sort_by_key(|slot| matches!(slot, Slot::Empty));
    taken
}
