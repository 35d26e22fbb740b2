//! Calls the parser: text in, syntax tree and scopes or one syntax error out.

use oxc::{
    allocator::Allocator,
    ast::ast::Program,
    diagnostics::OxcDiagnostic,
    parser::{ParseOptions, Parser},
    semantic::{Scoping, SemanticBuilder},
    span::SourceType,
};

use super::locate;
use crate::script::Rejection;

pub(super) struct Parsed<'a> {
    pub(super) program: &'a Program<'a>,
    /// The first error of the grammar.
    pub(super) errors: Option<OxcDiagnostic>,
    /// The parser gave up: there is no tree.
    pub(super) panicked: bool,
    pub(super) scoping: Scoping,
    /// The first early error that needs scopes to be seen.
    semantic: Option<OxcDiagnostic>,
}

impl Parsed<'_> {
    pub(super) fn semantic_error(&self) -> Option<&OxcDiagnostic> {
        self.semantic.as_ref()
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

/// Parses the body of a strict async function: top-level `await` and `return` are allowed.
pub(super) fn parse<'a>(arena: &'a Allocator, text: &'a str, source_type: SourceType) -> Parsed<'a> {
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parsed = Parser::new(arena, text, source_type).with_options(options).parse();
    let errors = parsed.diagnostics.errors().min_by_key(|error| offset(error)).cloned();
    let program: &'a Program<'a> = arena.alloc(parsed.program);
    let panicked = parsed.panicked;
    // Types are gone before scopes matter.
    if panicked || source_type.is_typescript() {
        return Parsed { program, errors, panicked, scoping: Scoping::default(), semantic: None };
    }
    let built = SemanticBuilder::new_compiler().build(program);
    let semantic = built.diagnostics.errors().min_by_key(|error| offset(error)).cloned();
    Parsed { program, errors, panicked, scoping: built.semantic.into_scoping(), semantic }
}

pub(super) fn rejection(text: &str, error: &OxcDiagnostic) -> Rejection {
    let message = match &error.help {
        Some(help) => format!("{}: {help}", error.message),
        None => error.message.to_string(),
    };
    Rejection::SyntaxError { message, location: locate(text, offset(error)) }
}

fn offset(error: &OxcDiagnostic) -> u32 {
    error.labels.first().map_or(0, |label| label.offset())
}
