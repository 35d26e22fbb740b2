//! The key `httpMocks`: responses to HTTP calls of the server under test.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::http_mock::NetworkFailure;

/// A response to HTTP calls of the server.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::suite) struct HttpMockEntry {
    /// Matches calls whose URL contains this text.
    pub(in crate::suite) url: Option<String>,
    /// Matches calls whose URL matches this regular expression.
    pub(in crate::suite) url_regex: Option<String>,
    /// Matches only this method. Default: any.
    pub(in crate::suite) method: Option<String>,
    /// Matches only calls with these headers.
    #[serde(default)]
    pub(in crate::suite) request_headers: BTreeMap<String, String>,
    /// Matches only calls with these query parameters, whatever their order and encoding.
    #[serde(default)]
    pub(in crate::suite) query: BTreeMap<String, String>,
    /// Matches only forms with these fields.
    #[serde(default)]
    pub(in crate::suite) request_form: BTreeMap<String, String>,
    /// Matches only JSON bodies that contain all of this.
    pub(in crate::suite) request_json: Option<Value>,
    /// Matches only bodies that contain this text.
    pub(in crate::suite) request_text: Option<String>,
    /// Status of the response. Default 200.
    pub(in crate::suite) status: Option<u16>,
    /// Headers of the response.
    #[serde(default)]
    pub(in crate::suite) headers: BTreeMap<String, String>,
    /// Body of the response, as JSON.
    pub(in crate::suite) json: Option<Value>,
    /// Body of the response, as text.
    pub(in crate::suite) text: Option<String>,
    /// Fails instead of responding.
    pub(in crate::suite) failure: Option<NetworkFailure>,
    /// Responses in order, in place of the keys of one; the last answers all further calls.
    #[serde(default)]
    pub(in crate::suite) responses: Vec<HttpMockResponse>,
    /// Number of times the mock responds. Default: unlimited.
    pub(in crate::suite) times: Option<u32>,
    /// Delay of the response. Default 0.
    pub(in crate::suite) delay_ms: Option<u64>,
    /// Fails the suite if the mock was not used (with `times`: that often). Default false.
    #[serde(default)]
    pub(in crate::suite) required: bool,
}

/// A response of a sequence.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::suite) struct HttpMockResponse {
    /// Status of the response. Default 200.
    pub(in crate::suite) status: Option<u16>,
    /// Headers of the response.
    #[serde(default)]
    pub(in crate::suite) headers: BTreeMap<String, String>,
    /// Body of the response, as JSON.
    pub(in crate::suite) json: Option<Value>,
    /// Body of the response, as text.
    pub(in crate::suite) text: Option<String>,
    /// Delay of the response. Default 0.
    pub(in crate::suite) delay_ms: Option<u64>,
    /// Fails instead of responding.
    pub(in crate::suite) failure: Option<NetworkFailure>,
}

impl HttpMockEntry {
    /// The responses in order.
    pub(in crate::suite) fn all_responses(&self) -> Vec<HttpMockResponse> {
        if !self.responses.is_empty() {
            return self.responses.clone();
        }
        vec![HttpMockResponse {
            status: self.status,
            headers: self.headers.clone(),
            json: self.json.clone(),
            text: self.text.clone(),
            delay_ms: self.delay_ms,
            failure: self.failure,
        }]
    }

    /// True if the entry has keys of a single response.
    pub(in crate::suite) fn has_own_response(&self) -> bool {
        self.status.is_some()
            || !self.headers.is_empty()
            || self.json.is_some()
            || self.text.is_some()
            || self.delay_ms.is_some()
            || self.failure.is_some()
    }
}
