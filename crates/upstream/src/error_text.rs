//! Errors of servers as callers get them: their own words, without credentials and within a limit.
//!
//! Paths and stack traces are left to `codecall.sanitization`, which also covers the apps in this process.

use gatewright_core::{CredentialPatterns, MASK, URL_ELICITATION_REQUIRED, is_web_address};
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, ServerResult},
};
use serde_json::{Value, json};

use crate::redactor::Redactor;

/// Longest message of a protocol error, in bytes.
const MOST_MESSAGE: usize = 8 * 1024;
/// Most text of an error's data, or of a failed call, in bytes.
const MOST_TEXT: usize = 64 * 1024;

/// Takes out the questions that send the user elsewhere than to the web.
fn keep_web_addresses(data: &mut Value) {
    if let Some(asked) = data.get_mut("elicitations").and_then(Value::as_array_mut) {
        asked.retain(|one| one.get("url").is_none_or(|url| url.as_str().is_some_and(is_web_address)));
    }
}

impl Redactor {
    /// A protocol error. The data of one that asks the user to open addresses stays as it is, as far as they are of the web.
    pub(crate) fn error(&self, mut error: ErrorData) -> ErrorData {
        error.message = self.text(&error.message, MOST_MESSAGE).into();
        if error.code.0 == URL_ELICITATION_REQUIRED {
            error.data.iter_mut().for_each(keep_web_addresses);
        } else if let Some(data) = &mut error.data
            && !self.value("data", data, &mut { MOST_TEXT })
        {
            tracing::warn!("the data of a server's error is too long; its code alone is passed on");
            let code = data.get("code").filter(|code| code.as_str().is_none_or(|code| code.len() < 100));
            let code = code.filter(|code| code.is_string() || code.is_number());
            error.data = code.map(|code| json!({"code": code}));
        }
        error
    }

    /// A result; one that says that the call failed has an error's texts.
    pub(crate) fn result(&self, result: ServerResult) -> ServerResult {
        match result {
            ServerResult::CallToolResult(result) if result.is_error == Some(true) => {
                ServerResult::CallToolResult(self.failed(result))
            }
            result => result,
        }
    }

    fn failed(&self, mut result: CallToolResult) -> CallToolResult {
        let mut left = MOST_TEXT;
        for block in &mut result.content {
            if let ContentBlock::Text(text) = block {
                let shown = self.text(&text.text, left);
                left = left.saturating_sub(text.text.len());
                text.text = shown;
            }
        }
        // A failed call owes no structured content: the output schema is about results.
        if result
            .structured_content
            .as_mut()
            .is_some_and(|content| !self.value("content", content, &mut { MOST_TEXT }))
        {
            result.structured_content = None;
        }
        result
    }

    /// Redacts the texts of the value of a field. Returns `false` if it is longer than `left`.
    fn value(&self, name: &str, value: &mut Value, left: &mut usize) -> bool {
        match value {
            Value::String(text) => {
                let fits = take(left, text.len());
                if fits {
                    *text = self.field(name, text);
                }
                fits
            }
            Value::Array(items) => take(left, 0) && items.iter_mut().all(|item| self.value(name, item, left)),
            Value::Object(fields) => {
                take(left, 0)
                    && fields
                        .iter_mut()
                        .all(|(name, value)| take(left, name.len()) && self.value(name, value, left))
            }
            _ => take(left, 0),
        }
    }

    /// The text of a field, whose name may say that all of it is a credential.
    fn field(&self, name: &str, text: &str) -> String {
        let written = json!({ name: text }).to_string();
        match CredentialPatterns::usual().mask(&written) == json!({ name: MASK }).to_string() {
            true => MASK.to_owned(),
            false => self.text(text, MOST_TEXT),
        }
    }
}

/// Takes the bytes of a value, and those around its text.
fn take(left: &mut usize, bytes: usize) -> bool {
    const AROUND: usize = 8;
    let rest = left.checked_sub(bytes + AROUND);
    *left = rest.unwrap_or_default();
    rest.is_some()
}
