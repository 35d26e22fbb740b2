//! Fields of a body, and the body that is made of them.

use serde_json::Value;

use crate::FieldEncoding;

/// A body as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EncodedBody {
    pub(crate) content_type: String,
    pub(crate) bytes: Vec<u8>,
}

/// Fields of a body, each with its argument's name for errors, its own name, its encoding and its value.
pub(crate) type Fields<'a> = Vec<(&'a str, &'a str, FieldEncoding, &'a Value)>;
