//! Matchers of outcomes: success, errors, refusals, and JSON-RPC responses.

use serde_json::Value;

use super::{
    matching::Match,
    mismatch::{Mismatch, Outcome},
    registry::{HasError, HasErrorCode, HasResult, IsError, IsRefused, IsSuccessful, IsValidJsonRpc},
    subject::Subject,
};
use crate::protocol::{ClientError, RpcResponse};

const CALL: &str = "the result of a tool call or a JSON-RPC answer";

impl Match for IsSuccessful {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let success = match subject {
            Subject::ToolResult(result) => result.is_success,
            Subject::RpcResponse(response) => response.result().is_some() && !is_tool_error(response),
            other => return Err(other.unsupported(CALL)),
        };
        if success { Ok(()) } else { Err(Mismatch::new("a success", format!("an error: {subject}"))) }
    }

    fn expects_success(&self) -> Option<bool> {
        Some(true)
    }
}

impl Match for IsError {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let (failed, found) = match subject {
            Subject::ToolResult(result) => (result.is_error, result.error.as_ref().map(|error| error.code)),
            Subject::RpcResponse(response) => {
                let error = response.error();
                (error.is_some() || is_tool_error(response), error.map(|error| error.code))
            }
            Subject::ClientError(error) => (true, error.code()),
            other => return Err(other.unsupported(CALL)),
        };
        match self.0 {
            _ if !failed => Err(Mismatch::new("an error", format!("a success: {subject}"))),
            None => Ok(()),
            Some(code) if found == Some(code) => Ok(()),
            Some(code) => {
                let actual = match found {
                    Some(found) => format!("code {found}: {subject}"),
                    None => format!("a result with `isError`, which has no code: {subject}"),
                };
                Err(Mismatch::new(format!("an error with code {code}"), actual))
            }
        }
    }

    fn expects_success(&self) -> Option<bool> {
        Some(false)
    }
}

impl Match for IsRefused {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let found = match subject {
            // A suite keeps the status of a refusal here.
            Subject::RpcResponse(response) => response.raw["refused"]["status"].as_i64(),
            Subject::ClientError(ClientError::Refused { status, .. }) => Some(i64::from(*status)),
            _ => None,
        };
        match (found, self.0) {
            (Some(_), None) => Ok(()),
            (Some(found), Some(status)) if found == status => Ok(()),
            (_, Some(status)) => Err(Mismatch::new(format!("HTTP {status}"), subject.to_string())),
            (None, None) => Err(Mismatch::new("HTTP 401 or 403", subject.to_string())),
        }
    }

    fn expects_success(&self) -> Option<bool> {
        Some(false)
    }
}

/// JSON-RPC 2.0: `jsonrpc` is `2.0`, there is an id, and exactly one of `result` and `error`.
impl Match for IsValidJsonRpc {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let problems = violations(&response(subject)?.raw);
        match problems.is_empty() {
            true => Ok(()),
            false => {
                Err(Mismatch::new("a JSON-RPC 2.0 answer", subject.to_string())
                    .hint(Some(problems.join("; "))))
            }
        }
    }
}

impl Match for HasResult {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        match response(subject)?.result() {
            Some(_) => Ok(()),
            None => Err(Mismatch::new("an answer with a result", subject.to_string())),
        }
    }
}

impl Match for HasError {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        match response(subject)?.raw.get("error") {
            Some(_) => Ok(()),
            None => Err(Mismatch::new("an answer with an error", subject.to_string())),
        }
    }

    fn expects_success(&self) -> Option<bool> {
        Some(false)
    }
}

impl Match for HasErrorCode {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        match response(subject)?.raw["error"]["code"].as_i64() {
            Some(found) if found == self.0 => Ok(()),
            _ => Err(Mismatch::new(format!("an error with code {}", self.0), subject.to_string())),
        }
    }

    fn expects_success(&self) -> Option<bool> {
        Some(false)
    }
}

fn is_tool_error(response: &RpcResponse) -> bool {
    response.result().is_some_and(|result| result["isError"].as_bool().unwrap_or(false))
}

fn response(subject: &Subject<'_>) -> Result<RpcResponse, Mismatch> {
    match subject {
        Subject::RpcResponse(response) => Ok((*response).clone()),
        Subject::ClientError(error) if error.rpc_error().is_some() => Ok(RpcResponse { raw: subject.json() }),
        Subject::Json(value) => Ok(RpcResponse { raw: (*value).clone() }),
        other => Err(other.unsupported("a JSON-RPC answer")),
    }
}

/// Violations of JSON-RPC 2.0 §5 in a response.
fn violations(raw: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    if raw["jsonrpc"] != "2.0" {
        problems.push(format!("`jsonrpc` is {}, not \"2.0\"", raw["jsonrpc"]));
    }
    match raw.get("id") {
        None => problems.push("there is no `id`".into()),
        Some(Value::String(_) | Value::Number(_)) => {}
        Some(Value::Null) if raw.get("error").is_some() => {}
        Some(other) => problems.push(format!("`id` is {other}")),
    }
    match (raw.get("result").is_some(), raw.get("error")) {
        (true, None) => {}
        (false, Some(error)) => {
            if !error["code"].is_i64() {
                problems.push(format!("`error.code` is {}, not a whole number", error["code"]));
            }
            if !error["message"].is_string() {
                problems.push(format!("`error.message` is {}, not a text", error["message"]));
            }
        }
        (true, Some(_)) => problems.push("there are both `result` and `error`".into()),
        (false, None) => problems.push("there is neither `result` nor `error`".into()),
    }
    problems
}
