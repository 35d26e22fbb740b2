//! Resources and prompts inside a script: `readResource`, `listResources` and `getPrompt`, under the checks of any request of its caller.

use gatewright_agentscript::{ContentRequest, Resumed, ToolAnswer, ToolFailure, excerpt};
use gatewright_core::{
    codes,
    rmcp::{
        ErrorData,
        model::{
            ContentBlock, EmbeddedResource, ErrorCode, GetPromptRequestParams, GetPromptResponse,
            GetPromptResult, InputRequiredResult, ReadResourceRequestParams, ReadResourceResponse,
            ReadResourceResult, ResourceContents,
        },
    },
};
use serde_json::{Map, Value, json};

use crate::{
    host::ScriptHost,
    results::{Kept, contents_len},
    runs::Asking,
    sent::SentTexts,
    unwrap::Failure,
};

impl ScriptHost {
    /// The answer to a request of the script for something beside tools.
    pub(crate) async fn answer(
        &self,
        request: ContentRequest,
        index: u32,
        resumed: Option<&Resumed>,
    ) -> Result<ToolAnswer, ToolFailure> {
        let function = request.function();
        if self.allowed.as_ref().is_some_and(|allowed| !allowed.contains(function)) {
            let why = format!("`{function}` is not in allowedTools; add \"{function}\" to call it");
            return Err(self.failure(codes::ACCESS_DENIED, &why));
        }
        let sent = sent(&request);
        let name = match &request {
            ContentRequest::ReadResource { uri } => format!("{function} {uri}"),
            ContentRequest::ListResources {} => function.to_owned(),
            ContentRequest::GetPrompt { name, .. } => format!("{function} {name}"),
        };
        let name = excerpt::name(&name);
        let asking = match self.questions.asking(index, &name, resumed, |_| false) {
            Ok(asking) => asking,
            Err(waits) => return Ok(waits),
        };
        let mut kept = Kept::default();
        let value = match request {
            ContentRequest::ReadResource { .. } | ContentRequest::GetPrompt { .. }
                if self.rehearsal.as_ref().is_some_and(|rehearsal| !rehearsal.reads()) =>
            {
                if let Some(rehearsal) = &self.rehearsal {
                    rehearsal.assume_content(&name);
                }
                Ok(Reply::Value(no_content()))
            }
            ContentRequest::ReadResource { uri } => read(self, uri, asking, &mut kept).await,
            ContentRequest::ListResources {} => {
                Ok(Reply::Value(json!(self.invoker.resources(&self.caller).await)))
            }
            ContentRequest::GetPrompt { name, arguments } => {
                prompt(self, name, arguments, asking, &mut kept).await
            }
        };
        let bytes = if let Ok(Reply::Value(value)) = &value { about(value) } else { 0 };
        match value {
            Ok(Reply::Value(value)) => self
                .with_blocks(value, bytes, kept)
                .await
                .map_err(|error| self.failure(codes::TOOL_EXECUTION_ERROR, &error.to_string())),
            Ok(Reply::Waits(waits)) => Ok(waits),
            Err(failure) => Err(self.tool_failure(&name, failure, sent).await),
        }
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

/// What came of a request.
enum Reply {
    Value(Value),
    /// It waits for an answer from outside.
    Waits(ToolAnswer),
}

async fn read(
    host: &ScriptHost,
    uri: String,
    mut asking: Asking<'_>,
    blocks: &mut Kept,
) -> Result<Reply, Failure> {
    if let Some(kept) = host.kept.read(&uri, &host.caller) {
        return contents(host, kept, blocks).map(Reply::Value);
    }
    let mut params = ReadResourceRequestParams::new(uri);
    loop {
        (params.input_responses, params.request_state) = asking.answers();
        let (context, _cancel) = host.inner_context("readResource");
        match host.invoker.read_resource(params.clone(), &host.caller, context).await {
            Ok(ReadResourceResponse::Complete(result)) => {
                return contents(host, result, blocks).map(Reply::Value);
            }
            Ok(ReadResourceResponse::InputRequired(asks)) => {
                if let Some(assumed) = assumed(host, asking.name(), &asks) {
                    return Ok(Reply::Value(assumed));
                }
                if let Some(waits) = asking.again(asks)? {
                    return Ok(Reply::Waits(waits));
                }
            }
            Ok(_) => return Err(Failure::new(codes::TOOL_EXECUTION_ERROR, "an unknown kind of answer")),
            Err(error) => return Err(failure(error)),
        }
    }
}

/// The value in place of content that asks, in a rehearsal: nobody is asked.
fn assumed(host: &ScriptHost, name: &str, asks: &InputRequiredResult) -> Option<Value> {
    let rehearsal = host.rehearsal.as_ref()?;
    rehearsal.asked_for_content(name, asks.input_requests.as_ref());
    Some(no_content())
}

/// Content in place of what was not read.
fn no_content() -> Value {
    json!({"contents": [], "messages": []})
}

/// The parts of a resource. Binary ones become handles.
fn contents(host: &ScriptHost, result: ReadResourceResult, blocks: &mut Kept) -> Result<Value, Failure> {
    let bytes: usize = result.contents.iter().map(contents_len).sum();
    let mut taken = host.room.take(bytes as u64)?;
    let mut part = |part: ResourceContents| match part {
        binary @ ResourceContents::BlobResourceContents { .. } => {
            blocks.keep(&host.handles, ContentBlock::Resource(EmbeddedResource::new(binary)), &mut taken)
        }
        part => Ok(json!(part)),
    };
    let parts: Result<Vec<Value>, Failure> = result.contents.into_iter().map(&mut part).collect();
    Ok(json!({"contents": parts?}))
}

async fn prompt(
    host: &ScriptHost,
    name: String,
    arguments: Map<String, Value>,
    mut asking: Asking<'_>,
    blocks: &mut Kept,
) -> Result<Reply, Failure> {
    let mut params = GetPromptRequestParams::new(name).with_arguments(arguments);
    loop {
        (params.input_responses, params.request_state) = asking.answers();
        let (context, _cancel) = host.inner_context("getPrompt");
        match host.invoker.get_prompt(params.clone(), &host.caller, context).await {
            Ok(GetPromptResponse::Complete(result)) => {
                return messages(host, result, blocks).map(Reply::Value);
            }
            Ok(GetPromptResponse::InputRequired(asks)) => {
                if let Some(assumed) = assumed(host, asking.name(), &asks) {
                    return Ok(Reply::Value(assumed));
                }
                if let Some(waits) = asking.again(asks)? {
                    return Ok(Reply::Waits(waits));
                }
            }
            Ok(_) => return Err(Failure::new(codes::TOOL_EXECUTION_ERROR, "an unknown kind of answer")),
            Err(error) => return Err(failure(error)),
        }
    }
}

/// The messages of a prompt. Images, audio and resources become handles.
fn messages(host: &ScriptHost, result: GetPromptResult, blocks: &mut Kept) -> Result<Value, Failure> {
    let mut messages = Vec::with_capacity(result.messages.len());
    let mut taken = host.room.take(0)?;
    for message in result.messages {
        let content = match message.content {
            text @ (ContentBlock::Text(_) | ContentBlock::ResourceLink(_)) => json!(text),
            block => blocks.keep(&host.handles, block, &mut taken)?,
        };
        messages.push(json!({"role": message.role, "content": content}));
    }
    let mut prompt = json!({"messages": messages});
    if let Some(description) = result.description {
        prompt["description"] = description.into();
    }
    Ok(prompt)
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
