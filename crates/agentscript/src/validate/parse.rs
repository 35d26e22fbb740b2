//! Parser and semantic analysis: from a text to a syntax tree with scopes, or to one syntax error.

use oxc::{
    allocator::Allocator,
    ast::ast::Program,
    diagnostics::OxcDiagnostic,
    parser::{ParseOptions, Parser},
    semantic::{Scoping, SemanticBuilder},
    span::SourceType,
};

use super::{nesting, objects, violation::Violation, wrappers};
use crate::{rejection::Rejection, script::locate};

pub(super) struct Parsed<'a> {
    pub(super) program: Program<'a>,
    /// The first error of the grammar.
    pub(super) errors: Option<OxcDiagnostic>,
    /// The parser failed: there is no tree.
    pub(super) panicked: bool,
    pub(super) scoping: Scoping,
    /// The first early error that needs scopes to be seen.
    pub(super) semantic: Option<OxcDiagnostic>,
}

impl Parsed<'_> {
    /// Finds scopes and early errors.
    pub(super) fn analyse(&mut self) {
        let built = SemanticBuilder::new_compiler().build(&self.program);
        self.semantic = built.diagnostics.errors().min_by_key(|error| offset(error)).cloned();
        self.scoping = built.semantic.into_scoping();
    }

    pub(super) fn error_offset(&self) -> u32 {
        self.errors.as_ref().map_or(0, offset)
    }

    pub(super) fn syntax_error(&self, text: &str) -> Rejection {
        match &self.errors {
            Some(error) => rejection(text, error),
            None => Rejection::SyntaxError {
                message: "the script cannot be parsed".to_owned(),
                location: locate(text, 0),
            },
        }
    }
}

/// The text with spaces in the place of a Markdown fence around it: models write scripts as they write answers. None without one.
pub(super) fn unfenced(text: &str) -> Option<String> {
    const FENCE: &str = "```";
    let start = text.len() - text.trim_start().len();
    let opening = text[start..].lines().next()?;
    let language = opening.strip_prefix(FENCE)?;
    if !language.trim().chars().all(|c| c.is_ascii_alphabetic()) {
        return None;
    }
    let first = start + opening.len();
    let rest = text[first..].trim_end();
    let last = first + rest.strip_suffix(FENCE)?.len();
    let is_alone = text[first..last].ends_with('\n');
    let blank = |len| " ".repeat(len);
    is_alone
        .then(|| [&text[..start], &blank(opening.len()), &text[first..last], &blank(FENCE.len())].concat())
}

/// Parses the body of a strict async function: top-level `await` and `return` are allowed.
///
/// # Errors
/// The program nests too deep.
pub(super) fn parse<'a>(
    arena: &'a Allocator,
    text: &'a str,
    source_type: SourceType,
) -> Result<Parsed<'a>, Violation> {
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parsed = Parser::new(arena, text, source_type).with_options(options).parse();
    let errors = parsed.diagnostics.errors().min_by_key(|error| offset(error)).cloned();
    let mut parsed = Parsed {
        program: parsed.program,
        errors,
        panicked: parsed.panicked,
        scoping: Scoping::default(),
        semantic: None,
    };
    if parsed.errors.is_some()
        && let Some(program) = objects::parse_with_last_object(arena, text, source_type, options)
    {
        parsed = Parsed { program, errors: None, panicked: false, ..parsed };
    }
    nesting::check(&parsed.program)?;
    if parsed.errors.is_none() {
        objects::replace_last_block(arena, &mut parsed.program);
        wrappers::unwrap(arena, &mut parsed.program);
    }
    // Types are gone before scopes matter.
    if !parsed.panicked && !source_type.is_typescript() {
        parsed.analyse();
    }
    Ok(parsed)
}

pub(super) fn rejection(text: &str, error: &OxcDiagnostic) -> Rejection {
    let message = match &error.help {
        _ if is_in_object(text, error) => OBJECT.to_owned(),
        Some(help) => format!("{}: {help}", error.message),
        None => error.message.to_string(),
    };
    Rejection::SyntaxError { message, location: locate(text, offset(error)) }
}

/// The message about an object that the grammar takes for a block.
const OBJECT: &str =
    "this `{` begins a block; if an object is meant, write `return` in front of it or put it in parentheses";

/// Tests for an error at the colon behind a key: the parser read the key as a statement.
fn is_in_object(text: &str, error: &OxcDiagnostic) -> bool {
    let rest = text.get(offset(error) as usize..).unwrap_or_default();
    error.message.starts_with("Expected a semicolon") && rest.trim_start().starts_with(':')
}

/// Returns the place to report: of a name that is declared twice, the second.
fn offset(error: &OxcDiagnostic) -> u32 {
    let twice = error.message.ends_with("has already been declared");
    let label = if twice { error.labels.last() } else { error.labels.first() };
    label.map_or(0, |label| label.offset())
}
