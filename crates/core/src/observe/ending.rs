//! Outcomes of calls and requests.

use std::borrow::Cow;

use rmcp::{
    ErrorData,
    model::{CallToolResponse, CallToolResult},
};

use crate::names::clipped;

/// Outcome of a call or request: `ok`, a status of the contract such as `tool_error`, or a code such as `RATE_LIMIT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    status: Cow<'static, str>,
    shape: Shape,
}

/// The form in which an answer reports a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// No answer, or one that is no failure.
    Own,
    /// A result with `isError`.
    Result,
    /// A JSON-RPC error with this code.
    Rpc(i32),
}

impl Ending {
    /// It did what was asked.
    pub const OK: Self = Self { status: Cow::Borrowed("ok"), shape: Shape::Own };
    /// Its client gave up.
    pub const CANCELLED: Self = Self { status: Cow::Borrowed(crate::codes::CANCELLED), shape: Shape::Own };

    /// Ended with this status or code.
    pub fn new(status: impl Into<Cow<'static, str>>) -> Self {
        Self { status: status.into(), shape: Shape::Own }
    }

    fn shaped(status: Cow<'static, str>, shape: Shape) -> Self {
        Self { status, shape }
    }

    /// `error.type` of the OpenTelemetry conventions for MCP: the code of a JSON-RPC error, `tool_error` for a result with
    /// `isError`, else the contract's code. None for what went well.
    pub fn error_type(&self) -> Option<Cow<'_, str>> {
        match self.shape {
            _ if self.is_ok() => None,
            Shape::Own => Some(Cow::Borrowed(&self.status)),
            Shape::Result => Some(Cow::Borrowed("tool_error")),
            Shape::Rpc(code) => Some(Cow::Owned(code.to_string())),
        }
    }

    /// The code of a JSON-RPC error, when it ended with one.
    pub fn rpc_code(&self) -> Option<i32> {
        match self.shape {
            Shape::Rpc(code) => Some(code),
            Shape::Own | Shape::Result => None,
        }
    }

    /// Returns `true` for a success; a question to the user and a started task count as such.
    pub fn is_ok(&self) -> bool {
        is_of_success(&self.status)
    }

    /// The status or code.
    pub fn status(&self) -> &str {
        &self.status
    }

    pub(super) fn of_result(result: &CallToolResult) -> Self {
        if result.is_error != Some(true) {
            return Self::OK;
        }
        let text = |pointer: &str| result.structured_content.as_ref()?.pointer(pointer)?.as_str();
        let code = result.meta.as_ref().and_then(|meta| meta.0.get("code")?.as_str());
        let status =
            code.or_else(|| text("/status")).or_else(|| text("/code")).or_else(|| text("/error/code"));
        // Words of a server for a success are no code of a failure.
        let status = status.filter(|status| !status.trim().is_empty() && !is_of_success(status));
        let status = status
            .map_or(Cow::Borrowed(crate::codes::TOOL_EXECUTION_ERROR), |s| clipped(s).to_owned().into());
        Self::shaped(status, Shape::Result)
    }

    pub(super) fn of(answer: &Result<CallToolResponse, ErrorData>) -> Self {
        match answer {
            Ok(CallToolResponse::Complete(result)) => Self::of_result(result),
            Ok(CallToolResponse::InputRequired(_)) => Self::new("input_required"),
            Ok(CallToolResponse::Task(_)) => Self::new("task"),
            Ok(_) => Self::OK,
            Err(error) => Self::of_error(error),
        }
    }

    pub(super) fn of_error(error: &ErrorData) -> Self {
        let code =
            error.data.as_ref().and_then(|data| data["code"].as_str().map(|code| clipped(code).to_owned()));
        let status = code.map_or(Cow::Borrowed("PROTOCOL_ERROR"), Cow::Owned);
        Self::shaped(status, Shape::Rpc(error.code.0))
    }
}

fn is_of_success(status: &str) -> bool {
    matches!(status, "ok" | "input_required" | "task")
}

/// Bytes of text in an answer.
pub(super) fn text_bytes(response: &CallToolResponse) -> Option<u64> {
    let CallToolResponse::Complete(result) = response else { return None };
    let texts = result.content.iter().filter_map(|block| block.as_text());
    Some(texts.map(|text| text.text.len() as u64).sum())
}

/// Outcome of a call, and the bytes of text in its answer.
pub(super) fn ended(answer: &Result<CallToolResponse, crate::InvokeError>) -> (Ending, Option<u64>) {
    match answer {
        Ok(CallToolResponse::Complete(result)) => {
            (Ending::of_result(result), answer.as_ref().ok().and_then(text_bytes))
        }
        Ok(CallToolResponse::InputRequired(_)) => (Ending::new("input_required"), None),
        Ok(CallToolResponse::Task(_)) => (Ending::new("task"), None),
        Ok(_) => (Ending::OK, None),
        Err(crate::InvokeError::App { error, .. }) => {
            let status = Cow::Borrowed(crate::codes::TOOL_EXECUTION_ERROR);
            (Ending::shaped(status, Shape::Rpc(error.code.0)), None)
        }
        Err(error) => (Ending::new(error.code()), None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_failure_is_none_of_the_endings_of_a_success_whatever_its_server_calls_it() {
        for status in ["ok", "input_required", "task", "", " "] {
            let mut result = CallToolResult::error(Vec::new());
            result.structured_content = Some(json!({"status": status}));
            let ending = Ending::of_result(&result);
            assert_eq!((ending.is_ok(), ending.status()), (false, crate::codes::TOOL_EXECUTION_ERROR));
        }
    }
}
