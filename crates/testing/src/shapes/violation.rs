//! A message that breaks a rule.

use super::rule::Rule;

/// A message of the server that breaks a [`Rule`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The method of the request, notification or request of the server.
    pub method: String,
    /// JSON pointer into the result or the parameters; empty for the whole.
    pub place: String,
    /// The name of the tool, prompt or resource there.
    pub name: Option<String>,
    /// The problem, as a sentence.
    pub problem: String,
    /// The effect on clients of the TypeScript and Python SDKs.
    pub effect: &'static str,
}

impl Violation {
    pub(crate) fn new(
        rule: Rule,
        method: &str,
        place: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        let (place, problem) = (place.into(), problem.into());
        Self { rule, method: method.to_owned(), place, name: None, problem, effect: rule.effect() }
    }

    pub(super) fn named(mut self, name: Option<&str>) -> Self {
        self.name = name.map(str::to_owned);
        self
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}] ", self.rule)?;
        match (self.place.as_str(), &self.name) {
            ("", None) => {}
            ("", Some(name)) => write!(f, "`{name}`: ")?,
            (place, None) => write!(f, "{place}: ")?,
            (place, Some(name)) => write!(f, "{place} (`{name}`): ")?,
        }
        write!(f, "{}; {}", self.problem, self.effect)
    }
}
