//! Label values from bounded sets, whatever clients send.

use std::sync::{OnceLock, PoisonError, RwLock};

use gatewright_core::Ending;
use prometheus::Histogram;
use rustc_hash::{FxHashMap, FxHashSet};

/// Tools with series of their own; further ones share `_OTHER`.
pub const MOST_TOOLS: usize = 1_000;
/// Prompts with series of their own; further ones share `_OTHER`.
pub const MOST_PROMPTS: usize = 200;
/// Label value of everything that shares a series.
pub(crate) const OTHER: &str = "_OTHER";
/// Statuses that servers behind the gateway may bring along with series of their own.
const MOST_STATUSES: usize = 100;
/// Failures with series of their own: a tool, or a method with its prompt, and a status. Of further ones the status is `_OTHER`. Each label has its
/// bound, but all tools with all statuses would be 100,000 histograms, which every scrape writes.
pub const MOST_FAILURES: usize = 1_000;
/// Bytes of a name that is a label value.
const LONGEST_NAME: usize = 200;

/// Names seen so far, up to a number, each with what belongs to it.
#[derive(Debug)]
struct Names<T> {
    most: usize,
    seen: RwLock<FxHashMap<Box<str>, T>>,
}

impl<T: Default> Names<T> {
    fn new(most: usize) -> Self {
        Self { most, seen: RwLock::default() }
    }

    /// Does `work` with what belongs to `name`; none when there is no room for it.
    fn with<R>(&self, name: &str, work: impl FnOnce(&T) -> R) -> Option<R> {
        if name.len() > LONGEST_NAME {
            return None;
        }
        if let Some(known) = self.seen.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Some(work(known));
        }
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        if seen.len() == self.most && !seen.contains_key(name) {
            return None;
        }
        Some(work(seen.entry(name.into()).or_default()))
    }

    fn label<'a>(&self, name: &'a str) -> &'a str {
        self.with(name, |_| name).unwrap_or(OTHER)
    }
}

/// The series of a tool that hold what went well, once something did: found with the tool's name alone.
#[derive(Debug, Default)]
pub(crate) struct SuccessSeries {
    /// Requests of clients.
    pub(crate) asked: OnceLock<Histogram>,
    /// Calls of the app.
    pub(crate) called: OnceLock<Histogram>,
}

/// The labels of one process.
#[derive(Debug)]
pub(crate) struct Labels {
    tools: Names<SuccessSeries>,
    prompts: Names<()>,
    statuses: Names<()>,
    failures: RwLock<FxHashSet<(Box<str>, Box<str>)>>,
}

impl Default for Labels {
    fn default() -> Self {
        Self {
            tools: Names::new(MOST_TOOLS),
            prompts: Names::new(MOST_PROMPTS),
            statuses: Names::new(MOST_STATUSES),
            failures: RwLock::default(),
        }
    }
}

impl Labels {
    /// The tool, when it is served.
    pub(crate) fn tool<'a>(&self, name: &'a str, is_known: bool) -> &'a str {
        if is_known { self.tools.label(name) } else { OTHER }
    }

    /// Does `work` with the series of a tool that is served; none when its series are those of [`OTHER`].
    pub(crate) fn success(&self, name: &str, work: impl FnOnce(&SuccessSeries)) -> Option<()> {
        self.tools.with(name, work)
    }

    /// The prompt, when it is served.
    pub(crate) fn prompt<'a>(&self, name: &'a str) -> &'a str {
        self.prompts.label(name)
    }

    /// Empty for what went well (as the conventions have it), else the status or code, as far as those of `subject` have series of their own: a label
    /// value, or several in a row.
    pub(crate) fn error_type<'a>(&self, subject: &[&str], ending: &'a Ending) -> &'a str {
        let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'-';
        match ending.status() {
            _ if ending.is_ok() => "",
            // A code that a server made up is a stranger's text.
            status if status.len() > 40 || !status.bytes().all(plain) => OTHER,
            status if self.statuses.label(status) == status && self.has_series(subject, status) => status,
            _ => OTHER,
        }
    }

    fn has_series(&self, subject: &[&str], status: &str) -> bool {
        let failure = (subject.join(" ").into(), status.into());
        if self.failures.read().unwrap_or_else(PoisonError::into_inner).contains(&failure) {
            return true;
        }
        let mut failures = self.failures.write().unwrap_or_else(PoisonError::into_inner);
        let has_room = failures.len() < MOST_FAILURES || failures.contains(&failure);
        if has_room {
            failures.insert(failure);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_whatever_is_called() {
        let labels = Labels::default();
        for n in 0..2 * MOST_TOOLS {
            let name = format!("app:tool{n}");
            let expected = if n < MOST_TOOLS { &*name } else { OTHER };
            assert_eq!(labels.tool(&name, true), expected);
        }
        assert_eq!(labels.tool("app:tool0", true), "app:tool0");
        assert_eq!(labels.tool("made:up", false), OTHER);
        assert_eq!(Labels::default().tool(&"x".repeat(201), true), OTHER);
    }

    #[test]
    fn statuses_of_strangers_are_bounded_and_plain() {
        let labels = Labels::default();
        let error_type = |ending: &Ending| labels.error_type(&["app:tool"], ending).to_owned();
        assert_eq!(error_type(&Ending::OK), "");
        assert_eq!(error_type(&Ending::new("tool_error")), "tool_error");
        assert_eq!(error_type(&Ending::new("a\"} 1\nevil 2")), OTHER);
        assert_eq!(error_type(&Ending::new("x".repeat(41))), OTHER);
        let others = (0..2 * MOST_STATUSES).filter(|n| error_type(&Ending::new(format!("S{n}"))) == OTHER);
        assert_eq!(others.count(), MOST_STATUSES + 1);
    }

    #[test]
    fn failures_with_series_of_their_own_are_bounded_for_all_tools_and_statuses_together() {
        let labels = Labels::default();
        let own = |tool: usize, status: usize| {
            let ending = Ending::new(format!("S{status}"));
            labels.error_type(&[&format!("app:tool{tool}")], &ending) != OTHER
        };
        let all = (0..MOST_TOOLS).flat_map(|tool| (0..MOST_STATUSES).map(move |status| (tool, status)));
        assert_eq!(all.filter(|(tool, status)| own(*tool, *status)).count(), MOST_FAILURES);
        assert!(own(0, 0), "it has its series from before");
        assert!(!own(MOST_TOOLS - 1, 0));
    }
}
