//! The latest executions: a bounded list, newest last, and notifications of each new one.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use gatewright_core::{
    Arrival, CallRecord, Ending, Execution, Observer, TraceContext, rmcp::model::JsonObject,
};
use tokio::sync::broadcast;

use crate::hour::{HourSummary, LastHour};

/// Calls kept of one execution; more are only counted.
pub const MAX_CALLS: usize = 200;
/// Longest name or status kept, in bytes.
const MAX_TEXT: usize = 256;
/// Longest arguments kept of one execution, in bytes of JSON; longer ones are not kept.
const MAX_ARGUMENTS: usize = 4 * 1024;

/// An execution with its number in the history.
#[derive(Debug)]
pub struct Entry {
    /// Number in the order in which executions ended, from 1.
    pub id: u64,
    /// The execution. Its calls are in the order of their start, at most [`MAX_CALLS`].
    pub execution: Execution,
}

/// The latest executions of a gateway, as an observer of it.
#[derive(Debug)]
pub struct ExecutionHistory {
    capacity: usize,
    keeps_arguments: bool,
    entries: Mutex<Entries>,
    hour: Mutex<LastHour>,
    added: broadcast::Sender<Arc<Entry>>,
}

#[derive(Debug, Default)]
struct Entries {
    last_id: u64,
    latest: VecDeque<Arc<Entry>>,
}

impl ExecutionHistory {
    /// A history of the last `capacity` executions, at least one.
    pub fn new(capacity: usize) -> Arc<Self> {
        Self::keeping(capacity, false)
    }

    /// Like [`ExecutionHistory::new`]; with `arguments` it keeps those of up to 4 KiB, without scripts.
    pub fn keeping(capacity: usize, arguments: bool) -> Arc<Self> {
        let (capacity, added) = (capacity.max(1), broadcast::channel(64).0);
        let (entries, hour) = (Mutex::default(), Mutex::default());
        Arc::new(Self { capacity, keeps_arguments: arguments, entries, hour, added })
    }

    /// Adds `execution`, drops the oldest if there is no room, and notifies subscribers. Returns the new id.
    pub fn record(&self, execution: &Execution) -> u64 {
        let now = SystemTime::now();
        self.hour.lock().unwrap_or_else(PoisonError::into_inner).note(execution, now);
        let arguments =
            execution.arguments.as_ref().filter(|_| self.keeps_arguments).and_then(bounded_arguments);
        let execution = Execution { arguments, ..bounded(execution) };
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.last_id += 1;
        let entry = Arc::new(Entry { id: entries.last_id, execution });
        if entries.latest.len() == self.capacity {
            entries.latest.pop_front();
        }
        entries.latest.push_back(entry.clone());
        // Sent under the lock, so that entries arrive in the order of their ids. It fails if nobody listens.
        let _ = self.added.send(entry);
        entries.last_id
    }

    /// At most `most` executions with ids below `before`, newest first.
    pub fn latest(&self, before: Option<u64>, most: usize) -> Vec<Arc<Entry>> {
        self.choose(before, most, |_| true)
    }

    /// At most `most` executions that `fits` accepts with ids below `before`, newest first.
    pub(crate) fn choose(
        &self,
        before: Option<u64>,
        most: usize,
        fits: impl Fn(&Execution) -> bool,
    ) -> Vec<Arc<Entry>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let older = entries.latest.iter().rev().filter(|one| before.is_none_or(|before| one.id < before));
        older.filter(|one| fits(&one.execution)).take(most).cloned().collect()
    }

    /// Numbers of the last hour.
    pub(crate) fn last_hour(&self) -> HourSummary {
        self.hour.lock().unwrap_or_else(PoisonError::into_inner).summary(SystemTime::now())
    }

    /// Entries after `id`, oldest first, and a subscription to all later ones. None is missed in between.
    pub fn subscribe(&self, id: Option<u64>) -> (Vec<Arc<Entry>>, broadcast::Receiver<Arc<Entry>>) {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let missed = entries.latest.iter().filter(|one| id.is_some_and(|id| one.id > id)).cloned().collect();
        (missed, self.added.subscribe())
    }

    /// The entry with this id, if it is still kept.
    pub fn get(&self, id: u64) -> Option<Arc<Entry>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.latest.iter().find(|one| one.id == id).cloned()
    }

    /// Executions since the start, including those no longer kept.
    pub fn total(&self) -> u64 {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).last_id
    }

    /// Most executions kept.
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}

impl Observer for ExecutionHistory {
    fn finished(&self, execution: &Execution) {
        self.record(execution);
    }

    fn wants_arguments(&self) -> bool {
        self.keeps_arguments
    }
}

/// Arguments without the script, if they are short.
fn bounded_arguments(arguments: &JsonObject) -> Option<JsonObject> {
    let kept = arguments.iter().filter(|(name, _)| *name != "script");
    let mut left = MAX_ARGUMENTS;
    let mut all = JsonObject::new();
    for (name, value) in kept {
        left = left.checked_sub(name.len() + serde_json::to_string(value).ok()?.len())?;
        all.insert(name.clone(), value.clone());
    }
    Some(all)
}

/// A copy of bounded size. Built field by field, so that arguments are not copied.
fn bounded(execution: &Execution) -> Execution {
    let mut by_start: Vec<&CallRecord> = execution.calls.iter().collect();
    by_start.sort_by_key(|call| call.start);
    let calls: Vec<CallRecord> = by_start.into_iter().take(MAX_CALLS).map(bounded_call).collect();
    let mut principal = execution.principal.clone();
    clip(&mut principal.subject);
    let mut tool = execution.tool.clone();
    clip(&mut tool);
    Execution {
        id: execution.id,
        tool,
        is_meta: execution.is_meta,
        is_known: execution.is_known,
        principal,
        address: execution.address,
        plan: execution.plan.clone(),
        started: execution.started,
        duration: execution.duration,
        ending: bounded_ending(&execution.ending),
        bytes: execution.bytes,
        script: execution.script,
        arguments: None,
        more_calls: execution.more_calls + execution.calls.len() - calls.len(),
        exchanges: Vec::new(),
        calls,
        trace: execution.trace.as_ref().map(|trace| TraceContext { state: None, ..trace.clone() }),
        arrival: Arrival::default(),
    }
}

fn bounded_call(call: &CallRecord) -> CallRecord {
    let mut call = CallRecord { ending: bounded_ending(&call.ending), ..call.clone() };
    clip(&mut call.tool);
    call
}

fn bounded_ending(ending: &Ending) -> Ending {
    match ending.status() {
        long if long.len() > MAX_TEXT => Ending::new(clipped(long).to_owned()),
        _ => ending.clone(),
    }
}

fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

fn clip(text: &mut Arc<str>) {
    if text.len() > MAX_TEXT {
        *text = clipped(text).into();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gatewright_core::Principal;

    use super::*;

    fn execution(tool: &str, calls: usize) -> Execution {
        let call = |n: usize| CallRecord {
            tool: "crm:users_list".into(),
            app: "crm".into(),
            start: Duration::from_millis(1_000 - n as u64),
            duration: Duration::from_millis(1),
            ending: Ending::OK,
            bytes: None,
            span_id: None,
            transport: None,
        };
        Execution {
            id: 7,
            tool: tool.into(),
            is_meta: false,
            is_known: true,
            principal: Principal::local(),
            address: None,
            plan: None,
            started: SystemTime::UNIX_EPOCH,
            duration: Duration::from_millis(5),
            ending: Ending::OK,
            bytes: None,
            script: None,
            arguments: None,
            calls: (0..calls).map(call).collect(),
            more_calls: 0,
            exchanges: Vec::new(),
            trace: None,
            arrival: Arrival::default(),
        }
    }

    #[test]
    fn the_oldest_is_forgotten_when_there_is_no_room() {
        let history = ExecutionHistory::new(3);
        for n in 0..10 {
            history.record(&execution(&n.to_string(), 0));
        }
        let latest = history.latest(None, 100);
        let names: Vec<&str> = latest.iter().map(|one| &*one.execution.tool).collect();
        assert_eq!(names, ["9", "8", "7"]);
        assert_eq!(history.latest(Some(10), 1)[0].id, 9);
        assert!(history.get(7).is_none() && history.get(8).is_some());
        assert_eq!(history.total(), 10);
    }

    #[test]
    fn one_execution_takes_bounded_room() {
        let history = ExecutionHistory::new(1);
        let mut long = execution(&"é".repeat(10_000), MAX_CALLS + 50);
        long.ending = Ending::new("E".repeat(10_000));
        long.arguments = Some([("script".to_owned(), "return 1".into())].into_iter().collect());
        let id = history.record(&long);
        let kept = &history.get(id).unwrap().execution;
        assert_eq!((kept.calls.len(), kept.more_calls), (MAX_CALLS, 50));
        assert!(kept.tool.len() <= MAX_TEXT && kept.ending.status().len() <= MAX_TEXT);
        assert!(kept.arguments.is_none(), "they are kept only if that is wanted");
        assert!(kept.calls.is_sorted_by_key(|call| call.start));
    }

    #[test]
    fn short_arguments_are_kept_without_the_script_where_that_is_wanted() {
        let history = ExecutionHistory::keeping(2, true);
        let arguments = |json: serde_json::Value| json.as_object().cloned();
        let mut one = execution("a", 0);
        one.arguments = arguments(serde_json::json!({"script": "return 1", "n": 1}));
        let id = history.record(&one);
        assert_eq!(history.get(id).unwrap().execution.arguments, arguments(serde_json::json!({"n": 1})));
        one.arguments = arguments(serde_json::json!({"text": "x".repeat(MAX_ARGUMENTS)}));
        let id = history.record(&one);
        assert_eq!(history.get(id).unwrap().execution.arguments, None);
    }

    #[test]
    fn a_subscriber_misses_nothing_in_between() {
        let history = ExecutionHistory::new(10);
        for _ in 0..3 {
            history.record(&execution("x", 0));
        }
        let (missed, mut added) = history.subscribe(Some(1));
        history.record(&execution("new", 0));
        assert_eq!(missed.iter().map(|one| one.id).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(added.try_recv().unwrap().id, 4);
        assert!(history.subscribe(None).0.is_empty());
    }
}
