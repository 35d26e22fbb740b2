//! Why a document cannot be read at all, and what is wrong with parts of one that can.

use std::fmt;

/// A problem with a part of a document. The rest of it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// JSON pointer (RFC 6901) of the part. In another document than the one that was read: that document's URL or path, `#` and the pointer.
    pub place: String,
    /// The problem, as a sentence without a full stop.
    pub problem: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.is_empty() {
            true => f.write_str(&self.problem),
            false => write!(f, "{}: {}", self.place, self.problem),
        }
    }
}

/// Why a document is not used at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The text is neither JSON nor YAML.
    #[error("the document is neither JSON nor YAML: {0}")]
    Syntax(String),
    /// The text is longer or holds more values than a document may.
    #[error("the document is too large: {0}")]
    TooLarge(String),
    /// There is too little memory left to read it now.
    #[error("the document is too large: {0}")]
    NoMemory(String),
    /// The text is no OpenAPI document.
    #[error("the document is no OpenAPI document: it has neither `openapi` nor `swagger`")]
    NotOpenApi,
    /// The document is of a version that is not supported.
    #[error("the document is of version {0}; supported are OpenAPI 3.0, 3.1 and 3.2 and Swagger 2.0")]
    Version(String),
}

impl DocumentError {
    /// A stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Syntax(_) => "openapi.syntax",
            Self::TooLarge(_) | Self::NoMemory(_) => "openapi.too_large",
            Self::NotOpenApi => "openapi.not_openapi",
            Self::Version(_) => "openapi.version",
        }
    }
}
