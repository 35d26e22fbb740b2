//! Validation of the caller's text: the only way to a [`Script`].
//!
//! The rules are in `validate`; nothing here knows the engine.

use crate::{
    limits::Limits,
    outcome::{IllegalKind, Location},
    policy::ScriptPolicy,
    rejection::Rejection,
    script::Script,
    validate,
};

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
    /// Parses by recursion: call it on a thread with at least [`VALIDATE_STACK`](crate::VALIDATE_STACK) bytes of stack left. A text that could need more, or much more
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
