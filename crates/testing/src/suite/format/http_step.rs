//! The key `http` of a step: a plain HTTP request.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// An HTTP request: a path or URL to get, or an object with more.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::suite) enum HttpStep {
    Get(String),
    Request(Box<HttpRequest>),
}

/// An HTTP request. It carries the headers that it names, and the credentials of the user in `as` of the step.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::suite) struct HttpRequest {
    /// The method. Default `GET`, with a body `POST`.
    pub(in crate::suite) method: Option<String>,
    /// The path at the server under test, with the query.
    pub(in crate::suite) path: Option<String>,
    /// The whole URL, of any server.
    pub(in crate::suite) url: Option<String>,
    /// Query parameters, in addition to those of the path.
    #[serde(default)]
    pub(in crate::suite) query: BTreeMap<String, String>,
    /// Headers.
    #[serde(default)]
    pub(in crate::suite) headers: BTreeMap<String, String>,
    /// The body, as JSON.
    pub(in crate::suite) json: Option<Value>,
    /// The body, as fields of a form.
    pub(in crate::suite) form: Option<BTreeMap<String, String>>,
    /// The body, as text.
    pub(in crate::suite) text: Option<String>,
    /// Follows redirects, up to 10. Default false: the redirect is the outcome.
    #[serde(default)]
    pub(in crate::suite) follow_redirects: bool,
}

impl HttpStep {
    /// The request; a text is its path or URL.
    pub(in crate::suite) fn request(&self) -> HttpRequest {
        match self {
            Self::Request(request) => (**request).clone(),
            Self::Get(text) if text.contains("://") => {
                HttpRequest { url: Some(text.clone()), ..HttpRequest::default() }
            }
            Self::Get(text) => HttpRequest { path: Some(text.clone()), ..HttpRequest::default() },
        }
    }
}
