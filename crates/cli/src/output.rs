//! Standard output and standard error: the only place that writes to them, besides the log.
//!
//! Text of others (names, descriptions, errors) may contain control characters, which a terminal would obey: they are escaped. When nobody
//! reads standard output any more, as in `gatewright tools list | head`, the command ends quietly.

use std::io::{self, Write as _};

use gatewright_findings::{must_be_escaped, printable_lines};
use serde::Serialize;

/// The reader of standard output is gone.
#[derive(Debug)]
pub struct OutputClosed;

impl std::fmt::Display for OutputClosed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("standard output is closed")
    }
}

impl std::error::Error for OutputClosed {}

/// Prints a line, or several, to standard output, with control characters escaped.
macro_rules! outln {
    ($($arg:tt)*) => { $crate::output::line(&format!($($arg)*)) };
}

/// Prints a line, or several, to standard error, with control characters escaped.
macro_rules! errln {
    ($($arg:tt)*) => { $crate::output::note(&format!($($arg)*)) };
}

pub(crate) use {errln, outln};

/// Prints `text` and a line break to standard output, with control characters escaped.
///
/// # Errors
/// [`OutputClosed`], or the system's error.
pub fn line(text: &str) -> anyhow::Result<()> {
    raw(format!("{}\n", printable_lines(text)).as_bytes())
}

/// Prints a value as one line of JSON.
///
/// # Errors
/// As [`line`].
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    raw(ascii_controls(&format!("{}\n", serde_json::to_string(value)?)).as_bytes())
}

/// Prints a value as indented JSON.
///
/// # Errors
/// As [`line`].
pub fn pretty_json(value: &impl Serialize) -> anyhow::Result<()> {
    raw(ascii_controls(&format!("{}\n", serde_json::to_string_pretty(value)?)).as_bytes())
}

/// Writes bytes that this program made to standard output, as they are.
///
/// # Errors
/// As [`line`].
pub fn raw(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(OutputClosed.into()),
        written => {
            written.map_err(|error| anyhow::Error::new(error).context("standard output cannot be written"))
        }
    }
}

/// Prints `text` and a line break to standard error, with control characters escaped. Nothing depends on whether anybody reads it.
pub fn note(text: &str) {
    progress(&format!("{}\n", printable_lines(text)));
}

/// Writes a state of progress to standard error, as it is.
pub fn progress(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Escapes what JSON allows in strings and a terminal must not get: DEL, control characters beyond ASCII, and those that direct the
/// order of text. Nowhere else does the text have any.
pub fn ascii_controls(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            c if c >= '\u{7f}' && must_be_escaped(c) => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn json_keeps_its_meaning_and_loses_its_control_characters() {
        let value = json!({"a\u{9b}b": "\u{1b}[31m\u{7f}\u{85}é\u{202e}\n"});
        let text = ascii_controls(&value.to_string());
        assert!(!text.contains(must_be_escaped), "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
