//! A tool's answer as a script sees it. `shapes::reading` says how texts and wrapped results are read.

use std::{borrow::Cow, iter::Peekable};

use gatewright_agentscript::{Sanitizer, excerpt};
use gatewright_core::{
    AnswerRoom, InvokeError, ToolEntry, codes, off_thread,
    rmcp::model::{CallToolResponse, CallToolResult, ContentBlock},
    whole_seconds,
};
use serde_json::{Value, json};

use crate::{
    declare::misleads,
    search::parameters,
    shapes::reading::{Read, Reading},
};

/// Replacement of a path by [`Sanitizer`].
const PATH: &str = "[path]";

/// The outcome of a tool call.
#[derive(Debug, Clone)]
pub(crate) enum ToolValue {
    /// The tool's value.
    Ok(Read),
    /// The tool's failure, or why it was not reached.
    Failed(Failure),
}

/// A failed tool call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Failure {
    /// The tool's own code, up to 256 bytes, or `TOOL_EXECUTION_ERROR`.
    pub(crate) code: String,
    /// The tool's message, up to 8 KiB: of a longer one the middle is left out.
    pub(crate) message: String,
    /// Seconds to wait before the next try, where a rate limit says so.
    pub(crate) retry_after_seconds: Option<u64>,
    /// Scopes that the caller lacks.
    pub(crate) required_scopes: Vec<String>,
    /// The gateway refused the input.
    pub(crate) has_bad_input: bool,
}

impl Failure {
    pub(crate) fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), ..Self::default() }
    }

    /// The `error` object of a reply, with `message` in place of the own one.
    pub(crate) fn to_json(&self, message: &str) -> Value {
        let mut error = json!({"code": self.code, "message": message});
        self.add_details(&mut error);
        error
    }

    /// Adds to an `error` object the values that a program can act on.
    pub(crate) fn add_details(&self, error: &mut Value) {
        if let Some(seconds) = self.retry_after_seconds {
            error["retryAfterSeconds"] = seconds.into();
        }
        if !self.required_scopes.is_empty() {
            error["requiredScopes"] = json!(self.required_scopes);
        }
    }

    /// The failure of a call of `tool`: one of its input names the tool's parameters, and one whose message is nothing but a path says what the path is.
    pub(crate) fn with_parameters_of(mut self, tool: &ToolEntry) -> Self {
        if is_only_path(&self.message) {
            self.message = format!(
                "`{}` failed and gave only this path as the reason: {}; it was not found, or is not what the tool needs",
                tool.tool.name,
                self.message.trim()
            );
        }
        if self.has_bad_input {
            let parameters = parameters(tool.input_schema()).replace(misleads, "\u{fffd}");
            self.message += "; parameters: ";
            self.message += if parameters.is_empty() { "none" } else { &parameters };
        }
        self
    }

    pub(crate) fn has_details(&self) -> bool {
        self.retry_after_seconds.is_some() || !self.required_scopes.is_empty()
    }
}

/// Returns `true` for a message that is one path, as servers send whose errors have no other text.
fn is_only_path(message: &str) -> bool {
    let bare = message.trim().trim_matches(['"', '\'', '`']);
    Sanitizer::default().text(bare) == PATH
}

impl From<InvokeError> for Failure {
    fn from(error: InvokeError) -> Self {
        let mut failure = Self::new(error.code(), excerpt::message(&error.to_string()));
        match error {
            InvokeError::RateLimited { retry_after, .. } => {
                failure.retry_after_seconds = Some(whole_seconds(retry_after));
            }
            InvokeError::MissingScopes { missing, .. } => failure.required_scopes = missing,
            InvokeError::InvalidArguments { .. } => failure.has_bad_input = true,
            _ => {}
        }
        failure
    }
}

/// Times that a value is in memory in the reply that is made of it.
const COPIES_IN_REPLY: u64 = 2;

impl ToolValue {
    /// The same, if `room` has the memory for a reply with a value of up to `most` bytes.
    pub(crate) fn within(self, room: Option<&AnswerRoom>, most: u64) -> Self {
        let Self::Ok(read) = &self else { return self };
        let bytes = COPIES_IN_REPLY.saturating_mul(read.bytes_within(most));
        match room.map(|room| room.reserve(bytes)) {
            Some(Err(why)) => Self::Failed(Failure::new("UPSTREAM_TOO_LARGE", why)),
            // The room is kept with the request.
            Some(Ok(_)) | None => self,
        }
    }

    /// The value of any answer an invocation can have. `keep` takes images, audio and resources, and returns what stands for them.
    pub(crate) async fn of(
        answer: Result<CallToolResponse, InvokeError>,
        reading: Reading,
        keep: impl FnMut(ContentBlock) -> Result<Value, Failure>,
    ) -> Self {
        match answer {
            Ok(CallToolResponse::Complete(result)) => unwrap_result(result, reading, keep).await,
            Ok(CallToolResponse::InputRequired(_)) => Self::Failed(Failure::new(
                "INPUT_REQUIRED",
                "the tool needs an answer from the user; call it with codecall:invoke, which can ask",
            )),
            Ok(_) => Self::Failed(Failure::new(
                codes::TOOL_EXECUTION_ERROR,
                "the tool answered with a task; call it directly",
            )),
            Err(error) => Self::Failed(error.into()),
        }
    }
}

/// Unwraps a result: `structuredContent`; else the one text item, parsed as JSON when it parses; else the content
/// array. An error's code is taken from `structuredContent.code`, `structuredContent.error.code` or `_meta.code`, and
/// `retryAfterSeconds` from the same places.
async fn unwrap_result(
    mut result: CallToolResult,
    reading: Reading,
    mut keep: impl FnMut(ContentBlock) -> Result<Value, Failure>,
) -> ToolValue {
    if result.is_error == Some(true) {
        return failure(&result);
    }
    leave_out_null(&mut result);
    if let Some(mut value) = result.structured_content {
        if let Err(failure) = replace_repeated(&mut value, result.content, keep) {
            return ToolValue::Failed(failure);
        }
        return ToolValue::Ok(Read::Value(reading.structured(value)));
    }
    if let [ContentBlock::Text(text)] = result.content.as_mut_slice() {
        let text = std::mem::take(&mut text.text);
        return ToolValue::Ok(off_thread(text.len(), move || reading.lone_text(text)).await);
    }
    let mut items = Vec::with_capacity(result.content.len());
    for block in result.content {
        let item = match block {
            ContentBlock::Image(_) | ContentBlock::Audio(_) | ContentBlock::Resource(_) => keep(block),
            other => Ok(serde_json::to_value(&other).unwrap_or(Value::Null)),
        };
        match item {
            Ok(item) => items.push(item),
            Err(failure) => return ToolValue::Failed(failure),
        }
    }
    ToolValue::Ok(Read::Value(items.into()))
}

/// Takes a structured value out that is null beside content: some servers write a value so that is not there.
pub(crate) fn leave_out_null(result: &mut CallToolResult) {
    result.structured_content.take_if(|value| value.is_null() && !result.content.is_empty());
}

/// Takes the images and audio of `content` out of a structured value that repeats them, in their order, and puts what `keep` returns in their places.
/// Returns the blocks that it does not repeat.
///
/// # Errors
/// `keep` fails.
pub(crate) fn replace_repeated(
    value: &mut Value,
    content: Vec<ContentBlock>,
    mut keep: impl FnMut(ContentBlock) -> Result<Value, Failure>,
) -> Result<Vec<ContentBlock>, Failure> {
    fn data(block: &ContentBlock) -> Option<&str> {
        match block {
            ContentBlock::Image(image) => Some(&image.data),
            ContentBlock::Audio(audio) => Some(&audio.data),
            _ => None,
        }
    }
    fn replace(
        value: &mut Value,
        media: &mut Peekable<std::vec::IntoIter<ContentBlock>>,
        keep: &mut impl FnMut(ContentBlock) -> Result<Value, Failure>,
    ) -> Result<(), Failure> {
        match value {
            Value::Array(items) => items.iter_mut().try_for_each(|item| replace(item, media, keep)),
            Value::Object(members) => {
                let own = members.get("data").and_then(Value::as_str);
                if let Some(block) = media.next_if(|block| own.is_some() && data(block) == own) {
                    *value = keep(block)?;
                    return Ok(());
                }
                members.values_mut().try_for_each(|member| replace(member, media, keep))
            }
            _ => Ok(()),
        }
    }
    let (media, mut others): (Vec<_>, Vec<_>) = content.into_iter().partition(|block| data(block).is_some());
    let mut media = media.into_iter().peekable();
    if media.peek().is_some() {
        replace(value, &mut media, &mut keep)?;
    }
    others.extend(media);
    Ok(others)
}

fn failure(result: &CallToolResult) -> ToolValue {
    let structured = result.structured_content.as_ref();
    let text =
        |value: Option<&Value>| value.and_then(Value::as_str).map(|text| excerpt::message(text).into_owned());
    let code = text(structured.and_then(|body| body.get("code")))
        .or_else(|| text(structured.and_then(|body| body.pointer("/error/code"))))
        .or_else(|| text(result.meta.as_ref().and_then(|meta| meta.0.get("code"))))
        .unwrap_or_else(|| codes::TOOL_EXECUTION_ERROR.to_owned());
    let texts: Vec<Cow<'_, str>> = result
        .content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(excerpt::message(&text.text)),
            _ => None,
        })
        .collect();
    let message = text(structured.and_then(|body| body.get("message")))
        .or_else(|| text(structured.and_then(|body| body.pointer("/error/message"))))
        .or_else(|| Some(texts.join("\n")))
        .filter(|message| !message.trim().is_empty())
        .unwrap_or_else(|| "the tool failed and did not say why".to_owned());
    let seconds = |value: Option<&Value>| value.and_then(Value::as_u64);
    let retry_after_seconds = seconds(structured.and_then(|body| body.get("retryAfterSeconds")))
        .or_else(|| seconds(structured.and_then(|body| body.pointer("/error/retryAfterSeconds"))))
        .or_else(|| seconds(result.meta.as_ref().and_then(|meta| meta.0.get("retryAfterSeconds"))));
    ToolValue::Failed(Failure {
        retry_after_seconds,
        ..Failure::new(excerpt::name(&code), excerpt::message(&message))
    })
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::shapes::reading::Text;

    fn result(value: Value) -> CallToolResult {
        serde_json::from_value(value).unwrap()
    }

    fn value(of: Value) -> Result<Value, Failure> {
        let reading = Reading { unwraps: true, text: Text::Json, declared: None };
        match unwrap_result(result(of), reading, |_| Ok(json!({"handle": "kept"}))).now_or_never().unwrap() {
            ToolValue::Ok(read) => Ok(read.into_value()),
            ToolValue::Failed(failure) => Err(failure),
        }
    }

    #[test]
    fn images_that_structured_content_repeats_are_replaced_in_their_places() {
        let image = |data: &str| json!({"type": "image", "data": data, "mimeType": "image/png"});
        let content = json!([image("QQ=="), {"type": "text", "text": "x"}, image("Qg=="), image("Qw==")]);
        let content: Vec<ContentBlock> = serde_json::from_value(content).unwrap();
        let mut value = json!({"content": [image("QQ=="), {"data": "ZZ"}, {"deep": image("Qg==")}, image("QQ==")], "n": 1});
        let mut kept = Vec::new();
        let rest = replace_repeated(&mut value, content, |block| {
            kept.push(block);
            Ok(json!(kept.len()))
        });
        assert_eq!(value, json!({"content": [1, {"data": "ZZ"}, {"deep": 2}, image("QQ==")], "n": 1}));
        assert_eq!((kept.len(), rest.unwrap().len()), (2, 2), "a text and an image are left");
    }

    #[test]
    fn structured_content_wins_over_text() {
        let both = json!({"content": [{"type": "text", "text": "x"}], "structuredContent": {"a": 1}});
        assert_eq!(value(both), Ok(json!({"a": 1})));
    }

    #[test]
    fn a_null_beside_text_is_no_value() {
        let null = |content: Value| value(json!({"content": content, "structuredContent": null}));
        assert_eq!(null(json!([{"type": "text", "text": "{\"a\": 1}"}])), Ok(json!({"a": 1})));
        assert_eq!(null(json!([{"type": "text", "text": "null"}])), Ok(Value::Null));
        assert_eq!(null(json!([])), Ok(Value::Null));
    }

    #[test]
    fn one_text_is_parsed_when_it_is_json_and_kept_when_not() {
        assert_eq!(value(json!({"content": [{"type": "text", "text": "[1, 2]"}]})), Ok(json!([1, 2])));
        assert_eq!(value(json!({"content": [{"type": "text", "text": "hi"}]})), Ok(json!("hi")));
    }

    #[test]
    fn several_items_stay_a_content_array() {
        let two = json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
        let Ok(Value::Array(items)) = value(two) else { panic!("an array") };
        assert_eq!(items.len(), 2);
    }

    #[test]
    fn what_is_no_text_is_kept_and_something_else_stands_for_it() {
        let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        let text = json!({"type": "text", "text": "a"});
        assert_eq!(
            value(json!({"content": [image, text]})),
            Ok(json!([{"handle": "kept"}, {"type": "text", "text": "a"}]))
        );
    }

    #[test]
    fn the_tools_own_code_is_found_where_servers_put_it() {
        let failed = |of| match value(of) {
            Err(failure) => (failure.code, failure.message),
            Ok(_) => panic!("a failure"),
        };
        let text = json!([{"type": "text", "text": "no such user"}]);
        assert_eq!(
            failed(json!({"isError": true, "content": text, "structuredContent": {"code": "NOT_FOUND"}})),
            ("NOT_FOUND".into(), "no such user".into())
        );
        let nested = json!({"isError": true, "content": [], "structuredContent": {"error": {"code": "A", "message": "b"}}});
        assert_eq!(failed(nested), ("A".into(), "b".into()));
        assert_eq!(failed(json!({"isError": true, "content": text, "_meta": {"code": "M"}})).0, "M");
        assert_eq!(failed(json!({"isError": true, "content": text})).0, "TOOL_EXECUTION_ERROR");
        let blank = json!([{"type": "text", "text": " "}]);
        for content in [json!([]), blank] {
            let failed = failed(json!({"isError": true, "content": content}));
            assert_eq!(failed.1, "the tool failed and did not say why");
        }
    }

    #[test]
    fn messages_that_are_nothing_but_a_path_are_told_from_others() {
        for (message, expected) in [
            ("/work/x/repo", true),
            (" '/home/ann/a.txt'\n", true),
            (r"C:\Users\ann\x", true),
            ("no such file: /home/ann/a.txt", false),
            ("/home/ann/a.txt: denied", false),
            ("/users/1", false),
            ("", false),
        ] {
            assert_eq!(is_only_path(message), expected, "{message}");
        }
    }

    #[test]
    fn the_time_to_wait_is_found_where_servers_put_it() {
        let seconds = |of| match value(of) {
            Err(failure) => failure.retry_after_seconds,
            Ok(_) => panic!("a failure"),
        };
        let error = json!({"code": "RATE_LIMIT", "retryAfterSeconds": 7});
        assert_eq!(seconds(json!({"isError": true, "content": [], "structuredContent": error})), Some(7));
        let nested = json!({"error": error});
        assert_eq!(seconds(json!({"isError": true, "content": [], "structuredContent": nested})), Some(7));
        assert_eq!(seconds(json!({"isError": true, "content": [], "_meta": error})), Some(7));
        assert_eq!(
            seconds(json!({"isError": true, "content": [], "_meta": {"retryAfterSeconds": "7"}})),
            None
        );
    }
}
