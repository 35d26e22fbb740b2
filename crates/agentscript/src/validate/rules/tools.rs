//! Rules about calls that reach tools.

use oxc::{
    ast::{
        AstKind,
        ast::{CallExpression, Expression},
    },
    span::GetSpan,
};

use super::rule::{Facts, refuse};
use crate::{outcome::IllegalKind::SelfReferenceBlocked, validate::violation::Violation};

pub(super) fn self_reference(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::CallExpression(call) = node else { return None };
    if facts.policy.reserved_tool_prefixes.is_empty() {
        return None;
    }
    let name = tool_name(facts, call)?;
    let spelled = facts.folder().texts(name);
    let reserved = spelled.iter().find(|spelled| facts.policy.is_reserved(spelled))?;
    refuse(
        SelfReferenceBlocked,
        name.span(),
        format!("`{reserved}` runs scripts and cannot be called from one; call the tools it would call"),
    )
}

/// The first argument of a call that reaches `callTool` or `getTool` as far as the text says.
fn tool_name<'c, 'a>(facts: &Facts<'_>, call: &'c CallExpression<'a>) -> Option<&'c Expression<'a>> {
    let is_tool_function = |expression: &Expression<'_>| is_tool_function(facts, expression, 0);
    if is_tool_function(&call.callee) {
        return call.arguments.first()?.as_expression();
    }
    // `callTool.call(null, name)`, `.bind(null, name)`, `.apply(null, [name])`.
    let member = call.callee.get_inner_expression().get_member_expr()?;
    let method = member.static_property_name()?;
    if !matches!(method, "call" | "bind" | "apply") || !is_tool_function(member.object()) {
        return None;
    }
    let second = call.arguments.get(1)?.as_expression()?;
    match second {
        Expression::ArrayExpression(list) => list.elements.first()?.as_expression(),
        other => Some(other),
    }
}

fn is_tool_function(facts: &Facts<'_>, expression: &Expression<'_>, depth: u8) -> bool {
    match expression.get_inner_expression() {
        Expression::Identifier(it) => {
            if facts.is_free(it) {
                return matches!(it.name.as_str(), "callTool" | "getTool");
            }
            facts.folder().texts(expression).iter().any(|text| text == TOOL_FUNCTION)
        }
        Expression::SequenceExpression(it) if depth < 8 => {
            it.expressions.last().is_some_and(|last| is_tool_function(facts, last, depth + 1))
        }
        Expression::LogicalExpression(it) if depth < 8 => {
            is_tool_function(facts, &it.left, depth + 1) || is_tool_function(facts, &it.right, depth + 1)
        }
        Expression::ConditionalExpression(it) if depth < 8 => {
            is_tool_function(facts, &it.consequent, depth + 1)
                || is_tool_function(facts, &it.alternate, depth + 1)
        }
        _ => false,
    }
}

/// Value of a variable that is an alias of `callTool` or `getTool`.
pub(crate) const TOOL_FUNCTION: &str = "\0tool";

/// Tests for an alias of a function that calls tools.
pub(crate) fn is_alias(facts: &Facts<'_>, expression: &Expression<'_>) -> bool {
    is_tool_function(facts, expression, 0)
}
