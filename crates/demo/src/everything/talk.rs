//! Tools that send messages or requests to the client while they run.
#![expect(deprecated, reason = "sessions of 2025-11-25 still have sampling and logging")]

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, CreateMessageRequestParams, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam, SamplingMessage,
};
use rmcp::service::{RequestContext, RoleServer, ServiceError};
use serde_json::{Value, json};

use super::tools::{argument, failed, said};
use super::{Everything, capabilities, missing};

const STEP: Duration = Duration::from_millis(50);

impl Everything {
    pub(super) async fn call_talking(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        match request.name.as_ref() {
            "test_tool_with_logging" => {
                for message in ["Tool execution started", "Tool processing data", "Tool execution completed"]
                {
                    log(&context, message).await;
                    tokio::time::sleep(STEP).await;
                }
                Ok(said("Logged three messages"))
            }
            "test_logging_tool" => {
                log(&context, "The request asked for logs").await;
                Ok(said("Logged if asked to"))
            }
            "test_streaming_elicitation" => {
                log(&context, "No request will follow on this stream").await;
                Ok(said("Nothing was asked on the stream"))
            }
            "test_tool_with_progress" => {
                progress(&context).await;
                Ok(said("Done"))
            }
            "test_reconnection" => {
                tokio::time::sleep(2 * STEP).await;
                Ok(said("Reconnection test completed"))
            }
            "test_missing_capability" => match capabilities(&context).sampling {
                Some(_) => Ok(said("The client offers sampling")),
                None => Err(missing(json!({ "sampling": {} }))),
            },
            "test_sampling" => sample(&context, argument(&request, "prompt")).await,
            "test_elicitation" => {
                let form = json!({
                    "type": "object",
                    "properties": {
                        "username": { "type": "string", "description": "User's response" },
                        "email": { "type": "string", "description": "User's email address" },
                    },
                    "required": ["username", "email"],
                });
                elicit(&context, argument(&request, "message"), form, "User response").await
            }
            "test_elicitation_sep1034_defaults" => {
                let message = "Please review and update the form fields with defaults";
                elicit(&context, message, defaults(), "Elicitation completed").await
            }
            "test_elicitation_sep1330_enums" => {
                elicit(&context, "Please choose", enums(), "Elicitation completed").await
            }
            unknown => Err(ErrorData::invalid_params(format!("Unknown tool: {unknown}"), None)),
        }
    }
}

/// Logs at `info`: always in a session, and otherwise when the request asked for that level.
async fn log(context: &RequestContext<RoleServer>, message: &str) {
    let modern = context.meta.protocol_version().is_some();
    if modern && !matches!(context.meta.log_level(), Some(LoggingLevel::Debug | LoggingLevel::Info)) {
        return;
    }
    let message =
        LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message)).with_logger("everything");
    // A client that is gone need not be told.
    drop(context.peer.notify_logging_message(message).await);
}

async fn progress(context: &RequestContext<RoleServer>) {
    let Some(token) = context.meta.get_progress_token() else {
        return;
    };
    for done in [0.0, 50.0, 100.0] {
        let report = ProgressNotificationParam::new(token.clone(), done)
            .with_total(100.0)
            .with_message(format!("Completed step {done} of 100"));
        drop(context.peer.notify_progress(report).await);
        tokio::time::sleep(STEP).await;
    }
}

async fn sample(context: &RequestContext<RoleServer>, prompt: &str) -> Result<CallToolResult, ErrorData> {
    if capabilities(context).sampling.is_none() {
        return Err(missing(json!({ "sampling": {} })));
    }
    let request = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100);
    Ok(match context.peer.create_message(request).await {
        Ok(answer) => {
            let answer = serde_json::to_value(&answer).unwrap_or_default();
            said(format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default()))
        }
        Err(error) => refused(&error),
    })
}

async fn elicit(
    context: &RequestContext<RoleServer>,
    message: &str,
    form: Value,
    prefix: &str,
) -> Result<CallToolResult, ErrorData> {
    if capabilities(context).elicitation.is_none() {
        return Err(missing(json!({ "elicitation": {} })));
    }
    let request =
        serde_json::from_value(json!({ "mode": "form", "message": message, "requestedSchema": form }))
            .map_err(|error| ErrorData::internal_error(format!("the form does not fit: {error}"), None))?;
    Ok(match context.peer.create_elicitation(request).await {
        Ok(answer) => {
            let answer = serde_json::to_value(&answer).unwrap_or_default();
            let action = answer["action"].as_str().unwrap_or_default();
            said(format!("{prefix}: action={action}, content={}", answer["content"]))
        }
        Err(error) => refused(&error),
    })
}

fn refused(error: &ServiceError) -> CallToolResult {
    failed(format!("The client did not answer: {error}"))
}

fn defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "User name", "default": "John Doe" },
            "age": { "type": "integer", "description": "User age", "default": 30 },
            "score": { "type": "number", "description": "User score", "default": 95.5 },
            "status": {
                "type": "string", "description": "User status",
                "enum": ["active", "inactive", "pending"], "default": "active",
            },
            "verified": { "type": "boolean", "description": "Verification status", "default": true },
        },
        "required": [],
    })
}

fn enums() -> Value {
    let titled = |which: [&str; 3]| {
        json!([
            { "const": "value1", "title": which[0] },
            { "const": "value2", "title": which[1] },
            { "const": "value3", "title": which[2] },
        ])
    };
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
            "titledSingle": { "type": "string", "oneOf": titled(["First Option", "Second Option", "Third Option"]) },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": ["option1", "option2", "option3"] } },
            "titledMulti": {
                "type": "array",
                "items": { "anyOf": titled(["First Choice", "Second Choice", "Third Choice"]) },
            },
        },
        "required": [],
    })
}
