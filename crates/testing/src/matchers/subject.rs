//! The types of values that matchers check.

use serde_json::Value;

use super::mismatch::Mismatch;
use crate::{
    base::text::shorten,
    protocol::{
        ClientError, Prompt, PromptMessage, PromptResult, Resource, ResourceContent, ResourceTemplate,
        RpcResponse, Tool, ToolResult,
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

impl std::fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&shorten(&self.json().to_string(), 600))
    }
}
