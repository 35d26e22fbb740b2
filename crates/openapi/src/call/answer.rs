//! Answers of an API, as results of tools.

use base64::Engine as _;
use gatewright_core::{
    AnswerRoom, CredentialPatterns, MASK, Measured, Reserved, Unreadable, codes, measure, off_thread,
    read_json, whole_seconds,
};
use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_TYPE, LOCATION},
};
use rmcp::model::{CallToolResult, ContentBlock, EmbeddedResource, ResourceContents};
use serde_json::{Map, Value, json};

use super::{
    failure::{self, CallError},
    http::retry_after,
    media::{is_json, is_text},
    redactor::Redactor,
};
use crate::{Operation, ResponseShape};

/// Bytes of an answer for each key or value that it may have.
const BYTES_PER_VALUE: usize = 32;
/// Keys and values that an answer may have, however low its limit is.
const LEAST_VALUES: usize = 10_000;
/// Bytes of an answer that takes little memory whatever is in it.
const SHORT: usize = 4 * 1024;
/// Bytes of an error that are looked at.
pub(crate) const MOST_OF_ERROR: usize = 64 * 1024;
/// Bytes of the message of an error.
const MOST_MESSAGE: usize = 2_000;
/// Bytes of one field of the problem that is repeated for programs.
const MOST_FIELD: usize = 500;
const MOST_FIELDS: usize = 20;

/// Copies of a body that there are while it is read: its text, and the text without credentials or that of the result.
const COPIES: u64 = 2;

/// Memory for the answer of a call, which is given back when this is dropped.
#[derive(Default)]
pub(crate) struct Memory {
    room: Option<AnswerRoom>,
    /// Bytes of what was read.
    values: Held,
    /// Bytes of the body that is being read.
    body: Held,
}

/// Bytes that are taken, and what holds them.
#[derive(Default)]
struct Held {
    needed: u64,
    taken: u64,
    parts: Vec<Reserved>,
}

impl Held {
    /// Takes `more` bytes of `room`, and some ahead.
    fn grow(&mut self, room: Option<&AnswerRoom>, more: u64) -> Result<(), CallError> {
        self.needed += more;
        let Some(room) = room.filter(|_| self.needed > SHORT as u64) else { return Ok(()) };
        if self.needed <= self.taken {
            return Ok(());
        }
        let missing = self.needed - self.taken;
        let take = |bytes| room.reserve(bytes).map(|part| (bytes, part));
        let taken = take(missing + self.needed / 4).or_else(|_| take(missing));
        let (bytes, part) = taken.map_err(CallError::NoRoom)?;
        self.taken += bytes;
        self.parts.push(part);
        Ok(())
    }
}

impl Memory {
    pub(crate) fn new(room: Option<AnswerRoom>) -> Self {
        Self { room, ..Self::default() }
    }

    /// Takes room for a JSON text once it is parsed.
    fn take(&mut self, json: &[u8], measured: Measured) -> Result<(), CallError> {
        if json.len() > SHORT { self.take_part(measured.bytes) } else { Ok(()) }
    }

    /// Takes room for a part of an answer that has `bytes` in memory.
    pub(crate) fn take_part(&mut self, bytes: u64) -> Result<(), CallError> {
        self.values.grow(self.room.as_ref(), bytes)
    }

    /// Takes room for `bytes` more of the body, until [`Memory::end_body`].
    pub(crate) fn take_body(&mut self, bytes: usize) -> Result<(), CallError> {
        self.body.grow(self.room.as_ref(), COPIES * bytes as u64)
    }

    pub(crate) fn end_body(&mut self) {
        self.body = Held::default();
    }
}

/// The media type of a response, in lower case, without parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Parses JSON of an API within the limits on its keys and values.
///
/// # Errors
/// It has too many, or is no JSON.
pub(crate) async fn parse(
    body: Vec<u8>,
    most_bytes: usize,
    memory: &mut Memory,
) -> Result<(Value, Vec<u8>), CallError> {
    // A byte order mark is ignored (RFC 8259 §8.1).
    let body = match body.strip_prefix(b"\xef\xbb\xbf") {
        Some(text) => text.to_vec(),
        None => body,
    };
    let most = (most_bytes / BYTES_PER_VALUE).max(LEAST_VALUES);
    let measured = measure(&body, most).map_err(|why| match why {
        Unreadable::TooMany => {
            CallError::BadAnswer(format!("it has more than {most} keys and values; ask for less at once"))
        }
        why => CallError::BadAnswer(why.to_string()),
    })?;
    memory.take(&body, measured)?;
    let length = body.len();
    let read = move || serde_json::from_slice::<Value>(&body).map(|value| (value, body));
    let parsed = off_thread(length, read).await;
    parsed.map_err(|_| CallError::BadAnswer("it is no JSON, although its type says so".to_owned()))
}

/// The result of a call that succeeded.
///
/// # Errors
/// The body cannot be read as its type says.
pub(crate) async fn success(
    operation: &Operation,
    status: StatusCode,
    headers: &HeaderMap,
    body: Vec<u8>,
    most_bytes: usize,
    memory: &mut Memory,
) -> Result<CallToolResult, CallError> {
    let kind = media_type(headers);
    if body.is_empty() {
        return Ok(empty(operation, status, headers));
    }
    if is_json(&kind) {
        let (value, body) = parse(body, most_bytes, memory).await?;
        return Ok(of_json(operation, value, text_of(body)));
    }
    let is_untyped = kind.is_empty();
    if is_untyped
        && matches!(body.trim_ascii_start().first(), Some(b'{' | b'['))
        && let Ok((value, body)) = parse(body.clone(), most_bytes, memory).await
    {
        return Ok(of_json(operation, value, text_of(body)));
    }
    if is_text(&kind) || is_untyped && std::str::from_utf8(&body).is_ok() {
        let text = match decoded(body, headers) {
            Ok(text) => text,
            Err(body) => return Ok(binary(operation, &kind, &body)),
        };
        memory.take_part(written(&text))?;
        let mut result = CallToolResult::success(vec![ContentBlock::text(text.clone())]);
        if operation.shape == ResponseShape::Wrapped {
            result.structured_content = Some(json!({"result": text}));
        }
        return Ok(result);
    }
    Ok(binary(operation, &kind, &body))
}

/// Bytes that a text and its copy take, and a reply with it: controls grow to six characters in JSON.
fn written(text: &str) -> u64 {
    let in_json = |byte: u8| match byte {
        0..0x20 => 6,
        b'"' | b'\\' => 2,
        _ => 1,
    };
    2 * text.len() as u64 + text.bytes().map(in_json).sum::<u64>()
}

/// The text of bytes in UTF-8. JSON with any others was refused before.
fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn of_json(operation: &Operation, value: Value, text: String) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(shaped(operation.shape, value));
    result
}

/// The answer at the place that the output schema has for it.
pub(crate) fn shaped(shape: ResponseShape, value: Value) -> Value {
    match (shape, value) {
        (ResponseShape::Object | ResponseShape::Unknown, value @ Value::Object(_)) => value,
        // Moved: `json!` would copy it.
        (_, value) => Value::Object(Map::from_iter([("result".to_owned(), value)])),
    }
}

fn empty(operation: &Operation, status: StatusCode, headers: &HeaderMap) -> CallToolResult {
    let mut text = format!(
        "HTTP {} {}: done, without content",
        status.as_u16(),
        status.canonical_reason().unwrap_or_default()
    );
    // Where a new object is: the path alone, for the query may have a key.
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    if let Some(location) = location
        .and_then(|location| location.split(['?', '#']).next())
        .filter(|path| path.len() <= MOST_FIELD)
    {
        let path = location
            .split_once("://")
            .map_or(location, |(_, rest)| rest.find('/').map_or("", |at| &rest[at..]));
        if !path.is_empty() {
            text.push_str(&format!(" (Location: {path})"));
        }
    }
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    if operation.shape == ResponseShape::Wrapped {
        result.structured_content = Some(json!({"result": null}));
    }
    result
}

fn binary(operation: &Operation, kind: &str, body: &[u8]) -> CallToolResult {
    let kind = if kind.is_empty() { "application/octet-stream" } else { kind };
    let encoded = base64::engine::general_purpose::STANDARD.encode(body);
    let block = match kind.split('/').next() {
        Some("image") => ContentBlock::image(encoded, kind),
        Some("audio") => ContentBlock::audio(encoded, kind),
        _ => {
            let uri = format!("http-answer:{}", operation.tool);
            ContentBlock::Resource(EmbeddedResource::new(
                ResourceContents::blob(encoded, uri).with_mime_type(kind),
            ))
        }
    };
    CallToolResult::success(vec![block])
}

/// Text in the charset that the response names, or in UTF-8.
///
/// # Errors
/// The bytes, if the charset is not known.
fn decoded(body: Vec<u8>, headers: &HeaderMap) -> Result<String, Vec<u8>> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let charset = kind.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    });
    match charset.map(|label| encoding_rs::Encoding::for_label_no_replacement(label.as_bytes())) {
        Some(Some(encoding)) if encoding != encoding_rs::UTF_8 => Ok(encoding.decode(&body).0.into_owned()),
        // Written in ASCII alone, it is the same in most charsets.
        Some(None) if !body.is_ascii() => Err(body),
        _ => Ok(text_of(body)),
    }
}

/// The error of a call that the API refused, with the message of its body (RFC 9457, and the forms that are usual besides).
pub(crate) fn refused(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    redactor: &Redactor,
) -> CallToolResult {
    let reason = status.canonical_reason().unwrap_or("status without a name");
    let mut message = format!("the API answered with HTTP {} ({reason})", status.as_u16());
    let most_values = MOST_OF_ERROR / BYTES_PER_VALUE;
    let is_readable =
        is_json(&media_type(headers)) || matches!(body.trim_ascii_start().first(), Some(b'{' | b'['));
    let problem: Option<Value> = is_readable
        .then(|| measure(body, most_values).ok().and_then(|_| serde_json::from_slice(body).ok()))
        .flatten();
    let said = match &problem {
        Some(problem) => message_of(problem),
        None if media_type(headers).contains("html") => None,
        None => Some(String::from_utf8_lossy(body).trim().to_owned()),
    };
    if let Some(said) = said.filter(|said| !said.is_empty()) {
        message.push_str(&format!(": {}", redactor.text(&said, MOST_MESSAGE)));
    }
    message.push_str(advice(status));
    let code = match status.as_u16() {
        429 => codes::RATE_LIMIT.to_owned(),
        status => format!("HTTP_{status}"),
    };
    let mut structured = json!({"code": code, "status": status.as_u16(), "message": message});
    if let Some(wait) = retry_after(headers) {
        structured["retryAfterSeconds"] = json!(whole_seconds(wait));
    }
    if let Some(Value::Object(fields)) = problem {
        structured["problem"] = Value::Object(shortened(&fields, redactor));
    }
    failure::error(message, structured)
}

fn advice(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => {
            "; the credentials of the gateway, which its operator sets in `auth` of the app, are missing or not accepted"
        }
        403 => "; the credentials of the gateway do not allow this",
        404 => "; check the identifiers in the arguments",
        408 | 500 | 502 | 503 | 504 => "; try again later",
        409 | 412 => "; read the object again before another try",
        413 => "; send less at once",
        429 => "; wait before another call",
        300..=399 => "; the gateway does not follow this redirect",
        _ => "",
    }
}

/// The words of an error about itself.
fn message_of(problem: &Value) -> Option<String> {
    let text =
        |value: &Value| value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let Value::Object(fields) = problem else { return text(problem) };
    let of = |fields: &Map<String, Value>, names: &[&str]| {
        names.iter().find_map(|name| fields.get(*name).and_then(text))
    };
    let inner = fields.get("error").and_then(Value::as_object);
    let mut parts: Vec<String> = Vec::new();
    let mut add = |part: Option<String>| {
        if let Some(part) = part.filter(|part| !parts.iter().any(|other| other.contains(part.as_str()))) {
            parts.push(part);
        }
    };
    add(of(fields, &["title"]));
    add(of(
        fields,
        &[
            "detail",
            "message",
            "error_description",
            "error_message",
            "description",
            "reason",
            "msg",
            "Message",
        ],
    ));
    if let Some(inner) = inner {
        add(of(inner, &["message", "detail", "description", "reason", "code", "type"]));
    }
    add(of(fields, &["error", "fault"]));
    for list in ["errors", "invalid-params", "violations", "details"] {
        if let Some(items) = fields.get(list).filter(|items| items.is_array() || items.is_object()) {
            let mut written = items.to_string();
            written.truncate(written.floor_char_boundary(MOST_MESSAGE));
            add(Some(written));
        }
    }
    Some(parts.join(": ")).filter(|message| !message.is_empty())
}

/// The fields of a problem for programs, each of them short and without credentials.
fn shortened(fields: &Map<String, Value>, redactor: &Redactor) -> Map<String, Value> {
    let short = |value: &Value| match value {
        Value::String(text) => json!(redactor.text(text, MOST_FIELD)),
        Value::Array(_) | Value::Object(_) => {
            let written = value.to_string();
            let clean = redactor.text(&written, MOST_FIELD);
            // Read again: what is cut, or masked across quotes, stays a text.
            read_json(&clean).unwrap_or(json!(clean))
        }
        other => other.clone(),
    };
    // The name alone may say that the value is a credential.
    let is_named = |name: &str, value: &Value| {
        value.as_str().is_some_and(|text| {
            let written = json!({name: text}).to_string();
            CredentialPatterns::usual().mask(&written) == json!({name: MASK}).to_string()
        })
    };
    let field = |(name, value): (&String, &Value)| {
        let value = if is_named(name, value) { json!(MASK) } else { short(value) };
        (redactor.text(name, 100), value)
    };
    fields.iter().take(MOST_FIELDS).map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_an_error_is_found_in_the_usual_forms() {
        for (problem, expected) in [
            (
                json!({"title": "Out of credit", "detail": "Balance is 30", "status": 403}),
                "Out of credit: Balance is 30",
            ),
            (json!({"message": "Not Found", "documentation_url": "https://d"}), "Not Found"),
            (json!({"error": {"code": 400, "message": "bad"}}), "bad"),
            (json!({"error": "invalid_request", "error_description": "no id"}), "no id: invalid_request"),
            (
                json!({"message": "Validation Failed", "errors": [{"field": "q"}]}),
                "Validation Failed: [{\"field\":\"q\"}]",
            ),
            (json!("just text"), "just text"),
        ] {
            assert_eq!(message_of(&problem).as_deref(), Some(expected));
        }
        assert_eq!(message_of(&json!({"a": 1})), None);
    }
}
