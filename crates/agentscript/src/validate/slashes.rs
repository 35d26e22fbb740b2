//! The engine's guess about slashes, and syntax about which it guesses right.
//!
//! Where the engine must know what follows a closing bracket, it scans ahead from the opening one. That scan takes a slash for a division or
//! for the start of a regular expression by the token before it, and it remembers only so many open brackets.

use oxc::{
    allocator::{ArenaVec, TakeIn},
    ast::{
        ast::{
            AssignmentExpression, AssignmentOperator, AssignmentTarget, BinaryOperator, BindingPattern,
            ChainElement, Expression, NumberBase, UnaryOperator,
        },
        builder::AstBuilder,
    },
    parser::{Kind, Token},
    span::SPAN,
};

/// Most brackets within each other in the text that runs. The engine's scan remembers 255, and each level is scanned once more.
pub(super) const MAX_BRACKETS: u32 = 200;

/// A reason why the engine would misread a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Misread {
    /// It takes a slash for another.
    Slash,
    /// The bracket at this offset opens more than [`MAX_BRACKETS`] levels.
    TooDeep(u32),
}

/// Scans `tokens` as the engine does.
///
/// # Errors
/// It would misread them.
pub(super) fn scan(tokens: &[Token]) -> Result<(), Misread> {
    let (mut before, mut levels) = (Kind::Eof, 0_u32);
    for token in tokens {
        let kind = token.kind();
        match kind {
            Kind::LParen | Kind::LBrack | Kind::LCurly | Kind::TemplateHead => {
                levels += 1;
                if levels > MAX_BRACKETS {
                    return Err(Misread::TooDeep(token.start()));
                }
            }
            Kind::RParen | Kind::RBrack | Kind::RCurly | Kind::TemplateTail => {
                levels = levels.saturating_sub(1);
            }
            Kind::RegExp if !begins_regexp(before) => return Err(Misread::Slash),
            Kind::Slash | Kind::SlashEq if begins_regexp(before) => return Err(Misread::Slash),
            _ => {}
        }
        before = kind;
    }
    Ok(())
}

/// Tests whether the engine takes a slash after this token for the start of a regular expression.
fn begins_regexp(before: Kind) -> bool {
    use Kind::{
        Implements, Interface, Let, Minus2, Of, Package, Plus2, Private, PrivateIdentifier, Protected,
        Public, RBrack, RCurly, RParen, Static, This, Using, Yield,
    };
    let keyword = before.is_reserved_keyword()
        || matches!(
            before,
            Implements
                | Interface
                | Let
                | Of
                | Package
                | Private
                | Protected
                | Public
                | Static
                | Using
                | Yield
        );
    let ends_value = before.is_literal()
        || matches!(before, This | Minus2 | Plus2 | PrivateIdentifier | RParen | RBrack | RCurly)
        || (before.is_identifier_name() && !keyword);
    !ends_value
}

/// Tests for a word that the engine reads as a keyword, also behind a dot.
fn is_keyword(name: &str) -> bool {
    matches!(
        name,
        "await"
            | "break"
            | "case"
            | "catch"
            | "class"
            | "const"
            | "continue"
            | "debugger"
            | "default"
            | "delete"
            | "do"
            | "else"
            | "enum"
            | "export"
            | "extends"
            | "finally"
            | "for"
            | "function"
            | "if"
            | "implements"
            | "import"
            | "in"
            | "instanceof"
            | "interface"
            | "let"
            | "new"
            | "of"
            | "package"
            | "private"
            | "protected"
            | "public"
            | "return"
            | "static"
            | "super"
            | "switch"
            | "throw"
            | "try"
            | "typeof"
            | "using"
            | "var"
            | "void"
            | "while"
            | "with"
            | "yield"
    )
}

/// Tests whether the engine takes a slash after `left` for a division. May return false where it does.
pub(super) fn may_divide(left: &Expression<'_>) -> bool {
    let mut at = left;
    loop {
        at = match at {
            Expression::BinaryExpression(it) => &it.right,
            Expression::UnaryExpression(it) => &it.argument,
            Expression::AwaitExpression(it) => &it.argument,
            Expression::Identifier(it) => return !is_keyword(&it.name),
            Expression::StaticMemberExpression(it) => return !is_keyword(&it.property.name),
            Expression::ChainExpression(it) => {
                return match &it.expression {
                    ChainElement::StaticMemberExpression(it) => !is_keyword(&it.property.name),
                    ChainElement::TSNonNullExpression(_) => false,
                    _ => true,
                };
            }
            at => {
                return matches!(
                    at,
                    Expression::NumericLiteral(_)
                        | Expression::StringLiteral(_)
                        | Expression::BigIntLiteral(_)
                        | Expression::BooleanLiteral(_)
                        | Expression::NullLiteral(_)
                        | Expression::ThisExpression(_)
                        | Expression::CallExpression(_)
                        | Expression::NewExpression(_)
                        | Expression::ComputedMemberExpression(_)
                        | Expression::PrivateFieldExpression(_)
                        | Expression::SequenceExpression(_)
                        | Expression::ConditionalExpression(_)
                        | Expression::LogicalExpression(_)
                        | Expression::AssignmentExpression(_)
                        | Expression::ArrayExpression(_)
                        | Expression::ObjectExpression(_)
                );
            }
        };
    }
}

pub(super) fn zero<'a>(build: &AstBuilder<'a>) -> Expression<'a> {
    Expression::new_numeric_literal(SPAN, 0.0, None, NumberBase::Decimal, build)
}

/// `value` becomes `(0, value)`.
pub(super) fn behind_zero<'a>(value: Expression<'a>, build: &AstBuilder<'a>) -> Expression<'a> {
    let both = ArenaVec::from_array_in([zero(build), value], build);
    Expression::new_sequence_expression(SPAN, both, build)
}

/// `a` becomes `a = void 0`.
pub(super) fn with_default<'a>(pattern: BindingPattern<'a>, build: &AstBuilder<'a>) -> BindingPattern<'a> {
    let none = Expression::new_unary_expression(SPAN, UnaryOperator::Void, zero(build), build);
    BindingPattern::new_assignment_pattern(SPAN, pattern, none, build)
}

/// `a.new /= b` becomes `a["new"] /= b`, and `of /= b` becomes `of = (0, of) / b`.
pub(super) fn adapt_assignment<'a>(it: &mut AssignmentExpression<'a>, build: &AstBuilder<'a>) {
    if it.operator != AssignmentOperator::Division {
        return;
    }
    match &mut it.left {
        AssignmentTarget::StaticMemberExpression(member) if is_keyword(&member.property.name) => {
            let key = Expression::new_string_literal(member.property.span, member.property.name, None, build);
            let object = member.object.take_in(build);
            it.left =
                AssignmentTarget::new_computed_member_expression(member.span, object, key, false, build);
        }
        AssignmentTarget::AssignmentTargetIdentifier(name) if is_keyword(&name.name) => {
            let value = Expression::new_identifier(name.span, name.name, build);
            let right = it.right.take_in(build);
            it.operator = AssignmentOperator::Assign;
            it.right = Expression::new_binary_expression(
                it.span,
                behind_zero(value, build),
                BinaryOperator::Division,
                right,
                build,
            );
        }
        _ => {}
    }
}
