//! Resources and prompts inside a script: `readResource`, `listResources` and `getPrompt`, under the checks of any request of its caller.

use gatewright_agentscript::{ContentRequest, ToolFailure, excerpt};
use gatewright_core::{
    codes, off_thread,
    rmcp::{
        ErrorData,
        model::{
            ContentBlock, EmbeddedResource, ErrorCode, GetPromptRequestParams, GetPromptResponse,
            GetPromptResult, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
            ResourceContents,
        },
    },
};
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};

use crate::{host::ScriptHost, results::contents_len, sent::SentTexts, unwrap::Failure};

impl ScriptHost {
    /// The answer to a request of the script for something beside tools.
    pub(crate) async fn answer(&self, request: ContentRequest) -> Result<Box<RawValue>, ToolFailure> {
        let function = request.function();
        if self.allowed.as_ref().is_some_and(|allowed| !allowed.contains(function)) {
            let why = format!("`{function}` is not in allowedTools; add \"{function}\" to call it");
            return Err(self.failure(codes::ACCESS_DENIED, &why));
        }
        let sent = sent(&request);
        let (name, value) = match request {
            ContentRequest::ReadResource { uri } => (format!("{function} {uri}"), read(self, uri).await),
            ContentRequest::ListResources {} => {
                let resources = self.invoker.resources(&self.caller).await;
                (function.to_owned(), Ok(json!(resources)))
            }
            ContentRequest::GetPrompt { name, arguments } => {
                (format!("{function} {name}"), prompt(self, name, arguments).await)
            }
        };
        let value = match value {
            Ok(value) => value,
            Err(failure) => return Err(self.tool_failure(&excerpt::name(&name), failure, sent).await),
        };
        off_thread(about(&value), move || to_raw_value(&value))
            .await
            .map_err(|error| self.failure(codes::TOOL_EXECUTION_ERROR, &error.to_string()))
    }
}

/// Texts of a request.
fn sent(request: &ContentRequest) -> SentTexts {
    match request {
        ContentRequest::ReadResource { uri } => {
            let mut sent = SentTexts::default();
            sent.add(uri);
            sent
        }
        ContentRequest::ListResources {} => SentTexts::default(),
        ContentRequest::GetPrompt { arguments, .. } => SentTexts::of_input(arguments),
    }
}

async fn read(host: &ScriptHost, uri: String) -> Result<Value, Failure> {
    if let Some(kept) = host.kept.read(&uri, &host.caller) {
        return contents(host, kept);
    }
    let (context, _cancel) = host.inner_context("readResource");
    let params = ReadResourceRequestParams::new(uri);
    match host.invoker.read_resource(params, &host.caller, context).await {
        Ok(ReadResourceResponse::Complete(result)) => contents(host, result),
        Ok(_) => Err(asks()),
        Err(error) => Err(failure(error)),
    }
}

/// The parts of a resource. Binary ones become handles.
fn contents(host: &ScriptHost, result: ReadResourceResult) -> Result<Value, Failure> {
    let bytes: usize = result.contents.iter().map(contents_len).sum();
    let mut taken = host.room.take(bytes as u64)?;
    let part = |part: ResourceContents| match part {
        binary @ ResourceContents::BlobResourceContents { .. } => {
            host.handles.keep(ContentBlock::Resource(EmbeddedResource::new(binary)), &mut taken)
        }
        part => Ok(json!(part)),
    };
    let parts: Result<Vec<Value>, Failure> = result.contents.into_iter().map(part).collect();
    Ok(json!({"contents": parts?}))
}

async fn prompt(host: &ScriptHost, name: String, arguments: Map<String, Value>) -> Result<Value, Failure> {
    let (context, _cancel) = host.inner_context("getPrompt");
    let params = GetPromptRequestParams::new(name).with_arguments(arguments);
    match host.invoker.get_prompt(params, &host.caller, context).await {
        Ok(GetPromptResponse::Complete(result)) => messages(host, result),
        Ok(_) => Err(asks()),
        Err(error) => Err(failure(error)),
    }
}

/// The messages of a prompt. Images, audio and resources become handles.
fn messages(host: &ScriptHost, result: GetPromptResult) -> Result<Value, Failure> {
    let mut messages = Vec::with_capacity(result.messages.len());
    let mut taken = host.room.take(0)?;
    for message in result.messages {
        let content = match message.content {
            text @ (ContentBlock::Text(_) | ContentBlock::ResourceLink(_)) => json!(text),
            block => host.handles.keep(block, &mut taken)?,
        };
        messages.push(json!({"role": message.role, "content": content}));
    }
    let mut prompt = json!({"messages": messages});
    if let Some(description) = result.description {
        prompt["description"] = description.into();
    }
    Ok(prompt)
}

fn asks() -> Failure {
    Failure::new("INPUT_REQUIRED", "this needs an answer from the user, which a script cannot ask for")
}

/// The failure of a request as the script sees it, with a code that the error names itself where it does.
fn failure(error: ErrorData) -> Failure {
    let data = error.data.as_ref();
    let own = data.and_then(|data| data["code"].as_str());
    let code = own.unwrap_or(match error.code {
        ErrorCode::RESOURCE_NOT_FOUND => "NOT_FOUND",
        ErrorCode::INVALID_PARAMS if data.is_some_and(|data| data.get("uri").is_some()) => "NOT_FOUND",
        ErrorCode::INVALID_PARAMS => codes::VALIDATION_ERROR,
        _ => codes::TOOL_EXECUTION_ERROR,
    });
    let mut failure = Failure::new(excerpt::name(code), excerpt::message(&error.message));
    let scopes = data.and_then(|data| data["requiredScopes"].as_array()).into_iter().flatten();
    if code == codes::ACCESS_DENIED {
        failure.required_scopes = scopes.filter_map(|scope| scope.as_str().map(str::to_owned)).collect();
    }
    failure
}

/// Bytes of the texts in a value, about.
fn about(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(about).sum(),
        Value::Object(members) => members.values().map(about).sum(),
        _ => 8,
    }
}
