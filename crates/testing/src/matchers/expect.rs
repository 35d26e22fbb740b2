//! `expect(&value)`: assertions that panic with a readable message.
//!
//! The methods `to_…` of the registered matchers are generated in `registry`.

use super::{
    arguments::Path,
    at::apply_at,
    matching::{Match, apply},
    subject::{AsSubject, Subject},
};

/// A value under test. Created by [`expect`].
#[derive(Debug, Clone)]
pub struct Expect<'a> {
    subject: Subject<'a>,
    negated: bool,
    path: Option<Path>,
}

/// Starts an expectation.
pub fn expect<'a, T: AsSubject + ?Sized>(value: &'a T) -> Expect<'a> {
    Expect { subject: value.as_subject(), negated: false, path: None }
}

impl Expect<'_> {
    /// Inverts the next matcher.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "`expect(&x).not()` is how the contract reads")]
    pub fn not(mut self) -> Self {
        self.negated = !self.negated;
        self
    }

    /// Goes to a part of the value: `structuredContent.items.0.name`, `content.*.text` (every item), or a JSON pointer. Paths start at
    /// the wire form, so that `content`, `structuredContent` and `isError` are reached from the same root; what is not there is looked
    /// up in `structuredContent`, or in the JSON of a text. A path that leads nowhere fails under `not`, too.
    #[must_use]
    pub fn at(mut self, path: impl Into<Path>) -> Self {
        let path = path.into();
        self.path = Some(self.path.map_or_else(|| path.clone(), |above| above.join(&path)));
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
        let outcome = match &self.path {
            None => apply(matcher, self.negated, &self.subject),
            Some(path) => apply_at(path, matcher, self.negated, &self.subject),
        };
        if let Err(mismatch) = outcome {
            let at =
                self.path.as_ref().map(|path| format!("at({:?}).", path.to_string())).unwrap_or_default();
            let not = if self.negated { "not()." } else { "" };
            panic!("expect(…).{at}{not}{call}\n{mismatch}");
        }
    }
}
