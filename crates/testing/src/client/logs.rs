//! Log messages.

use std::{sync::Mutex, time::SystemTime};

use serde_json::Value;

use crate::lock;

/// How severe a message is, as in RFC 5424.
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

/// One log message.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LogEntry {
    /// How severe.
    pub level: LogLevel,
    /// The text; the JSON of `data` when the server sent no text.
    pub message: String,
    /// Which part of the server it comes from; `client` for the client's own.
    pub logger: Option<String>,
    /// When it came.
    pub timestamp: SystemTime,
}

/// The logger of the client's own entries.
const OWN: &str = "client";

/// The log messages of one client.
#[derive(Debug, Default)]
pub struct Logs {
    entries: Mutex<Vec<LogEntry>>,
}

impl Logs {
    /// All, oldest first.
    pub fn all(&self) -> Vec<LogEntry> {
        lock(&self.entries).clone()
    }

    /// Those of exactly this level.
    pub fn filter(&self, level: LogLevel) -> Vec<LogEntry> {
        self.all().into_iter().filter(|entry| entry.level == level).collect()
    }

    /// Those whose text holds `query`, whatever the case.
    pub fn search(&self, query: &str) -> Vec<LogEntry> {
        let query = query.to_lowercase();
        self.all().into_iter().filter(|entry| entry.message.to_lowercase().contains(&query)).collect()
    }

    /// Forgets all.
    pub fn clear(&self) {
        lock(&self.entries).clear();
    }

    /// What the client itself found wrong with what came: text that is no JSON, answers to no request.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let own = |entry: &LogEntry| entry.logger.as_deref() == Some(OWN) && entry.level >= LogLevel::Warning;
        self.all().into_iter().filter(own).map(|entry| entry.message).collect()
    }

    pub(super) fn own(&self, level: LogLevel, message: String) {
        let logger = Some(OWN.to_owned());
        lock(&self.entries).push(LogEntry { level, message, logger, timestamp: SystemTime::now() });
    }

    pub(super) fn of_server(&self, params: &Value) {
        let level = serde_json::from_value(params["level"].clone()).unwrap_or(LogLevel::Info);
        let message = match &params["data"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let logger = params["logger"].as_str().map(str::to_owned);
        lock(&self.entries).push(LogEntry { level, message, logger, timestamp: SystemTime::now() });
    }
}
