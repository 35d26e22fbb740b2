//! Stores and principals of the tests.

use std::{
    collections::HashMap,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gatewright_core::{NewRecord, Principal, RecordsError, RecordsFuture, Scopes, SealKey, SharedRecords};
use gatewright_executions::{Executions, ExecutionsConfig, NewExecution};

pub(crate) fn principal(subject: &str, client: Option<&str>) -> Principal {
    Principal {
        subject: subject.into(),
        client_id: client.map(Into::into),
        scopes: Scopes::parse("crm:read crm:write"),
    }
}

pub(crate) fn detached() -> NewExecution {
    NewExecution { detached: true, title: Some("refund".to_owned()), ..NewExecution::default() }
}

pub(crate) fn key() -> SealKey {
    SealKey::derived(b"a secret that instances share")
}

/// A clock that moves only on request.
#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<AtomicU64>);

impl Clock {
    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }

    pub(crate) fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_700_000_000) + Duration::from_millis(self.0.load(Ordering::SeqCst))
    }

    pub(crate) fn in_memory(&self, config: ExecutionsConfig) -> Executions {
        let clock = self.clone();
        Executions::in_memory_at(config, move || clock.now())
    }

    /// One of several instances.
    pub(crate) fn shared(&self, config: ExecutionsConfig, records: Arc<dyn SharedRecords>) -> Executions {
        let clock = self.clone();
        Executions::shared_at(config, records, &key(), "one of several", move || clock.now())
    }
}

type Kept = (Vec<u8>, SystemTime);

/// Records in memory, by the test's clock.
#[derive(Default)]
pub(crate) struct TestRecords {
    pub(crate) clock: Clock,
    pub(crate) all: Mutex<HashMap<String, Kept>>,
    pub(crate) steps: AtomicUsize,
}

impl TestRecords {
    pub(crate) fn new(clock: &Clock) -> Arc<Self> {
        Arc::new(Self { clock: clock.clone(), ..Self::default() })
    }

    /// Names of the records that have not expired.
    pub(crate) fn names(&self) -> Vec<String> {
        let (all, now) = (self.all.lock().unwrap(), self.clock.now());
        let mut names: Vec<String> =
            all.iter().filter(|(_, (_, until))| *until > now).map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    }

    fn get(&self, key: &str) -> Option<Vec<u8>> {
        let all = self.all.lock().unwrap();
        all.get(key).filter(|(_, until)| *until > self.clock.now()).map(|(value, _)| value.clone())
    }

    fn set(&self, key: &str, value: &[u8], ttl: Duration) {
        assert!(!ttl.is_zero(), "{key} lives for no time");
        self.all.lock().unwrap().insert(key.to_owned(), (value.to_vec(), self.clock.now() + ttl));
    }
}

impl SharedRecords for TestRecords {
    fn get_many<'a>(&'a self, keys: &'a [String]) -> RecordsFuture<'a, Vec<Option<Vec<u8>>>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.steps.fetch_add(1, Ordering::SeqCst);
            Ok(keys.iter().map(|key| self.get(key)).collect())
        })
    }

    fn put_many<'a>(&'a self, records: &'a [NewRecord]) -> RecordsFuture<'a, ()> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.steps.fetch_add(1, Ordering::SeqCst);
            records.iter().for_each(|record| self.set(&record.key, &record.value, record.ttl));
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
            tokio::task::yield_now().await;
            self.steps.fetch_add(1, Ordering::SeqCst);
            let fits = self.get(key).as_deref() == before;
            if fits {
                self.set(key, after, ttl);
            }
            Ok(fits)
        })
    }

    fn remove_many<'a>(&'a self, keys: &'a [String]) -> RecordsFuture<'a, ()> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.steps.fetch_add(1, Ordering::SeqCst);
            let mut all = self.all.lock().unwrap();
            keys.iter().for_each(|key| drop(all.remove(key)));
            Ok(())
        })
    }
}

/// The end of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The process is killed before a step: that and all later ones never return.
    Killed,
    /// The process is killed after a step was made, before its answer arrives.
    KilledAfter,
    /// The answer to one step is lost; the store works again at once.
    AnswerLost,
    /// The store does not answer any more.
    Unreachable,
}

/// A connection to records, of which every step goes through `way`.
pub(crate) struct Through<W> {
    records: Arc<dyn SharedRecords>,
    pub(crate) way: W,
}

/// The fate of a connection's steps.
pub(crate) trait Way: Send + Sync + 'static {
    fn pass<'a, T: Send + 'a>(&'a self, step: RecordsFuture<'a, T>) -> RecordsFuture<'a, T>;
}

impl<W: Way> Through<W> {
    pub(crate) fn to(records: Arc<dyn SharedRecords>, way: W) -> Arc<Self> {
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
        self.way.pass(self.records.replace(key, before, after, ttl))
    }

    fn remove_many<'a>(&'a self, keys: &'a [String]) -> RecordsFuture<'a, ()> {
        self.way.pass(self.records.remove_many(keys))
    }
}

/// `fault` happens at the step number `at`.
pub(crate) struct Faults {
    fault: Fault,
    at: usize,
    steps: AtomicUsize,
}

pub(crate) type Faulty = Through<Faults>;

impl Faulty {
    pub(crate) fn new(records: Arc<dyn SharedRecords>, fault: Fault, at: usize) -> Arc<Self> {
        Self::to(records, Faults { fault, at, steps: AtomicUsize::new(0) })
    }

    /// Returns `true` once the fault happened.
    pub(crate) fn has_happened(&self) -> bool {
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
pub(crate) struct Cut(AtomicBool);

pub(crate) type Silent = Through<Cut>;

impl Silent {
    pub(crate) fn new(records: Arc<dyn SharedRecords>) -> Arc<Self> {
        Self::to(records, Cut::default())
    }

    /// Cuts the connection, or restores it.
    pub(crate) fn turn(&self, silent: bool) {
        self.way.0.store(silent, Ordering::SeqCst);
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
