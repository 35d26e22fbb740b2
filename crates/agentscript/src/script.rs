//! A script that passed the validator, and the way from its places back to the caller's text.

use crate::{outcome::Location, plan::PlanFacts};

/// Text that passed the validator, ready for the engine.
#[derive(Debug, Clone)]
pub struct Script {
    text: String,
    source: String,
    /// In order of `text`.
    places: Vec<Place>,
    /// Byte offsets in `source` of each `return` outside all functions.
    returns: Vec<u32>,
    plan: PlanFacts,
    names_every_tool: bool,
}

impl Script {
    pub(crate) fn new(
        text: String,
        source: &str,
        places: Vec<Place>,
        returns: Vec<u32>,
        plan: PlanFacts,
        names_every_tool: bool,
    ) -> Self {
        Self { text, source: source.to_owned(), places, returns, plan, names_every_tool }
    }

    /// Facts about the tool calls of the script.
    pub fn plan(&self) -> &PlanFacts {
        &self.plan
    }

    /// Returns true if every tool that the script can call is named by one of the calls of [`Script::plan`].
    pub fn names_every_tool(&self) -> bool {
        self.names_every_tool
    }

    /// The place in the caller's text of a byte offset in it.
    pub fn location(&self, at: u32) -> Location {
        locate(&self.source, at)
    }

    /// Returns the place of the `number`th `return` outside all functions, in the caller's text. Counted from 0, in the order that
    /// `__ag_returns` is given in [`Script::text`]; when there is one, it is number 0.
    pub(crate) fn returned(&self, number: u32) -> Option<Location> {
        Some(locate(&self.source, *self.returns.get(number as usize)?))
    }

    /// The caller's text.
    pub(crate) fn source(&self) -> &str {
        &self.source
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

/// A place of the printed text and the one it was printed from. Lines and columns count from 0, columns in UTF-16 units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) printed: (u32, u32),
    pub(crate) source: (u32, u32),
}

/// Line and column (characters, both from 1) of a byte offset.
pub(crate) fn locate(text: &str, offset: u32) -> Location {
    let mut end = (offset as usize).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let (mut line, mut start) = (1_u32, 0);
    let bytes = before.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        // A lone carriage return ends a line too.
        if *byte == b'\n' || (*byte == b'\r' && text.as_bytes().get(at + 1) != Some(&b'\n')) {
            line += 1;
            start = at + 1;
        }
    }
    let column = u32::try_from(before[start..].chars().count()).unwrap_or(u32::MAX - 1) + 1;
    Location { line, column }
}
