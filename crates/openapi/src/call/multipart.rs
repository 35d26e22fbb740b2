//! Multipart bodies (RFC 7578): a part for each field, and for each item of an array.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    bounded::{BoundedText, Full},
    bytes, encode,
    failure::CallError,
    fields::{EncodedBody, Fields},
    form::{self, Spelling},
    media::is_json,
    names::{FieldWriter, NameOf, TakenNames},
};
use crate::FieldEncoding;

/// Writes the parts.
///
/// # Errors
/// A file is neither base64 nor a `data:` URI, the body would be too long, a name of the caller's is taken, or there are no random bytes
/// for the boundary.
pub(crate) fn encode(
    media_type: &str,
    fields: Fields<'_>,
    taken: &TakenNames,
    out: BoundedText,
) -> Result<EncodedBody, CallError> {
    let boundary = boundary()?;
    let mut body = Body { boundary: &boundary, out };
    for (argument, name, encoding, value) in fields {
        match value {
            Value::Null => {}
            // Spelled by the style, as the document asks for.
            value if !encoding.file && encoding.content_type.is_none() && is_spelled(&encoding, value) => {
                let mut text = BoundedText::new(body.out.limit());
                let written = spelled(name, &encoding, value, &mut FieldWriter::new(&mut text, "&", taken));
                written.map_err(|problem| CallError::argument(argument, problem))?;
                for field in text.into_text().split('&').filter(|field| !field.is_empty()) {
                    let (name, value) = field.split_once('=').unwrap_or((field, ""));
                    body.part(&plain(name), None, None, plain(value).as_bytes())?;
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
    body.end()?;
    let bytes = body.out.into_bytes();
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

/// Writes the fields as in a query.
fn spelled(
    name: &str,
    encoding: &FieldEncoding,
    value: &Value,
    out: &mut FieldWriter<'_>,
) -> Result<(), String> {
    let FieldEncoding { style, explode, allow_reserved, .. } = *encoding;
    let spelling = Spelling { style: style.unwrap_or(crate::Style::Form), explode, allow_reserved };
    form::fields(NameOf::Document, name, value, spelling, out)
}

/// A text without the escapes of queries, which parts do not need.
fn plain(text: &str) -> Cow<'_, str> {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy()
}

struct Body<'a> {
    boundary: &'a str,
    out: BoundedText,
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
            let file_name = file.name.as_deref().unwrap_or(name);
            return Ok(self.part(name, Some(file_name), Some(&kind), &file.bytes)?);
        }
        let kind = declared.first().copied().filter(|kind| !kind.contains('*'));
        let is_object = value.is_object() || value.is_array();
        let (kind, text) = match kind {
            Some(kind) if is_json(kind) => (Some(kind), value.to_string().into()),
            Some(kind) => (Some(kind), encode::text(value)),
            None if is_object => (Some("application/json"), value.to_string().into()),
            None => (None, encode::text(value)),
        };
        Ok(self.part(name, None, kind, text.as_bytes())?)
    }

    fn part(
        &mut self,
        name: &str,
        file: Option<&str>,
        kind: Option<&str>,
        content: &[u8],
    ) -> Result<(), Full> {
        let out = &mut self.out;
        for text in ["--", self.boundary, "\r\nContent-Disposition: form-data; name=\""] {
            out.push(text)?;
        }
        out.push_quoted(name)?;
        out.push("\"")?;
        if let Some(file) = file {
            out.push("; filename=\"")?;
            out.push_quoted(file)?;
            out.push("\"")?;
        }
        if let Some(kind) = kind.filter(|kind| kind.bytes().all(|byte| (0x20..0x7f).contains(&byte))) {
            out.push("\r\nContent-Type: ")?;
            out.push(kind)?;
        }
        out.push("\r\n\r\n")?;
        out.push_bytes(content)?;
        out.push("\r\n")
    }

    fn end(&mut self) -> Result<(), Full> {
        ["--", self.boundary, "--\r\n"].into_iter().try_for_each(|text| self.out.push(text))
    }
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
