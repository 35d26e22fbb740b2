//! Answers of the demo's tools: results, pages and refusals, and the checks that a schema cannot make.

use rmcp::{
    ErrorData,
    handler::server::tool::IntoCallToolResult,
    model::{CallToolResponse, CallToolResult, MetaObject},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::dataset::{Table, is_date, word};

/// A refusal of a tool, as the caller sees it.
#[derive(Debug)]
pub(crate) enum Failure {
    NotFound { kind: &'static str, id: String },
    Validation(String),
    RateLimit { seconds: u128 },
}

impl Failure {
    pub(crate) fn not_found(kind: &'static str, id: &str) -> Self {
        Self::NotFound { kind, id: id.to_owned() }
    }

    pub(crate) fn invalid<T>(message: impl Into<String>) -> Result<T, Self> {
        Err(Self::Validation(message.into()))
    }

    /// Returns the message alone.
    pub(crate) fn message(&self) -> String {
        self.to_value()["message"].as_str().unwrap_or_default().to_owned()
    }

    /// The `structuredContent` of the error result.
    fn to_value(&self) -> Value {
        match self {
            Self::NotFound { kind, id } => json!({
                "code": "NOT_FOUND",
                "message": format!("There is no {kind} with the id '{id}'. List or search the {kind}s to find its id."),
            }),
            Self::Validation(message) => json!({ "code": "VALIDATION_ERROR", "message": message }),
            Self::RateLimit { seconds } => json!({
                "code": "RATE_LIMIT",
                "message": format!("Three calls a minute are allowed. Try again in {seconds} seconds."),
                "retryAfterSeconds": *seconds as u64,
            }),
        }
    }
}

impl IntoCallToolResult for Failure {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::structured_error(self.to_value()).into())
    }
}

/// `_meta` of a tool for Gatewright: the scope that a caller needs, and examples (description and AgentScript).
pub(crate) fn hints(scope: &str, examples: &[(&str, &str)]) -> MetaObject {
    let examples: Vec<Value> = examples
        .iter()
        .map(|(description, code)| json!({ "description": description, "code": code }))
        .collect();
    let mut meta = MetaObject::new();
    meta.insert("gatewright".into(), json!({ "examples": examples, "scopes": [scope] }));
    meta
}

/// One page of a list.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(crate) struct Page<T> {
    items: Vec<T>,
    /// Rows that match, on all pages
    total: usize,
    /// Pass it as cursor to get the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    next_cursor: Option<String>,
}

/// Rows on a page when the caller asks for no number.
pub(crate) fn default_limit() -> u32 {
    20
}

/// Returns the page of the rows that `keep` lets through which follows `cursor`.
pub(crate) fn page<T: Clone>(
    table: &Table<T>,
    limit: u32,
    cursor: Option<&str>,
    keep: impl Fn(&T) -> bool,
) -> Result<Page<T>, Failure> {
    if !(1..=100).contains(&limit) {
        return Failure::invalid(format!("'limit' must be a whole number from 1 to 100, not {limit}."));
    }
    if let (Some(cursor), Some(first)) = (cursor, table.keys().next())
        && (cursor.len() < first.len() || cursor.get(..4) != first.get(..4))
    {
        return Failure::invalid(format!(
            "'{cursor}' is not a cursor of this list. Pass nextCursor of the page before, or leave cursor out."
        ));
    }
    let kept: Vec<(&String, &T)> = table.iter().filter(|(_, value)| keep(value)).collect();
    let rest: Vec<_> =
        kept.iter().filter(|(id, _)| cursor.is_none_or(|cursor| id.as_str() > cursor)).collect();
    let items: Vec<(&String, &T)> = rest.iter().take(limit as usize).map(|row| **row).collect();
    let next_cursor = items.last().filter(|_| rest.len() > items.len()).map(|(id, _)| (*id).clone());
    let items = items.into_iter().map(|(_, value)| value.clone()).collect();
    Ok(Page { items, total: kept.len(), next_cursor })
}

/// Returns true if a filter is absent or equal to the row's value.
pub(crate) fn matches<T: Serialize>(filter: Option<&T>, actual: &str) -> bool {
    filter.is_none_or(|wanted| word(wanted) == actual)
}

/// Returns true if every word of `query` occurs in one of the texts, in any case.
pub(crate) fn contains_words(query: &str, texts: &[&str]) -> bool {
    let (haystack, query) = (texts.join("\n").to_lowercase(), query.to_lowercase());
    query.split_whitespace().all(|word| haystack.contains(word))
}

/// Returns the text without spaces around it, when there is any and not too much.
pub(crate) fn check_text(name: &str, text: &str) -> Result<String, Failure> {
    const MOST: usize = 2000;
    let text = text.trim();
    match text.chars().take(MOST + 1).count() {
        0 => Failure::invalid(format!("'{name}' must not be empty.")),
        1..=MOST => Ok(text.to_owned()),
        _ => Failure::invalid(format!("'{name}' is longer than {MOST} characters.")),
    }
}

/// Returns the address, when it is one.
pub(crate) fn check_email(name: &str, text: &str) -> Result<String, Failure> {
    if is_email(text) {
        return Ok(text.to_owned());
    }
    Failure::invalid(format!("'{name}' must be an e-mail address such as ada@example.com. '{text}' is not."))
}

/// Checks that the text is a day.
pub(crate) fn check_date(name: &str, text: &str) -> Result<(), Failure> {
    if is_date(text) {
        return Ok(());
    }
    Failure::invalid(format!("'{name}' must be a day written YYYY-MM-DD. '{text}' is not."))
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else {
        return false;
    };
    let plain = |part: &str| part.chars().all(|c| c.is_ascii_alphanumeric() || ".-_+".contains(c));
    let dotted = |part: &str| part.split('.').all(|label| !label.is_empty());
    plain(local) && dotted(local) && plain(domain) && dotted(domain) && domain.contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_email_has_one_at_sign_and_a_dotted_domain() {
        for right in ["a@b.co", "ada.l+x@example.com"] {
            assert!(is_email(right), "{right}");
        }
        for wrong in ["", "ada", "ada@", "@b.co", "a@b", "a@@b.co", "a b@c.de", "a@b..co"] {
            assert!(!is_email(wrong), "{wrong}");
        }
    }
}
