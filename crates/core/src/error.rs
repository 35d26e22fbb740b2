//! Why a tool call did not give a result, with the contract's codes.

use std::{sync::Arc, time::Duration};

use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, ErrorCode, JsonObject, MetaObject},
};
use serde_json::json;

use crate::{
    ApprovalRequest, Forbidden, NotRequested, RequestDigest, RequestObject, Unasked, UnavailableApp, codes,
    names::clipped, questions::addresses,
};

/// Why [`Invoker::call`](crate::Invoker::call) did not reach a result. Display is safe to show.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum InvokeError {
    /// No such tool, or none the caller may see.
    #[error("tool `{}` does not exist{}", clipped(.name), suggestion(.nearest))]
    NotFound {
        /// The name asked for.
        name: String,
        /// The visible tool with the nearest name.
        nearest: Option<String>,
    },
    /// The app that the tool belongs to is not serving the caller at the moment.
    #[error("tool `{}` is not available now: {app}", clipped(.name))]
    Unavailable {
        /// The name asked for.
        name: String,
        /// The app.
        app: UnavailableApp,
    },
    /// The app changed the definition of the tool since an operator approved it.
    #[error(
        "tool `{name}` is held back: its definition changed after it was approved. An operator has to look at the change and approve it \
         (`gatewright pins diff`)"
    )]
    Changed {
        /// The tool.
        name: String,
    },
    /// The principal lacks scopes.
    #[error("tool `{name}` needs the scope {}", .missing.join(" "))]
    MissingScopes {
        /// The tool.
        name: String,
        /// Scopes that are not granted.
        missing: Vec<String>,
    },
    /// A rule keeps the caller from the tool.
    #[error("tool `{name}` is not available: {why}")]
    Denied {
        /// The tool.
        name: String,
        /// The rule, and what to do.
        why: String,
    },
    /// The policies do not let the call pass.
    #[error("tool `{name}` is not available: {why}")]
    Forbidden {
        /// The tool.
        name: String,
        /// The policy.
        why: Forbidden,
    },
    /// A policy asks for an approval, and the request brings none for exactly these arguments.
    #[error("{} `{}` needs an approval: {reason} (policy `{policy}`); {}", .object.kind(), clipped(.object.name()), requested(.request))]
    ApprovalRequired {
        /// The object.
        object: RequestObject,
        /// Name of the policy.
        policy: Arc<str>,
        /// The reason that the approver reads.
        reason: Arc<str>,
        /// `true` if an approval that was given for longer than one request counts.
        may_stand: bool,
        /// The request: an [`Approved`](crate::Approved) with this digest lets it pass.
        digest: RequestDigest,
        /// The approval that waits, or why none does.
        request: Result<Box<ApprovalRequest>, NotRequested>,
    },
    /// Somebody refused the approval that the request needs.
    #[error("{} `{}` was not approved{}", .object.request(), clipped(.object.name()), .by.as_ref().map(|_| ": somebody refused it").unwrap_or_default())]
    ApprovalDenied {
        /// The object.
        object: RequestObject,
        /// Whoever refused it; none for the caller.
        by: Option<String>,
    },
    /// The arguments do not fit.
    #[error("invalid input for `{name}`: {problems}")]
    InvalidArguments {
        /// The tool.
        name: String,
        /// Each bad place.
        problems: String,
    },
    /// Too many calls.
    #[error("rate limit of `{name}` reached; try again in {} s", whole_seconds(*.retry_after))]
    RateLimited {
        /// The tool.
        name: String,
        /// Time to wait.
        retry_after: Duration,
    },
    /// No answer in time; the call was cancelled.
    #[error("tool `{name}` did not answer within {} ms", .after.as_millis())]
    TimedOut {
        /// The tool.
        name: String,
        /// The app's timeout.
        after: Duration,
    },
    /// The tool asks something that its caller cannot be asked, or did not answer.
    #[error("tool `{name}` needs an answer that it did not get{}. {unasked}", said(.unasked))]
    InputRequired {
        /// The tool.
        name: String,
        /// The question.
        unasked: Box<Unasked>,
    },
    /// The request answers a call that does not wait any more.
    #[error(
        "no call of `{name}` waits for these answers: it was answered already, nobody answered in time, or the server was restarted; what it \
         did before it asked is done, so look at that before you call it without `requestState`"
    )]
    InputExpired {
        /// The tool.
        name: String,
    },
    /// The caller cancelled.
    #[error("the call of `{name}` was cancelled")]
    Cancelled {
        /// The tool.
        name: String,
    },
    /// The app answered with a protocol error.
    #[error("tool `{name}` failed: {}{}", .error.message, to_open(.error))]
    App {
        /// The tool.
        name: String,
        /// The app's error.
        error: ErrorData,
    },
}

/// "Request cancelled" (contract: JSON-RPC error codes).
pub const REQUEST_CANCELLED: ErrorCode = ErrorCode(-32800);

fn suggestion(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

fn requested(request: &Result<Box<ApprovalRequest>, NotRequested>) -> String {
    request.as_ref().map_or_else(ToString::to_string, ToString::to_string)
}

/// The addresses that the user is to open, for callers that see nothing but the message.
fn to_open(error: &ErrorData) -> String {
    let urls: Vec<&str> = addresses(error).into_iter().map(|(url, _)| url).collect();
    if urls.is_empty() {
        return String::new();
    }
    format!("; the user has to open {} in a browser, then call again", urls.join(" and "))
}

fn said(unasked: &Unasked) -> String {
    unasked.said.as_ref().map(|said| format!(": {said}")).unwrap_or_default()
}

impl InvokeError {
    /// The contract's code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => codes::TOOL_NOT_FOUND,
            Self::Unavailable { app, .. } => app.code(),
            Self::Changed { .. } => codes::TOOL_CHANGED,
            Self::MissingScopes { .. } | Self::Denied { .. } | Self::Forbidden { .. } => codes::ACCESS_DENIED,
            Self::ApprovalRequired { .. } => codes::APPROVAL_REQUIRED,
            Self::ApprovalDenied { .. } => codes::APPROVAL_DENIED,
            Self::InvalidArguments { .. } => codes::VALIDATION_ERROR,
            Self::RateLimited { .. } => codes::RATE_LIMIT,
            Self::TimedOut { .. } => codes::TIMEOUT,
            Self::InputRequired { .. } => codes::INPUT_REQUIRED,
            Self::InputExpired { .. } => codes::INPUT_EXPIRED,
            Self::Cancelled { .. } => codes::CANCELLED,
            Self::App { .. } => codes::TOOL_EXECUTION_ERROR,
        }
    }

    /// Name of the policy that stopped the call.
    pub fn policy(&self) -> Option<&str> {
        match self {
            Self::Forbidden { why, .. } => why.policy().map(|policy| &**policy),
            Self::ApprovalRequired { policy, .. } => Some(policy),
            _ => None,
        }
    }

    /// The answer to a direct `tools/call`: a protocol error for what no tool was reached by, a tool error otherwise.
    ///
    /// # Errors
    /// -32602 for an unknown tool (MCP, tools: error handling), -32800 for a cancelled call, and an app's own protocol error.
    pub fn into_call_result(self) -> Result<CallToolResult, ErrorData> {
        match self {
            Self::NotFound { .. } => Err(self.as_protocol_error(ErrorCode::INVALID_PARAMS)),
            Self::Cancelled { .. } => Err(self.as_protocol_error(REQUEST_CANCELLED)),
            Self::App { error, .. } => Err(error),
            other => Ok(other.as_tool_error()),
        }
    }

    /// The answer to `resources/read` and `prompts/get`, which have no error results: the app's own error, or one with
    /// [`InvokeError::details`] as `data`.
    pub(crate) fn into_protocol_error(self) -> ErrorData {
        match self {
            Self::App { error, .. } => error,
            Self::Cancelled { .. } => self.as_protocol_error(REQUEST_CANCELLED),
            other => {
                let details = Some(other.details().into());
                ErrorData::new(ErrorCode::INVALID_REQUEST, other.to_string(), details)
            }
        }
    }

    pub(crate) fn as_protocol_error(&self, code: ErrorCode) -> ErrorData {
        ErrorData::new(code, self.to_string(), Some(json!({"code": self.code()})))
    }

    /// The error as a tool result that a model can read, with [`InvokeError::details`] as `_meta`. It has no structured
    /// content: that would have to fit the tool's output schema.
    pub(crate) fn as_tool_error(&self) -> CallToolResult {
        let mut result = CallToolResult::error(vec![ContentBlock::text(self.to_string())]);
        result.meta = Some(MetaObject(self.details()));
        result
    }

    /// `code`, and the values that a program can act on: `retryAfterSeconds`, `requiredScopes`, `policy`, `approval`.
    pub fn details(&self) -> JsonObject {
        let mut details = JsonObject::from_iter([("code".to_owned(), self.code().into())]);
        if let Self::RateLimited { retry_after, .. } = self {
            details.insert("retryAfterSeconds".to_owned(), whole_seconds(*retry_after).into());
        }
        if let Self::MissingScopes { missing, .. } = self {
            details.insert("requiredScopes".to_owned(), missing.clone().into());
        }
        if let Self::ApprovalRequired { request: Ok(request), .. } = self {
            let mut approval = json!({"id": request.id});
            if let Some(page) = &request.page {
                approval["url"] = page.as_str().into();
            }
            details.insert("approval".to_owned(), approval);
        }
        if let Some(policy) = self.policy() {
            details.insert("policy".to_owned(), policy.into());
        }
        details
    }
}

/// A wait in the whole seconds that `retryAfterSeconds` and `Retry-After` (RFC 9110 §10.2.3) take: a part of one counts as one, and
/// at least 1, so that whoever waits so long is not refused again.
pub fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}
