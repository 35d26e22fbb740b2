//! Multipart bodies (RFC 7578): a part for each field, and for each item of an array.

use serde_json::Value;

use super::{
    bytes,
    encode::{self, Spelling},
    failure::CallError,
    fields::{EncodedBody, Fields},
    media::is_json,
};
use crate::FieldEncoding;

/// Writes the parts.
///
/// # Errors
/// A file is neither base64 nor a `data:` URI, or there are no random bytes for the boundary.
pub(crate) fn encode(media_type: &str, fields: Fields<'_>) -> Result<EncodedBody, CallError> {
    let boundary = boundary()?;
    let mut body = Body { boundary: &boundary, bytes: Vec::new() };
    for (argument, name, encoding, value) in fields {
        match value {
            Value::Null => {}
            // Spelled by the style, as the document asks for.
            value if !encoding.file && encoding.content_type.is_none() && is_spelled(&encoding, value) => {
                for (name, value) in spelled(name, &encoding, value) {
                    body.part(&name, None, None, value.as_bytes());
                }
            }
            Value::Array(items) => {
                for item in items {
                    body.field(argument, name, &encoding, item)?;
                }
            }
            value => body.field(argument, name, &encoding, value)?,
        }
    }
    body.end();
    let bytes = body.bytes;
    let kind = media_type.split(';').next().unwrap_or_default().trim();
    Ok(EncodedBody { content_type: format!("{kind}; boundary={boundary}"), bytes })
}

fn boundary() -> Result<String, CallError> {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random)
        .map_err(|_| CallError::Unreachable("the gateway has no random numbers".to_owned()))?;
    Ok(random.iter().fold("gatewright-".to_owned(), |text, byte| format!("{text}{byte:02x}")))
}

/// Returns `true` for a value with parts whose spelling is not that of one part for each, or of JSON.
fn is_spelled(encoding: &FieldEncoding, value: &Value) -> bool {
    use crate::Style;
    match (encoding.style, value) {
        (None, _) => false,
        // What fields without an encoding have, too; RFC 7578 §4.3 has an array as several parts, and objects are JSON.
        (Some(Style::Form), Value::Object(_)) => false,
        (Some(_), Value::Object(_)) => true,
        (Some(_), Value::Array(_)) => !encoding.explode,
        (Some(_), _) => false,
    }
}

/// The fields, without the escapes of queries, which parts do not need.
fn spelled(name: &str, encoding: &FieldEncoding, value: &Value) -> Vec<(String, String)> {
    let FieldEncoding { style, explode, allow_reserved, .. } = *encoding;
    let spelling = Spelling { style: style.unwrap_or(crate::Style::Form), explode, allow_reserved };
    let plain = |text: String| percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned();
    encode::fields(name, value, spelling)
        .into_iter()
        .map(|(name, value)| (plain(name), plain(value)))
        .collect()
}

struct Body<'a> {
    boundary: &'a str,
    bytes: Vec<u8>,
}

impl Body<'_> {
    fn field(
        &mut self,
        argument: &str,
        name: &str,
        encoding: &FieldEncoding,
        value: &Value,
    ) -> Result<(), CallError> {
        let declared: Vec<&str> = encoding
            .content_type
            .as_deref()
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .filter(|kind| !kind.is_empty())
            .collect();
        if encoding.file {
            let file = bytes::file(value).map_err(|problem| CallError::argument(argument, problem))?;
            let own = file
                .media_type
                .filter(|own| declared.is_empty() || declared.iter().any(|kind| fits(own, kind)));
            let first = declared.first().filter(|kind| !kind.contains('*')).map(|kind| (*kind).to_owned());
            let kind = own.or(first).unwrap_or_else(|| "application/octet-stream".to_owned());
            self.part(name, Some(file.name.as_deref().unwrap_or(name)), Some(&kind), &file.bytes);
            return Ok(());
        }
        let kind = declared.first().copied().filter(|kind| !kind.contains('*'));
        let is_object = value.is_object() || value.is_array();
        let (kind, text) = match kind {
            Some(kind) if is_json(kind) => (Some(kind), value.to_string()),
            Some(kind) => (Some(kind), encode::text(value)),
            None if is_object => (Some("application/json"), value.to_string()),
            None => (None, encode::text(value)),
        };
        self.part(name, None, kind, text.as_bytes());
        Ok(())
    }

    fn part(&mut self, name: &str, file: Option<&str>, kind: Option<&str>, content: &[u8]) {
        let mut head =
            format!("--{}\r\nContent-Disposition: form-data; name=\"{}\"", self.boundary, quoted(name));
        if let Some(file) = file {
            head.push_str(&format!("; filename=\"{}\"", quoted(file)));
        }
        if let Some(kind) = kind.filter(|kind| kind.bytes().all(|byte| (0x20..0x7f).contains(&byte))) {
            head.push_str(&format!("\r\nContent-Type: {kind}"));
        }
        self.bytes.extend_from_slice(head.as_bytes());
        self.bytes.extend_from_slice(b"\r\n\r\n");
        self.bytes.extend_from_slice(content);
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn end(&mut self) {
        self.bytes.extend_from_slice(format!("--{}--\r\n", self.boundary).as_bytes());
    }
}

/// A name in quotes, as browsers write it (HTML, multipart form data).
fn quoted(name: &str) -> String {
    let clean: String =
        name.chars().map(|c| if c.is_control() && !matches!(c, '\r' | '\n') { ' ' } else { c }).collect();
    clean.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

/// Returns `true` if a type is the other one, or in its range.
fn fits(own: &str, kind: &str) -> bool {
    let own = own.split(';').next().unwrap_or_default().trim();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    own.eq_ignore_ascii_case(kind)
        || kind == "*/*"
        || kind
            .strip_suffix("/*")
            .is_some_and(|range| own.split('/').next().is_some_and(|own| own.eq_ignore_ascii_case(range)))
}
