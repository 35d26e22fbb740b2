//! The reason why an app is down.

use std::fmt;

/// The reason why an app is down: a summary for callers, and details for operators.
///
/// Display is the summary. Whatever a server wrote, such as its standard error or an answer, belongs to the details: it may repeat
/// the arguments of other callers, and secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownReason {
    summary: String,
    details: String,
}

impl DownReason {
    /// Replaces the summary by what `change` makes of it.
    #[must_use]
    pub fn map_summary(self, change: impl FnOnce(&str) -> String) -> Self {
        let summary = change(&self.summary);
        Self { summary, ..self }
    }

    /// Adds details for operators, unless `text` is empty.
    #[must_use]
    pub fn with_details(mut self, text: &str) -> Self {
        if !self.details.is_empty() && !text.is_empty() {
            self.details.push_str("; ");
        }
        self.details.push_str(text);
        self
    }

    /// Replaces the details by what `change` makes of them.
    #[must_use]
    pub fn map_details(self, change: impl FnOnce(&str) -> String) -> Self {
        let details = change(&self.details);
        Self { details, ..self }
    }

    /// The summary and the details: for logs, the console and commands, and not for callers.
    pub fn in_full(&self) -> String {
        match self.details.is_empty() {
            true => self.summary.clone(),
            false => format!("{}; {}", self.summary, self.details),
        }
    }
}

impl From<String> for DownReason {
    fn from(summary: String) -> Self {
        Self { summary, details: String::new() }
    }
}

impl From<&str> for DownReason {
    fn from(summary: &str) -> Self {
        summary.to_owned().into()
    }
}

impl fmt::Display for DownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_get_the_summary_and_operators_all() {
        let reason = DownReason::from("it ended")
            .with_details("")
            .map_summary(|why| format!("{why} (exit status: 3)"));
        assert_eq!((reason.to_string(), reason.in_full()), (reason.in_full(), reason.to_string()));
        let reason = reason.with_details("a | b").with_details("c");
        assert_eq!(reason.to_string(), "it ended (exit status: 3)");
        assert_eq!(reason.in_full(), "it ended (exit status: 3); a | b; c");
    }
}
