//! Checks, before anything runs, that a text is AgentScript, and prepares it for the engine.
//!
//! One tree is parsed, freed of its types, checked by the rules, given its ticks and printed: only what was checked can run. The text of the
//! caller never reaches the engine.
//!
//! `characters` and `nesting` look at the text before the parser may, `parse` calls the parser, `types` removes types, `rules` holds the rules
//! and their tables, `objects` reads the object that a script ends with, `wrappers` takes scripts out of what was written for other runtimes, `ending` returns the value of the last statement, `names` the names they know, `fold` finds out what a computed key spells, `growth` what ticks charge, `ticks` puts them in, `guards` what explains errors,
//! `adapt` gives the tree the form in which it is printed, `slashes` knows what the engine misreads and `scopes` which variables it binds wrongly, `print` writes the text that runs and `verify` reads it again.

mod adapt;
mod characters;
mod ending;
mod fold;
mod growth;
mod guards;
mod names;
mod nesting;
mod objects;
mod parse;
mod print;
mod rules;
mod scopes;
mod slashes;
mod ticks;
mod types;
pub(crate) mod verify;
mod violation;
mod walk;
mod wrappers;

use std::{
    cell::RefCell,
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
};

use oxc::{
    allocator::Allocator,
    ast::ast::{
        BindingIdentifier, Directive, IdentifierName, IdentifierReference, LabelIdentifier,
        PrivateIdentifier, RegExpLiteral, StringLiteral, TemplateElement,
    },
    ast_visit::VisitJs,
    semantic::Scoping,
    span::{SourceType, Span},
};

pub(crate) use names::instead_of_undeclared;
pub use nesting::VALIDATE_STACK;
use violation::Violation;

use crate::{
    facts,
    outcome::{IllegalKind, Location},
    policy::ScriptPolicy,
    rejection::Rejection,
    script::{Script, locate},
};

/// Arenas kept between runs are at most this large, in bytes.
const KEEP_ARENA: usize = 1024 * 1024;

/// The message about a default of a parameter with which a parameter changes.
const SPLIT: &str = "a default among parameters changes a parameter, or uses in a function one that changes; give it its value in the body instead";

/// Most variables, parameters, functions and classes that a script declares.
const MAX_NAMES: usize = 4_000;

thread_local! {
    static ARENA: RefCell<Option<Allocator>> = const { RefCell::new(None) };
}

/// Checks `text`, whose size the caller has checked.
pub(crate) fn validate(text: &str, policy: &ScriptPolicy, memory_bytes: u64) -> Result<Script, Rejection> {
    // Before anything looks at it: to a reader of templates, a fence quotes the script.
    let plain = parse::unfenced(text);
    let text = plain.as_deref().unwrap_or(text);
    characters::check(text).map_err(|violation| violation.at(text))?;
    nesting::bound(text, memory_bytes).map_err(|violation| violation.at(text))?;
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

/// Parses `text` as JavaScript or, when it is not, as TypeScript, and removes the types.
fn tree<'a>(
    arena: &'a Allocator,
    text: &'a str,
    policy: &ScriptPolicy,
) -> Result<parse::Parsed<'a>, Rejection> {
    let refused = |violation: Violation| violation.at(text);
    let plain = parse::parse(arena, text, SourceType::mjs()).map_err(refused)?;
    // `f<T>(x)` is valid JavaScript, but nobody means two comparisons.
    let maybe_generic = text.match_indices(">(").any(|(at, _)| !text[..at].ends_with('='));
    // The parser takes the modifiers of class members for JavaScript.
    let has_types = types::remain(&plain.program);
    if plain.errors.is_none() && !maybe_generic && !has_types {
        return Ok(plain);
    }
    let mut typed = parse::parse(arena, text, SourceType::ts().with_module(true)).map_err(refused)?;
    if typed.errors.is_none() {
        types::remove(arena, &mut typed.program).map_err(refused)?;
        typed.analyse();
        return Ok(typed);
    }
    if plain.errors.is_none() && !has_types {
        return Ok(plain);
    }
    let farther =
        if plain.errors.is_none() || typed.error_offset() > plain.error_offset() { &typed } else { &plain };
    let broken_rule = walk::walk(&plain.program, &plain.scoping, policy).violation;
    Err(broken_rule.map_or_else(|| farther.syntax_error(text), refused))
}

/// Reports the first broken rule, then the first early error; else adds the ticks and prints.
fn check(arena: &Allocator, text: &str, policy: &ScriptPolicy) -> Result<Script, Rejection> {
    let parse::Parsed { mut program, scoping, semantic, .. } = tree(arena, text, policy)?;
    let unsaid = ending::return_last(arena, &mut program);
    let walked = walk::walk(&program, &scoping, policy);
    if let Some(violation) = walked.violation.or_else(|| too_many_names(&scoping)) {
        return Err(violation.at(text));
    }
    if let Some(error) = semantic {
        return Err(parse::rejection(text, &error));
    }
    let (plan, names_every_tool) = facts::collect(&program, &scoping, &unsaid);
    let split = scopes::find(&program, &scoping);
    if let Some(at) = split.parameter {
        return Err(Rejection::SyntaxError { message: SPLIT.to_owned(), location: locate(text, at) });
    }
    ticks::insert(arena, &mut program, &walked.additions);
    guards::insert(arena, &mut program, &scoping, text);
    adapt::adapt(arena, &mut program, &split.loops);
    verify::normalize(arena, &mut program);
    let (printed, places) = print::print(&program);
    let checked = verify::check(arena, &program, &printed);
    let script = Script::new(printed, text, places, walked.additions.returns, plan, names_every_tool);
    checked.map_err(|Violation { kind, offset, message }| {
        let location = script.map_location(locate(script.text(), offset));
        Rejection::Illegal { kind, message, location }
    })?;
    Ok(script)
}

/// Refuses the first name beyond [`MAX_NAMES`]: the engine looks through all names of a scope for each that it declares.
fn too_many_names(scoping: &Scoping) -> Option<Violation> {
    let name = scoping.symbol_ids().nth(MAX_NAMES)?;
    let message =
        format!("the script declares more than {MAX_NAMES} names; keep its data in arrays and objects");
    Some(Violation { kind: IllegalKind::IllegalSyntax, offset: scoping.symbol_span(name).start, message })
}

/// Returns the names that a script uses and does not declare. Applies no rules.
///
/// # Errors
/// The text is not a script, or nests too deep.
pub(crate) fn free_names(text: &str) -> Result<BTreeSet<String>, Rejection> {
    let arena = Allocator::default();
    let plain = parse::unfenced(text);
    let text = plain.as_deref().unwrap_or(text);
    let parsed = tree(&arena, text, &ScriptPolicy::default())?;
    if let Some(error) = &parsed.semantic {
        return Err(parse::rejection(text, error));
    }
    Ok(parsed.scoping.root_unresolved_references().keys().map(ToString::to_string).collect())
}

/// Returns every word of a text as the parser reads it: names, keys, and texts in quotes. Applies no rules.
///
/// # Errors
/// The text is not a script, or nests too deep.
pub(crate) fn words(text: &str) -> Result<BTreeSet<String>, Rejection> {
    struct Words(BTreeSet<String>);
    impl<'a> VisitJs<'a> for Words {
        fn visit_identifier_name(&mut self, it: &IdentifierName<'a>) {
            self.0.insert(it.name.to_string());
        }
        fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
            self.0.insert(it.name.to_string());
        }
        fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
            self.0.insert(it.name.to_string());
        }
        fn visit_label_identifier(&mut self, it: &LabelIdentifier<'a>) {
            self.0.insert(it.name.to_string());
        }
        fn visit_private_identifier(&mut self, it: &PrivateIdentifier<'a>) {
            self.0.insert(format!("#{}", it.name));
        }
        fn visit_string_literal(&mut self, it: &StringLiteral<'a>) {
            self.0.insert(it.value.to_string());
        }
        fn visit_template_element(&mut self, it: &TemplateElement<'a>) {
            self.0.extend(it.value.cooked.map(|text| text.to_string()));
            self.0.insert(it.value.raw.to_string());
        }
        fn visit_directive(&mut self, it: &Directive<'a>) {
            self.0.insert(it.directive.to_string());
            self.0.insert(it.expression.value.to_string());
        }
    }
    let arena = Allocator::default();
    let parsed = tree(&arena, text, &ScriptPolicy::default())?;
    let mut words = Words(BTreeSet::new());
    words.visit_program(&parsed.program);
    Ok(words.0)
}

/// Returns the regular expression literals of a script that was checked: the place and the text of each.
pub(crate) fn regular_expressions(text: &str) -> Vec<(Location, &str)> {
    struct Literals(Vec<Span>);
    impl VisitJs<'_> for Literals {
        fn visit_reg_exp_literal(&mut self, it: &RegExpLiteral<'_>) {
            self.0.push(it.span);
        }
    }
    let arena = Allocator::default();
    let plain = parse::unfenced(text);
    let read = plain.as_deref().unwrap_or(text);
    let Ok(parsed) = tree(&arena, read, &ScriptPolicy::default()) else { return Vec::new() };
    let mut literals = Literals(Vec::new());
    literals.visit_program(&parsed.program);
    literals.0.iter().map(|span| (locate(text, span.start), span.source_text(text))).collect()
}
