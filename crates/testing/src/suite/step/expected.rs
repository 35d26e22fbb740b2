//! Expectations of a step, with their variables filled in.

use super::StepRunner;
use crate::{
    matchers::{Expectation, Vocabulary},
    suite::format::WrittenExpectations,
};

impl StepRunner<'_> {
    /// The expectations of a step with their variables filled in.
    pub(super) fn expected(&self, written: &WrittenExpectations) -> Result<Vec<Expectation>, String> {
        let Some(written) = &written.0 else { return Ok(Vec::new()) };
        let vocabulary = Vocabulary {
            own: &self.suite.file.matchers,
            dir: self.suite.dir.as_deref(),
            files: &self.environment.files,
            is_check: false,
        };
        vocabulary.expectations(&self.variables.fill(written)?).map_err(|problems| {
            let texts: Vec<String> = problems.into_iter().map(|one| one.text).collect();
            texts.join("\n")
        })
    }
}
