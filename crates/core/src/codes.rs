//! Stable codes (contract: "Script execution statuses and codes").

/// No tool of that name that the caller may see.
pub const TOOL_NOT_FOUND: &str = "TOOL_NOT_FOUND";
/// The definition of the tool changed since it was approved.
pub const TOOL_CHANGED: &str = "TOOL_CHANGED";
/// The caller, or the script's allowlist, does not reach the tool.
pub const ACCESS_DENIED: &str = "ACCESS_DENIED";
/// Arguments do not fit the input schema.
pub const VALIDATION_ERROR: &str = "VALIDATION_ERROR";
/// The tool failed and named no code of its own.
pub const TOOL_EXECUTION_ERROR: &str = "TOOL_EXECUTION_ERROR";
/// A policy asks for an approval first.
pub const APPROVAL_REQUIRED: &str = "APPROVAL_REQUIRED";
/// The approval that the call needs was refused.
pub const APPROVAL_DENIED: &str = "APPROVAL_DENIED";
/// Too many calls.
pub const RATE_LIMIT: &str = "RATE_LIMIT";
/// No answer in time.
pub const TIMEOUT: &str = "TIMEOUT";
/// The call was cancelled.
pub const CANCELLED: &str = "EXECUTION_ABORTED";
/// The app is making its first connection.
pub const UPSTREAM_STARTING: &str = "UPSTREAM_STARTING";
/// The app does not serve.
pub const UPSTREAM_DOWN: &str = "UPSTREAM_DOWN";
/// The caller has to let the gateway act for them first.
pub const AUTHORIZATION_REQUIRED: &str = "AUTHORIZATION_REQUIRED";
/// The call does not wait for the answer any more.
pub const INPUT_EXPIRED: &str = "INPUT_EXPIRED";
/// A script, or `codecall:invoke`, called one of the meta-tools.
pub const SELF_REFERENCE_BLOCKED: &str = "SELF_REFERENCE_BLOCKED";
/// The call needs an answer that its caller cannot be asked for.
pub const INPUT_REQUIRED: &str = "INPUT_REQUIRED";
/// The gateway stopped while the call was under way, and it is not known whether it had its effect.
pub const OUTCOME_UNKNOWN: &str = "OUTCOME_UNKNOWN";
