//! What every result carries: who answered.

use rmcp::{
    RoleServer,
    model::{LoggingLevel, MetaObject, ResultType},
    service::RequestContext,
};

use super::Gateway;
use crate::access::is_modern;

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

impl Gateway {
    /// Adds `serverInfo` to a result of the 2026-07-28 era (MCP 2026-07-28, basic: `_meta`).
    pub(super) fn stamp(&self, context: &RequestContext<RoleServer>, meta: &mut Option<MetaObject>) {
        self.stamp_for(is_modern(context), meta);
    }

    /// As [`Gateway::stamp`], for a request whose era is known.
    pub(super) fn stamp_for(&self, modern: bool, meta: &mut Option<MetaObject>) {
        if modern && let Ok(info) = serde_json::to_value(&self.shared.config.info) {
            meta.get_or_insert_default().insert(SERVER_INFO.to_owned(), info);
        }
    }
}

/// Says that a result is whole, as the 2026-07-28 era requires and an app of an older era does not. `rmcp` takes the word out
/// again for clients of an older era.
pub(super) fn complete(result_type: &mut Option<ResultType>) {
    result_type.get_or_insert(ResultType::COMPLETE);
}

/// The least severe log level a session of the older era asked for, as an extension of its requests' contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLogLevel(u8);

impl SessionLogLevel {
    pub(super) fn ranked(rank: u8) -> Self {
        Self(rank)
    }

    /// Whether a message of `level` is wanted.
    pub fn wants(self, level: LoggingLevel) -> bool {
        rank(level) >= self.0
    }
}

/// Severity of a level, least severe first.
pub(super) fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
