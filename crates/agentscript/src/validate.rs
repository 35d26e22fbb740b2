//! Decides, before anything runs, whether a text is AgentScript, and prepares it for the engine.
//!
//! `characters` and `prescan` look at the text before the parser may, `parse` calls the parser, `rules` holds the rules and their tables, `names` the
//! names they know, `fold` finds out what a computed key spells, `growth` where ticks go, `strip` removes types and `edits` rewrites text without moving a line.

mod characters;
mod edits;
mod fold;
mod growth;
mod names;
mod parse;
mod prescan;
mod rules;
mod strip;
mod walk;

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
};

use oxc::{allocator::Allocator, span::SourceType};

use crate::{
    outcome::{IllegalKind, Location},
    script::{Rejection, Script, ScriptPolicy},
};

/// A broken rule: which, what to write instead, and where (byte offset).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    kind: IllegalKind,
    message: String,
    offset: u32,
}

impl Refusal {
    fn new(kind: IllegalKind, offset: u32, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), offset }
    }

    fn at(self, text: &str) -> Rejection {
        Rejection::Illegal { kind: self.kind, message: self.message, location: locate(text, self.offset) }
    }
}

/// Arenas kept between runs are at most this large, in bytes.
const KEEP_ARENA: usize = 1024 * 1024;

thread_local! {
    static ARENA: RefCell<Option<Allocator>> = const { RefCell::new(None) };
}

/// Checks `text`, whose size the caller has checked.
pub(crate) fn validate(text: &str, policy: &ScriptPolicy) -> Result<Script, Rejection> {
    characters::check(text).map_err(|refusal| refusal.at(text))?;
    prescan::structure(text).map_err(|refusal| refusal.at(text))?;
    let mut arena = ARENA.take().unwrap_or_default();
    let checked = catch_unwind(AssertUnwindSafe(|| check(&arena, text, policy)));
    arena.reset();
    if arena.capacity() <= KEEP_ARENA {
        ARENA.set(Some(arena));
    }
    checked.unwrap_or_else(|_| {
        let message = "the parser could not read the script".to_owned();
        Err(Rejection::SyntaxError { message, location: Location { line: 1, column: 1 } })
    })
}

fn check(arena: &Allocator, text: &str, policy: &ScriptPolicy) -> Result<Script, Rejection> {
    let plain = parse::parse(arena, text, SourceType::mjs());
    if plain.errors.is_none() {
        let walked = walk::walk(&plain, policy);
        // `f<T>(x)` is valid JavaScript, but nobody means two comparisons.
        if !walked.maybe_generic {
            return finish(text, &plain, walked);
        }
        let typed = parse::parse(arena, text, SourceType::ts().with_module(true));
        return match typed.errors {
            None => without_types(arena, text, &typed, policy),
            Some(_) => finish(text, &plain, walked),
        };
    }
    let typed = parse::parse(arena, text, SourceType::ts().with_module(true));
    if typed.errors.is_some() {
        let farther = if typed.error_offset() > plain.error_offset() { &typed } else { &plain };
        let refusal = (!plain.panicked).then(|| walk::walk(&plain, policy).refusal).flatten();
        return Err(refusal.map_or_else(|| farther.syntax_error(text), |refusal| refusal.at(text)));
    }
    without_types(arena, text, &typed, policy)
}

/// What runs is what was checked: the text without types is parsed again and takes the same way as any other.
fn without_types<'a>(
    arena: &'a Allocator,
    text: &'a str,
    typed: &parse::Parsed<'a>,
    policy: &ScriptPolicy,
) -> Result<Script, Rejection> {
    let erased = strip::erasures(text, typed.program).map_err(|refusal| refusal.at(text))?;
    let (stripped, _) = edits::apply(text, erased);
    let stripped = arena.alloc_str(&stripped);
    let plain = parse::parse(arena, stripped, SourceType::mjs());
    if plain.errors.is_some() {
        return Err(plain.syntax_error(stripped));
    }
    let walked = walk::walk(&plain, policy);
    finish(stripped, &plain, walked)
}

/// Reports the first broken rule, then the first early error; else adds the ticks.
fn finish(text: &str, parsed: &parse::Parsed<'_>, walked: walk::Walked) -> Result<Script, Rejection> {
    if let Some(refusal) = walked.refusal {
        return Err(refusal.at(text));
    }
    if let Some(error) = parsed.semantic_error() {
        return Err(parse::rejection(text, error));
    }
    let (text, added) = edits::apply(text, walked.ticks);
    Ok(Script::new(text, added, walked.returns))
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
