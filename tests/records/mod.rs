//! Connections to shared records on which steps fail, wait or come too late.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use gatewright_core::{NewRecord, RecordsError, RecordsFuture, SharedRecords};

/// A connection to records, of which every step goes through `way`.
pub struct Through<W> {
    records: Arc<dyn SharedRecords>,
    pub way: W,
}

/// The course of the steps of a connection.
pub trait Way: Send + Sync + 'static {
    /// One step. The default makes it.
    fn pass<'a, T: Send + 'a>(&'a self, step: RecordsFuture<'a, T>) -> RecordsFuture<'a, T> {
        step
    }

    /// The state of the record `key` when it is to be replaced. The default: nothing happened to it.
    fn replaces(&self, _key: &str, _before: Option<&[u8]>, _after: &[u8]) -> Meanwhile {
        Meanwhile::Nothing
    }
}

/// An event between reading a record and replacing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meanwhile {
    Nothing,
    /// Another instance replaced it.
    Replaced,
    /// It expired.
    Expired,
}

impl<W: Way> Through<W> {
    pub fn to(records: Arc<dyn SharedRecords>, way: W) -> Arc<Self> {
        Arc::new(Self { records, way })
    }
}

impl<W: Way> SharedRecords for Through<W> {
    fn get_many<'a>(&'a self, keys: &'a [String]) -> RecordsFuture<'a, Vec<Option<Vec<u8>>>> {
        self.way.pass(self.records.get_many(keys))
    }

    fn put_many<'a>(&'a self, records: &'a [NewRecord]) -> RecordsFuture<'a, ()> {
        // Not in one step: an instance may die between them.
        Box::pin(async move {
            for record in records {
                self.way.pass(self.records.put_many(std::slice::from_ref(record))).await?;
            }
            Ok(())
        })
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        before: Option<&'a [u8]>,
        after: &'a [u8],
        ttl: Duration,
    ) -> RecordsFuture<'a, bool> {
        Box::pin(async move {
            match self.way.replaces(key, before, after) {
                Meanwhile::Nothing => {}
                Meanwhile::Replaced => return Ok(false),
                Meanwhile::Expired => self.records.remove_many(&[key.to_owned()]).await?,
            }
            self.way.pass(self.records.replace(key, before, after, ttl)).await
        })
    }

    fn remove_many<'a>(&'a self, keys: &'a [String]) -> RecordsFuture<'a, ()> {
        self.way.pass(self.records.remove_many(keys))
    }
}

/// The end of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process is killed before a step: that and all later ones never return.
    Killed,
    /// The process is killed after a step was made, before its answer arrives.
    KilledAfter,
    /// The answer to one step is lost; the store works again at once.
    AnswerLost,
    /// The store does not answer any more.
    Unreachable,
}

/// `fault` happens at the step number `at`.
pub struct Faults {
    fault: Fault,
    at: usize,
    steps: AtomicUsize,
}

pub type Faulty = Through<Faults>;

impl Faulty {
    pub fn new(records: Arc<dyn SharedRecords>, fault: Fault, at: usize) -> Arc<Self> {
        Self::to(records, Faults { fault, at, steps: AtomicUsize::new(0) })
    }

    /// Returns `true` once the fault happened.
    pub fn has_happened(&self) -> bool {
        self.way.steps.load(Ordering::SeqCst) > self.way.at
    }
}

impl Way for Faults {
    fn pass<'a, T: Send + 'a>(&'a self, step: RecordsFuture<'a, T>) -> RecordsFuture<'a, T> {
        Box::pin(async move {
            let number = self.steps.fetch_add(1, Ordering::SeqCst);
            match self.fault {
                Fault::Killed if number >= self.at => pending().await,
                Fault::KilledAfter if number > self.at => pending().await,
                Fault::KilledAfter if number == self.at => {
                    let _ = step.await;
                    pending().await
                }
                Fault::AnswerLost if number == self.at => {
                    let _ = step.await;
                    Err(RecordsError::Unavailable)
                }
                Fault::Unreachable if number >= self.at => Err(RecordsError::Unavailable),
                _ => step.await,
            }
        })
    }
}

/// The connection can be cut and restored.
#[derive(Default)]
pub struct Cut(AtomicBool);

pub type Silent = Through<Cut>;

impl Silent {
    pub fn new(records: Arc<dyn SharedRecords>) -> Arc<Self> {
        Self::to(records, Cut::default())
    }

    /// Cuts the connection, or restores it.
    pub fn turn(&self, silent: bool) {
        self.way.turn(silent);
    }
}

impl Cut {
    /// Cuts the connection, or restores it.
    pub fn turn(&self, silent: bool) {
        self.0.store(silent, Ordering::SeqCst);
    }
}

impl Way for Cut {
    fn pass<'a, T: Send + 'a>(&'a self, step: RecordsFuture<'a, T>) -> RecordsFuture<'a, T> {
        Box::pin(async move {
            match self.0.load(Ordering::SeqCst) {
                true => Err(RecordsError::Unavailable),
                false => step.await,
            }
        })
    }
}
