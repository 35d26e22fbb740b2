//! From the caller's text to a script that may run.
//!
//! The rules are in `validate`; nothing here knows the engine.

use serde::{Deserialize, Serialize};

use crate::{
    limits::{Limits, Preset},
    outcome::{IllegalKind, Location, Verdict},
    validate::{self, Place},
};

/// What a script's text may contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptPolicy {
    /// Table of rules. Default `Preset::Secure`.
    pub preset: Preset,
    /// Whether `console` exists. Default `true`, in `Preset::LockedDown` `false`.
    pub allow_console: bool,
    /// Starts of tool names that scripts may not call, such as `codecall:`. Compared without regard to ASCII case. Default none.
    pub reserved_tool_prefixes: Vec<String>,
}

impl ScriptPolicy {
    /// The policy that goes with `preset`: console where the preset has one, no reserved names.
    pub fn new(preset: Preset) -> Self {
        Self { preset, allow_console: preset != Preset::LockedDown, reserved_tool_prefixes: Vec::new() }
    }

    /// Turns `console` on or off.
    #[must_use]
    pub fn allow_console(mut self, allow: bool) -> Self {
        self.allow_console = allow;
        self
    }

    /// Names whose call is a self-reference.
    #[must_use]
    pub fn reserved_tool_prefixes<S: Into<String>>(mut self, prefixes: impl IntoIterator<Item = S>) -> Self {
        self.reserved_tool_prefixes = prefixes.into_iter().map(Into::into).collect();
        self
    }

    /// Whether `console` exists in the run.
    pub fn console_allowed(&self) -> bool {
        self.allow_console
    }

    /// Whether regular expressions, literal or built, exist in the run.
    pub fn regexp_allowed(&self) -> bool {
        self.preset != Preset::LockedDown
    }
}

impl Default for ScriptPolicy {
    fn default() -> Self {
        Self::new(Preset::default())
    }
}

/// Text that nobody has looked at yet: the body of an async function, in JavaScript or TypeScript.
#[derive(Debug, Clone, Copy)]
pub struct ScriptSource<'a> {
    text: &'a str,
}

impl<'a> ScriptSource<'a> {
    /// Wraps the caller's text.
    pub fn new(text: &'a str) -> Self {
        Self { text }
    }

    /// Checks the text against `policy` and `limits.script_bytes`, removes type annotations and adds the counting of turns.
    ///
    /// Parses by recursion: call it on a thread with at least [`VALIDATE_STACK`] bytes of stack left. A text that could need more, or much more
    /// than `limits.memory_bytes`, is refused before it is parsed.
    ///
    /// # Errors
    /// The text is too long, is not JavaScript, or breaks a rule.
    pub fn validate(&self, policy: &ScriptPolicy, limits: &Limits) -> Result<Script, Rejection> {
        let size = self.text.len() as u64;
        if size > limits.script_bytes {
            return Err(Rejection::Illegal {
                kind: IllegalKind::ScriptTooLarge,
                message: format!(
                    "the script is {size} bytes long; at most {} are allowed",
                    limits.script_bytes
                ),
                location: Location { line: 1, column: 1 },
            });
        }
        validate::validate(self.text, policy, limits.memory_bytes)
    }
}

/// Stack that [`ScriptSource::validate`] may use, in bytes. An ordinary script uses some kilobytes; the rest is address space.
pub const VALIDATE_STACK: usize = 128 * 1024 * 1024;

/// Text that passed the validator, ready for the engine.
#[derive(Debug, Clone)]
pub struct Script {
    text: String,
    source: String,
    /// In order of `text`.
    places: Vec<Place>,
    /// Byte offsets in `source` of each `return` outside all functions.
    returns: Vec<u32>,
}

impl Script {
    pub(crate) fn new(text: String, source: &str, places: Vec<Place>, returns: Vec<u32>) -> Self {
        Self { text, source: source.to_owned(), places, returns }
    }

    /// Where the `number`th `return` outside all functions stands, in the caller's text. Counted from 0, in the order that
    /// `__ag_returns` is given in [`Script::text`]; when there is one, it is number 0.
    pub(crate) fn returned(&self, number: u32) -> Option<Location> {
        Some(validate::locate(&self.source, *self.returns.get(number as usize)?))
    }

    /// The regular expression literals: the place in the caller's text and the text of each.
    pub(crate) fn regular_expressions(&self) -> Vec<(Location, &str)> {
        validate::regular_expressions(&self.source)
    }

    /// The body to run: strict JavaScript, printed from the tree that was checked, with `__ag_tick()` in every loop and function, and
    /// `__ag_returns()` around what is returned where there is more than one `return` outside them.
    ///
    /// To run it, put `(async function(){` before it (same line) and a line feed and `})` behind it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The place in the caller's text that `at`, a place in [`Script::text`], was printed from.
    pub fn map_location(&self, at: Location) -> Location {
        let line = at.line.saturating_sub(1);
        let printed = nth_line(&self.text, line);
        let column = utf16(printed.chars().take(at.column.saturating_sub(1) as usize));
        let Some(place) = self.places.partition_point(|place| place.printed <= (line, column)).checked_sub(1)
        else {
            return Location { line: 1, column: 1 };
        };
        let Place { printed: (place_line, place_column), source: (source_line, source_column) } =
            self.places[place];
        let source = nth_line(&self.source, source_line);
        let (before, source) = split_utf16(source, source_column);
        let mut location = Location { line: source_line + 1, column: 1 + count(before) };
        // What follows the place unchanged has its own.
        if place_line == line {
            let between = split_utf16(split_utf16(printed, column).0, place_column).1;
            if source.starts_with(between) {
                location.column += count(between);
            }
        }
        location
    }
}

fn nth_line(text: &str, line: u32) -> &str {
    let mut rest = text;
    for _ in 0..line {
        let Some(end) = rest.find(['\n', '\r']) else { return "" };
        let len = if rest[end..].starts_with("\r\n") { 2 } else { 1 };
        rest = &rest[end + len..];
    }
    rest.split(['\n', '\r']).next().unwrap_or_default()
}

fn utf16(chars: impl Iterator<Item = char>) -> u32 {
    u32::try_from(chars.map(char::len_utf16).sum::<usize>()).unwrap_or(u32::MAX)
}

fn count(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
}

/// Splits `text` at a column in UTF-16 units.
fn split_utf16(text: &str, column: u32) -> (&str, &str) {
    let mut units = 0;
    for (at, c) in text.char_indices() {
        if units >= column {
            return text.split_at(at);
        }
        units += if c.len_utf16() == 2 { 2 } else { 1 };
    }
    (text, "")
}

/// Why a text may not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The text is not JavaScript.
    #[error("{message} ({}:{})", location.line, location.column)]
    SyntaxError {
        /// What the parser expected.
        message: String,
        /// Where, in the caller's text.
        location: Location,
    },
    /// The text breaks a rule.
    #[error("{kind}: {message} ({}:{})", location.line, location.column)]
    Illegal {
        /// Which rule.
        kind: IllegalKind,
        /// What to write instead.
        message: String,
        /// Where, in the caller's text.
        location: Location,
    },
}

impl From<Rejection> for Verdict {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::SyntaxError { message, location } => Self::SyntaxError { message, location },
            Rejection::Illegal { kind, message, location } => {
                Self::IllegalAccess { kind, message, location: Some(location) }
            }
        }
    }
}
