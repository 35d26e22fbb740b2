//! Checks of the variables in texts: names that nothing defines, neither the file nor a step before.

use std::collections::BTreeSet;

use gatewright_findings::{Finding, escape, unknown};
use serde_json::Value;

use crate::suite::{cases::Instance, format::SuiteFile, options::RunOptions};

/// Variables that every text may contain.
const ALWAYS: [&str; 8] = ["env", "server", "auth", "tokens", "upstreams", "random", "repetition", "copy"];

/// Keys whose texts are no templates.
const PLAIN: [&str; 6] = ["name", "skip", "tags", "description", "save", "urlRegex"];

type Names = BTreeSet<String>;

/// Unknown variables of a suite. `raw` is the file as it was read.
pub(in crate::suite) fn unknown_variables(
    raw: &Value,
    file: &SuiteFile,
    instances: &[Instance],
    options: &RunOptions,
) -> Vec<Finding> {
    let mut found = Unknown::default();
    let mut known: Names = ALWAYS.into_iter().map(str::to_owned).collect();
    known.extend(file.variables.keys().chain(options.variables.keys()).cloned());
    for key in ["variables", "server", "auth", "users", "secrets", "upstreams", "httpMocks", "recordHttp"] {
        found.value(&format!("/{key}"), &raw[key], &known);
    }
    found.steps("/setup", &raw["setup"], &mut known);
    found.steps("/teardown", &raw["teardown"], &mut known.clone());

    let mut own: Vec<Names> =
        file.tests.iter().map(|test| test.variables.keys().cloned().collect()).collect();
    for instance in instances {
        own[instance.test].extend(instance.case.keys().cloned());
    }
    // What surrounds each test sees the variables of any.
    let mut anywhere = known.clone();
    anywhere.extend(own.iter().flatten().cloned());
    found.value("/answers", &raw["answers"], &anywhere);
    let before = anywhere.clone();
    found.steps("/beforeEach", &raw["beforeEach"], &mut anywhere);
    let saved: Names = anywhere.difference(&before).cloned().collect();
    for (index, mut names) in own.into_iter().enumerate() {
        names.extend(known.iter().cloned());
        let (place, test) = (format!("/tests/{index}"), &raw["tests"][index]);
        if test["cases"].is_array() {
            found.value(&format!("{place}/cases"), &test["cases"], &known);
        }
        for (key, value) in test.as_object().into_iter().flatten() {
            if key != "steps" && key != "cases" && !PLAIN.contains(&key.as_str()) {
                found.value(&format!("{place}/{}", escape(key)), value, &names);
            }
        }
        names.extend(saved.iter().cloned());
        found.steps(&format!("{place}/steps"), &test["steps"], &mut names);
        anywhere.extend(names);
    }
    found.steps("/afterEach", &raw["afterEach"], &mut anywhere);
    found.findings
}

#[derive(Default)]
struct Unknown {
    findings: Vec<Finding>,
}

impl Unknown {
    /// Checks steps in order; each knows what those before it saved.
    fn steps(&mut self, place: &str, steps: &Value, known: &mut Names) {
        for (number, step) in steps.as_array().into_iter().flatten().enumerate() {
            let place = format!("{place}/{number}");
            for (key, value) in step.as_object().into_iter().flatten() {
                match key.as_str() {
                    "parallel" => self.steps(&format!("{place}/parallel"), value, known),
                    key if PLAIN.contains(&key) => {}
                    key => self.value(&format!("{place}/{}", escape(key)), value, known),
                }
            }
            known.extend(step["save"].as_object().into_iter().flatten().map(|(name, _)| name.clone()));
        }
    }

    fn value(&mut self, place: &str, value: &Value, known: &Names) {
        match value {
            Value::String(text) => {
                let names = variables(text).filter(|name| !known.contains(*name));
                for name in names {
                    let all = known.iter().map(String::as_str);
                    let problem = format!("`${{{name}}}`: {}", unknown("variable", name, all));
                    self.findings.push(Finding::new(place, problem));
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(&format!("{place}/{index}"), item, known);
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields.iter().filter(|(key, _)| !PLAIN.contains(&key.as_str())) {
                    self.value(&format!("{place}/{}", escape(key)), value, known);
                }
            }
            _ => {}
        }
    }
}

/// The variables in a text, without what follows a dot.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    let mut parts = text.split("${");
    let mut before = parts.next().unwrap_or_default();
    parts.filter_map(move |part| {
        let is_literal = std::mem::replace(&mut before, part).ends_with('$');
        let (name, _) = part.split_once('}').filter(|_| !is_literal)?;
        name.split('.').next()
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn finds_the_first_names_of_variables_in_a_text() {
        let found: Vec<&str> = super::variables("${a.b}-$${c} ${d} ${e").collect();
        assert_eq!(found, ["a", "d"]);
    }
}
