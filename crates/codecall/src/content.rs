//! Resources and prompts inside a script: `readResource`, `listResources` and `getPrompt`, under the checks of any request of its caller, and within
//! the room that the run has for answers.

use gatewright_agentscript::{ContentRequest, Resumed, ToolAnswer, ToolFailure, excerpt};
use gatewright_core::{
    InvokeError, Rehearsed, RequestObject, Trail, codes, off_thread,
    rmcp::{
        ErrorData, RoleServer,
        model::{
            ContentBlock, EmbeddedResource, ErrorCode, GetPromptRequestParams, GetPromptResponse,
            GetPromptResult, InputRequiredResult, InputResponses, JsonObject, ReadResourceRequestParams,
            ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, Role,
        },
        service::RequestContext,
    },
};
use serde::Serialize;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use crate::{
    host::ScriptHost,
    results::{Kept, Taken, block_weight, contents_weight, json_len},
    runs::{Asking, OutOfBand},
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
            ContentRequest::ListResources {} => self.list_resources().await.map(Reply::Value),
            ContentRequest::ReadResource { uri } => match self.kept.read(&uri, &self.caller) {
                Some(result) => contents(self, result, &mut kept).await.map(Reply::Value),
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
        match value {
            Ok(Reply::Value(Written { json, _taken })) => {
                let bytes = json.get().len();
                self.with_blocks(Read::Json(json), bytes, kept)
                    .await
                    .map_err(|error| self.failure(codes::TOOL_EXECUTION_ERROR, &error.to_string()))
            }
            Ok(Reply::Waits(waits)) => Ok(waits),
            Err(failure) => Err(self.tool_failure(&name, failure, sent, None).await),
        }
    }

    /// Every resource that the caller may read, by its public URI. One list at a time is written, and none beyond what a message may have.
    async fn list_resources(&self) -> Result<Written, Failure> {
        let _turn = self.room.turn(u64::MAX).await;
        let view = self.invoker.registry().ready_view(&self.caller).await;
        let (room, most) = (self.room.clone(), usize::try_from(self.message_bytes).unwrap_or(usize::MAX));
        let list = move || {
            let listed = view.resources();
            let resources: Vec<&Resource> = listed.iter().map(|listed| &*listed.item).collect();
            let bytes = json_len(&resources, most);
            if bytes > most {
                let message =
                    format!("the list of resources has more than {most} bytes; read them by their URIs");
                return Err(Failure::new(codes::TOOL_EXECUTION_ERROR, message));
            }
            Written::of(&resources, room.take(bytes as u64)?)
        };
        off_thread(usize::MAX, list).await
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
                return Written::of(&NO_CONTENT, self.room.take(0)?).map(Reply::Value);
            }
            match wanted.send(self, asking.answers(), context).await {
                Err(InvokeError::ApprovalRequired { request: Ok(request), .. })
                    if let Some(waits) = asking.approval(&request) =>
                {
                    return Ok(Reply::Waits(waits));
                }
                Ok(Got::Asks(asks)) => {
                    if let Some(waits) = asking.again(asks, OutOfBand::default())? {
                        return Ok(Reply::Waits(waits));
                    }
                }
                answer => break answer,
            }
        };
        match got {
            Ok(Got::Contents(result)) => contents(self, result, blocks).await.map(Reply::Value),
            Ok(Got::Messages(result)) => messages(self, result, blocks).await.map(Reply::Value),
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
    Value(Written),
    /// It waits for an answer from outside.
    Waits(ToolAnswer),
}

/// The JSON of an answer, which has its room among the answers of the run until it is dropped.
struct Written {
    json: Box<RawValue>,
    _taken: Taken,
}

impl Written {
    /// Writes `value`, for which there is the room `taken`.
    fn of(value: &impl Serialize, taken: Taken) -> Result<Self, Failure> {
        let failed = |error: serde_json::Error| Failure::new(codes::TOOL_EXECUTION_ERROR, error.to_string());
        Ok(Self { json: to_raw_value(value).map_err(failed)?, _taken: taken })
    }

    /// The same beside what `value` is made of, which has `taken` its room.
    async fn beside(value: impl Serialize + Send + 'static, mut taken: Taken) -> Result<Self, Failure> {
        let bytes = taken.bytes();
        taken.grow(bytes)?;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        off_thread(bytes, move || Self::of(&value, taken)).await
    }
}

/// A part of a resource or a prompt as scripts get it.
#[derive(Serialize)]
#[serde(untagged)]
enum Part {
    Contents(ResourceContents),
    Block(ContentBlock),
    /// In place of what is no text.
    Handle(Value),
}

#[derive(Serialize)]
struct Contents {
    contents: Vec<Part>,
}

#[derive(Serialize)]
struct Message {
    role: Role,
    content: Part,
}

#[derive(Serialize)]
struct Prompt {
    messages: Vec<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// Content in place of what was not read.
const NO_CONTENT: NoContent = NoContent { contents: [], messages: [] };

#[derive(Serialize)]
struct NoContent {
    contents: [(); 0],
    messages: [(); 0],
}

/// The parts of a resource. Binary ones become handles.
async fn contents(
    host: &ScriptHost,
    result: ReadResourceResult,
    blocks: &mut Kept,
) -> Result<Written, Failure> {
    let bytes: u64 = result.contents.iter().map(contents_weight).sum();
    let mut taken = host.room.take(bytes)?;
    let _turn = host.room.turn(bytes).await;
    let mut part = |part: ResourceContents| match part {
        binary @ ResourceContents::BlobResourceContents { .. } => {
            let block = ContentBlock::Resource(EmbeddedResource::new(binary));
            blocks.keep(&host.handles, block, &mut taken).map(Part::Handle)
        }
        part => Ok(Part::Contents(part)),
    };
    let parts: Result<Vec<Part>, Failure> = result.contents.into_iter().map(&mut part).collect();
    Written::beside(Contents { contents: parts? }, taken).await
}

/// The messages of a prompt. Images, audio and resources become handles.
async fn messages(host: &ScriptHost, result: GetPromptResult, blocks: &mut Kept) -> Result<Written, Failure> {
    let of_messages: u64 = result.messages.iter().map(|message| block_weight(&message.content)).sum();
    let bytes = of_messages + result.description.as_ref().map_or(0, |description| description.len() as u64);
    let mut taken = host.room.take(bytes)?;
    let _turn = host.room.turn(bytes).await;
    let mut messages = Vec::with_capacity(result.messages.len());
    for message in result.messages {
        let content = match message.content {
            text @ (ContentBlock::Text(_) | ContentBlock::ResourceLink(_)) => Part::Block(text),
            block => Part::Handle(blocks.keep(&host.handles, block, &mut taken)?),
        };
        messages.push(Message { role: message.role, content });
    }
    Written::beside(Prompt { messages, description: result.description }, taken).await
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
