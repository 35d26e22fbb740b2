//! Options of a cassette: when it is recorded, and the places of its secrets.

use serde::Deserialize;

/// When a cassette is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "suites", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RecordMode {
    /// Never: replays the cassette, and fails if it is missing. For CI.
    None,
    /// Records a cassette that is missing, and replays one that exists.
    #[default]
    New,
    /// Always: replaces the cassette when the test has passed.
    All,
}

impl std::str::FromStr for RecordMode {
    type Err = String;

    /// Parses `none`, `new` or `all`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "new" => Ok(Self::New),
            "all" => Ok(Self::All),
            _ => Err(format!("there is no mode `{text}`; there are none, new and all")),
        }
    }
}

/// Options of a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordOptions {
    /// When the cassette is recorded. Default [`RecordMode::New`].
    pub mode: RecordMode,
    /// Further places of secrets.
    pub redaction: Redaction,
}

/// Places of secrets in a cassette, in addition to the usual ones: `Authorization`, cookies and the common API key headers; query
/// parameters, form fields and JSON keys such as `access_token`, `client_secret`, `password` and `api_key`.
///
/// Names are compared whole, without regard to case, `_` and `-`: `total_tokens` is no `token`. A value found in such a place is also
/// removed wherever else it appears in the cassette, unless it is too common a text to be told apart (shorter than 5
/// characters, or a single word of fewer than 8 letters).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "suites", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Redaction {
    /// Names of headers.
    pub headers: Vec<String>,
    /// Names of query parameters, in any URL.
    pub query: Vec<String>,
    /// Names of form fields.
    pub form: Vec<String>,
    /// Names of JSON keys at any depth, such as `pin`, or JSON pointers from the body, or the `params` or `result` of MCP, such as
    /// `/users/*/pin`, where `*` is any key or index.
    pub json: Vec<String>,
    /// Names that are no secrets here, such as `token` in the output of a tokenizer.
    pub keep: Vec<String>,
}
