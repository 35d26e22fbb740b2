//! The matchers as plain functions.

use gatewright_findings::nearest;
use serde_json::Value;

use super::{AsSubject, Mismatch, Subject, json_diff};
use crate::{records::RpcResponse, shorten};

/// The outcome of a matcher.
pub type Outcome = Result<(), Mismatch>;

fn contains(wanted: &str, what: &str, names: Vec<&str>) -> Outcome {
    if names.contains(&wanted) {
        return Ok(());
    }
    let hint = nearest(wanted, names.iter().copied()).map(|near| format!("did you mean `{near}`?"));
    let actual = match names.len() {
        0 => format!("there are no {what}s"),
        count => format!("{count} {what}s: {}", shorten(&names.join(", "), 600)),
    };
    Err(Mismatch::new(format!("a {what} `{wanted}`"), actual).hint(hint))
}

/// A list of tools holds one of this name.
///
/// # Errors
/// It does not, or the value is no such list.
pub fn contains_tool(value: &(impl AsSubject + ?Sized), name: &str) -> Outcome {
    match value.as_subject() {
        Subject::Tools(tools) => {
            contains(name, "tool", tools.iter().map(|tool| tool.name.as_str()).collect())
        }
        other => Err(other.wrong_kind("a list of tools")),
    }
}

/// A list of resources holds one of this URI.
///
/// # Errors
/// It does not, or the value is no such list.
pub fn contains_resource(value: &(impl AsSubject + ?Sized), uri: &str) -> Outcome {
    match value.as_subject() {
        Subject::Resources(all) => {
            contains(uri, "resource", all.iter().map(|one| one.uri.as_str()).collect())
        }
        other => Err(other.wrong_kind("a list of resources")),
    }
}

/// A list of resource templates holds this one.
///
/// # Errors
/// It does not, or the value is no such list.
pub fn contains_resource_template(value: &(impl AsSubject + ?Sized), template: &str) -> Outcome {
    match value.as_subject() {
        Subject::ResourceTemplates(all) => {
            contains(template, "resource template", all.iter().map(|one| one.uri_template.as_str()).collect())
        }
        other => Err(other.wrong_kind("a list of resource templates")),
    }
}

/// A list of prompts holds one of this name.
///
/// # Errors
/// It does not, or the value is no such list.
pub fn contains_prompt(value: &(impl AsSubject + ?Sized), name: &str) -> Outcome {
    match value.as_subject() {
        Subject::Prompts(all) => contains(name, "prompt", all.iter().map(|one| one.name.as_str()).collect()),
        other => Err(other.wrong_kind("a list of prompts")),
    }
}

/// A tool call succeeded, or an answer has a result and no `isError`.
///
/// # Errors
/// It failed, or the value is neither.
pub fn is_successful(value: &(impl AsSubject + ?Sized)) -> Outcome {
    let subject = value.as_subject();
    let success = match &subject {
        Subject::ToolResult(result) => result.is_success,
        Subject::RpcResponse(response) => {
            response.result().is_some_and(|result| !result["isError"].as_bool().unwrap_or(false))
        }
        other => return Err(other.wrong_kind("the result of a tool call or a JSON-RPC answer")),
    };
    if success { Ok(()) } else { Err(Mismatch::new("a success", format!("an error: {subject}"))) }
}

/// A tool call or an answer is an error, and with `code` one of this JSON-RPC code.
///
/// # Errors
/// It is not, or the value is neither.
pub fn is_error(value: &(impl AsSubject + ?Sized), code: Option<i64>) -> Outcome {
    let subject = value.as_subject();
    let (failed, found) = match &subject {
        Subject::ToolResult(result) => (result.is_error, result.error.as_ref().map(|error| error.code)),
        Subject::RpcResponse(response) => {
            let of_tool =
                response.result().is_some_and(|result| result["isError"].as_bool().unwrap_or(false));
            (response.error().is_some() || of_tool, response.error().map(|error| error.code))
        }
        Subject::ClientError(error) => (true, error.code()),
        other => return Err(other.wrong_kind("the result of a tool call or a JSON-RPC answer")),
    };
    match code {
        _ if !failed => Err(Mismatch::new("an error", format!("a success: {subject}"))),
        None => Ok(()),
        Some(code) if found == Some(code) => Ok(()),
        Some(code) => {
            let actual = match found {
                Some(found) => format!("code {found}: {subject}"),
                None => format!("a result with `isError`, which has no code: {subject}"),
            };
            Err(Mismatch::new(format!("an error with code {code}"), actual))
        }
    }
}

fn texts(subject: &Subject<'_>) -> Option<Vec<String>> {
    let blocks = subject.blocks()?;
    let of = |block: &Value| block["text"].as_str().or(block["resource"]["text"].as_str()).map(str::to_owned);
    Some(blocks.iter().filter_map(of).collect())
}

/// A text holds `text`; with none, there is a text that is not empty.
///
/// # Errors
/// There is none, or the value has no content.
pub fn has_text_content(value: &(impl AsSubject + ?Sized), text: Option<&str>) -> Outcome {
    let subject = value.as_subject();
    let Some(texts) = texts(&subject) else { return Err(subject.wrong_kind("something with content")) };
    let found = match text {
        Some(text) => texts.iter().any(|one| one.contains(text)),
        None => texts.iter().any(|one| !one.is_empty()),
    };
    if found {
        return Ok(());
    }
    let expected = text.map_or("a text".to_owned(), |text| format!("a text that holds {text:?}"));
    let actual = match texts.as_slice() {
        [] => format!("no text: {subject}"),
        texts => shorten(&format!("{texts:?}"), 800),
    };
    Err(Mismatch::new(expected, actual))
}

fn has_block(subject: &Subject<'_>, expected: &str, wanted: impl Fn(&Value) -> bool) -> Outcome {
    let Some(blocks) = subject.blocks() else { return Err(subject.wrong_kind("something with content")) };
    if blocks.iter().any(wanted) {
        return Ok(());
    }
    let kinds: Vec<&str> = blocks.iter().map(|block| block["type"].as_str().unwrap_or("?")).collect();
    Err(Mismatch::new(expected, format!("{} blocks {kinds:?}: {subject}", blocks.len())))
}

/// There is an image.
///
/// # Errors
/// There is none, or the value has no content.
pub fn has_image_content(value: &(impl AsSubject + ?Sized)) -> Outcome {
    let subject = value.as_subject();
    has_block(&subject, "an image", |block| block["type"] == "image")
}

/// There is an embedded resource or a link to one.
///
/// # Errors
/// There is none, or the value has no content.
pub fn has_resource_content(value: &(impl AsSubject + ?Sized)) -> Outcome {
    let subject = value.as_subject();
    has_block(&subject, "a resource", |block| block["type"] == "resource" || block["type"] == "resource_link")
}

/// A content has this media type.
///
/// # Errors
/// None has, or the value has no content.
pub fn has_mime_type(value: &(impl AsSubject + ?Sized), mime_type: &str) -> Outcome {
    let subject = value.as_subject();
    let Some(blocks) = subject.blocks() else { return Err(subject.wrong_kind("something with content")) };
    let of = |block: &Value| {
        block["mimeType"].as_str().or(block["resource"]["mimeType"].as_str()).map(str::to_owned)
    };
    let found: Vec<String> = blocks.iter().filter_map(of).collect();
    match found.iter().any(|one| one == mime_type) {
        true => Ok(()),
        false => Err(Mismatch::new(format!("the media type `{mime_type}`"), format!("{found:?}: {subject}"))),
    }
}

/// A prompt has this many messages.
///
/// # Errors
/// It has not, or the value is no result of a prompt.
pub fn has_messages(value: &(impl AsSubject + ?Sized), count: usize) -> Outcome {
    match value.as_subject() {
        Subject::PromptResult(prompt) if prompt.messages.len() == count => Ok(()),
        Subject::PromptResult(prompt) => Err(Mismatch::new(
            format!("{count} messages"),
            format!("{}: {}", prompt.messages.len(), value.as_subject()),
        )),
        other => Err(other.wrong_kind("the result of a prompt")),
    }
}

/// A message has this role; of a prompt, any message.
///
/// # Errors
/// None has, or the value is no message.
pub fn has_role(value: &(impl AsSubject + ?Sized), role: &str) -> Outcome {
    let subject = value.as_subject();
    let roles: Vec<&str> = match &subject {
        Subject::PromptMessage(message) => vec![&message.role],
        Subject::PromptResult(prompt) => prompt.messages.iter().map(|one| one.role.as_str()).collect(),
        other => return Err(other.wrong_kind("a message or the result of a prompt")),
    };
    match roles.contains(&role) {
        true => Ok(()),
        false => Err(Mismatch::new(format!("the role `{role}`"), format!("{roles:?}"))),
    }
}

/// A message's text holds this; of a prompt, any message's; of a result or a resource, any text.
///
/// # Errors
/// None does, or the value has no content.
pub fn contains_text(value: &(impl AsSubject + ?Sized), text: &str) -> Outcome {
    has_text_content(value, Some(text))
}

fn answer(subject: &Subject<'_>) -> Result<RpcResponse, Mismatch> {
    match subject {
        Subject::RpcResponse(response) => Ok((*response).clone()),
        Subject::ClientError(error) if error.rpc_error().is_some() => Ok(RpcResponse { raw: subject.json() }),
        Subject::Json(value) => Ok(RpcResponse { raw: (*value).clone() }),
        other => Err(other.wrong_kind("a JSON-RPC answer")),
    }
}

/// The value is a JSON-RPC 2.0 answer: `jsonrpc` is `2.0`, there is an id, and exactly one of `result` and `error`.
///
/// # Errors
/// It is not; the message names what is wrong.
pub fn is_valid_json_rpc(value: &(impl AsSubject + ?Sized)) -> Outcome {
    let subject = value.as_subject();
    let raw = answer(&subject)?.raw;
    let mut problems = Vec::new();
    if raw["jsonrpc"] != "2.0" {
        problems.push(format!("`jsonrpc` is {}, not \"2.0\"", raw["jsonrpc"]));
    }
    let has_error = raw.get("error").is_some();
    match raw.get("id") {
        None => problems.push("there is no `id`".into()),
        Some(Value::String(_) | Value::Number(_)) => {}
        Some(Value::Null) if has_error => {}
        Some(other) => problems.push(format!("`id` is {other}")),
    }
    match (raw.get("result").is_some(), raw.get("error")) {
        (true, None) => {}
        (false, Some(error)) => {
            if !error["code"].is_i64() {
                problems.push(format!("`error.code` is {}, not a whole number", error["code"]));
            }
            if !error["message"].is_string() {
                problems.push(format!("`error.message` is {}, not a text", error["message"]));
            }
        }
        (true, Some(_)) => problems.push("there are both `result` and `error`".into()),
        (false, None) => problems.push("there is neither `result` nor `error`".into()),
    }
    match problems.is_empty() {
        true => Ok(()),
        false => {
            Err(Mismatch::new("a JSON-RPC 2.0 answer", subject.to_string()).hint(Some(problems.join("; "))))
        }
    }
}

/// An answer has a result.
///
/// # Errors
/// It has not, or the value is no answer.
pub fn has_result(value: &(impl AsSubject + ?Sized)) -> Outcome {
    let subject = value.as_subject();
    match answer(&subject)?.result() {
        Some(_) => Ok(()),
        None => Err(Mismatch::new("an answer with a result", subject.to_string())),
    }
}

/// An answer has an error.
///
/// # Errors
/// It has not, or the value is no answer.
pub fn has_error(value: &(impl AsSubject + ?Sized)) -> Outcome {
    let subject = value.as_subject();
    match answer(&subject)?.raw.get("error") {
        Some(_) => Ok(()),
        None => Err(Mismatch::new("an answer with an error", subject.to_string())),
    }
}

/// An answer has an error with this code.
///
/// # Errors
/// It has not, or the value is no answer.
pub fn has_error_code(value: &(impl AsSubject + ?Sized), code: i64) -> Outcome {
    let subject = value.as_subject();
    let answer = answer(&subject)?;
    match answer.raw["error"]["code"].as_i64() {
        Some(found) if found == code => Ok(()),
        _ => Err(Mismatch::new(format!("an error with code {code}"), subject.to_string())),
    }
}

/// The JSON of a value holds all of `expected`. For a result of a tool this is `structuredContent`, or its text read as
/// JSON; for everything else the record as it came.
///
/// # Errors
/// It does not; the hint lists where.
pub fn matches_json(value: &(impl AsSubject + ?Sized), expected: &Value) -> Outcome {
    let subject = value.as_subject();
    let actual = match &subject {
        Subject::ToolResult(result) => result.json().unwrap_or_else(|_| result.raw.clone()),
        Subject::ResourceContent(content) => content.json().unwrap_or_else(|_| content.raw.clone()),
        other => other.json(),
    };
    let lines = json_diff(expected, &actual);
    match lines.is_empty() {
        true => Ok(()),
        false => Err(Mismatch::new(expected.to_string(), shorten(&actual.to_string(), 800))
            .hint(Some(lines.join("\n          ")))),
    }
}
