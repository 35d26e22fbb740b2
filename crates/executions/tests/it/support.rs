//! Stores and principals of the tests.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gatewright_core::{NewRecord, Principal, RecordsFuture, Scopes, SealKey, SharedRecords};
use gatewright_executions::{Executions, ExecutionsConfig, NewExecution};

pub(crate) fn principal(subject: &str, client: Option<&str>) -> Principal {
    Principal {
        subject: subject.into(),
        client_id: client.map(Into::into),
        scopes: Scopes::parse("crm:read crm:write"),
        ..Principal::local()
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
