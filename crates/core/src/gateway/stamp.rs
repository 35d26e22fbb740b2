//! `serverInfo` on every result.

use rmcp::{
    RoleServer,
    model::{MetaObject, ResultType},
    service::RequestContext,
};

use super::Gateway;
use crate::Era;

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

impl Gateway {
    /// Adds `serverInfo` to a result of the 2026-07-28 era (MCP 2026-07-28, basic: `_meta`).
    pub(super) fn stamp(&self, context: &RequestContext<RoleServer>, meta: &mut Option<MetaObject>) {
        self.stamp_for(Era::of(context), meta);
    }

    /// As [`Gateway::stamp`], for a request whose era is known.
    pub(super) fn stamp_for(&self, era: Era, meta: &mut Option<MetaObject>) {
        if era.is_stateless()
            && let Ok(info) = serde_json::to_value(&self.shared.config.info)
        {
            meta.get_or_insert_default().insert(SERVER_INFO.to_owned(), info);
        }
    }
}

/// Says that a result is whole, as the 2026-07-28 era requires and an app of an older era does not. `rmcp` takes the word out
/// again for clients of an older era.
pub(super) fn complete(result_type: &mut Option<ResultType>) {
    result_type.get_or_insert(ResultType::COMPLETE);
}
