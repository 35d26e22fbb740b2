//! Checks of expectations, and of the suite's own matchers.

use std::{path::Path, sync::Arc};

use gatewright_findings::escape;

use super::Findings;
use crate::{
    matchers::{KeptFiles, Vocabulary, registered},
    suite::format::{SuiteFile, WrittenExpectations},
};

impl Findings<'_> {
    pub(super) fn matchers(&mut self) {
        let own = &self.file.matchers;
        for name in own.keys() {
            let valid = name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let taken = name == "not" || name == "at" || registered().iter().any(|one| one.name == *name);
            let problem = match (valid, taken) {
                (false, _) => "a name of a matcher is letters and digits, such as `toBeAnOrder`",
                (_, true) => "there is such a matcher already; give it another name",
                _ => continue,
            };
            self.add(&format!("/matchers/{}", escape(name)), format!("`{name}`: {problem}"));
        }
        let files = KeptFiles::beside(None, false);
        for (name, schema) in own {
            if let Err(problem) = vocabulary(self.file, &files).json_schema(schema) {
                self.add(&format!("/matchers/{}", escape(name)), problem);
            }
        }
    }

    pub(super) fn expectations(&mut self, place: &str, written: &WrittenExpectations) {
        let Some(written) = &written.0 else { return };
        let files = KeptFiles::beside(Some(Path::new("suite")), false);
        for problem in vocabulary(self.file, &files).expectations(written).err().into_iter().flatten() {
            self.add(&format!("{place}/expect{}", problem.pointer), problem.text);
        }
    }
}

fn vocabulary<'a>(file: &'a SuiteFile, files: &'a Arc<KeptFiles>) -> Vocabulary<'a> {
    Vocabulary { own: &file.matchers, dir: None, files, is_check: true }
}
