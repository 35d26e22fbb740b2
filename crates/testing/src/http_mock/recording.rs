//! Entries of HTTP cassettes: a redacted call and its response.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use super::{call::HttpCall, response::HttpResponse};
use crate::cassette::{
    Cassette, Entry, Protocol,
    redact::{same_body, same_text},
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

    fn name(&self) -> String {
        format!("{} {}", self.method, self.url)
    }

    fn is_same_request(&self, other: &Self) -> bool {
        (&self.method, &self.url, &self.body) == (&other.method, &other.url, &other.body)
    }

    fn map_text(&mut self, scrub: &dyn Fn(&str) -> String) {
        let Self { method: _, url, body, status: _, headers, answer } = self;
        let answer = match answer {
            Body::Text(text) => Some(text),
            Body::Base64(_) => None,
        };
        let values = headers.iter_mut().map(|(_, value)| value);
        for text in [url].into_iter().chain(body).chain(answer).chain(values) {
            *text = scrub(text);
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Body {
    Text(String),
    Base64(String),
}

/// Remembers the credentials of a call, also of one that a mock answers.
pub(super) fn learn(cassette: &mut Cassette<HttpEntry>, call: &HttpCall) {
    cassette.redactor.headers(&call.headers, &mut cassette.secrets);
}

/// Records the response to a call.
pub(super) fn record(cassette: &mut Cassette<HttpEntry>, call: &HttpCall, response: &HttpResponse) {
    let (redactor, secrets) = (&cassette.redactor, &mut cassette.secrets);
    let answer = match std::str::from_utf8(&response.body) {
        Ok(text) => Body::Text(redactor.body(text, secrets)),
        Err(_) => Body::Base64(STANDARD.encode(&response.body)),
    };
    let entry = HttpEntry {
        method: call.method.clone(),
        url: redactor.text(&call.url, secrets),
        body: call.body.as_deref().map(|body| redactor.body(body, secrets)),
        status: response.status,
        headers: redactor.headers(&response.headers, secrets),
        answer,
    };
    cassette.record(entry);
}

/// The recorded response to a call with the same method, URL and body, whatever its secrets.
pub(super) fn replay(cassette: &mut Cassette<HttpEntry>, call: &HttpCall) -> Option<HttpResponse> {
    let entry = cassette.replay(|entry| {
        let same_bodies = match (&entry.body, &call.body) {
            (Some(recorded), Some(actual)) => same_body(recorded, actual),
            (recorded, actual) => recorded.is_none() && actual.is_none(),
        };
        entry.method == call.method && same_text(&entry.url, &call.url) && same_bodies
    })?;
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
