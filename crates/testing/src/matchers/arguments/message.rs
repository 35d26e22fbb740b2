//! Messages that a server sent by itself.

use serde_json::Value;

use super::number::NumberRange;

/// A message of a server: by its method, and what its parameters contain.
#[derive(Debug, Clone)]
pub struct Message {
    pub(in crate::matchers) method: String,
    pub(in crate::matchers) params: Option<Value>,
    pub(in crate::matchers) times: NumberRange,
}

impl Message {
    /// A message of this method, such as `elicitation/create`, once or more.
    pub fn of(method: impl Into<String>) -> Self {
        Self { method: method.into(), params: None, times: NumberRange::AT_LEAST_ONE }
    }

    /// Counts only messages whose parameters contain all of this.
    #[must_use]
    pub fn params(mut self, params: Value) -> Self {
        self.params = Some(params);
        self
    }

    /// Sets how many there are: a number, or a range such as `1..=3`. Default: one or more.
    #[must_use]
    pub fn times(mut self, times: impl Into<NumberRange>) -> Self {
        self.times = times.into();
        self
    }
}

impl From<&str> for Message {
    fn from(method: &str) -> Self {
        Self::of(method)
    }
}

impl From<String> for Message {
    fn from(method: String) -> Self {
        Self::of(method)
    }
}

/// A log message: by its text, level and logger.
#[derive(Debug, Clone)]
pub struct LogMessage {
    pub(in crate::matchers) text: String,
    pub(in crate::matchers) level: Option<String>,
    pub(in crate::matchers) logger: Option<String>,
    pub(in crate::matchers) times: NumberRange,
}

impl LogMessage {
    /// A message that contains this text, once or more.
    pub fn with_text(text: impl Into<String>) -> Self {
        Self { text: text.into(), level: None, logger: None, times: NumberRange::AT_LEAST_ONE }
    }

    /// Counts only messages of this level, such as `warning`.
    #[must_use]
    pub fn level(mut self, level: impl Into<String>) -> Self {
        self.level = Some(level.into());
        self
    }

    /// Counts only messages of this logger.
    #[must_use]
    pub fn logger(mut self, logger: impl Into<String>) -> Self {
        self.logger = Some(logger.into());
        self
    }

    /// Sets how many there are: a number, or a range such as `1..=3`. Default: one or more.
    #[must_use]
    pub fn times(mut self, times: impl Into<NumberRange>) -> Self {
        self.times = times.into();
        self
    }
}

impl From<&str> for LogMessage {
    fn from(text: &str) -> Self {
        Self::with_text(text)
    }
}

impl From<String> for LogMessage {
    fn from(text: String) -> Self {
        Self::with_text(text)
    }
}
