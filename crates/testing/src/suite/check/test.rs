//! Checks of one test and its mocks.

use gatewright_findings::escape;

use super::Findings;
use crate::suite::{
    format::{AnswerEntry, MockEntry, TestEntry},
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
        let has_command = self.file.server.command.is_some();
        for (key, is_named, problem) in [
            ("env", !test.env.is_empty(), "a server that runs already has its environment"),
            ("isolated", test.isolated, "a server that runs already cannot be started for a test"),
            (
                "httpMocks",
                !test.http_mocks.is_empty(),
                "calls of a server that runs already cannot be mocked",
            ),
        ] {
            if is_named && !has_command {
                self.add(&format!("{place}/{key}"), format!("{problem}; start it with `command`"));
            }
        }
        if self.file.record_http.is_some() && (test.isolated || !test.env.is_empty()) {
            self.add(&place, "`recordHttp` belongs to one server; a test with its own cannot use it");
        }
        for (at, mock) in test.http_mocks.iter().enumerate() {
            self.http_mock(&format!("{place}/httpMocks/{at}"), mock);
        }
        self.answers(&format!("{place}/answers"), &test.answers);
        if let Some(user) = &test.user {
            self.user(&format!("{place}/as"), user);
        }
        for (name, problem) in variables.own_cycles(&test.variables) {
            self.add(&format!("{place}/variables/{}", escape(&name)), problem);
        }
        if let Some(cassette) = &test.record
            && self.file.tests[..index]
                .iter()
                .any(|earlier| earlier.record.as_ref().is_some_and(|one| one.file() == cassette.file()))
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

    pub(super) fn answers(&mut self, place: &str, answers: &[AnswerEntry]) {
        for (at, answer) in answers.iter().enumerate() {
            let AnswerEntry { elicitation, sampling, roots, error, method, .. } = answer;
            let given = [elicitation.is_some(), sampling.is_some(), roots.is_some(), error.is_some()];
            let place = format!("{place}/{at}");
            if given.into_iter().filter(|given| *given).count() != 1 {
                self.add(&place, "it needs exactly one of `elicitation`, `sampling`, `roots` and `error`");
            }
            if error.is_some() != method.is_some() {
                self.add(
                    &place,
                    "`error` needs the `method` that it answers, and `method` belongs to `error`",
                );
            }
        }
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
