//! Entries of HTTP cassettes: a redacted call and its response.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use super::{call::HttpCall, response::HttpResponse};
use crate::cassette::{
    Cassette, Entry, Protocol,
    redact::{redacted_body, redacted_headers, redacted_url},
};

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpEntry {
    method: String,
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    status: u16,
    headers: Vec<(String, String)>,
    answer: Body,
}

impl Entry for HttpEntry {
    const PROTOCOL: Protocol = Protocol::Http;
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Body {
    Text(String),
    Base64(String),
}

impl HttpEntry {
    pub(super) fn new(call: &HttpCall, response: &HttpResponse) -> Self {
        let answer = match std::str::from_utf8(&response.body) {
            Ok(text) => Body::Text(redacted_body(text)),
            Err(_) => Body::Base64(STANDARD.encode(&response.body)),
        };
        Self {
            method: call.method.clone(),
            url: redacted_url(&call.url),
            body: call.body.as_deref().map(redacted_body),
            status: response.status,
            headers: redacted_headers(&response.headers),
            answer,
        }
    }
}

/// The recorded response to a call with the same method, URL and body.
pub(super) fn replay(cassette: &mut Cassette<HttpEntry>, call: &HttpCall) -> Option<HttpResponse> {
    let (url, body) = (redacted_url(&call.url), call.body.as_deref().map(redacted_body));
    let entry =
        cassette.replay(|entry| entry.method == call.method && entry.url == url && entry.body == body)?;
    Some(HttpResponse {
        status: entry.status,
        headers: entry.headers,
        body: match entry.answer {
            Body::Text(text) => text.into_bytes(),
            Body::Base64(text) => STANDARD.decode(text).unwrap_or_default(),
        },
        ..HttpResponse::default()
    })
}
