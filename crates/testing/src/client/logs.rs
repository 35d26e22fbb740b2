//! Log messages of the server, and the client's own.

use std::{sync::Mutex, time::SystemTime};

use serde_json::Value;

use super::kept::{Kept, bytes_of};
use crate::{
    base::lock,
    matchers::{AsSubject, Recorded, Subject},
};

/// Severity of a message (RFC 5424).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are those of RFC 5424")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    #[serde(alias = "warn")]
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// A log message.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LogEntry {
    /// The severity.
    pub level: LogLevel,
    /// The text of `data`, or its JSON if it is not a string.
    pub message: String,
    /// The part of the server that logged it; `client` for the client's own.
    pub logger: Option<String>,
    /// Time of receipt.
    pub timestamp: SystemTime,
}

macro_rules! recorded {
    ($($list:ty),+) => {$(
        impl AsSubject for $list {
            fn as_subject(&self) -> Subject<'_> {
                Subject::Recorded(Recorded::of(self))
            }
        }
    )+};
}

recorded!([LogEntry], Vec<LogEntry>);

/// The logger of the client's own entries.
const CLIENT: &str = "client";

fn own(level: LogLevel, message: String) -> LogEntry {
    LogEntry { level, message, logger: Some(CLIENT.to_owned()), timestamp: SystemTime::now() }
}

/// The log messages of one client, up to 32 MiB.
#[derive(Debug, Default)]
pub struct Logs {
    entries: Mutex<Kept<LogEntry>>,
}

impl Logs {
    /// All messages, oldest first.
    pub fn all(&self) -> Vec<LogEntry> {
        lock(&self.entries).to_vec()
    }

    /// Messages of exactly this level.
    pub fn filter(&self, level: LogLevel) -> Vec<LogEntry> {
        self.all().into_iter().filter(|entry| entry.level == level).collect()
    }

    /// Messages that contain `query`, ignoring case.
    pub fn search(&self, query: &str) -> Vec<LogEntry> {
        let query = query.to_lowercase();
        self.all().into_iter().filter(|entry| entry.message.to_lowercase().contains(&query)).collect()
    }

    /// Removes all messages.
    pub fn clear(&self) {
        lock(&self.entries).clear();
    }

    /// Protocol violations the client noticed: text that is not JSON, responses to no request.
    pub(crate) fn violations(&self) -> Vec<String> {
        let own =
            |entry: &LogEntry| entry.logger.as_deref() == Some(CLIENT) && entry.level >= LogLevel::Warning;
        self.all().into_iter().filter(own).map(|entry| entry.message).collect()
    }

    pub(super) fn add_own(&self, level: LogLevel, message: String) {
        let bytes = message.len();
        lock(&self.entries).push(own(level, message), bytes);
    }

    /// Adds an entry of the client's own that must not be missing.
    pub(super) fn add_last(&self, message: &str) {
        lock(&self.entries).push_always(own(LogLevel::Error, message.to_owned()));
    }

    /// Returns `false` if there is no room for it.
    pub(super) fn add_server(&self, params: &Value) -> bool {
        let level = serde_json::from_value(params["level"].clone()).unwrap_or(LogLevel::Info);
        let message = match &params["data"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let logger = params["logger"].as_str().map(str::to_owned);
        let bytes = bytes_of(params);
        lock(&self.entries).push(LogEntry { level, message, logger, timestamp: SystemTime::now() }, bytes)
    }
}
