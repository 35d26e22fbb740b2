//! Resources and prompts inside a script: `readResource`, `listResources` and `getPrompt`, under the checks of any request of its caller.

use gatewright_agentscript::{ContentRequest, Resumed, ToolAnswer, ToolFailure, excerpt};
use gatewright_core::{
    InvokeError, Rehearsed, RequestObject, Trail, codes,
    rmcp::{
        ErrorData, RoleServer,
        model::{
            ContentBlock, EmbeddedResource, ErrorCode, GetPromptRequestParams, GetPromptResponse,
            GetPromptResult, InputRequiredResult, InputResponses, JsonObject, ReadResourceRequestParams,
            ReadResourceResponse, ReadResourceResult, ResourceContents,
        },
        service::RequestContext,
    },
};
use serde_json::{Value, json};

use crate::{
    host::ScriptHost,
    results::{Kept, contents_len},
    runs::Asking,
    sent::SentTexts,
    shapes::reading::Read,
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
        let object = match &request {
            ContentRequest::ReadResource { uri } => Some(RequestObject::Resource(uri.clone())),
            ContentRequest::GetPrompt { name, .. } => Some(RequestObject::Prompt(name.clone())),
            ContentRequest::ListResources {} => None,
        };
        let is_approval =
            |state: &str| object.as_ref().is_some_and(|object| self.awaits_approval(object, state));
        let asking = match self.questions.asking(index, &name, resumed, is_approval) {
            Ok(asking) => asking,
            Err(waits) => return Ok(waits),
        };
        let mut kept = Kept::default();
        let value = match request {
            ContentRequest::ListResources {} => {
                Ok(Reply::Value(json!(self.invoker.resources(&self.caller).await)))
            }
            ContentRequest::ReadResource { uri } => match self.kept.read(&uri, &self.caller) {
                Some(result) => contents(self, result, &mut kept).map(Reply::Value),
                None => {
                    let wanted = Wanted::Resource(ReadResourceRequestParams::new(uri));
                    self.get(wanted, index, function, asking, &mut kept).await
                }
            },
            ContentRequest::GetPrompt { name, arguments } => {
                let params = GetPromptRequestParams::new(name).with_arguments(arguments);
                self.get(Wanted::Prompt(params), index, function, asking, &mut kept).await
            }
        };
        let bytes = if let Ok(Reply::Value(value)) = &value { about(value) } else { 0 };
        match value {
            Ok(Reply::Value(value)) => self
                .with_blocks(Read::Value(value), bytes, kept)
                .await
                .map_err(|error| self.failure(codes::TOOL_EXECUTION_ERROR, &error.to_string())),
            Ok(Reply::Waits(waits)) => Ok(waits),
            Err(failure) => Err(self.tool_failure(&name, failure, sent).await),
        }
    }

    /// Gets what is `wanted`, which may ask and wait, or is rehearsed.
    async fn get(
        &self,
        wanted: Wanted,
        index: u32,
        function: &str,
        mut asking: Asking<'_>,
        blocks: &mut Kept,
    ) -> Result<Reply, Failure> {
        let got = loop {
            let (mut context, _cancel) = self.inner_context(function, index);
            if let Some(rehearsal) = &self.rehearsal {
                let rehearsed = if rehearsal.reads() { Rehearsed::made() } else { Rehearsed::unmade() };
                context.extensions.insert(rehearsed.clone());
                if !rehearsal.reads() {
                    context.extensions.remove::<Trail>();
                }
                let mut entry = rehearsal.list(asking.name(), wanted.arguments());
                let answer = wanted.send(self, (None, None), context).await;
                let Ok(Got::Asks(asks)) = answer else {
                    entry.decided(&rehearsed);
                    break answer;
                };
                if rehearsed.has_passed() {
                    entry.decided(&rehearsed);
                    entry.asked(asks.input_requests.as_ref());
                } else {
                    entry.assume_from("nothing: it was not read", &rehearsed);
                }
                return Ok(Reply::Value(no_content()));
            }
            match wanted.send(self, asking.answers(), context).await {
                Err(InvokeError::ApprovalRequired { request: Ok(request), .. })
                    if let Some(waits) = asking.approval(&request) =>
                {
                    return Ok(Reply::Waits(waits));
                }
                Ok(Got::Asks(asks)) => {
                    if let Some(waits) = asking.again(asks, Vec::new())? {
                        return Ok(Reply::Waits(waits));
                    }
                }
                answer => break answer,
            }
        };
        match got {
            Ok(Got::Contents(result)) => contents(self, result, blocks).map(Reply::Value),
            Ok(Got::Messages(result)) => messages(self, result, blocks).map(Reply::Value),
            Ok(Got::Asks(_) | Got::Unknown) => {
                Err(Failure::new(codes::TOOL_EXECUTION_ERROR, "an unknown kind of answer"))
            }
            Err(InvokeError::App { error, .. }) => Err(failure(error)),
            Err(error) => Err(error.into()),
        }
    }
}

/// Content that a script asks for.
enum Wanted {
    Resource(ReadResourceRequestParams),
    Prompt(GetPromptRequestParams),
}

/// The answer to a request for content.
enum Got {
    Contents(ReadResourceResult),
    Messages(GetPromptResult),
    Asks(InputRequiredResult),
    Unknown,
}

impl Wanted {
    fn arguments(&self) -> Option<&JsonObject> {
        match self {
            Self::Resource(_) => None,
            Self::Prompt(params) => params.arguments.as_ref(),
        }
    }

    /// Sends the request, with answers to what it asked before and the state of who asked.
    async fn send(
        &self,
        host: &ScriptHost,
        (responses, state): (Option<InputResponses>, Option<String>),
        context: RequestContext<RoleServer>,
    ) -> Result<Got, InvokeError> {
        Ok(match self {
            Self::Resource(params) => {
                let mut params = params.clone();
                (params.input_responses, params.request_state) = (responses, state);
                match host.invoker.read_resource(params, &host.caller, context).await? {
                    ReadResourceResponse::Complete(result) => Got::Contents(result),
                    ReadResourceResponse::InputRequired(asks) => Got::Asks(asks),
                    _ => Got::Unknown,
                }
            }
            Self::Prompt(params) => {
                let mut params = params.clone();
                (params.input_responses, params.request_state) = (responses, state);
                match host.invoker.get_prompt(params, &host.caller, context).await? {
                    GetPromptResponse::Complete(result) => Got::Messages(result),
                    GetPromptResponse::InputRequired(asks) => Got::Asks(asks),
                    _ => Got::Unknown,
                }
            }
        })
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

/// The outcome of a request.
enum Reply {
    Value(Value),
    /// It waits for an answer from outside.
    Waits(ToolAnswer),
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
