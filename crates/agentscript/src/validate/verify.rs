//! Parses the printed program and compares it with the checked tree, so that no mistake of the printer can change what runs.

use oxc::{
    allocator::Allocator,
    ast::ast::{ArrowFunctionExpression, CallExpression, Function, NewExpression, Program, TemplateElement},
    ast_visit::{VisitJsMut, walk_js_mut},
    parser::{ParseOptions, Parser, config::TokensParserConfig},
    semantic::ScopeFlags,
    span::{ContentEq, SourceType},
    str::Str,
};

use super::{
    nesting,
    slashes::{self, MAX_BRACKETS, Misread},
    types,
    violation::Violation,
};
use crate::outcome::IllegalKind;

/// Stands for the slash of `</script` in the raw text of a template until it is printed: the printer would write `<\/script`. No script
/// holds this character, and the printer escapes it in strings.
pub(super) const SLASH: char = '\u{7}';

/// Removes from a tree what only says how it was written, and hides `</script` from the printer.
pub(super) fn normalize<'a>(arena: &'a Allocator, program: &mut Program<'a>) {
    Normalize { arena }.visit_program(program);
}

/// Compares `printed` with the normalized `program` that it was printed from.
///
/// # Errors
/// They are not the same program, `printed` has more brackets than can be read, or the engine would misread it. The offset is one of `printed`.
pub(super) fn check(arena: &Allocator, program: &Program<'_>, printed: &str) -> Result<(), Violation> {
    // The calls that were added nest too.
    nesting::bound(printed, u64::MAX).map_err(|violation| Violation { offset: 0, ..violation })?;
    let options = ParseOptions {
        allow_return_outside_function: true,
        preserve_parens: false,
        ..ParseOptions::default()
    };
    let parser = Parser::new(arena, printed, SourceType::mjs()).with_options(options);
    let mut read = parser.with_config(TokensParserConfig).parse();
    let faulty = read.panicked || read.diagnostics.errors().next().is_some();
    let scanned = slashes::scan(&read.tokens);
    if let Err(Misread::TooDeep(at)) = scanned {
        let message = format!(
            "the script nests brackets deeper than {MAX_BRACKETS} levels; put parts of it into variables or functions"
        );
        return Err(Violation { kind: IllegalKind::IllegalSyntax, offset: at, message });
    }
    // The parser takes the modifiers of class members for JavaScript.
    if !faulty && scanned.is_ok() && !types::remain(&read.program) {
        normalize(arena, &mut read.program);
        if read.program.directives.is_empty() && read.program.body.content_eq(&program.body) {
            return Ok(());
        }
    }
    Err(Violation::new(IllegalKind::IllegalSyntax, 0, UNFAITHFUL))
}

/// The message about a program that the printer gets wrong.
pub(crate) const UNFAITHFUL: &str =
    "the script cannot be passed on exactly as it was checked; write it in a simpler way";

struct Normalize<'a> {
    arena: &'a Allocator,
}

impl<'a> VisitJsMut<'a> for Normalize<'a> {
    fn visit_function(&mut self, it: &mut Function<'a>, flags: ScopeFlags) {
        (it.pure, it.pife) = (false, false);
        walk_js_mut::walk_function(self, it, flags);
    }

    fn visit_arrow_function_expression(&mut self, it: &mut ArrowFunctionExpression<'a>) {
        (it.pure, it.pife) = (false, false);
        walk_js_mut::walk_arrow_function_expression(self, it);
    }

    fn visit_call_expression(&mut self, it: &mut CallExpression<'a>) {
        it.pure = false;
        walk_js_mut::walk_call_expression(self, it);
    }

    fn visit_new_expression(&mut self, it: &mut NewExpression<'a>) {
        it.pure = false;
        walk_js_mut::walk_new_expression(self, it);
    }

    fn visit_template_element(&mut self, it: &mut TemplateElement<'a>) {
        if let Some(hidden) = without_script_tags(&it.value.raw) {
            it.value.raw = Str::from_str_in(&hidden, &self.arena);
        }
    }
}

/// The text with [`SLASH`] in every `</script`, if it has any.
fn without_script_tags(raw: &str) -> Option<String> {
    let lower = raw.to_ascii_lowercase();
    let mut hidden = None;
    for (at, _) in lower.match_indices("</script") {
        let hidden: &mut String = hidden.get_or_insert_with(|| raw.to_owned());
        hidden.replace_range(at + 1..at + 2, "\u{7}");
    }
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Preset, Rejection, ScriptPolicy};

    /// Checks and prints a text that is not looked at for characters that the printer gets wrong.
    fn print(text: &str) -> Result<String, Rejection> {
        let policy = ScriptPolicy::new(Preset::Secure);
        super::super::check(&Allocator::default(), text, &policy).map(|script| script.text().to_owned())
    }

    #[test]
    fn a_program_that_the_printer_gets_wrong_does_not_run() {
        for quote in ["'", "`"] {
            let text =
                format!("return {quote}\\ud800\\\u{fffd}{{1}}\"; globalThis.escaped = process; //{quote}");
            let printed = print(&text);
            let refused =
                matches!(&printed, Err(Rejection::Illegal { message, .. }) if message == UNFAITHFUL);
            assert!(refused || quote == "`", "{printed:?}");
        }
    }

    #[test]
    fn a_text_that_differs_in_any_way_is_refused() {
        let arena = Allocator::default();
        let parse = |text| Parser::new(&arena, text, SourceType::mjs()).parse().program;
        let text = "const a = f`x</script`, b = [1n, /c/g, -1];";
        let mut program = parse(text);
        normalize(&arena, &mut program);
        assert_eq!(check(&arena, &program, text), Ok(()));
        for other in [
            "const a = f`x<\\/script`, b = [1n, /c/g, -1];",
            "const a = f`x</script`, b = [1n, /c/, -1];",
            "const a = f`x</script`, b = [1n, /c/g, 1];",
            "const a = f`x</script`, b = [1n, /c/g, -1]; process",
            "let a = f`x</script`, b = [1n, /c/g, -1];",
            "'use strict'; const a = f`x</script`, b = [1n, /c/g, -1];",
            "const a = f`x</script`, b = [1n, /c/g, -1",
            "",
        ] {
            assert_eq!(
                check(&arena, &program, other).map_err(|it| it.message),
                Err(UNFAITHFUL.to_owned()),
                "{other}"
            );
        }
    }

    #[test]
    fn a_slash_that_the_engine_would_misread_is_refused() {
        let arena = Allocator::default();
        for (text, is_read) in [
            ("f(0, /a/);", true),
            ("{} /a/.x;", false),
            ("if (1) /a/.x;", false),
            ("a.b / 2;", true),
            ("a.in / 2;", false),
            ("a.of /= 2;", false),
            ("`a` / 2;", false),
            ("`a${b}` / 2;", false),
            ("a.this / 2;", true),
            ("class A { readonly a = 1 }", false),
            ("class A { readonly = 1 }", true),
        ] {
            let mut program = Parser::new(&arena, text, SourceType::mjs()).parse().program;
            normalize(&arena, &mut program);
            assert_eq!(check(&arena, &program, text).is_ok(), is_read, "{text}");
        }
    }
}
