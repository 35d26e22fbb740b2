//! Checks of one test and its mocks.

use gatewright_findings::escape;

use super::Findings;
use crate::suite::{
    format::{MockEntry, TestEntry},
    variables::Variables,
};

impl Findings<'_> {
    pub(super) fn test(&mut self, index: usize, test: &TestEntry, variables: &Variables) {
        let place = format!("/tests/{index}");
        if self.file.tests[..index].iter().any(|earlier| earlier.name == test.name) {
            self.add(
                &format!("{place}/name"),
                format!("there is a test `{}` already; give it another name", test.name),
            );
        }
        if let Some(user) = &test.user {
            self.user(&format!("{place}/as"), user);
        }
        for (name, problem) in variables.own_cycles(&test.variables) {
            self.add(&format!("{place}/variables/{}", escape(&name)), problem);
        }
        if test.record.is_some()
            && self.file.tests[..index].iter().any(|earlier| earlier.record == test.record)
        {
            self.add(
                &format!("{place}/record"),
                "another test has this cassette; each needs a file of its own",
            );
        }
        for (at, mock) in test.mocks.iter().enumerate() {
            self.mock(&format!("{place}/mocks/{at}"), mock);
        }
        self.steps(&format!("{place}/steps"), &test.steps);
    }

    fn mock(&mut self, place: &str, mock: &MockEntry) {
        let targets = [&mock.tool, &mock.resource, &mock.method].into_iter().flatten().count();
        if targets != 1 {
            self.add(place, "it needs exactly one of `tool`, `resource` and `method`");
        }
        if mock.method.is_none() && mock.params.is_some() {
            self.add(place, "`params` belongs to `method`, such as `method: tools/call`");
        }
        if mock.response.is_some() == mock.error.is_some() {
            self.add(place, "it needs exactly one of `response` and `error`");
        }
    }
}
