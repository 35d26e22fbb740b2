//! Matchers: `expect(&x).to_…()` panics with a readable message; each is also a plain function in [`matchers`] that gives
//! `Result<(), Mismatch>`.
//!
//! A value of a kind the matcher does not know is a failure, under [`Expect::not`] as well: otherwise a test that looks at
//! the wrong thing would pass.

mod diff;
pub mod matchers;
mod subject;

pub use diff::json_diff;
pub use subject::{AsSubject, Subject};

use serde_json::Value;

/// Why a value does not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// What was expected.
    pub expected: String,
    /// What there is.
    pub actual: String,
    /// What may help: nearest candidates, a diff.
    pub hint: Option<String>,
    /// The matcher does not know this kind of value.
    pub wrong_kind: bool,
}

impl Mismatch {
    pub(crate) fn new(expected: impl Into<String>, actual: impl Into<String>) -> Self {
        Self { expected: expected.into(), actual: actual.into(), hint: None, wrong_kind: false }
    }

    pub(crate) fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "expected: {}\n  actual: {}", self.expected, self.actual)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n    hint: {hint}"))
    }
}

impl std::error::Error for Mismatch {}

/// A value under test. Made by [`expect`].
#[derive(Debug, Clone)]
pub struct Expect<'a> {
    subject: Subject<'a>,
    negated: bool,
}

/// Begins an expectation.
pub fn expect<'a, T: AsSubject + ?Sized>(value: &'a T) -> Expect<'a> {
    Expect { subject: value.as_subject(), negated: false }
}

impl Expect<'_> {
    /// The opposite.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "`expect(&x).not()` is how the contract reads")]
    pub fn not(mut self) -> Self {
        self.negated = !self.negated;
        self
    }

    /// Judges the outcome of a matcher.
    #[track_caller]
    fn judge(&self, matcher: &str, outcome: Result<(), Mismatch>) {
        let not = if self.negated { "not()." } else { "" };
        if let Err(mismatch) = settle(outcome, self.negated, &self.subject) {
            panic!("expect(…).{not}{matcher}\n{mismatch}");
        }
    }

    /// A list of tools holds one of this name.
    #[track_caller]
    pub fn to_contain_tool(&self, name: &str) {
        self.judge(&format!("to_contain_tool({name:?})"), matchers::contains_tool(&self.subject, name));
    }

    /// A list of resources holds one of this URI.
    #[track_caller]
    pub fn to_contain_resource(&self, uri: &str) {
        self.judge(&format!("to_contain_resource({uri:?})"), matchers::contains_resource(&self.subject, uri));
    }

    /// A list of resource templates holds this one.
    #[track_caller]
    pub fn to_contain_resource_template(&self, template: &str) {
        self.judge(
            &format!("to_contain_resource_template({template:?})"),
            matchers::contains_resource_template(&self.subject, template),
        );
    }

    /// A list of prompts holds one of this name.
    #[track_caller]
    pub fn to_contain_prompt(&self, name: &str) {
        self.judge(&format!("to_contain_prompt({name:?})"), matchers::contains_prompt(&self.subject, name));
    }

    /// A tool call succeeded, or an answer has no error.
    #[track_caller]
    pub fn to_be_successful(&self) {
        self.judge("to_be_successful()", matchers::is_successful(&self.subject));
    }

    /// A tool call or an answer is an error.
    #[track_caller]
    pub fn to_be_error(&self) {
        self.judge("to_be_error()", matchers::is_error(&self.subject, None));
    }

    /// A tool call or an answer is an error with this JSON-RPC code.
    #[track_caller]
    pub fn to_be_error_code(&self, code: i64) {
        self.judge(&format!("to_be_error_code({code})"), matchers::is_error(&self.subject, Some(code)));
    }

    /// There is a text that is not empty.
    #[track_caller]
    pub fn to_have_any_text_content(&self) {
        self.judge("to_have_any_text_content()", matchers::has_text_content(&self.subject, None));
    }

    /// A text holds this.
    #[track_caller]
    pub fn to_have_text_content(&self, text: &str) {
        self.judge(
            &format!("to_have_text_content({text:?})"),
            matchers::has_text_content(&self.subject, Some(text)),
        );
    }

    /// There is an image.
    #[track_caller]
    pub fn to_have_image_content(&self) {
        self.judge("to_have_image_content()", matchers::has_image_content(&self.subject));
    }

    /// There is an embedded resource or a link to one.
    #[track_caller]
    pub fn to_have_resource_content(&self) {
        self.judge("to_have_resource_content()", matchers::has_resource_content(&self.subject));
    }

    /// A content has this media type.
    #[track_caller]
    pub fn to_have_mime_type(&self, mime_type: &str) {
        self.judge(
            &format!("to_have_mime_type({mime_type:?})"),
            matchers::has_mime_type(&self.subject, mime_type),
        );
    }

    /// A prompt has this many messages.
    #[track_caller]
    pub fn to_have_messages(&self, count: usize) {
        self.judge(&format!("to_have_messages({count})"), matchers::has_messages(&self.subject, count));
    }

    /// A message has this role; of a prompt, any message.
    #[track_caller]
    pub fn to_have_role(&self, role: &str) {
        self.judge(&format!("to_have_role({role:?})"), matchers::has_role(&self.subject, role));
    }

    /// A message's text holds this; of a prompt, any message's.
    #[track_caller]
    pub fn to_contain_text(&self, text: &str) {
        self.judge(&format!("to_contain_text({text:?})"), matchers::contains_text(&self.subject, text));
    }

    /// The value is a JSON-RPC 2.0 answer.
    #[track_caller]
    pub fn to_be_valid_json_rpc(&self) {
        self.judge("to_be_valid_json_rpc()", matchers::is_valid_json_rpc(&self.subject));
    }

    /// An answer has a result.
    #[track_caller]
    pub fn to_have_result(&self) {
        self.judge("to_have_result()", matchers::has_result(&self.subject));
    }

    /// An answer has an error.
    #[track_caller]
    pub fn to_have_error(&self) {
        self.judge("to_have_error()", matchers::has_error(&self.subject));
    }

    /// An answer has an error with this code.
    #[track_caller]
    pub fn to_have_error_code(&self, code: i64) {
        self.judge(&format!("to_have_error_code({code})"), matchers::has_error_code(&self.subject, code));
    }

    /// The JSON of a value holds all of this: see [`is_subset`](crate::is_subset).
    #[track_caller]
    pub fn to_match_json(&self, expected: &Value) {
        self.judge("to_match_json(…)", matchers::matches_json(&self.subject, expected));
    }
}

/// Turns the outcome of a matcher round when it is negated. A wrong kind stays a failure.
pub(crate) fn settle(
    outcome: Result<(), Mismatch>,
    negated: bool,
    subject: &Subject<'_>,
) -> Result<(), Mismatch> {
    match (outcome, negated) {
        (outcome, false) => outcome,
        (Err(mismatch), true) if mismatch.wrong_kind => Err(mismatch),
        (Err(_), true) => Ok(()),
        (Ok(()), true) => Err(Mismatch::new("the opposite", subject.to_string())),
    }
}
