//! Numbers of the last hour: requests of clients by the minute, and calls of tools.
//!
//! Durations are counted in classes that grow by a third, so that percentiles need no list of them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gatewright_core::{Ending, Execution};
use serde::{Deserialize, Serialize};

use crate::advice;

/// Minutes that are kept.
pub(crate) const MINUTES: u64 = 60;
/// Minutes in one part of a tool's hour.
const PART: u64 = 5;
/// Tools that are counted; further ones are not.
const MOST_TOOLS: usize = 1_000;
/// Tools of a summary.
const MOST_LISTED: usize = 40;
/// Classes of durations.
const CLASSES: usize = 64;
/// Upper end of the first class, in microseconds.
const FIRST: f64 = 64.0;
/// Classes for each doubling.
const EACH_DOUBLING: f64 = 3.0;

/// Counts of one stretch of time.
#[derive(Debug, Clone)]
struct Counts {
    /// Number of the stretch since 1970.
    at: u64,
    all: u32,
    failed: u32,
    durations: Box<[u32; CLASSES]>,
}

impl Counts {
    fn new(at: u64) -> Self {
        Self { at, all: 0, failed: 0, durations: Box::new([0; CLASSES]) }
    }

    fn add(&mut self, duration: Duration, ok: bool) {
        self.all = self.all.saturating_add(1);
        self.failed = self.failed.saturating_add(u32::from(!ok));
        let class = &mut self.durations[class(duration)];
        *class = class.saturating_add(1);
    }

    fn merge(&mut self, other: &Self) {
        self.all = self.all.saturating_add(other.all);
        self.failed = self.failed.saturating_add(other.failed);
        for (own, other) in self.durations.iter_mut().zip(other.durations.iter()) {
            *own = own.saturating_add(*other);
        }
    }

    fn numbers(&self) -> Numbers {
        Numbers {
            all: self.all,
            failed: self.failed,
            p50_us: self.percentile(50),
            p95_us: self.percentile(95),
        }
    }

    /// Upper end of the class of the percentile, in microseconds; 0 without durations.
    fn percentile(&self, percent: u64) -> u64 {
        let all: u64 = self.durations.iter().map(|count| u64::from(*count)).sum();
        let rank = (all * percent).div_ceil(100);
        let mut below = 0;
        for (at, count) in self.durations.iter().enumerate() {
            below += u64::from(*count);
            if below >= rank && below > 0 {
                return upper_end(at);
            }
        }
        0
    }
}

fn class(duration: Duration) -> usize {
    let us = duration.as_secs_f64() * 1e6;
    (0..CLASSES - 1).find(|at| us <= upper_end_f64(*at)).unwrap_or(CLASSES - 1)
}

#[expect(clippy::cast_precision_loss, reason = "a small number")]
fn upper_end_f64(class: usize) -> f64 {
    FIRST * (class as f64 / EACH_DOUBLING).exp2()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most two minutes in microseconds"
)]
fn upper_end(class: usize) -> u64 {
    upper_end_f64(class) as u64
}

/// Number of requests, failures, and percentiles of their duration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Numbers {
    pub(crate) all: u32,
    pub(crate) failed: u32,
    pub(crate) p50_us: u64,
    pub(crate) p95_us: u64,
}

/// The last hour.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HourSummary {
    /// Requests of clients in the whole hour.
    pub(crate) total: Numbers,
    /// The same for each minute, oldest first.
    pub(crate) minutes: Vec<Numbers>,
    /// Refusals by their codes.
    pub(crate) refused: Vec<(String, u32)>,
    /// The tools with the longest 95th percentile, and those that failed most often, slowest first.
    pub(crate) tools: Vec<(String, Numbers)>,
}

/// Counts of the last hour.
#[derive(Debug, Default)]
pub(crate) struct LastHour {
    minutes: Vec<Counts>,
    tools: HashMap<Arc<str>, Vec<Counts>>,
    /// Times of refusals, by the minute.
    refused: BTreeMap<&'static str, BTreeMap<u64, u32>>,
}

impl LastHour {
    /// Counts an execution that ended at `now`.
    pub(crate) fn note(&mut self, execution: &Execution, now: SystemTime) {
        let minute = minute(now);
        stretch(&mut self.minutes, minute, MINUTES).add(execution.duration, execution.ending.is_ok());
        for call in &execution.calls {
            if !self.tools.contains_key(&call.tool) && self.tools.len() >= MOST_TOOLS {
                self.tools
                    .retain(|_, parts| parts.iter().any(|part| part.at + MINUTES / PART > minute / PART));
                if self.tools.len() >= MOST_TOOLS {
                    continue;
                }
            }
            let parts = self.tools.entry(call.tool.clone()).or_default();
            stretch(parts, minute / PART, MINUTES / PART).add(call.duration, call.ending.is_ok());
        }
        let mut codes: Vec<&'static str> =
            execution.calls.iter().filter_map(|call| refusal(&call.ending)).collect();
        codes.extend(refusal(&execution.ending).filter(|code| !codes.contains(code)));
        for code in codes {
            let times = self.refused.entry(code).or_default();
            *times.entry(minute).or_default() += 1;
            times.retain(|at, _| at + MINUTES > minute);
        }
    }

    /// The hour before `now`.
    pub(crate) fn summary(&self, now: SystemTime) -> HourSummary {
        let minute = minute(now);
        let (first, mut total) = ((minute + 1).saturating_sub(MINUTES), Counts::new(0));
        let mut minutes = Vec::with_capacity(MINUTES as usize);
        for at in first..=minute {
            let counts = self.minutes.iter().find(|counts| counts.at == at);
            counts.into_iter().for_each(|counts| total.merge(counts));
            minutes.push(counts.map(Counts::numbers).unwrap_or_default());
        }
        let refused = self.refused.iter().map(|(code, times)| {
            let count: u32 = times.iter().filter(|(at, _)| **at >= first).map(|(_, count)| count).sum();
            ((*code).to_owned(), count)
        });
        let refused = refused.filter(|(_, count)| *count > 0).collect();
        HourSummary { total: total.numbers(), minutes, refused, tools: self.tools(minute / PART) }
    }

    fn tools(&self, part: u64) -> Vec<(String, Numbers)> {
        let whole = |parts: &Vec<Counts>| {
            let mut whole = Counts::new(0);
            parts.iter().filter(|one| one.at + MINUTES / PART > part).for_each(|one| whole.merge(one));
            whole.numbers()
        };
        let mut tools: Vec<(&Arc<str>, Numbers)> = self
            .tools
            .iter()
            .map(|(name, parts)| (name, whole(parts)))
            .filter(|(_, one)| one.all > 0)
            .collect();
        // Those that fail are not crowded out by those that are slow.
        tools.sort_by(|a, b| b.1.failed.cmp(&a.1.failed).then_with(|| a.0.cmp(b.0)));
        let rest = tools.split_off(tools.len().min(MOST_LISTED / 2));
        let mut rest: Vec<_> = rest;
        rest.sort_by(|a, b| b.1.p95_us.cmp(&a.1.p95_us).then_with(|| a.0.cmp(b.0)));
        tools.extend(rest.into_iter().take(MOST_LISTED / 2));
        tools.sort_by(|a, b| b.1.p95_us.cmp(&a.1.p95_us).then_with(|| a.0.cmp(b.0)));
        tools.into_iter().map(|(name, numbers)| (name.to_string(), numbers)).collect()
    }
}

fn minute(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 60
}

/// The counts of the stretch `at`, of which the latest `most` are kept.
fn stretch(kept: &mut Vec<Counts>, at: u64, most: u64) -> &mut Counts {
    let place = match kept.iter().position(|counts| counts.at == at) {
        Some(place) => place,
        None => {
            kept.retain(|counts| counts.at + most > at && counts.at < at);
            kept.push(Counts::new(at));
            kept.len() - 1
        }
    };
    &mut kept[place]
}

fn refusal(ending: &Ending) -> Option<&'static str> {
    advice::REFUSALS.into_iter().find(|code| *code == ending.status())
}

#[cfg(test)]
mod tests {
    use gatewright_core::{Arrival, CallRecord, Principal, codes};

    use super::*;

    fn execution(duration: Duration, ending: Ending) -> Execution {
        let call = CallRecord {
            tool: "crm:slow".into(),
            app: "crm".into(),
            start: Duration::ZERO,
            duration,
            ending: ending.clone(),
            bytes: None,
            span_id: None,
            transport: None,
        };
        Execution {
            id: 0,
            tool: "crm:slow".into(),
            is_meta: false,
            is_known: true,
            principal: Principal::local(),
            address: None,
            plan: None,
            started: SystemTime::now(),
            duration,
            ending,
            bytes: None,
            script: None,
            arguments: None,
            calls: vec![call],
            more_calls: 0,
            exchanges: Vec::new(),
            trace: None,
            arrival: Arrival::default(),
        }
    }

    fn at(minute: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_000_000 * 60 + minute * 60)
    }

    #[test]
    fn percentiles_are_those_of_the_durations_within_a_third() {
        let mut hour = LastHour::default();
        for ms in 1..=100 {
            hour.note(&execution(Duration::from_millis(ms), Ending::OK), at(0));
        }
        let total = hour.summary(at(0)).total;
        assert_eq!((total.all, total.failed), (100, 0));
        assert!((50_000..67_000).contains(&total.p50_us), "{total:?}");
        assert!((95_000..128_000).contains(&total.p95_us), "{total:?}");
    }

    #[test]
    fn what_is_older_than_an_hour_does_not_count() {
        let mut hour = LastHour::default();
        hour.note(&execution(Duration::from_secs(2), Ending::new(codes::RATE_LIMIT)), at(0));
        let first = hour.summary(at(59));
        assert_eq!((first.total.failed, first.minutes.len(), first.minutes[0].all), (1, 60, 1));
        assert_eq!(first.refused, [("RATE_LIMIT".to_owned(), 1)], "a call and its request are one refusal");
        assert_eq!(first.tools[0].0, "crm:slow");
        let later = hour.summary(at(65));
        assert_eq!((later.total, later.refused.len(), later.tools.len()), (Numbers::default(), 0, 0));
    }

    #[test]
    fn counts_take_bounded_room() {
        let mut hour = LastHour::default();
        for at_minute in 0..200 {
            hour.note(&execution(Duration::MAX, Ending::OK), at(at_minute));
        }
        for tool in 0..MOST_TOOLS + 10 {
            let mut one = execution(Duration::ZERO, Ending::OK);
            one.calls[0].tool = tool.to_string().into();
            hour.note(&one, at(200));
        }
        assert!(hour.minutes.len() <= 60 && hour.tools.len() <= MOST_TOOLS);
        assert!(hour.tools.values().all(|parts| parts.len() <= 12));
        assert!(hour.summary(at(200)).tools.len() <= MOST_LISTED);
    }
}
