//! [`BoundedText`]: the writer of every URL, header, cookie and body.
//!
//! Callers choose values and how many of them there are, so what a request is made of may be many times as long as the arguments. Each part
//! has a limit, and writing stops there.

use std::{fmt, io};

use gatewright_core::rmcp::model::JsonObject;
use percent_encoding::{AsciiSet, utf8_percent_encode};
use serde::Serialize;

/// Bytes of a URL with its query. Servers take less, and the HTTP client no more than 65,534.
const URL: usize = 60 * 1024;
/// Bytes of a server's URL once its variables are filled in.
pub(crate) const SERVER: usize = 8 * 1024;
/// Bytes of a header that arguments are written to, such as `Cookie`.
const HEADER: usize = 16 * 1024;
/// Bytes of all those headers of a request.
const HEADERS: usize = 64 * 1024;
/// Bytes of a body: so many, and so many for each byte of the arguments in JSON.
const BODY: usize = 1024 * 1024;
const BODY_FACTOR: usize = 4;

/// The limit of a part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    part: &'static str,
    /// Bytes that may be written.
    most: usize,
    /// The limit as callers are told: more than `most` where something else has taken a share of it.
    said: usize,
}

impl Limit {
    pub(crate) const URL: Self = Self::new("the URL", URL);
    pub(crate) const SERVER: Self = Self::new("the URL of the server", SERVER);
    pub(crate) const HEADER: Self = Self::new("a header", HEADER);

    const fn new(part: &'static str, most: usize) -> Self {
        Self { part, most, said: most }
    }

    /// The limit of a header beside others that have `taken` bytes.
    pub(crate) fn header_beside(taken: usize) -> Self {
        match HEADERS.saturating_sub(taken) {
            left if left < HEADER => Self { part: "all headers together", most: left, said: HEADERS },
            _ => Self::HEADER,
        }
    }

    /// The limit of a body that is made of `arguments`.
    pub(crate) fn body(arguments: &JsonObject) -> Self {
        let mut length = Length(0);
        // Counting does not fail.
        let _ = serde_json::to_writer(&mut length, arguments);
        Self::new("the body", BODY.saturating_add(length.0.saturating_mul(BODY_FACTOR)))
    }

    /// Returns an error for a text of more than the limit.
    pub(crate) fn check(self, length: usize) -> Result<(), Full> {
        if length > self.most { Err(Full(self)) } else { Ok(()) }
    }
}

/// A part of a request would be longer than its limit. Display continues "the argument …".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full(Limit);

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limit { part, said, .. } = self.0;
        write!(f, "makes {part} of the request longer than {said} bytes; pass fewer or shorter values")
    }
}

impl std::error::Error for Full {}

impl From<Full> for String {
    fn from(full: Full) -> Self {
        full.to_string()
    }
}

/// A part of a request as far as it is written. A push beyond the limit writes nothing and fails.
#[derive(Debug)]
pub(crate) struct BoundedText {
    bytes: Vec<u8>,
    limit: Limit,
}

impl BoundedText {
    pub(crate) fn new(limit: Limit) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    /// Writes a text as it is.
    pub(crate) fn push(&mut self, text: &str) -> Result<(), Full> {
        self.push_bytes(text.as_bytes())
    }

    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.limit.check(self.bytes.len().saturating_add(bytes.len()))?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes a text with the characters of `set` escaped.
    pub(crate) fn push_escaped(&mut self, text: &str, set: &'static AsciiSet) -> Result<(), Full> {
        utf8_percent_encode(text, set).try_for_each(|part| self.push(part))
    }

    /// Writes a name in quotes, as browsers do (HTML, multipart form data).
    pub(crate) fn push_quoted(&mut self, name: &str) -> Result<(), Full> {
        name.chars().try_for_each(|c| match c {
            '"' => self.push("%22"),
            '\r' => self.push("%0D"),
            '\n' => self.push("%0A"),
            c if c.is_control() => self.push(" "),
            c => self.push(c.encode_utf8(&mut [0; 4])),
        })
    }

    /// Writes a value as JSON.
    pub(crate) fn push_json(&mut self, value: &impl Serialize) -> Result<(), Full> {
        // A value that was JSON is JSON, so that nothing but the limit fails.
        serde_json::to_writer(&mut *self, value).map_err(|_| Full(self.limit))
    }

    pub(crate) fn limit(&self) -> Limit {
        self.limit
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Takes back what was written after the first `length` bytes.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// The bytes after the first `start`.
    pub(crate) fn since(&self, start: usize) -> &[u8] {
        self.bytes.get(start..).unwrap_or_default()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn into_text(self) -> String {
        String::from_utf8(self.bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push_bytes(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Counts bytes.
struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_push_beyond_the_limit_writes_nothing_and_fails() {
        let limit = Limit::new("the URL", 5);
        let mut text = BoundedText::new(limit);
        text.push("abc").unwrap();
        assert_eq!(text.push("def"), Err(Full(limit)));
        text.push("de").unwrap();
        assert!(text.push("f").is_err() && text.push("").is_ok());
        assert_eq!(text.into_text(), "abcde");
        let mut json = BoundedText::new(limit);
        assert!(json.push_json(&json!([1, 2, 3])).is_err());
        assert!(json.len() <= 5);
        let full = Full(Limit::header_beside(60 * 1024)).to_string();
        assert!(full.contains("all headers together of the request longer than 65536 bytes"), "{full}");
    }
}
