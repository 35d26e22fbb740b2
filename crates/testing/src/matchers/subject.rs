//! The types of values that matchers check.

use std::time::Duration;

use serde_json::Value;

use super::mismatch::Mismatch;
use crate::{
    base::text::shorten,
    protocol::{
        ClientError, Notification, Prompt, PromptMessage, PromptResult, Resource, ResourceContent,
        ResourceTemplate, RpcRequest, RpcResponse, Tool, ToolResult,
    },
};

/// A value under test, by type.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant is named after the record it holds")]
pub enum Subject<'a> {
    Tools(&'a [Tool]),
    Resources(&'a [Resource]),
    ResourceTemplates(&'a [ResourceTemplate]),
    Prompts(&'a [Prompt]),
    ToolResult(&'a ToolResult),
    ResourceContent(&'a ResourceContent),
    PromptResult(&'a PromptResult),
    PromptMessage(&'a PromptMessage),
    RpcResponse(&'a RpcResponse),
    ClientError(&'a ClientError),
    Json(&'a Value),
    Recorded(Recorded),
}

/// A recorded list: requests, notifications or log entries of a server, or requests of a client with their durations.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recorded {
    /// The entries, oldest first.
    pub items: Vec<Value>,
    /// The durations of the entries that have one, in milliseconds.
    pub durations_ms: Vec<f64>,
}

impl Recorded {
    /// A list without durations.
    pub(crate) fn of<T: serde::Serialize>(items: &[T]) -> Self {
        let items = items.iter().map(|one| serde_json::to_value(one).unwrap_or_default()).collect();
        Self { items, durations_ms: Vec::new() }
    }
}

/// Values that [`expect`](super::expect) accepts.
pub trait AsSubject {
    /// The value as a [`Subject`].
    fn as_subject(&self) -> Subject<'_>;
}

macro_rules! subjects {
    ($($record:ty => $variant:ident),+ $(,)?) => {$(
        impl AsSubject for $record {
            fn as_subject(&self) -> Subject<'_> {
                Subject::$variant(self)
            }
        }
    )+};
}

subjects! {
    [Tool] => Tools, Vec<Tool> => Tools,
    [Resource] => Resources, Vec<Resource> => Resources,
    [ResourceTemplate] => ResourceTemplates, Vec<ResourceTemplate> => ResourceTemplates,
    [Prompt] => Prompts, Vec<Prompt> => Prompts,
    ToolResult => ToolResult,
    ResourceContent => ResourceContent,
    PromptResult => PromptResult,
    PromptMessage => PromptMessage,
    RpcResponse => RpcResponse,
    ClientError => ClientError,
    Value => Json,
}

macro_rules! recorded {
    ($($record:ty),+ $(,)?) => {$(
        impl AsSubject for $record {
            fn as_subject(&self) -> Subject<'_> {
                Subject::Recorded(Recorded::of(self))
            }
        }
    )+};
}

recorded! { [Notification], Vec<Notification>, [RpcRequest], Vec<RpcRequest> }

/// Durations measured elsewhere.
impl AsSubject for [Duration] {
    fn as_subject(&self) -> Subject<'_> {
        let durations_ms: Vec<f64> = self.iter().map(|one| one.as_secs_f64() * 1e3).collect();
        Subject::Recorded(Recorded {
            items: durations_ms.iter().map(|ms| (*ms).into()).collect(),
            durations_ms,
        })
    }
}

impl AsSubject for Vec<Duration> {
    fn as_subject(&self) -> Subject<'_> {
        self.as_slice().as_subject()
    }
}

impl AsSubject for Subject<'_> {
    fn as_subject(&self) -> Subject<'_> {
        self.clone()
    }
}

impl Subject<'_> {
    fn description(&self) -> &'static str {
        match self {
            Self::Tools(_) => "a list of tools",
            Self::Resources(_) => "a list of resources",
            Self::ResourceTemplates(_) => "a list of resource templates",
            Self::Prompts(_) => "a list of prompts",
            Self::ToolResult(_) => "the result of a tool call",
            Self::ResourceContent(_) => "the content of a resource",
            Self::PromptResult(_) => "the result of a prompt",
            Self::PromptMessage(_) => "a message of a prompt",
            Self::RpcResponse(_) => "a JSON-RPC answer",
            Self::ClientError(_) => "an error of the client",
            Self::Json(_) => "a JSON value",
            Self::Recorded(_) => "a recorded list",
        }
    }

    /// The value as JSON.
    pub fn json(&self) -> Value {
        fn all<T: serde::Serialize>(value: T) -> Value {
            serde_json::to_value(value).unwrap_or_default()
        }
        match self {
            Self::Tools(items) => all(items),
            Self::Resources(items) => all(items),
            Self::ResourceTemplates(items) => all(items),
            Self::Prompts(items) => all(items),
            Self::ToolResult(one) => all(one),
            Self::ResourceContent(one) => all(one),
            Self::PromptResult(one) => all(one),
            Self::PromptMessage(one) => all(one),
            Self::RpcResponse(one) => all(one),
            Self::ClientError(one) => match one.rpc_error() {
                Some(error) => RpcResponse::failure(&error).raw,
                None => one.to_string().into(),
            },
            Self::Json(one) => (*one).clone(),
            Self::Recorded(list) => Value::Array(list.items.clone()),
        }
    }

    /// The data that the value carries: `structuredContent` of a tool result, or the JSON in its text or that of a resource. Of other
    /// values the wire form.
    pub fn data(&self) -> Value {
        match self {
            Self::ToolResult(result) => result.json().unwrap_or_else(|_| result.raw.clone()),
            Self::ResourceContent(content) => content.json().unwrap_or_else(|_| content.raw.clone()),
            other => other.json(),
        }
    }

    /// The texts of content, the message of an error, or a plain value as text.
    pub(super) fn texts(&self) -> Option<Vec<String>> {
        match self {
            Self::ToolResult(result) if result.error.is_some() => Some(vec![result.text()]),
            Self::RpcResponse(response) => response.error().map(|error| vec![error.message]),
            Self::ClientError(error) => Some(vec![error.to_string()]),
            Self::Json(Value::String(text)) => Some(vec![text.clone()]),
            Self::Json(value @ (Value::Number(_) | Value::Bool(_))) => Some(vec![value.to_string()]),
            other => Some(in_blocks(&other.blocks()?, "text")),
        }
    }

    /// The content blocks, for matchers of content.
    pub(super) fn blocks(&self) -> Option<Vec<Value>> {
        match self {
            Self::ToolResult(result) => Some(result.content.clone()),
            Self::ResourceContent(content) => Some(content.contents().to_vec()),
            Self::PromptResult(prompt) => {
                Some(prompt.messages.iter().map(|one| one.content.clone()).collect())
            }
            Self::PromptMessage(message) => Some(vec![message.content.clone()]),
            // The content of a result, or one block of it, named by its path.
            Self::Json(Value::Array(blocks)) if !blocks.is_empty() && blocks.iter().all(is_block) => {
                Some(blocks.clone())
            }
            Self::Json(block) if is_block(block) => Some(vec![(*block).clone()]),
            _ => None,
        }
    }

    /// The mismatch of a matcher that does not support this type of value. It is a failure under `not`, too.
    pub fn unsupported(&self, expected: &str) -> Mismatch {
        let mut mismatch = Mismatch::new(expected, format!("{}: {self}", self.description()));
        mismatch.unsupported = true;
        mismatch.hint(Some("the matcher does not know this kind of value".into()))
    }
}

fn is_block(value: &Value) -> bool {
    ["text", "image", "audio", "resource", "resource_link"].iter().any(|kind| value["type"] == *kind)
}

/// Values of `key` in content blocks and in the resources embedded in them.
pub(super) fn in_blocks(blocks: &[Value], key: &str) -> Vec<String> {
    let of = |block: &Value| block[key].as_str().or(block["resource"][key].as_str()).map(str::to_owned);
    blocks.iter().filter_map(of).collect()
}

impl std::fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&shorten(&self.json().to_string(), 600))
    }
}
