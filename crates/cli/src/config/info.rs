//! The `info` section.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name and version of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Info {
    /// Name. Default `gatewright`.
    pub name: String,
    /// Version. Default: that of Gatewright.
    pub version: String,
}

impl Default for Info {
    fn default() -> Self {
        Self { name: "gatewright".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}
