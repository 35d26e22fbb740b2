//! Redacts secrets before a cassette is written, by their place, and by their value once a place has shown it.
//!
//! `places` knows the names, `secrets` the values, `matching` compares a request with a redacted one.

mod matching;
mod places;
mod secrets;

pub(crate) use matching::same_json;
#[cfg(feature = "http-mock")]
pub(crate) use matching::{same_body, same_text};
pub(crate) use places::Redactor;
pub(crate) use secrets::Secrets;

/// What is written in place of a secret.
const REDACTED: &str = "[redacted]";

/// A text as reports show it, without the secrets in the usual places.
#[cfg(feature = "http-mock")]
pub(crate) fn shown(text: &str) -> String {
    usual().text(text, &mut Secrets::default())
}

/// The value of a header, a query parameter or a form field as reports show it.
#[cfg(feature = "http-mock")]
pub(crate) fn shown_value(name: &str, value: &str) -> String {
    if usual().is_place(name) { REDACTED.to_owned() } else { shown(value) }
}

#[cfg(feature = "http-mock")]
fn usual() -> &'static Redactor {
    static USUAL: std::sync::LazyLock<Redactor> =
        std::sync::LazyLock::new(|| Redactor::new(&super::Redaction::default()));
    &USUAL
}
