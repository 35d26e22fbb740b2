//! Writes apps into configuration files: the rest of a file stays as it is.

mod yaml;

use std::path::Path;

use gatewright_findings::{Finding, Format};
use serde_json::{Map, Value};

use crate::{
    clients,
    config::{self, Config},
    environment::environment,
    exit::BadConfig,
    output::ascii_controls,
};

pub use yaml::app as yaml_app;

/// The text of a configuration with one more app.
///
/// # Errors
/// The file has such an app, does not parse, or is written in a way that cannot be added to.
pub fn with_app(text: &str, format: Format, id: &str, keys: &Map<String, Value>) -> Result<String, String> {
    let read = |text: &str| config::value_of(text, format).map_err(|finding| finding.to_string());
    let mut wanted = read(text)?;
    let apps =
        wanted.as_object_mut().map(|file| file.entry("apps").or_insert_with(|| Value::Object(Map::new())));
    let Some(apps) = apps else { return Err("it is no object".to_owned()) };
    if apps.is_null() {
        *apps = Value::Object(Map::new());
    }
    let Some(apps) = apps.as_object_mut() else { return Err("`apps` is no object".to_owned()) };
    if apps.contains_key(id) {
        return Err(format!("there is an app `{id}` already; choose another name, or change that one"));
    }
    apps.insert(id.to_owned(), Value::Object(keys.clone()));
    let edited = match format {
        Format::Yaml => yaml::insert(text, id, keys),
        Format::Json => clients::insert_json(text, "apps", id, &Value::Object(keys.clone())).ok(),
        Format::Toml => Some(with_table(text, id, keys)),
    };
    edited.filter(|edited| read(edited).is_ok_and(|found| found == wanted)).ok_or_else(|| {
        "`apps` is written in a way that cannot be added to automatically; write it with one app on each line".to_owned()
    })
}

fn with_table(text: &str, id: &str, keys: &Map<String, Value>) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}\n[apps.{}]\n{}", Value::from(id), toml_lines(keys))
}

/// The lines of a table of TOML.
pub fn toml_lines(keys: &Map<String, Value>) -> String {
    keys.iter().map(|(key, value)| format!("{key} = {}\n", inline(value))).collect()
}

/// A value of TOML on one line. Strings of JSON are basic strings of TOML.
fn inline(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("{} = {}", literal(&Value::from(key.as_str())), inline(value)))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
        value => literal(value),
    }
}

/// JSON that YAML and TOML read too: they allow fewer control characters in strings.
fn literal(value: &Value) -> String {
    ascii_controls(&value.to_string())
}

/// Checks a configuration before it is written to `path`, and returns the variables that are still to be set.
///
/// # Errors
/// It has problems besides those variables.
pub fn check(path: &Path, text: &str) -> anyhow::Result<Vec<String>> {
    let format = config::format_of(path)?;
    let value = config::value_of(text, format).unwrap_or_default();
    let missing = config::missing_variables(&value, &environment());
    let (_, findings, _) = Config::examine_text(path, text)?;
    let is_missing = |finding: &Finding| missing.iter().any(|(pointer, _)| *pointer == finding.pointer);
    let findings: Vec<Finding> = findings.into_iter().filter(|finding| !is_missing(finding)).collect();
    if findings.is_empty() {
        let mut names: Vec<String> = missing.into_iter().map(|(_, name)| name).collect();
        names.sort();
        names.dedup();
        return Ok(names);
    }
    Err(BadConfig::of_file(path, &findings).into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keys() -> Map<String, Value> {
        match json!({"command": "npx", "args": ["-y", "a b", "${X}"], "env": {"KEY": "1"}}) {
            Value::Object(keys) => keys,
            _ => unreachable!(),
        }
    }

    #[test]
    fn an_app_is_added_to_every_format_and_layout_and_every_other_byte_stays() {
        let app = "command: npx\n    args: [\"-y\", \"a b\", \"${X}\"]\n    env:\n      KEY: \"1\"\n";
        for (text, expected) in [
            ("", format!("apps:\n  new:\n    {app}")),
            ("# only this", format!("# only this\napps:\n  new:\n    {app}")),
            ("info: { name: a }\n", format!("info: {{ name: a }}\n\napps:\n  new:\n    {app}")),
            (
                "apps: # mine\n  a: { builtin: crm } # first\n  # of a\n\n# http\nhttp: {}\n",
                format!(
                    "apps: # mine\n  a: {{ builtin: crm }} # first\n  # of a\n  new:\n    {app}\n# http\nhttp: {{}}\n"
                ),
            ),
            (
                "apps:\n  a:\n    args: |\n      x\nhttp: {}\n",
                format!("apps:\n  a:\n    args: |\n      x\n  new:\n    {app}http: {{}}\n"),
            ),
            ("http: {}\napps:\n", format!("http: {{}}\napps:\n  new:\n    {app}")),
            ("apps: {}\nhttp: {}\n", format!("apps:\n  new:\n    {app}http: {{}}\n")),
        ] {
            assert_eq!(with_app(text, Format::Yaml, "new", &keys()).as_deref(), Ok(&*expected), "{text}");
        }
        let flow =
            with_app("apps: { a: { builtin: crm } } # one line\n", Format::Yaml, "new", &keys()).unwrap();
        assert!(
            flow.starts_with("apps: { a: { builtin: crm }, new: {") && flow.ends_with("} # one line\n"),
            "{flow}"
        );
        for (format, text) in [
            (Format::Json, "{\n  \"apps\": {\n    \"a\": {}\n  }\n}\n"),
            (Format::Toml, "# mine\n[apps.a]\nbuiltin = \"crm\"\n"),
        ] {
            let edited = with_app(text, format, "new", &keys()).unwrap();
            assert!(edited.contains("new") && edited.contains("npx"), "{edited}");
        }
    }

    #[test]
    fn control_characters_of_any_value_are_escaped_and_read_again() {
        let odd = "a\u{7f}\u{85}\u{9b}\u{2028}\u{1b}\n\u{202e}é";
        let keys = json!({"command": odd, "args": [odd], "env": {"KEY": odd, odd: "x"}});
        for format in [Format::Yaml, Format::Toml, Format::Json] {
            let text = if matches!(format, Format::Json) { "{}" } else { "" };
            let edited = with_app(text, format, "new", keys.as_object().unwrap()).unwrap();
            let plain = |c: char| c == '\n' || !gatewright_findings::must_be_escaped(c);
            assert!(matches!(format, Format::Json) || edited.chars().all(plain), "{edited:?}");
            assert_eq!(config::value_of(&edited, format).unwrap()["apps"]["new"], keys);
        }
        let flow =
            with_app("apps: { a: { builtin: crm } }\n", Format::Yaml, "new", keys.as_object().unwrap());
        assert!(flow.unwrap().contains("\\u007f\\u0085"));
    }

    #[test]
    fn an_app_that_is_there_and_files_that_cannot_be_added_to_are_refused() {
        let refused = |text: &str| with_app(text, Format::Yaml, "new", &keys()).unwrap_err();
        assert!(refused("apps: { new: { builtin: crm } }").contains("already"));
        assert!(refused("{ http: {} }").contains("cannot be added to"));
        assert!(refused("apps: [a]").contains("no object"));
        assert!(refused("apps: [a").contains("line"));
    }
}
