//! `codecall:execute`: one script, many tools. The body of every outcome is made here.

use std::{sync::Arc, time::Instant};

use gatewright_agentscript::{IllegalKind, Outcome, RunRequest, Verdict, WorkerError};
use gatewright_core::{
    Principal, codes,
    rmcp::{RoleServer, model::JsonObject, service::RequestContext},
};
use serde::Deserialize;
use serde_json::{Map, Value, json, value::to_raw_value};

use crate::{CodeCall, host::ScriptHost, settings::Settings};

/// Input of `codecall:execute`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ExecuteInput {
    script: String,
    #[serde(default)]
    context: Option<JsonObject>,
    #[serde(default)]
    allowed_tools: Option<Vec<String>>,
}

impl CodeCall {
    #[tracing::instrument(name = "script.run", level = "debug", skip_all, fields(principal.subject = %principal.subject, size_bytes = input.script.len()))]
    pub(crate) async fn execute(
        &self,
        input: ExecuteInput,
        principal: Principal,
        context: RequestContext<RoleServer>,
    ) -> Value {
        let (started, settings) = (Instant::now(), self.settings());
        let mut request = RunRequest::new(input.script);
        request.context = input.context.and_then(|context| to_raw_value(&context).ok());
        request.policy = settings.policy.clone();
        request.limits = settings.limits.clone();
        let cancel = context.ct.clone();
        let host = ScriptHost::new(self, input.allowed_tools, principal, context);
        let outcome = self.pool.run(request, Arc::new(host), cancel).await;
        let body = settings.body(outcome);
        tracing::debug!(status = %body["status"], duration_ms = started.elapsed().as_secs_f64() * 1e3, "a script ended");
        body
    }
}

impl Settings {
    fn body(&self, outcome: Outcome) -> Value {
        let mut body = Map::new();
        let (status, result, error) = match outcome.verdict {
            Verdict::Ok(result) => ("ok", Some(result), None),
            failed => {
                let (status, error) = self.failure(failed);
                (status, None, Some(error))
            }
        };
        body.insert("status".to_owned(), json!(status));
        if let Some(result) = result {
            body.insert("result".to_owned(), serde_json::from_str(result.get()).unwrap_or(Value::Null));
        }
        if let Some(error) = error {
            body.insert("error".to_owned(), error);
        }
        if !outcome.logs.is_empty() {
            body.insert("logs".to_owned(), json!(outcome.logs));
        }
        if self.config.vm.call_log && !outcome.calls.is_empty() {
            body.insert("calls".to_owned(), json!(outcome.calls));
        }
        Value::Object(body)
    }

    /// Status and error object, with the contract's code in each.
    fn failure(&self, verdict: Verdict) -> (&'static str, Value) {
        let clean = |message: &str| self.sanitizer.text(message).into_owned();
        match verdict {
            Verdict::SyntaxError { message, location } => (
                "syntax_error",
                json!({"code": "SYNTAX_ERROR", "message": clean(&message), "location": location}),
            ),
            Verdict::IllegalAccess { kind, message, location } => {
                let code = match kind {
                    IllegalKind::SelfReferenceBlocked => codes::SELF_REFERENCE_BLOCKED,
                    _ => codes::VALIDATION_ERROR,
                };
                let error = json!({"code": code, "kind": kind.to_string(), "message": clean(&message)});
                ("illegal_access", located(error, location))
            }
            Verdict::RuntimeError { name, message, location } => {
                let error = json!({"source": "script", "code": "EXECUTION_ERROR", "name": name, "message": clean(&message)});
                ("runtime_error", located(error, location))
            }
            Verdict::ToolError { tool_name, message, code } => (
                "tool_error",
                json!({"source": "tool", "toolName": tool_name, "code": code, "message": clean(&message)}),
            ),
            Verdict::Timeout { message } => {
                ("timeout", json!({"code": codes::TIMEOUT, "message": clean(&message)}))
            }
            Verdict::Worker(error) => {
                let (name, code) = error.class_and_code();
                let status =
                    if matches!(error, WorkerError::Timeout(_)) { "timeout" } else { "runtime_error" };
                let mut body = json!({"code": code, "name": name, "message": clean(&error.to_string())});
                if status == "runtime_error" {
                    body["source"] = json!("script");
                }
                (status, body)
            }
            _ => (
                "runtime_error",
                json!({"source": "script", "code": "EXECUTION_ERROR", "name": "Error", "message": "the run failed"}),
            ),
        }
    }
}

fn located(mut error: Value, location: Option<gatewright_agentscript::Location>) -> Value {
    if let Some(location) = location {
        error["location"] = json!(location);
    }
    error
}
