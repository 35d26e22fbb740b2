//! The promises of one call, judged by its outcome.

use serde_json::Value;

use super::{
    cases::Fit,
    finding::{Promise, Severity},
    leaks,
};
use crate::{
    base::text::shorten,
    protocol::{ClientError, ToolResult},
    shapes::{Rule, Violation},
};

/// A promise that a call broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) promise: Promise,
    pub(super) severity: Severity,
    /// The kind within the promise: calls that break it in the same way have the same.
    pub(super) kind: String,
    pub(super) problem: String,
    /// The answer, or a part of it.
    pub(super) answer: String,
}

impl Broken {
    pub(super) fn new(promise: Promise, kind: &str, problem: impl Into<String>, answer: &str) -> Self {
        let (kind, answer) = (kind.to_owned(), shorten(answer, 400));
        Self { promise, severity: promise.severity(), kind, problem: problem.into(), answer }
    }
}

/// The promises that a call broke. `problem` says why the input is invalid, and `canary` is a secret of the server.
pub(super) fn judge(
    fit: Fit,
    arguments: &Value,
    outcome: &Result<ToolResult, ClientError>,
    problem: &str,
    canary: Option<&str>,
) -> Vec<Broken> {
    let mut broken = Vec::new();
    let text = match outcome {
        Ok(result) => answer_text(result),
        Err(error) => error.to_string(),
    };
    let input = arguments.to_string();
    match outcome {
        Err(ClientError::Shape { problem, answer, .. }) => {
            broken.push(Broken::new(Promise::Shape, "", problem.trim(), answer));
        }
        Err(ClientError::Http { status, body }) if *status >= 500 => {
            let told = format!("the answer is HTTP {status}");
            broken.push(Broken::new(Promise::NoInternalError, &status.to_string(), told, body));
        }
        _ => {}
    }
    if let Some((language, trace)) = leaks::trace(&text, &input) {
        let told =
            format!("the answer has a stack trace ({language}), which tells strangers about the server");
        broken.push(Broken::new(Promise::NoTrace, language, told, trace));
    }
    if let Some(canary) = canary.filter(|canary| text.contains(*canary)) {
        let told =
            "the answer has the value of an environment variable of the server, as it would any secret there";
        broken.push(Broken::new(Promise::NoSecret, "environment", told, canary));
    }
    if let Some((kind, _)) = leaks::secret(&text, &input) {
        // The secret itself does not go into reports.
        broken.push(Broken::new(
            Promise::NoSecret,
            kind,
            format!("the answer has what looks like {kind}"),
            "",
        ));
    }
    let Ok(result) = outcome else { return broken };
    let code = result.error.as_ref().map(|error| error.code);
    if code == Some(-32603) {
        let told = "the answer is an internal error (-32603): the tool did not expect this input";
        broken.push(Broken::new(Promise::NoInternalError, "-32603", told, &text));
    }
    match (fit, result.is_error) {
        (Fit::Invalid(rule), false) => {
            let told = format!("the tool takes input that its schema does not allow: {problem}");
            broken.push(Broken::new(Promise::RefusesInvalid, rule, told, &text));
        }
        (Fit::Extra, false) => {
            let told = format!("the tool takes properties that its schema does not allow: {problem}");
            broken.push(Broken::new(Promise::RefusesUnknown, "", told, &text));
        }
        (Fit::Valid, true) if code == Some(-32602) => {
            let told = "the tool refuses input that its schema allows (-32602)";
            broken.push(Broken::new(Promise::AcceptsValid, "", told, &text));
        }
        _ => {}
    }
    broken
}

/// The promise that a wrong shape breaks.
pub(super) fn of_violation(violation: &Violation) -> Broken {
    let problem = format!("`{}`: {violation}", violation.method);
    let broken = Broken::new(Promise::Shape, violation.rule.name(), problem, "");
    Broken { severity: weight(violation.rule), ..broken }
}

/// The weight of breaking a rule: an error if an SDK fails with it.
pub(crate) const fn weight(rule: Rule) -> Severity {
    match rule {
        Rule::Uris | Rule::Capabilities | Rule::Duplicates => Severity::Warning,
        Rule::JsonRpc
        | Rule::Schema
        | Rule::Content
        | Rule::InputSchema
        | Rule::OutputSchema
        | Rule::StructuredContent
        | Rule::Base64
        | Rule::ContentType
        | Rule::Cursors => Severity::Error,
    }
}

/// All text of an answer: of its blocks, its error and its structured content.
fn answer_text(result: &ToolResult) -> String {
    match result.structured() {
        Some(structured) => format!("{}\n{structured}", result.text()),
        None => match &result.error {
            Some(error) => {
                format!("{}: {} {}", error.code, error.message, error.data.clone().unwrap_or_default())
            }
            None => result.text(),
        },
    }
}
