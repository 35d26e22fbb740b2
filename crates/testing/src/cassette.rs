//! Cassettes: what was answered once, kept in a file and answered again. Secrets are not written.

mod redact;
mod wire;

pub(crate) use wire::cassette_connector;

use std::path::PathBuf;

#[cfg(feature = "http-mock")]
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(feature = "http-mock")]
use crate::http_mock::{HttpCall, HttpResponse};
use redact::redacted;
#[cfg(feature = "http-mock")]
use redact::{redacted_body, redacted_headers, redacted_url};

/// A cassette cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the cassette {file} cannot be used: {problem}; delete it to record a new one")]
pub struct CassetteError {
    /// Which file.
    pub file: String,
    /// What is wrong.
    pub problem: String,
}

/// What a cassette holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Http,
    Mcp,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    kind: Kind,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Entry {
    Http(HttpEntry),
    Mcp(McpEntry),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HttpEntry {
    method: String,
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    status: u16,
    headers: Vec<(String, String)>,
    answer: Body,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Body {
    Text(String),
    Base64(String),
}

/// One request and every message that came until it was answered, the answer last.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpEntry {
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) messages: Vec<Value>,
}

const VERSION: u32 = 1;

/// An open cassette. When it records, [`Cassette::save`] and drop write it.
#[derive(Debug)]
pub(crate) struct Cassette {
    file: PathBuf,
    kind: Kind,
    recording: bool,
    /// Whether the file lacks something. One that records is written even when it stays empty.
    unsaved: bool,
    entries: Vec<Option<Entry>>,
}

impl Cassette {
    /// Replays the file when it is there, else records it.
    pub(crate) fn open(file: PathBuf, kind: Kind) -> Result<Self, CassetteError> {
        let wrong = |problem: String| CassetteError { file: file.display().to_string(), problem };
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self { file, kind, recording: true, unsaved: true, entries: Vec::new() });
            }
            Err(error) => return Err(wrong(error.to_string())),
        };
        let found: File = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if found.version != VERSION {
            return Err(wrong(format!("it has version {}, this crate reads {VERSION}", found.version)));
        }
        if found.kind != kind {
            return Err(wrong(format!("it holds {:?} messages, not {kind:?}", found.kind)));
        }
        let entries = found.entries.into_iter().map(Some).collect();
        Ok(Self { file, kind, recording: false, unsaved: false, entries })
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.recording
    }

    /// The answer recorded for a call like this one; each is given once.
    #[cfg(feature = "http-mock")]
    pub(crate) fn replay_http(&mut self, call: &HttpCall) -> Option<HttpResponse> {
        if self.recording {
            return None;
        }
        let (url, body) = (redacted_url(&call.url), call.body.as_deref().map(redacted_body));
        let slot = self.entries.iter_mut().find(|slot| {
            matches!(slot, Some(Entry::Http(entry))
                if entry.method == call.method && entry.url == url && entry.body == body)
        })?;
        let Some(Entry::Http(entry)) = slot.take() else { return None };
        let mut response = HttpResponse { status: entry.status, ..HttpResponse::default() };
        response.headers = entry.headers;
        response.body = match entry.answer {
            Body::Text(text) => text.into_bytes(),
            Body::Base64(text) => STANDARD.decode(text).unwrap_or_default(),
        };
        Some(response)
    }

    #[cfg(feature = "http-mock")]
    pub(crate) fn keep_http(&mut self, call: &HttpCall, response: &HttpResponse) {
        let answer = match std::str::from_utf8(&response.body) {
            Ok(text) => Body::Text(redacted_body(text)),
            Err(_) => Body::Base64(STANDARD.encode(&response.body)),
        };
        self.keep(Entry::Http(HttpEntry {
            method: call.method.clone(),
            url: redacted_url(&call.url),
            body: call.body.as_deref().map(redacted_body),
            status: response.status,
            headers: redacted_headers(&response.headers),
            answer,
        }));
    }

    /// The messages recorded for a request like this one; each is given once.
    pub(crate) fn replay_mcp(&mut self, method: &str, params: &Value) -> Option<Vec<Value>> {
        let params = redacted(params);
        let slot = self.entries.iter_mut().find(|slot| {
            matches!(slot, Some(Entry::Mcp(entry)) if entry.method == method && entry.params == params)
        })?;
        match slot.take() {
            Some(Entry::Mcp(entry)) => Some(entry.messages),
            _ => None,
        }
    }

    pub(crate) fn keep_mcp(&mut self, entry: &McpEntry) {
        self.keep(Entry::Mcp(McpEntry {
            method: entry.method.clone(),
            params: redacted(&entry.params),
            messages: entry.messages.iter().map(redacted).collect(),
        }));
    }
}

impl Cassette {
    /// Writes what was recorded since it was written last. Tasks that still hold it cannot delay that.
    pub(crate) fn save(&mut self) {
        if !std::mem::take(&mut self.unsaved) {
            return;
        }
        let entries = self.entries.iter().flatten().cloned().collect();
        let file = File { version: VERSION, kind: self.kind, entries };
        let written = serde_json::to_string_pretty(&file)
            .map_err(std::io::Error::other)
            .and_then(|text| std::fs::write(&self.file, text + "\n"));
        if let Err(error) = written {
            eprintln!("the cassette {} cannot be written: {error}", self.file.display());
        }
    }

    fn keep(&mut self, entry: Entry) {
        self.entries.push(Some(entry));
        self.unsaved = true;
    }
}

impl Drop for Cassette {
    fn drop(&mut self) {
        self.save();
    }
}
