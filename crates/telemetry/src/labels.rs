//! Label values from bounded sets, whatever clients send.

use std::{
    collections::HashSet,
    sync::{Arc, PoisonError, RwLock},
};

use gatewright_core::Ending;

/// Tools with series of their own; further ones share `_OTHER`.
pub const MOST_TOOLS: usize = 1_000;
/// What shares a series.
pub(crate) const OTHER: &str = "_OTHER";
/// Statuses that servers behind the gateway may bring along with series of their own.
const MOST_STATUSES: usize = 100;

/// Names seen so far, up to a number.
#[derive(Debug)]
struct Names {
    most: usize,
    seen: RwLock<HashSet<Box<str>>>,
}

impl Names {
    fn new(most: usize) -> Self {
        Self { most, seen: RwLock::default() }
    }

    fn label<'a>(&self, name: &'a str) -> &'a str {
        if self.seen.read().unwrap_or_else(PoisonError::into_inner).contains(name) {
            return name;
        }
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        if seen.len() == self.most {
            return OTHER;
        }
        seen.insert(name.into());
        name
    }
}

/// The labels of one process.
#[derive(Debug)]
pub(crate) struct Labels {
    tools: Names,
    statuses: Names,
}

impl Default for Labels {
    fn default() -> Self {
        Self { tools: Names::new(MOST_TOOLS), statuses: Names::new(MOST_STATUSES) }
    }
}

impl Labels {
    /// The tool, when it is served.
    pub(crate) fn tool<'a>(&self, name: &'a Arc<str>, is_known: bool) -> &'a str {
        if is_known { self.tools.label(name) } else { OTHER }
    }

    /// Empty for what went well (as the conventions have it), else the status or code.
    pub(crate) fn error_type<'a>(&self, ending: &'a Ending) -> &'a str {
        let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'-';
        match ending.status() {
            _ if ending.is_ok() => "",
            // A code that a server made up is a stranger's text.
            status if status.len() > 40 || !status.bytes().all(plain) => OTHER,
            status => self.statuses.label(status),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_whatever_is_called() {
        let labels = Labels::default();
        for n in 0..2 * MOST_TOOLS {
            let name: Arc<str> = format!("app:tool{n}").into();
            let expected = if n < MOST_TOOLS { &*name } else { OTHER };
            assert_eq!(labels.tool(&name, true), expected);
        }
        assert_eq!(labels.tool(&"app:tool0".into(), true), "app:tool0");
        assert_eq!(labels.tool(&"made:up".into(), false), OTHER);
    }

    #[test]
    fn statuses_of_strangers_are_bounded_and_plain() {
        let labels = Labels::default();
        assert_eq!(labels.error_type(&Ending::OK), "");
        assert_eq!(labels.error_type(&Ending::new("tool_error")), "tool_error");
        assert_eq!(labels.error_type(&Ending::new("a\"} 1\nevil 2")), OTHER);
        assert_eq!(labels.error_type(&Ending::new("x".repeat(41))), OTHER);
    }
}
