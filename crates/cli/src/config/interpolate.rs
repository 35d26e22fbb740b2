//! `${NAME}` and `${NAME:-default}` in the strings of a configuration.

use std::collections::HashMap;

use gatewright_findings::{Finding, escape};
use serde_json::Value;

/// Puts variables in everywhere, and finds those that are not set. `$${` writes a literal `${`.
pub(super) fn apply(value: &mut Value, environment: &HashMap<String, String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    walk(value, "", environment, &mut findings);
    findings
}

fn walk(
    value: &mut Value,
    pointer: &str,
    environment: &HashMap<String, String>,
    findings: &mut Vec<Finding>,
) {
    match value {
        Value::String(text) if text.contains("${") => match expand(text, environment) {
            Ok(expanded) => *text = expanded,
            Err(problem) => findings.push(Finding::new(pointer, problem)),
        },
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, &format!("{pointer}/{index}"), environment, findings);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                walk(field, &format!("{pointer}/{}", escape(key)), environment, findings);
            }
        }
        _ => {}
    }
}

fn expand(text: &str, environment: &HashMap<String, String>) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), text);
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
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, String> {
        let environment =
            HashMap::from([("HOST".to_owned(), "db".to_owned()), ("EMPTY".to_owned(), String::new())]);
        expand(text, &environment)
    }

    #[test]
    fn variables_defaults_and_literals() {
        assert_eq!(expanded("redis://${HOST}:${PORT:-6379}/").unwrap(), "redis://db:6379/");
        assert_eq!(expanded("${EMPTY:-x}").unwrap(), "x");
        assert_eq!(expanded("a $${HOST} b").unwrap(), "a ${HOST} b");
    }

    #[test]
    fn a_missing_variable_is_named() {
        assert!(expanded("${NOPE}").unwrap_err().contains("NOPE"));
        assert!(expanded("${NOPE").is_err());
    }
}
