//! Errors of servers as callers get them: their own words, without credentials and within a limit.
//!
//! Paths and stack traces are left to `codecall.sanitization`, which also covers the apps in this process.

use gatewright_core::{
    CredentialPatterns, MASK, URL_ELICITATION_REQUIRED, bulk, bulk_of, is_web_address, off_thread,
};
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, DetailedTask, ErrorCode, ServerResult, TaskPayload},
};
use serde_json::{Map, Value, json};

use crate::redactor::Redactor;

/// Longest message of a protocol error, in bytes.
const MOST_MESSAGE: usize = 8 * 1024;
/// Most text of an error's data, or of a failed call, in bytes.
const MOST_TEXT: usize = 64 * 1024;

/// Most bytes of a name that are looked at. They are its last ones, which say of what it is the name.
const MOST_NAME: usize = 100;

/// Takes out the questions that send the user elsewhere than to the web.
fn keep_web_addresses(data: &mut Value) {
    if let Some(asked) = data.get_mut("elicitations").and_then(Value::as_array_mut) {
        asked.retain(|one| one.get("url").is_none_or(|url| url.as_str().is_some_and(is_web_address)));
    }
}

impl Redactor {
    /// A protocol error. In the data of one that asks the user to open addresses, those of the web stay as they are.
    pub(crate) async fn error(&self, error: ErrorData) -> ErrorData {
        let bytes = error.data.as_ref().map_or(0, bulk).saturating_add(error.message.len());
        let redactor = self.clone();
        off_thread(bytes, move || redactor.redacted(error)).await
    }

    fn redacted(&self, mut error: ErrorData) -> ErrorData {
        error.message = self.text(&error.message, MOST_MESSAGE).into();
        let asks = error.code.0 == URL_ELICITATION_REQUIRED;
        if let Some(data) = &mut error.data
            && !(if asks { self.questions(data) } else { self.value(Text::Plain, data, &mut { MOST_TEXT }) })
        {
            tracing::warn!("the data of a server's error is too long; its code alone is passed on");
            let code = data.get("code").filter(|code| code.as_str().is_none_or(|code| code.len() < 100));
            let code = code.filter(|code| code.is_string() || code.is_number());
            error.data = code.map(|code| json!({"code": code}));
        }
        error
    }

    /// A result; one that says that the call failed has an error's texts.
    pub(crate) async fn result(&self, result: ServerResult) -> ServerResult {
        match result {
            ServerResult::CallToolResult(result) if result.is_error == Some(true) => {
                let texts = result.content.iter().map(|block| match block {
                    ContentBlock::Text(text) => text.text.len(),
                    _ => 0,
                });
                let bytes = texts.chain(result.structured_content.iter().map(bulk));
                let bytes = bytes.fold(0, usize::saturating_add);
                let redactor = self.clone();
                ServerResult::CallToolResult(off_thread(bytes, move || redactor.failed(result)).await)
            }
            ServerResult::GetTaskResult(mut result) => {
                let bytes = match &result.task.payload {
                    TaskPayload::Completed { result } => bulk_of(result),
                    TaskPayload::Failed { error } => bulk_of(error),
                    _ => 0,
                };
                let redactor = self.clone();
                let message = result.task.task.status_message.as_ref().map_or(0, String::len);
                let redacted = off_thread(bytes.saturating_add(message), move || {
                    redactor.task(&mut result.task);
                    result
                });
                ServerResult::GetTaskResult(redacted.await)
            }
            result => result,
        }
    }

    /// The status of a task, whose error, failed result and message are texts of an error.
    fn task(&self, task: &mut DetailedTask) {
        if let Some(message) = &mut task.task.status_message {
            *message = self.text(message, MOST_MESSAGE);
        }
        match &mut task.payload {
            TaskPayload::Failed { error } => {
                let mut value = Value::Object(std::mem::take(error));
                let known: Result<ErrorData, _> = serde_json::from_value(value.clone());
                value = match known {
                    Ok(known) => json!(self.redacted(known)),
                    Err(_) => json!({"code": ErrorCode::INTERNAL_ERROR, "message": "the task failed"}),
                };
                if let Value::Object(fields) = value {
                    *error = fields;
                }
            }
            TaskPayload::Completed { result } if result.get("isError") == Some(&Value::Bool(true)) => {
                let known = serde_json::from_value(Value::Object(std::mem::take(result)));
                let redacted = match known {
                    Ok(known) => self.failed(known),
                    Err(_) => CallToolResult::error(vec![ContentBlock::text("the tool failed")]),
                };
                if let Value::Object(fields) = json!(redacted) {
                    *result = fields;
                }
            }
            _ => {}
        }
    }

    fn failed(&self, mut result: CallToolResult) -> CallToolResult {
        let mut left = MOST_TEXT;
        result.content.retain_mut(|block| match block {
            ContentBlock::Text(text) => {
                let shown = self.text(&text.text, left);
                left = left.saturating_sub(text.text.len());
                text.text = shown;
                true
            }
            ContentBlock::Image(_) | ContentBlock::Audio(_) => true,
            // Addresses, names and texts of resources, and whatever comes to be.
            _ => {
                let mut value = json!(block);
                let redacted = self.value(Text::Plain, &mut value, &mut left).then_some(value);
                match redacted.and_then(|value| serde_json::from_value(value).ok()) {
                    Some(redacted) => *block = redacted,
                    None => return false,
                }
                true
            }
        });
        if let Some(meta) = result.meta.as_mut().filter(|meta| !meta.is_empty()) {
            let mut value = Value::Object(std::mem::take(&mut meta.0));
            if self.value(Text::Plain, &mut value, &mut left)
                && let Value::Object(fields) = value
            {
                meta.0 = fields;
            }
        }
        // A failed call owes no structured content: the output schema is about results.
        if result
            .structured_content
            .as_mut()
            .is_some_and(|content| !self.value(Text::Plain, content, &mut { MOST_TEXT }))
        {
            result.structured_content = None;
        }
        result
    }

    /// Redacts data that asks the user to open addresses. The addresses and ids of its questions lose the gateway's credentials only: without what looks
    /// like one they are of no use. Returns `false` if it is too long.
    fn questions(&self, data: &mut Value) -> bool {
        keep_web_addresses(data);
        let mut left = MOST_TEXT;
        let asked = data.get_mut("elicitations").filter(|asked| asked.is_array());
        let mut asked = asked.map(Value::take);
        if !self.value(Text::Plain, data, &mut left) {
            return false;
        }
        for one in asked.iter_mut().filter_map(Value::as_array_mut).flatten() {
            if !take(&mut left, bulk(one)) {
                return false;
            }
            let addresses = ["url", "elicitationId"].map(|name| {
                let text = one.get(name)?.as_str().map(|text| self.without_credentials(text))?;
                Some((name, text))
            });
            if !self.value(Text::Plain, one, &mut { MOST_TEXT }) {
                return false;
            }
            for (name, text) in addresses.into_iter().flatten() {
                one[name] = text.into();
            }
        }
        if let (Some(asked), Some(place)) = (asked, data.get_mut("elicitations")) {
            *place = asked;
        }
        true
    }

    /// Redacts the texts of a value. Returns `false` if it is longer than `left`.
    fn value(&self, kind: Text, value: &mut Value, left: &mut usize) -> bool {
        match value {
            Value::String(text) => {
                let fits = take(left, text.len());
                if fits {
                    *text = match kind {
                        Text::Plain => self.text(text, MOST_TEXT),
                        Text::Credential => MASK.to_owned(),
                    };
                }
                fits
            }
            Value::Array(items) => take(left, 0) && items.iter_mut().all(|item| self.value(kind, item, left)),
            Value::Object(fields) => {
                let fits = take(left, 0)
                    && fields.iter_mut().all(|(name, value)| {
                        take(left, name.len()) && {
                            let kind =
                                if value.is_string() || value.is_array() { Text::of(name) } else { kind };
                            self.value(kind, value, left)
                        }
                    });
                if fits {
                    self.names(fields);
                }
                fits
            }
            _ => take(left, 0),
        }
    }
}

impl Redactor {
    /// Redacts the names of fields.
    fn names(&self, fields: &mut Map<String, Value>) {
        let redacted: Vec<String> = fields.keys().map(|name| self.text(name, MOST_TEXT)).collect();
        if !fields.keys().eq(redacted.iter()) {
            *fields = redacted
                .into_iter()
                .zip(std::mem::take(fields))
                .map(|(name, (_, value))| (name, value))
                .collect();
        }
    }
}

/// A text, or all texts of a list, as the name of their field says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Plain,
    /// All of it is a credential.
    Credential,
}

impl Text {
    fn of(name: &str) -> Self {
        #[cfg(test)]
        tests::DECIDED.with(|decided| decided.set(decided.get() + 1));
        let end = &name[name.ceil_char_boundary(name.len().saturating_sub(MOST_NAME))..];
        match CredentialPatterns::usual().mask(&json!({ end: "x" }).to_string())
            == json!({ end: MASK }).to_string()
        {
            true => Self::Credential,
            false => Self::Plain,
        }
    }
}

/// Takes the bytes of a value, and those around its text.
fn take(left: &mut usize, bytes: usize) -> bool {
    const AROUND: usize = 8;
    let rest = left.checked_sub(bytes.saturating_add(AROUND));
    *left = rest.unwrap_or_default();
    rest.is_some()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// Names that were compared with those of credentials.
        pub(super) static DECIDED: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn the_name_of_a_long_list_is_looked_at_once_and_only_its_end() {
        let redacted = |name: &str| {
            let mut data = json!({ name: vec![""; 4_000] });
            let before = DECIDED.get();
            assert!(Redactor::default().value(Text::Plain, &mut data, &mut { MOST_TEXT }));
            assert_eq!(DECIDED.get(), before + 1);
            data[name][3_999].clone()
        };
        assert_eq!(redacted(&"n".repeat(30_000)), "");
        assert_eq!(redacted(&format!("{} api_key", "n".repeat(30_000))), MASK);
        assert_eq!(redacted("DB_PASSWORD"), MASK);
    }

    #[test]
    fn a_credential_is_taken_out_of_names_as_well() {
        let redactor = Redactor::new([gatewright_core::Secret::new("header-value-1")], []);
        let mut data = json!({"b": 1, "header-value-1": {"x header-value-1": [1]}, "a": 2});
        assert!(redactor.value(Text::Plain, &mut data, &mut { MOST_TEXT }));
        let names = format!("{{\"b\":1,\"{MASK}\":{{\"x {MASK}\":[1]}},\"a\":2}}");
        assert_eq!(data.to_string(), names);
    }

    #[test]
    fn a_task_that_failed_and_a_failed_result_have_no_credentials_wherever_they_stand() {
        let redactor = Redactor::new([gatewright_core::Secret::new("header-value-1")], []);
        let task = |more: Value| {
            let mut task = json!({"taskId": "t", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
                                  "ttlMs": null, "statusMessage": "with header-value-1"});
            task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let mut task: DetailedTask = serde_json::from_value(task).unwrap();
            redactor.task(&mut task);
            json!(task)
        };
        let error = json!({"code": -32603, "message": "header-value-1", "data": {"a": "header-value-1"}});
        let link = json!({"type": "resource_link", "uri": "x://header-value-1", "name": "header-value-1"});
        let inside = json!({"type": "resource", "resource": {"uri": "x://a", "text": "header-value-1"}});
        let failed = json!({"isError": true, "content": [{"type": "text", "text": "header-value-1"}, link, inside],
                            "_meta": {"a": "header-value-1"}});
        for (more, kept) in [
            (json!({"status": "failed", "error": error}), 2),
            (json!({"status": "completed", "result": failed}), 5),
            (json!({"status": "cancelled"}), 0),
        ] {
            let text = task(more).to_string();
            assert!(!text.contains("header-value-1"), "{text}");
            assert_eq!(text.matches(MASK).count(), kept + 1, "{text}");
        }
        let fine = json!({"status": "completed", "result": {"content": [{"type": "text", "text": "header-value-1"}]}});
        assert!(task(fine).to_string().contains("header-value-1"), "what a tool returns is its data");
    }

    #[test]
    fn an_error_that_asks_to_open_addresses_is_short_and_has_no_credentials_but_those_of_the_addresses() {
        let url = "https://a.example/?token=abcdefgh";
        let redacted = |more: Value| {
            let asked =
                json!([{"mode": "url", "url": url, "elicitationId": "1", "message": "password=hunter2"}]);
            let data = json!({"elicitations": asked, "code": "SIGN_IN", "more": more});
            let code = rmcp::model::ErrorCode(URL_ELICITATION_REQUIRED);
            Redactor::default().redacted(ErrorData::new(code, "", Some(data))).data
        };
        let asked =
            json!([{"mode": "url", "url": url, "elicitationId": "1", "message": "password=[redacted]"}]);
        let short = json!({"elicitations": asked, "code": "SIGN_IN", "more": "api_key=[redacted]"});
        assert_eq!(redacted(json!("api_key=hunter2")), Some(short));
        assert_eq!(redacted(json!("x".repeat(MOST_TEXT))), Some(json!({"code": "SIGN_IN"})));
    }

    #[test]
    fn an_address_that_a_user_has_to_open_has_no_credential_of_the_gateway() {
        let redactor = Redactor::new([crate::Secret::new("header-value-1")], []);
        let asked = json!([{"mode": "url", "url": "https://a.example/?k=header-value-1&state=abcdefgh",
                            "elicitationId": "header-value-1", "message": "go", "title": "header-value-1",
                            "_meta": {"header-value-1": [1, "a%20header-value-1"]}}, "header-value-1"]);
        let code = rmcp::model::ErrorCode(URL_ELICITATION_REQUIRED);
        let error = redactor.redacted(ErrorData::new(code, "", Some(json!({"elicitations": asked}))));
        let text = json!(error.data).to_string();
        assert!(!text.contains("header-value-1") && text.contains("&state=abcdefgh"), "{text}");
    }
}
