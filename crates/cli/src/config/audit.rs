//! The `audit` section.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The audit file.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AuditConfig {
    /// File to which a line of JSON is appended for each execution and each event of the authorization server. Default: none.
    pub file: Option<PathBuf>,
    /// Keep the text of scripts. Default false: only their SHA-256 and length.
    pub include_scripts: bool,
    /// Keep the arguments of calls by clients, which may contain secrets. Default false.
    pub include_arguments: bool,
    /// Write each line to the disk before the call continues, so that it survives a crash of the machine. Default false: lines
    /// survive a crash of the process.
    pub sync: bool,
}
