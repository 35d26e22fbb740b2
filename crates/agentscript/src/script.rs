//! From the caller's text to a script that may run.
//!
//! The rules are in `validate`; nothing here knows the engine.

use serde::{Deserialize, Serialize};

use crate::{
    limits::{Limits, Preset},
    outcome::{IllegalKind, Location, Verdict},
    validate,
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

    /// Checks the text against `policy` and `limits.script_bytes`, strips type annotations and adds the counting of turns.
    ///
    /// Parses by recursion: call it on a thread with at least [`VALIDATE_STACK`] bytes of stack left. Deeper text is refused
    /// before it is parsed.
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
        validate::validate(self.text, policy)
    }
}

/// Stack that [`ScriptSource::validate`] may use, in bytes.
pub const VALIDATE_STACK: usize = 32 * 1024 * 1024;

/// Text that passed the validator, ready for the engine.
#[derive(Debug, Clone)]
pub struct Script {
    text: String,
    /// Byte offset in `text` and length of everything the validator added, in order.
    added: Vec<(u32, u32)>,
    /// Byte offsets of each `return` outside all functions, in the text without what was added.
    returns: Vec<u32>,
}

impl Script {
    pub(crate) fn new(text: String, added: Vec<(u32, u32)>, returns: Vec<u32>) -> Self {
        Self { text, added, returns }
    }

    /// Where the `number`th `return` outside all functions stands, in the caller's text. Counted from 0, in the order that
    /// `__ag_returns` is given in [`Script::text`]; when there is one, it is number 0.
    pub(crate) fn returned(&self, number: u32) -> Option<Location> {
        let offset = *self.returns.get(number as usize)?;
        let mut plain = String::with_capacity(self.text.len());
        let mut done = 0;
        for (start, len) in &self.added {
            plain.push_str(&self.text[done..*start as usize]);
            done = (start + len) as usize;
        }
        plain.push_str(&self.text[done..]);
        Some(validate::locate(&plain, offset))
    }

    /// The body to run: strict JavaScript with `__ag_tick()` in every loop and function, and `__ag_returns()` around what is
    /// returned where there is more than one `return` outside them; on the lines of the caller's text.
    ///
    /// To run it, put `(async function(){` before it (same line) and a line feed and `})` behind it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The place in the caller's text that `at`, a place in [`Script::text`], stands for.
    pub fn map_location(&self, at: Location) -> Location {
        let index = at.line.saturating_sub(1) as usize;
        let Some(line) = self.text.split('\n').nth(index) else { return at };
        let start = line.as_ptr() as usize - self.text.as_ptr() as usize;
        let (mut column, mut seen) = (1_u32, 1_u32);
        for (offset, _) in line.char_indices() {
            if seen >= at.column {
                break;
            }
            seen += 1;
            if !self.is_added(start + offset) {
                column += 1;
            }
        }
        Location { line: at.line, column: column + at.column.saturating_sub(seen) }
    }

    fn is_added(&self, offset: usize) -> bool {
        let after = self.added.partition_point(|&(start, _)| start as usize <= offset);
        after > 0 && {
            let (start, len) = self.added[after - 1];
            offset < (start + len) as usize
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_leave_out_what_was_added() {
        let script = Script::new("ab\nx__y\n".to_owned(), vec![(4, 2)], Vec::new());
        let map = |line, column| {
            let at = script.map_location(Location { line, column });
            (at.line, at.column)
        };
        assert_eq!(map(1, 2), (1, 2));
        assert_eq!(map(2, 1), (2, 1));
        assert_eq!(map(2, 4), (2, 2));
        assert_eq!(map(2, 5), (2, 3));
        assert_eq!(map(9, 5), (9, 5));
    }
}
