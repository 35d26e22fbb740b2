//! `expect(&value)`: assertions that panic with a readable message.
//!
//! The methods `to_…` of the registered matchers are generated in `registry`.

use super::{
    matching::{Match, apply},
    subject::{AsSubject, Subject},
};

/// A value under test. Created by [`expect`].
#[derive(Debug, Clone)]
pub struct Expect<'a> {
    subject: Subject<'a>,
    negated: bool,
}

/// Starts an expectation.
pub fn expect<'a, T: AsSubject + ?Sized>(value: &'a T) -> Expect<'a> {
    Expect { subject: value.as_subject(), negated: false }
}

impl Expect<'_> {
    /// Inverts the next matcher.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "`expect(&x).not()` is how the contract reads")]
    pub fn not(mut self) -> Self {
        self.negated = !self.negated;
        self
    }

    /// Checks the value with a matcher of your own: a type that implements [`Match`], or a closure.
    ///
    /// # Panics
    /// The value does not match.
    #[track_caller]
    pub fn to(&self, matcher: impl Match) {
        self.assert("to(…)", &matcher);
    }

    /// Panics with the call and the mismatch unless the value matches.
    #[track_caller]
    pub(super) fn assert(&self, call: &str, matcher: &dyn Match) {
        if let Err(mismatch) = apply(matcher, self.negated, &self.subject) {
            let not = if self.negated { "not()." } else { "" };
            panic!("expect(…).{not}{call}\n{mismatch}");
        }
    }
}
