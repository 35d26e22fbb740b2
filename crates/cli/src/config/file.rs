//! Parses the text of a file to a JSON value.

use std::{io, path::Path};

use gatewright_core::{Unreadable, measure, read_file, read_unique};
use gatewright_findings::{Finding, Format, parser_problem};
use serde_json::Value;

use crate::exit::BadConfig;

/// Longest file, in bytes.
const LONGEST: u64 = 16 << 20;
/// Most keys and values of a file: those of YAML are limited by its parser.
const MOST_VALUES: usize = 250_000;

/// The text of a file.
///
/// # Errors
/// The file cannot be read, is not a regular one, is longer than 16 MiB, or is not UTF-8.
pub(super) fn text(path: &Path) -> Result<String, BadConfig> {
    contents(path).map_err(|problem| BadConfig(format!("{} {problem}", path.display())))
}

/// The text of a file. Errors leave out its path.
///
/// # Errors
/// As [`text`].
pub(super) fn contents(path: &Path) -> Result<String, String> {
    let text = read_file(path, LONGEST).and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
    text.map_err(|error| format!("cannot be read: {error}"))
}

/// The format that the extension of a file names.
///
/// # Errors
/// The extension names no known format.
pub fn format_of(path: &Path) -> Result<Format, BadConfig> {
    Format::of(path).ok_or_else(|| {
        BadConfig(format!("{}: the extension must be .yaml, .yml, .json or .toml", path.display()))
    })
}

/// The text as a value; an empty file is an empty configuration. Errors leave out the text around them, which may contain secrets.
pub fn value(text: &str, format: Format) -> Result<Value, Finding> {
    let parsed = match format {
        Format::Json | Format::Toml if has_too_many_values(text, format) => Err((
            None,
            format!(
                "the file has more than {MOST_VALUES} keys and values, which no configuration has: name another file"
            ),
        )),
        Format::Yaml if text.trim().is_empty() => Ok(Value::Null),
        Format::Yaml => serde_saphyr::from_str(text).map_err(|error| {
            let line = error.location().and_then(|at| usize::try_from(at.line()).ok());
            (line, error.without_snippet().to_string())
        }),
        Format::Json => read_unique(text.as_bytes())
            .map_err(|error| (Some(error.line()).filter(|line| *line > 0), error.to_string())),
        Format::Toml => toml::from_str(text).map_err(|error| {
            let line = |at: usize| text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
            (error.span().map(|span| line(span.start)), error.message().to_owned())
        }),
    };
    let parsed = parsed.map_err(|(line, problem)| (line, parser_problem(&problem).to_owned()));
    match parsed {
        Ok(Value::Null) => Ok(Value::Object(serde_json::Map::new())),
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(Finding::new("", "the file must be an object with keys such as `apps`")),
        Err((line, problem)) => Err(Finding { line, ..Finding::new("", problem) }),
    }
}

/// Returns `true` if more would be built from the text than from any real file.
fn has_too_many_values(text: &str, format: Format) -> bool {
    match format {
        Format::Yaml => false,
        Format::Json => measure(text.as_bytes(), MOST_VALUES) == Err(Unreadable::TooMany),
        // At least as many as there are: those in texts count as well.
        Format::Toml => text.bytes().filter(|byte| b"[{,=".contains(byte)).count() > MOST_VALUES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_any_format_with_very_many_values_is_refused_before_it_is_parsed() {
        let many = "[],".repeat(MOST_VALUES);
        for (text, format) in [
            (format!("{{\"a\": [{many}0]}}"), Format::Json),
            (format!("a = [{many}0]"), Format::Toml),
            ("a:\n".to_owned() + &"  - []\n".repeat(MOST_VALUES), Format::Yaml),
        ] {
            assert!(value(&text, format).is_err(), "{format:?}");
        }
        let few = "[],".repeat(1_000);
        assert!(value(&format!("{{\"a\": [{few}0]}}"), Format::Json).is_ok());
        assert!(value(&format!("a = [{few}0]"), Format::Toml).is_ok());
    }
}
