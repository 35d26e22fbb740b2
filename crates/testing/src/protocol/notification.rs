//! JSON-RPC notifications of the server.

use std::time::SystemTime;

use serde_json::Value;

/// A notification the server sent.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Notification {
    /// The method, such as `notifications/tools/list_changed`.
    pub method: String,
    /// The parameters; null if there are none.
    pub params: Value,
    /// Time of receipt.
    pub timestamp: SystemTime,
}
