//! Checks of steps.

use gatewright_findings::escape;

use super::Findings;
use crate::suite::format::{ACTIONS, Step, TestEntry};

impl Findings<'_> {
    pub(super) fn steps(&mut self, place: &str, steps: &[Step]) {
        for (number, step) in steps.iter().enumerate() {
            self.step(&format!("{place}/{number}"), step, false);
        }
    }

    fn parallel(&mut self, place: &str, steps: &[Step]) {
        for (number, step) in steps.iter().enumerate() {
            let place = format!("{place}/parallel/{number}");
            if step.authenticate.is_some() {
                self.add(
                    &place,
                    "at the same time all steps have one client; give the step a user with `as`",
                );
            }
            self.step(&place, step, true);
        }
    }

    fn step(&mut self, place: &str, step: &Step, is_parallel: bool) {
        if step.copies.is_some() && !is_parallel {
            self.add(&format!("{place}/copies"), "`copies` belongs to the steps in `parallel`; use `repeat`");
        }
        let actions = step.actions();
        let action = match actions.as_slice() {
            [one] => *one,
            _ => {
                let all: Vec<String> = ACTIONS.iter().map(|action| format!("`{action}`")).collect();
                let all = all.join(", ");
                self.add(place, format!("a step is exactly one of {all}; this one is {}", listed(&actions)));
                return;
            }
        };
        for (key, present, actions) in [
            ("with", !step.arguments.is_null(), &["call", "get", "notify"][..]),
            ("progress", step.progress.is_some(), &["call"]),
            ("count", step.count.is_some(), &["wait", "asked", "httpCalls"]),
            ("as", step.user.is_some() && action == "parallel", &[]),
        ] {
            if present && !actions.contains(&action) {
                if actions.is_empty() {
                    self.add(
                        &format!("{place}/{key}"),
                        format!("`{key}` belongs to the steps in `{action}`"),
                    );
                    continue;
                }
                let actions = actions.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ");
                self.add(
                    &format!("{place}/{key}"),
                    format!("`{key}` belongs to {actions}, not to `{action}`"),
                );
            }
        }
        if let Some(steps) = &step.parallel {
            if steps.is_empty() {
                self.add(&format!("{place}/parallel"), "it needs at least one step");
            }
            self.parallel(place, steps);
        }
        if let Some(http) = &step.http {
            self.http_step(&format!("{place}/http"), http);
        }
        if let Some(user) = &step.user {
            self.user(&format!("{place}/as"), user);
        }
        if let Some(user) = &step.authenticate {
            self.user(&format!("{place}/authenticate"), user);
        }
        let has_mocks = |test: &TestEntry| !test.http_mocks.is_empty();
        if action == "httpCalls"
            && self.file.http_mocks.is_empty()
            && self.file.record_http.is_none()
            && !self.file.tests.iter().any(has_mocks)
        {
            self.add(
                &format!("{place}/httpCalls"),
                "nothing sees the server's HTTP calls without `httpMocks` or `recordHttp`",
            );
        }
        for (name, pointer) in &step.save {
            if !pointer.is_empty() && !pointer.starts_with('/') {
                let place = format!("{place}/save/{}", escape(name));
                self.add(
                    &place,
                    format!("`{pointer}` is no JSON pointer; did you mean `/{}`?", pointer.replace('.', "/")),
                );
            }
        }
        self.expectations(place, &step.expect);
    }
}

fn listed(actions: &[&str]) -> String {
    match actions {
        [] => "none".to_owned(),
        actions => actions.iter().map(|action| format!("`{action}`")).collect::<Vec<_>>().join(" and "),
    }
}
