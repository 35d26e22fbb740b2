//! Objects of requests, as approvals name them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The object of a request, as approvals, their records and digests name it.
///
/// Its text is the name of a tool alone, which has no space, and `resource <name>` or `prompt <name>` of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestObject {
    /// A tool that is called, in the colon form.
    Tool(String),
    /// A resource that is read: `<app>:<the app's own URI>`.
    Resource(String),
    /// A prompt that is got: `<app>:<the app's own name>`.
    Prompt(String),
}

impl RequestObject {
    /// The name alone.
    pub fn name(&self) -> &str {
        match self {
            Self::Tool(name) | Self::Resource(name) | Self::Prompt(name) => name,
        }
    }

    /// A word for what it is.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Resource(_) => "resource",
            Self::Prompt(_) => "prompt",
        }
    }

    /// Returns `true` for what may have arguments.
    pub fn takes_arguments(&self) -> bool {
        !matches!(self, Self::Resource(_))
    }

    /// The beginning of words for the request, which its name completes.
    pub fn request(&self) -> &'static str {
        match self {
            Self::Tool(_) => "the call of",
            Self::Resource(_) => "reading the resource",
            Self::Prompt(_) => "getting the prompt",
        }
    }
}

impl fmt::Display for RequestObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(name) => f.write_str(name),
            other => write!(f, "{} {}", other.kind(), other.name()),
        }
    }
}
