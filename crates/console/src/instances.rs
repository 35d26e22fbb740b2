//! Other instances of the gateway: each one that has a console writes a report of itself into the store that they share, and reads the others'.
//!
//! Reports are sealed with the key of the instances, expire after some seconds, and have a largest size.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gatewright_core::{
    AppHealth, Arrival, CallRecord, Ending, Execution, Groups, NewRecord, Principal, RecordSealer,
    RecordsError, Registry, Scopes, SealKey, SharedRecords,
};
use serde::{Deserialize, Serialize};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{ExecutionHistory, hour::HourSummary};

/// Latest executions in a report.
pub(crate) const MOST_CALLS: usize = 50;
/// Calls of one of them.
const MOST_INNER: usize = 20;
/// Apps in a report.
const MOST_APPS: usize = 200;
/// Instances that are listed.
const MOST_INSTANCES: usize = 32;
/// Time between two reports.
const PERIOD: Duration = Duration::from_secs(5);
/// Time after which an instance that reports no more is gone.
const TTL: Duration = Duration::from_secs(20);
/// Longest report that is written or read, in bytes.
const LONGEST: usize = 256 * 1024;
/// Longest wait for the store while a page is made.
const WAIT: Duration = Duration::from_secs(1);
/// Tries to write the list of instances, which others write as well.
const MOST_TRIES: usize = 5;
/// Name of the record with the list.
const LIST: &str = "instances";

/// The store that the consoles of all instances share.
#[derive(Clone)]
pub struct SharedConsole {
    /// The records.
    pub records: Arc<dyn SharedRecords>,
    /// The key that all instances have.
    pub key: SealKey,
    /// Name of this instance: for people, and different from all others.
    pub instance: String,
}

impl std::fmt::Debug for SharedConsole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedConsole").field("instance", &self.instance).finish_non_exhaustive()
    }
}

/// Report of one instance. Times are milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) started_ms: u64,
    pub(crate) written_ms: u64,
    /// Id and error of each app that is down, and the number of all.
    pub(crate) down: Vec<(String, String)>,
    pub(crate) apps: usize,
    pub(crate) tools: usize,
    pub(crate) hour: HourSummary,
    calls: Vec<Call>,
}

/// An execution in a report. Durations are microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Call {
    tool: String,
    subject: String,
    client: Option<String>,
    started_ms: u64,
    us: u64,
    status: String,
    more: usize,
    inner: Vec<Inner>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Inner {
    tool: String,
    app: String,
    start_us: u64,
    us: u64,
    status: String,
}

impl Report {
    /// Its latest executions, newest first.
    pub(crate) fn executions(&self) -> impl Iterator<Item = Execution> + '_ {
        self.calls.iter().map(execution)
    }
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn ms(at: SystemTime) -> u64 {
    u64::try_from(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

/// A time of a report; those that no clock shows are the earliest.
pub(crate) fn moment(ms: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(ms.min(1 << 47))).unwrap_or(UNIX_EPOCH)
}

fn call(execution: &Execution) -> Call {
    let inner = |call: &CallRecord| Inner {
        tool: call.tool.to_string(),
        app: call.app.to_string(),
        start_us: us(call.start),
        us: us(call.duration),
        status: call.ending.status().to_owned(),
    };
    let kept = execution.calls.len().min(MOST_INNER);
    Call {
        tool: execution.tool.to_string(),
        subject: execution.principal.subject.to_string(),
        client: execution.principal.client_id.as_deref().map(str::to_owned),
        started_ms: ms(execution.started),
        us: us(execution.duration),
        status: execution.ending.status().to_owned(),
        more: execution.more_calls + execution.calls.len() - kept,
        inner: execution.calls.iter().take(kept).map(inner).collect(),
    }
}

fn execution(call: &Call) -> Execution {
    let inner = |inner: &Inner| CallRecord {
        tool: inner.tool.as_str().into(),
        app: inner.app.as_str().into(),
        start: Duration::from_micros(inner.start_us),
        duration: Duration::from_micros(inner.us),
        ending: Ending::new(inner.status.clone()),
        bytes: None,
        span_id: None,
        transport: None,
    };
    Execution {
        id: 0,
        tool: call.tool.as_str().into(),
        is_meta: false,
        is_known: true,
        principal: Principal {
            subject: call.subject.as_str().into(),
            client_id: call.client.as_deref().map(Into::into),
            scopes: Scopes::parse(""),
            groups: Groups::default(),
            endpoint: None,
        },
        address: None,
        plan: None,
        started: moment(call.started_ms),
        duration: Duration::from_micros(call.us),
        ending: Ending::new(call.status.clone()),
        bytes: None,
        script: None,
        arguments: None,
        calls: call.inner.iter().map(inner).collect(),
        more_calls: call.more,
        exchanges: Vec::new(),
        trace: None,
        arrival: Arrival::default(),
    }
}

/// The other instances. Without a shared store there are none.
pub(crate) struct Instances {
    store: Option<Arc<Store>>,
    _task: Option<AbortOnDropHandle<()>>,
}

struct Store {
    shared: SharedConsole,
    sealer: RecordSealer,
    /// The latest that was read, and when.
    read: Mutex<(Option<tokio::time::Instant>, Vec<Report>)>,
}

/// The parts of a report about this instance.
pub(crate) struct Own {
    pub(crate) version: String,
    pub(crate) registry: Arc<Registry>,
    pub(crate) history: Arc<ExecutionHistory>,
}

impl Instances {
    /// Reports `own` to the others through `shared` until `stop`.
    pub(crate) fn start(shared: Option<SharedConsole>, own: Own, stop: CancellationToken) -> Self {
        let Some(shared) = shared else { return Self { store: None, _task: None } };
        let sealer = RecordSealer::new(&shared.key, "console", b"reports");
        let store = Arc::new(Store { shared, sealer, read: Mutex::default() });
        let task = tokio::spawn(report(store.clone(), own, stop));
        Self { store: Some(store), _task: Some(AbortOnDropHandle::new(task)) }
    }

    /// The name of this instance; empty without others.
    pub(crate) fn own(&self) -> &str {
        self.store.as_ref().map_or("", |store| &store.shared.instance)
    }

    /// Returns `true` if instances share a store.
    pub(crate) fn are_shared(&self) -> bool {
        self.store.is_some()
    }

    /// The reports of the other instances, by their names. If the store does not answer, those that were read last.
    pub(crate) async fn others(&self) -> Vec<Report> {
        let Some(store) = &self.store else { return Vec::new() };
        let lock = || store.read.lock().unwrap_or_else(PoisonError::into_inner);
        let now = tokio::time::Instant::now();
        {
            let read = lock();
            if read.0.is_some_and(|at| now.duration_since(at) < Duration::from_secs(1)) {
                return read.1.clone();
            }
        }
        match tokio::time::timeout(WAIT, store.others()).await {
            Ok(Ok(reports)) => {
                *lock() = (Some(now), reports.clone());
                reports
            }
            Ok(Err(_)) | Err(_) => lock().1.clone(),
        }
    }
}

impl Store {
    fn key(instance: &str) -> String {
        format!("instance:{instance}")
    }

    async fn others(&self) -> Result<Vec<Report>, RecordsError> {
        let list = self.list().await?.1;
        let names: Vec<String> =
            list.into_iter().map(|(name, _)| name).filter(|name| *name != self.shared.instance).collect();
        let keys: Vec<String> = names.iter().map(|name| Self::key(name)).collect();
        let records = self.shared.records.get_many(&keys).await?;
        let opened = keys.iter().zip(records).filter_map(|(key, record)| {
            let text = self.sealer.open(key.as_bytes(), record.filter(|record| record.len() <= LONGEST)?)?;
            serde_json::from_slice(&text).ok()
        });
        let mut reports: Vec<Report> = opened.collect();
        reports.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(reports)
    }

    /// The list of instances with the time of their last report, and the record that it was read from.
    async fn list(&self) -> Result<(Option<Vec<u8>>, Vec<(String, u64)>), RecordsError> {
        let record = self.shared.records.get_many(&[LIST.to_owned()]).await?.into_iter().next().flatten();
        let open = |record: &Vec<u8>| {
            let text = self.sealer.open(LIST.as_bytes(), record.clone())?;
            serde_json::from_slice(&text).ok()
        };
        let list =
            record.as_ref().filter(|record| record.len() <= LONGEST).and_then(open).unwrap_or_default();
        Ok((record, list))
    }

    async fn write(&self, report: &Report) -> Result<(), RecordsError> {
        let mut text = serde_json::to_vec(report).unwrap_or_default();
        if text.len() + 64 > LONGEST {
            let small = Report { calls: Vec::new(), ..report.clone() };
            text = serde_json::to_vec(&small).unwrap_or_default();
        }
        let key = Self::key(&self.shared.instance);
        let value = self.sealer.seal(key.as_bytes(), text);
        self.shared.records.put_many(&[NewRecord { key, value, ttl: TTL }]).await?;
        for _ in 0..MOST_TRIES {
            let (before, mut list) = self.list().await?;
            let gone = u64::try_from(TTL.as_millis()).unwrap_or(u64::MAX);
            list.retain(|(name, at)| {
                *name != self.shared.instance && at.saturating_add(gone) > report.written_ms
            });
            list.push((self.shared.instance.clone(), report.written_ms));
            list.sort_by_key(|(_, at)| std::cmp::Reverse(*at));
            list.truncate(MOST_INSTANCES);
            let after = self.sealer.seal(LIST.as_bytes(), serde_json::to_vec(&list).unwrap_or_default());
            if self.shared.records.replace(LIST, before.as_deref(), &after, 3 * TTL).await? {
                break;
            }
        }
        Ok(())
    }
}

async fn report(store: Arc<Store>, own: Own, stop: CancellationToken) {
    let started_ms = ms(SystemTime::now());
    let mut is_down = false;
    loop {
        let report = own.report(&store.shared.instance, started_ms);
        let failed = store.write(&report).await.is_err();
        if failed && !is_down {
            tracing::warn!("the console is not shown to other instances: the store does not answer");
        }
        is_down = failed;
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            () = stop.cancelled() => break,
        }
    }
    let _ =
        tokio::time::timeout(WAIT, store.shared.records.remove_many(&[Store::key(&store.shared.instance)]))
            .await;
}

impl Own {
    fn report(&self, name: &str, started_ms: u64) -> Report {
        let snapshot = self.registry.operator_snapshot();
        let down = snapshot.apps.iter().filter_map(|app| match app.app.health() {
            AppHealth::Down(why) => Some((app.id.to_string(), crate::text::line(&why.in_full(), 300))),
            AppHealth::Up | AppHealth::Starting => None,
        });
        Report {
            name: name.to_owned(),
            version: self.version.clone(),
            started_ms,
            written_ms: ms(SystemTime::now()),
            down: down.take(MOST_APPS).collect(),
            apps: snapshot.apps.len(),
            tools: snapshot.tools.len(),
            hour: self.history.last_hour(),
            calls: self.history.latest(None, MOST_CALLS).iter().map(|entry| call(&entry.execution)).collect(),
        }
    }
}
