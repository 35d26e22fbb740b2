//! A broken rule, by its offset in the text.

use crate::{outcome::IllegalKind, rejection::Rejection, script::locate};

/// A rule that a script breaks: its kind, what to write instead, and the byte offset of the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) kind: IllegalKind,
    pub(super) message: String,
    pub(super) offset: u32,
}

impl Violation {
    pub(super) fn new(kind: IllegalKind, offset: u32, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), offset }
    }

    /// Returns the rejection of `text`.
    pub(super) fn at(self, text: &str) -> Rejection {
        Rejection::Illegal { kind: self.kind, message: self.message, location: locate(text, self.offset) }
    }
}

/// The message about an `import` statement.
pub(super) const IMPORT: &str = "modules are not available: remove the `import`; `callTool`, `getTool` and `codecallContext` are there without one";
/// The message about an `export`.
pub(super) const EXPORT: &str =
    "modules are not available: remove the `export`, and end the script with `return value`";
