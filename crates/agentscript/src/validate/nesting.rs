//! Limits the nesting of a script: by an estimate before it is parsed, exactly afterwards.
//!
//! The parser, the semantic analysis and every walk over a tree are recursive, and the parser has no limit of its own. [`bound`] adds up the
//! stack for every character and word that can open a level, wherever it stands. A bracket in a string, a comment or a regular
//! expression makes the sum too high, never too low: no text can hide a level, so none can exhaust the stack. [`check`] then measures the tree.

use oxc::{
    ast::ast::{AssignmentTarget, BindingPattern, Expression, Program, Statement},
    ast_visit::{VisitJs, walk_js},
    span::GetSpan,
};

use super::violation::Violation;
use crate::outcome::IllegalKind;

/// Stack that [`ScriptSource::validate`](crate::ScriptSource::validate) may use, in bytes. An ordinary script uses some kilobytes; the rest is address space.
pub const VALIDATE_STACK: usize = 128 * 1024 * 1024;

/// Deepest tree that is checked and printed, in expressions, statements and patterns within each other.
pub(super) const MAX_DEPTH: u32 = 1_200;

/// Stack that the parser needs for a level, in bytes, with a third to spare; a test parses every shape at the bound.
const BRACKET: usize = 3 * 1024;
const OTHER: usize = 3 * 512;
/// Stack for everything else, in bytes.
const RESERVE: usize = 8 * 1024 * 1024;

/// Refuses a text that could need more stack than there is to parse it, or more than twice the run's memory: estimates are high, and an
/// ordinary script of the largest size stays below half of that.
pub(super) fn bound(text: &str, memory_bytes: u64) -> Result<(), Violation> {
    let memory = usize::try_from(memory_bytes.saturating_mul(2)).unwrap_or(usize::MAX);
    let most = memory.min(VALIDATE_STACK - RESERVE);
    // Every opener takes a byte.
    if text.len().saturating_mul(BRACKET) <= most {
        return Ok(());
    }
    let bytes = text.as_bytes();
    let (mut stack, mut at) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        let start = at;
        at += 1;
        stack += match byte {
            b'(' | b'[' | b'{' | b'<' | b'`' => BRACKET,
            b'!' | b'~' | b'+' | b'-' | b'\\' | b'@' | b'#' => OTHER,
            // Between two of these stands an operand.
            b'*' | b'/' | b'%' | b'>' | b'=' | b'&' | b'|' | b'^' | b'?' | b':' | b'.' => {
                at += bytes[at..].iter().take_while(|next| b"*/%>=&|^?:.".contains(next)).count();
                OTHER
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => {
                let word = |next: &&u8| next.is_ascii_alphanumeric() || matches!(next, b'_' | b'$');
                at += bytes[at..].iter().take_while(word).count();
                if opens(&bytes[start..at]) { OTHER } else { 0 }
            }
            _ => 0,
        };
        if stack > most {
            let message = "the script has more brackets and operators than can be checked; pass data to it instead of writing it into its text";
            let at = u32::try_from(start).unwrap_or(u32::MAX);
            return Err(Violation::new(IllegalKind::IllegalSyntax, at, message));
        }
    }
    Ok(())
}

/// Tests for a word that can stand in front of another expression, statement or type without a bracket.
fn opens(word: &[u8]) -> bool {
    matches!(
        word,
        b"as"
            | b"asserts"
            | b"async"
            | b"await"
            | b"class"
            | b"delete"
            | b"do"
            | b"else"
            | b"extends"
            | b"in"
            | b"infer"
            | b"instanceof"
            | b"is"
            | b"keyof"
            | b"new"
            | b"of"
            | b"readonly"
            | b"satisfies"
            | b"typeof"
            | b"unique"
            | b"void"
            | b"yield"
    )
}

/// Rejects a program that nests too deep for the walks over it.
pub(super) fn check(program: &Program<'_>) -> Result<(), Violation> {
    let mut depth = Depth { levels: 0, too_deep: None };
    depth.visit_program(program);
    depth.too_deep.map_or(Ok(()), |at| {
        let message = format!(
            "the script nests deeper than {MAX_DEPTH} levels; put parts of it into variables or functions"
        );
        Err(Violation::new(IllegalKind::IllegalSyntax, at, message))
    })
}

struct Depth {
    levels: u32,
    too_deep: Option<u32>,
}

impl Depth {
    fn within<T: GetSpan>(&mut self, node: &T, walk: impl FnOnce(&mut Self, &T)) {
        if self.levels == MAX_DEPTH {
            self.too_deep.get_or_insert(node.span().start);
        } else {
            self.levels += 1;
            walk(self, node);
            self.levels -= 1;
        }
    }
}

/// Every path from a node to another of its kind passes one of these.
impl<'a> VisitJs<'a> for Depth {
    fn visit_expression(&mut self, it: &Expression<'a>) {
        self.within(it, walk_js::walk_expression);
    }

    fn visit_statement(&mut self, it: &Statement<'a>) {
        self.within(it, walk_js::walk_statement);
    }

    fn visit_binding_pattern(&mut self, it: &BindingPattern<'a>) {
        self.within(it, walk_js::walk_binding_pattern);
    }

    fn visit_assignment_target(&mut self, it: &AssignmentTarget<'a>) {
        self.within(it, walk_js::walk_assignment_target);
    }
}
