//! `${NAME}` and `${NAME:-default}` in the strings of a configuration.

use std::collections::{HashMap, HashSet};

use gatewright_findings::{Finding, escape};
use serde_json::Value;

/// Shortest value of a variable that is hidden as a secret, in bytes: a shorter one is part of too many words.
const SECRET: usize = 6;

/// A value in which variables were replaced.
pub(super) struct Filled {
    pointer: String,
    /// The variables it names.
    names: Vec<String>,
}

/// Replaces variables everywhere, and reports those that are not set. `$${` stands for a literal `${`.
pub(super) fn apply(value: &mut Value, environment: &HashMap<String, String>) -> (Vec<Filled>, Vec<Finding>) {
    let (mut filled, mut findings) = (Vec::new(), Vec::new());
    walk(value, &mut String::new(), environment, &mut filled, &mut findings);
    (filled, findings)
}

/// Turns filled values into numbers and booleans where `check` rejects text, and names the variables in the remaining findings.
pub(super) fn typed(
    value: &mut Value,
    filled: &[Filled],
    check: impl Fn(&Value) -> Vec<Finding>,
) -> Vec<Finding> {
    let mut findings = check(value);
    let mut changed = false;
    let refused: HashSet<&str> = findings.iter().map(|finding| finding.pointer.as_str()).collect();
    for one in filled.iter().filter(|one| refused.contains(one.pointer.as_str())) {
        let Some(slot) = value.pointer_mut(&one.pointer) else { continue };
        let scalar = slot.as_str().and_then(|text| serde_json::from_str::<Value>(text.trim()).ok());
        if let Some(scalar) = scalar.filter(|scalar| scalar.is_number() || scalar.is_boolean()) {
            *slot = scalar;
            changed = true;
        }
    }
    if changed {
        findings = check(value);
    }
    let filled: HashMap<&str, &Filled> = filled.iter().map(|one| (one.pointer.as_str(), one)).collect();
    for finding in &mut findings {
        if let Some(one) = filled.get(finding.pointer.as_str()) {
            finding.problem.push_str(&format!("; the value comes from {}", one.names.join(" and ")));
        }
    }
    findings
}

/// Replaces the values of the variables in `text` by their names, so that a secret in the wrong field is not shown.
pub(super) fn hide(findings: &mut [Finding], text: &str, environment: &HashMap<String, String>) {
    let named = |name: &str| text.contains(&format!("${{{name}"));
    let mut secrets: Vec<_> =
        environment.iter().filter(|(name, value)| value.len() >= SECRET && named(name)).collect();
    // Longest first: one value may be part of another.
    secrets.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
    for finding in findings {
        for (name, value) in &secrets {
            for shown in [value.as_str(), value.escape_debug().to_string().as_str()] {
                finding.problem = finding.problem.replace(shown, &format!("${{{name}}}"));
            }
        }
    }
}

/// `pointer` is the place of `value`, and unchanged on return.
fn walk(
    value: &mut Value,
    pointer: &mut String,
    environment: &HashMap<String, String>,
    filled: &mut Vec<Filled>,
    findings: &mut Vec<Finding>,
) {
    let mut below = |part: &str, value: &mut Value| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(part);
        walk(value, pointer, environment, filled, findings);
        pointer.truncate(length);
    };
    match value {
        Value::String(text) if text.contains("${") => match expand(text, environment) {
            Ok((expanded, names)) => {
                *text = expanded;
                filled.push(Filled { pointer: pointer.clone(), names });
            }
            Err(problem) => findings.push(Finding::new(pointer, problem)),
        },
        Value::Array(items) => {
            items.iter_mut().enumerate().for_each(|(index, item)| below(&index.to_string(), item));
        }
        Value::Object(fields) => fields.iter_mut().for_each(|(key, field)| below(&escape(key), field)),
        _ => {}
    }
}

/// The text with its variables replaced, and their names.
fn expand(text: &str, environment: &HashMap<String, String>) -> Result<(String, Vec<String>), String> {
    let (mut out, mut names, mut rest) = (String::new(), Vec::new(), text);
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            out.push_str(&rest[..at]);
            out.push('{');
            rest = &rest[at + 2..];
            continue;
        }
        out.push_str(&rest[..at]);
        let end = rest[at..].find('}').ok_or("`${` without its `}`; write `$${` for a literal one")? + at;
        let inside = &rest[at + 2..end];
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        match environment.get(name).filter(|value| !value.is_empty() || default.is_none()) {
            Some(value) => out.push_str(value),
            None => out.push_str(default.ok_or_else(|| {
                format!("environment variable {name} is not set; set it, or give a default as ${{{name}:-…}}")
            })?),
        }
        names.push(name.to_owned());
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    Ok((out, names))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, String> {
        let environment =
            HashMap::from([("HOST".to_owned(), "db".to_owned()), ("EMPTY".to_owned(), String::new())]);
        expand(text, &environment).map(|(text, _)| text)
    }

    #[test]
    fn variables_defaults_and_literals() {
        assert_eq!(expanded("redis://${HOST}:${PORT:-6379}/").unwrap(), "redis://db:6379/");
        assert_eq!(expanded("${EMPTY:-x}").unwrap(), "x");
        assert_eq!(expanded("a $${HOST} b").unwrap(), "a ${HOST} b");
    }

    #[test]
    fn a_secret_in_a_wrong_field_is_shown_by_its_name() {
        let environment = HashMap::from([
            ("TOKEN".to_owned(), "hush\"hush".to_owned()),
            ("MODE".to_owned(), "public".to_owned()),
        ]);
        let mut findings =
            [Finding::new("/auth/mode", r#"`hush"hush`: unknown value "hush\"hush"; known here: public"#)];
        hide(&mut findings, "auth: { mode: \"x-${TOKEN:-}\" }", &environment);
        assert_eq!(findings[0].problem, r#"`${TOKEN}`: unknown value "${TOKEN}"; known here: public"#);
    }

    #[test]
    fn a_missing_variable_is_named() {
        assert!(expanded("${NOPE}").unwrap_err().contains("NOPE"));
        assert!(expanded("${NOPE").is_err());
    }
}
