//! The calls that a script makes to its embedder: the only way out of the sandbox.

use std::{
    future::{Future, ready},
    pin::Pin,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use crate::{
    journal::Resumed,
    plan::{PlanFacts, PlanVerdict, PlanWarning},
};

/// A boxed answer of a [`Host`].
pub type HostFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One `callTool(name, input)` of a script.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// Position of the call in its run, from 0, in the order the script made them.
    pub index: u32,
    /// The tool's name as the script gave it.
    pub name: String,
    /// The input as JSON text; `{}` when the script gave none.
    pub input: Box<RawValue>,
    /// Items to collect from the pages of the result; none for a call of one page.
    pub paginate: Option<u32>,
    /// An earlier part of the run made this call and has no answer to it.
    pub resumed: Option<Resumed>,
}

/// The body of a call with `paginate`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PagedInput {
    pub(crate) input: Box<RawValue>,
    pub(crate) max: u32,
}

/// The host's answer to a call that did not fail.
#[derive(Debug, Clone)]
pub enum ToolAnswer {
    /// The result as JSON text.
    Value(Box<RawValue>),
    /// The same, of a call for which the host keeps more than its answer.
    Kept {
        /// The result.
        value: Box<RawValue>,
        /// State of the host, to be restored when the journal is replayed ([`Host::restore`]).
        kept: Box<RawValue>,
    },
    /// The call waits for something outside of the run, such as a person. Once all open calls wait, and the script with them, the run is
    /// suspended: it ends with [`RunError::Suspended`](crate::RunError::Suspended). The text is what the host needs to go on with the
    /// call, when the run is resumed ([`ToolCall::resumed`]).
    Waits(Box<RawValue>),
}

impl From<Box<RawValue>> for ToolAnswer {
    fn from(value: Box<RawValue>) -> Self {
        Self::Value(value)
    }
}

/// A script's request for what servers offer beside tools.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "function", rename_all = "camelCase")]
pub enum ContentRequest {
    /// `readResource(uri)`.
    ReadResource {
        /// The URI as the script gave it.
        uri: String,
    },
    /// `listResources()`.
    ListResources {},
    /// `getPrompt(name, args)`.
    GetPrompt {
        /// The prompt's name as the script gave it.
        name: String,
        /// Its arguments.
        arguments: Map<String, Value>,
    },
}

impl ContentRequest {
    /// The function that the script called.
    pub fn function(&self) -> &'static str {
        match self {
            Self::ReadResource { .. } => "readResource",
            Self::ListResources {} => "listResources",
            Self::GetPrompt { .. } => "getPrompt",
        }
    }
}

/// The reason why a host call failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct ToolFailure {
    /// Stable code, such as `TOOL_NOT_FOUND` or one the tool itself reported.
    pub code: String,
    /// Safe to show to the author of the script.
    pub message: String,
    /// Ends the run at once: the script cannot catch it (contract: `SELF_REFERENCE_BLOCKED`).
    #[serde(default)]
    pub ends_run: bool,
    /// Seconds to wait before the next try, where a rate limit says so; the error's `retryAfterSeconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
    /// Scopes that the caller lacks; the error's `requiredScopes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_scopes: Vec<String>,
}

/// Answers the host calls of a run.
///
/// The future of a call that is still open when its run ends is dropped: dropping must cancel the work behind it.
pub trait Host: Send + Sync + 'static {
    /// Calls a tool.
    fn call_tool(&self, call: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>>;

    /// Returns the tool's metadata (name, description, schemas) as JSON text.
    fn get_tool(&self, name: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>>;

    /// Reads a resource, lists them or gets a prompt. `index` and `resumed` are as for [`ToolCall`]. Default: there is none of it.
    fn content(
        &self,
        request: ContentRequest,
        _index: u32,
        _resumed: Option<Resumed>,
    ) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
        let message = format!("`{}` is not available here", request.function());
        let failure = ToolFailure { code: "NOT_FOUND".to_owned(), message, ..ToolFailure::default() };
        Box::pin(ready(Err(failure)))
    }

    /// Takes back what an earlier part of the run kept beside an answer ([`ToolAnswer::Kept`]). Default: nothing is kept.
    fn restore(&self, _kept: &RawValue) {}

    /// Bytes that the host keeps for the run, beside the `own` ones of what it is given and answers. They count for
    /// [`Limits::host_bytes`](crate::Limits::host_bytes), as do the own ones. `u64::MAX` if the host has no memory left for them.
    fn held_bytes(&self, own: u64) -> u64 {
        let _ = own;
        0
    }

    /// Receives a value that the script gave to `progress`, at most ten in a second. All of them count for [`Outcome::progress`](crate::Outcome::progress).
    fn progress(&self, _: Box<RawValue>) -> HostFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// Judges a plan before its first call. The facts come from the worker: treat them as hostile. Default: no objections.
    fn check_plan(&self, _: PlanFacts) -> HostFuture<'_, PlanVerdict> {
        Box::pin(ready(PlanVerdict::default()))
    }

    /// Returns problems of the plan that only its answers have shown. Called when the run ends, and quick. Default: none.
    fn hindsight(&self) -> Vec<PlanWarning> {
        Vec::new()
    }
}
