//! Expectations of a step, with their variables filled in.

use serde_json::Value;

use super::StepRunner;
use crate::{
    matchers::Match,
    suite::expectations::{self, Expectation},
};

/// An expectation that can be checked.
pub(super) struct Expected {
    pub(super) name: &'static str,
    pub(super) negated: bool,
    pub(super) matcher: Box<dyn Match>,
}

impl Expected {
    /// True if only a failed step can meet the expectation.
    pub(super) fn is_failure(&self) -> bool {
        self.matcher.expects_success() == Some(self.negated)
    }
}

impl StepRunner<'_> {
    /// An expectation with its variables filled in.
    pub(super) fn expected(&self, written: &Value) -> Result<Expected, String> {
        let expectation = Expectation::parse(&self.variables.fill(written)?)?;
        let registered = expectations::find(&expectation.name)
            .ok_or_else(|| format!("there is no expectation `{}`", expectation.name))?;
        let matcher = expectation.matcher(registered)?;
        Ok(Expected { name: &registered.name, negated: expectation.negated, matcher })
    }
}
