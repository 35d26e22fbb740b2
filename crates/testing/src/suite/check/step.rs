//! Checks of steps.

use gatewright_findings::escape;

use super::{Findings, expectation::check_expectation};
use crate::suite::format::{ACTIONS, Step};

impl Findings<'_> {
    pub(super) fn steps(&mut self, place: &str, steps: &[Step]) {
        for (number, step) in steps.iter().enumerate() {
            self.step(&format!("{place}/{number}"), step);
        }
    }

    fn step(&mut self, place: &str, step: &Step) {
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
            ("count", step.count.is_some(), &["wait", "httpCalls"]),
            ("timeoutMs", step.timeout_ms.is_some(), &["wait", "httpCalls", "log"]),
        ] {
            if present && !actions.contains(&action) {
                let actions = actions.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ");
                self.add(
                    &format!("{place}/{key}"),
                    format!("`{key}` belongs to {actions}, not to `{action}`"),
                );
            }
        }
        if let Some(user) = &step.authenticate {
            self.user(&format!("{place}/authenticate"), user);
        }
        if action == "httpCalls" && self.file.http_mocks.is_empty() && self.file.record_http.is_none() {
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
        for (at, one) in step.expect.iter().enumerate() {
            if let Err(problem) = check_expectation(&one.0) {
                self.add(&format!("{place}/expect/{at}"), problem);
            }
        }
    }
}

fn listed(actions: &[&str]) -> String {
    match actions {
        [] => "none".to_owned(),
        actions => actions.iter().map(|action| format!("`{action}`")).collect::<Vec<_>>().join(" and "),
    }
}
