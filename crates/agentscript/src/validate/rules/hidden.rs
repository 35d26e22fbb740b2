//! Rules about constructs that only hide something, or reach behind the language.

use oxc::{
    ast::{
        AstKind,
        ast::{BinaryOperator, Expression},
    },
    span::GetSpan,
};

use super::rule::{Facts, array_length, refuse};
use crate::{
    outcome::IllegalKind::{IllegalBuiltinAccess, IllegalGlobalAccess, IllegalPrototypeAccess},
    validate::{fold::Value, names, violation::Violation},
};

pub(super) fn symbol_hook(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let (object, names, span) = match node {
        AstKind::StaticMemberExpression(it) => {
            (&it.object, vec![it.property.name.to_string()], it.property.span)
        }
        AstKind::ComputedMemberExpression(it) if matches!(it.object, Expression::Identifier(_)) => {
            (&it.object, facts.folder().texts(&it.expression), it.expression.span())
        }
        _ => return None,
    };
    let Expression::Identifier(symbol) = object.get_inner_expression() else { return None };
    if symbol.name != "Symbol" || !facts.is_free(symbol) {
        return None;
    }
    let name = names.iter().find(|name| names::symbol_hook(name))?;
    refuse(
        IllegalBuiltinAccess,
        span,
        format!("`Symbol.{name}` is not available: write what the value should do as a method and call it"),
    )
}

/// Rejects `.stack` of a caught or new error.
pub(super) fn error_stack(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::StaticMemberExpression(it) = node else { return None };
    if it.property.name != "stack" {
        return None;
    }
    let of_error = match it.object.get_inner_expression() {
        Expression::Identifier(name) => {
            let symbol =
                name.reference_id.get().and_then(|id| facts.scoping.get_reference(id).symbol_id())?;
            facts.scoping.symbol_flags(symbol).is_catch_variable()
                || facts.folder().texts(&it.object).iter().any(|text| text == ERROR)
        }
        object => is_new_error(object),
    };
    if of_error {
        refuse(
            IllegalBuiltinAccess,
            it.property.span,
            "stack traces are out of reach; use the error's `message`",
        )
    } else {
        None
    }
}

/// Value of a variable that holds a new error.
pub(crate) const ERROR: &str = "\0error";

/// Tests for an expression that makes an error.
pub(crate) fn is_new_error(expression: &Expression<'_>) -> bool {
    match expression.get_inner_expression() {
        Expression::NewExpression(it) => {
            matches!(&it.callee, Expression::Identifier(name) if name.name.ends_with("Error"))
        }
        _ => false,
    }
}

/// Rejects a reserved name in pieces: `'con' + 'structor'`. One that is only compared leads nowhere.
pub(super) fn assembled_name(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::BinaryExpression(it) = node else { return None };
    let Expression::StringLiteral(last) = it.right.get_inner_expression() else { return None };
    let end = last.value.as_str();
    let hides = |name: &&str| name.ends_with(end) && name.len() > end.len() && !end.is_empty();
    if it.operator != BinaryOperator::Addition || !["constructor", "__proto__", "prototype"].iter().any(hides)
    {
        return None;
    }
    if facts.compared.contains(&it.span) {
        return None;
    }
    let left = facts.folder().texts(&it.left);
    let spelled = left
        .iter()
        .map(|left| format!("{left}{end}"))
        .find(|name| matches!(name.as_str(), "constructor" | "__proto__" | "prototype"))?;
    let (kind, message) = names::property(&spelled)?;
    refuse(kind, it.span, message)
}

/// Rejects `function () { return this }`, which asks for the global object.
pub(super) fn returned_this(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::ReturnStatement(it) = node else { return None };
    let this = matches!(it.argument.as_ref()?.get_inner_expression(), Expression::ThisExpression(_));
    if !this || !facts.in_plain_function {
        return None;
    }
    refuse(
        IllegalGlobalAccess,
        it.span,
        "`this` of a plain function is nothing here; return a variable, or use a method",
    )
}

/// Rejects `o[['a']]` and `o[{ … }]`: keys that become text only when they are used.
pub(super) fn literal_key(_: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::ComputedMemberExpression(it) = node else { return None };
    let key = it.expression.get_inner_expression();
    if !matches!(key, Expression::ArrayExpression(_) | Expression::ObjectExpression(_)) {
        return None;
    }
    refuse(IllegalPrototypeAccess, key.span(), "a key must be text or a number; write it as such")
}

/// Rejects callbacks of `JSON.parse` and `JSON.stringify`, which run once per value without a tick.
pub(super) fn json_callback(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::CallExpression(it) = node else { return None };
    let callback = it.arguments.get(1)?.as_expression()?.get_inner_expression();
    if !matches!(callback, Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_)) {
        return None;
    }
    let member = it.callee.get_inner_expression().get_member_expr()?;
    let Expression::Identifier(json) = member.object().get_inner_expression() else { return None };
    let method = member.static_property_name()?;
    if json.name != "JSON" || !facts.is_free(json) || !matches!(method, "parse" | "stringify") {
        return None;
    }
    refuse(
        IllegalBuiltinAccess,
        callback.span(),
        format!("`JSON.{method}` takes no callback here; change the value before or after"),
    )
}

/// Longest array that may be made by its length alone.
const MAX_ARRAY: f64 = 100_000.0;

pub(super) fn long_array(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let length = array_length(facts, node)?.as_expression()?;
    let long = facts
        .folder()
        .values(length, 0)
        .iter()
        .any(|value| matches!(value, Value::Number(length) if *length > MAX_ARRAY));
    if !long {
        return None;
    }
    refuse(
        IllegalBuiltinAccess,
        length.span(),
        format!("an array may be made with at most {MAX_ARRAY} elements; `push` what is needed"),
    )
}
