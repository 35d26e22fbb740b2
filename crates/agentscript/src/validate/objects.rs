//! Objects that a script ends with. The grammar takes `{ total }` and `{ total: 5 }` for blocks, and `{ total: 5, rows: [] }` for an error.

use oxc::{
    allocator::{Allocator, ArenaVec, TakeIn},
    ast::{
        ast::{
            BlockStatement, Expression, ExpressionStatement, ObjectPropertyKind, Program, PropertyKey,
            PropertyKind, Statement,
        },
        builder::AstBuilder,
    },
    parser::{ParseOptions, Parser},
    span::{GetSpan, SourceType, Span},
};

use crate::facts::returns;

/// Replaces a block at the end of a script that returns nothing by the object that it would be in parentheses.
pub(super) fn replace_last_block<'a>(arena: &'a Allocator, program: &mut Program<'a>) {
    if returns(program) {
        return;
    }
    let is_empty = |it: &Statement<'_>| matches!(it, Statement::EmptyStatement(_));
    let Some(last) = program.body.iter_mut().rfind(|it| !is_empty(it)) else { return };
    if let Statement::BlockStatement(block) = last
        && !block.body.is_empty()
        && is_object(block)
    {
        let build = AstBuilder::new(arena);
        let span = block.span;
        let object = object(block, &build);
        *last = Statement::new_expression_statement(span, object, &build);
    }
}

/// Parses a script that is none, but for an object at the beginning of a line that ends it: reads the script before it, and the object as a
/// value.
pub(super) fn parse_with_last_object<'a>(
    arena: &'a Allocator,
    text: &'a str,
    source_type: SourceType,
    options: ParseOptions,
) -> Option<Program<'a>> {
    let end = text.trim_end().trim_end_matches(';').trim_end().len();
    if !text[..end].ends_with('}') {
        return None;
    }
    let at = text[..end].rfind("\n{").map_or(0, |at| at + 1);
    let (before, object) = (&text[..at], &text[at..end]);
    // An object without code is no script.
    if !object.starts_with('{') || (before.trim().is_empty() && !object.contains("await")) {
        return None;
    }
    let parsed = Parser::new(arena, before, source_type).with_options(options).parse();
    if parsed.panicked || parsed.diagnostics.errors().next().is_some() || returns(&parsed.program) {
        return None;
    }
    // What looks like an object is the body of a function that TypeScript lets stand without one.
    if matches!(parsed.program.body.last(), Some(Statement::FunctionDeclaration(it)) if it.body.is_none()) {
        return None;
    }
    // With the places that it has in the script.
    let alone = arena.alloc_str(&(" ".repeat(at) + object));
    let object = Parser::new(arena, alone, source_type).with_options(options).parse_expression().ok()?;
    if !matches!(object, Expression::ObjectExpression(_)) {
        return None;
    }
    let mut program = parsed.program;
    program.source_text = text;
    program.span = Span::new(0, u32::try_from(text.len()).ok()?);
    let statement = Statement::new_expression_statement(object.span(), object, &AstBuilder::new(arena));
    program.body.push(statement);
    Some(program)
}

/// Tests for a block that is an object in parentheses.
fn is_object(block: &BlockStatement<'_>) -> bool {
    match block.body.as_slice() {
        [] => true,
        [Statement::ExpressionStatement(it)] => {
            let is_name = |it: &Expression<'_>| matches!(it, Expression::Identifier(_));
            is_open(it)
                && match &it.expression {
                    Expression::SequenceExpression(it) => it.expressions.iter().all(is_name),
                    it => is_name(it),
                }
        }
        [Statement::LabeledStatement(it)] => match &it.body {
            Statement::BlockStatement(it) => is_object(it),
            Statement::ExpressionStatement(it) => {
                let is_name = |it: &Expression<'_>| matches!(it, Expression::Identifier(_));
                is_open(it)
                    && match &it.expression {
                        Expression::SequenceExpression(it) => it.expressions.iter().skip(1).all(is_name),
                        _ => true,
                    }
            }
            _ => false,
        },
        _ => false,
    }
}

/// Tests for a statement without a semicolon.
fn is_open(it: &ExpressionStatement<'_>) -> bool {
    it.span.end == it.expression.span().end
}

/// The object that `block` is in parentheses.
fn object<'a>(block: &mut BlockStatement<'a>, build: &AstBuilder<'a>) -> Expression<'a> {
    let (mut label, value) = match block.body.first_mut() {
        Some(Statement::LabeledStatement(it)) => {
            let label = (it.label.span, it.label.name);
            match &mut it.body {
                Statement::BlockStatement(inner) => (Some(label), Some(object(inner, build))),
                Statement::ExpressionStatement(it) => (Some(label), Some(it.expression.take_in(build))),
                _ => (None, None),
            }
        }
        Some(Statement::ExpressionStatement(it)) => (None, Some(it.expression.take_in(build))),
        _ => (None, None),
    };
    let mut members = ArenaVec::new_in(build);
    let mut put = |value: Expression<'a>| {
        let (span, name) = match (label.take(), &value) {
            (Some(label), _) => label,
            (None, Expression::Identifier(name)) => (name.span, name.name),
            (None, _) => return,
        };
        let shorthand = span.start == value.span().start;
        let key = PropertyKey::new_static_identifier(span, name, build);
        let span = Span::new(span.start, value.span().end);
        let member = ObjectPropertyKind::new_object_property(
            span,
            PropertyKind::Init,
            key,
            value,
            false,
            shorthand,
            false,
            build,
        );
        members.push(member);
    };
    match value {
        Some(Expression::SequenceExpression(it)) => it.unbox().expressions.into_iter().for_each(put),
        Some(value) => put(value),
        None => {}
    }
    Expression::new_object_expression(block.span, members, build)
}
