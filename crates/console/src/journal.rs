//! What ran lately: a bounded list of executions, newest last, and news of each.

use std::{
    collections::VecDeque,
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::sync::broadcast;

/// Calls kept of one execution; more are only counted.
pub const MAX_CALLS: usize = 200;
/// Longest name or text kept, in bytes.
const MAX_TEXT: usize = 256;

/// How something ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Whether it did what was asked.
    pub ok: bool,
    /// `ok`, or the contract's status or code, such as `tool_error` or `RATE_LIMIT`.
    pub status: Arc<str>,
}

impl Ending {
    /// It did what was asked.
    pub fn ok() -> Self {
        static OK: LazyLock<Arc<str>> = LazyLock::new(|| "ok".into());
        Self { ok: true, status: OK.clone() }
    }

    /// It did not, with a status or code.
    pub fn failed(status: &str) -> Self {
        Self { ok: false, status: clipped(status).into() }
    }
}

/// One call of a tool within an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Public name of the tool.
    pub tool: Arc<str>,
    /// When it started, from the start of the execution.
    pub start: Duration,
    /// How long it took.
    pub duration: Duration,
    /// How it ended.
    pub ending: Ending,
    /// Size of its result as JSON, in bytes, when known.
    pub bytes: Option<u64>,
}

/// One meta-tool execution, or one direct call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// Place in the journal, from 1. Set by [`Journal::record`].
    pub id: u64,
    /// What was called: `codecall:execute`, or the name of a tool.
    pub name: Arc<str>,
    /// Subject of the caller.
    pub subject: Arc<str>,
    /// When it started.
    pub started: SystemTime,
    /// How long it took.
    pub duration: Duration,
    /// How it ended.
    pub ending: Ending,
    /// Size of the script in bytes, for one.
    pub script_bytes: Option<u64>,
    /// Its tool calls in the order of their start, at most [`MAX_CALLS`].
    pub calls: Vec<Call>,
    /// Calls that were left out.
    pub more_calls: usize,
}

/// The last executions.
#[derive(Debug)]
pub struct Journal {
    capacity: usize,
    kept: Mutex<Kept>,
    news: broadcast::Sender<Arc<Execution>>,
}

#[derive(Debug, Default)]
struct Kept {
    last: u64,
    executions: VecDeque<Arc<Execution>>,
}

impl Journal {
    /// A journal that keeps the last `capacity` executions, at least one.
    pub fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self { capacity: capacity.max(1), kept: Mutex::default(), news: broadcast::channel(64).0 })
    }

    /// Keeps `execution`, forgets the oldest when there is no room, and tells those who follow.
    pub fn record(&self, mut execution: Execution) -> u64 {
        execution.more_calls += execution.calls.len().saturating_sub(MAX_CALLS);
        execution.calls.sort_by_key(|call| call.start);
        execution.calls.truncate(MAX_CALLS);
        clip(&mut execution.name);
        clip(&mut execution.subject);
        clip(&mut execution.ending.status);
        for call in &mut execution.calls {
            clip(&mut call.tool);
            clip(&mut call.ending.status);
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.last += 1;
        execution.id = kept.last;
        if kept.executions.len() == self.capacity {
            kept.executions.pop_front();
        }
        let execution = Arc::new(execution);
        kept.executions.push_back(execution.clone());
        // Told with the lock held, so that news come in the order of their ids. Nobody may be listening.
        let _ = self.news.send(execution);
        kept.last
    }

    /// At most `most` executions with ids below `before`, newest first.
    pub fn latest(&self, before: Option<u64>, most: usize) -> Vec<Arc<Execution>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let older = kept.executions.iter().rev().filter(|one| before.is_none_or(|before| one.id < before));
        older.take(most).cloned().collect()
    }

    /// What was kept after `id`, oldest first, and the news from then on: nothing is missed in between.
    pub fn follow(&self, id: Option<u64>) -> (Vec<Arc<Execution>>, broadcast::Receiver<Arc<Execution>>) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let missed = kept.executions.iter().filter(|one| id.is_some_and(|id| one.id > id)).cloned().collect();
        (missed, self.news.subscribe())
    }

    /// The execution of this id, while it is kept.
    pub fn get(&self, id: u64) -> Option<Arc<Execution>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.executions.iter().find(|one| one.id == id).cloned()
    }

    /// Executions since the start, those forgotten included.
    pub fn total(&self) -> u64 {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).last
    }

    /// Most executions kept.
    pub fn capacity(&self) -> usize {
        self.capacity
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
    use super::*;

    fn execution(name: &str, calls: usize) -> Execution {
        let call = |n: usize| Call {
            tool: "crm:users_list".into(),
            start: Duration::from_millis(1_000 - n as u64),
            duration: Duration::from_millis(1),
            ending: Ending::ok(),
            bytes: None,
        };
        Execution {
            id: 0,
            name: name.into(),
            subject: "alice".into(),
            started: SystemTime::UNIX_EPOCH,
            duration: Duration::from_millis(5),
            ending: Ending::ok(),
            script_bytes: None,
            calls: (0..calls).map(call).collect(),
            more_calls: 0,
        }
    }

    #[test]
    fn the_oldest_is_forgotten_when_there_is_no_room() {
        let journal = Journal::new(3);
        for n in 0..10 {
            journal.record(execution(&n.to_string(), 0));
        }
        let names: Vec<String> = journal.latest(None, 100).iter().map(|one| one.name.to_string()).collect();
        assert_eq!(names, ["9", "8", "7"]);
        assert_eq!(journal.latest(Some(10), 1)[0].id, 9);
        assert!(journal.get(7).is_none() && journal.get(8).is_some());
        assert_eq!(journal.total(), 10);
    }

    #[test]
    fn one_execution_takes_bounded_room() {
        let journal = Journal::new(1);
        let id = journal.record(execution(&"é".repeat(10_000), MAX_CALLS + 50));
        let kept = journal.get(id).unwrap();
        assert_eq!((kept.calls.len(), kept.more_calls), (MAX_CALLS, 50));
        assert!(kept.name.len() <= MAX_TEXT);
        assert!(kept.calls.is_sorted_by_key(|call| call.start));
    }

    #[test]
    fn whoever_follows_misses_nothing_in_between() {
        let journal = Journal::new(10);
        for _ in 0..3 {
            journal.record(execution("x", 0));
        }
        let (missed, mut news) = journal.follow(Some(1));
        journal.record(execution("new", 0));
        assert_eq!(missed.iter().map(|one| one.id).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(news.try_recv().unwrap().id, 4);
        assert!(journal.follow(None).0.is_empty());
    }
}
