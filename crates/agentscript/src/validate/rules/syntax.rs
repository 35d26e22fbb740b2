//! Rules about syntax, for every preset and for `locked_down`.

use oxc::{
    ast::{AstKind, ast::Expression},
    span::GetSpan,
};

use super::rule::{Facts, refuse};
use crate::{
    outcome::IllegalKind::{
        IllegalBuiltinAccess, IllegalGlobalAccess, IllegalLoop, IllegalModuleAccess, IllegalSyntax,
    },
    validate::violation::{EXPORT, IMPORT, Violation},
};

pub(super) fn top_level_this(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    if facts.this_depth > 0 {
        return None;
    }
    refuse(
        IllegalGlobalAccess,
        node.span(),
        "`this` is not available outside functions and classes; use a variable",
    )
}

pub(super) fn module_syntax(_: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let message = match node {
        AstKind::ImportDeclaration(_) => IMPORT,
        AstKind::ImportExpression(_) | AstKind::ImportMeta(_) => {
            "modules are not available; call tools with `await callTool(name, input)`"
        }
        _ => EXPORT,
    };
    refuse(IllegalModuleAccess, node.span(), message)
}

pub(super) fn hashbang(_: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    refuse(IllegalSyntax, node.span(), "a `#!` line is not allowed; remove it")
}

pub(super) fn new_target(_: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    refuse(IllegalSyntax, node.span(), "`new.target` is not part of AgentScript")
}

pub(super) fn with_statement(_: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    refuse(IllegalSyntax, node.span(), "`with` is not part of AgentScript; use destructuring")
}

pub(super) fn debugger_statement(_: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    refuse(IllegalSyntax, node.span(), "`debugger` is not part of AgentScript; remove it")
}

pub(super) fn using_declaration(_: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::VariableDeclaration(it) = node else { return None };
    if it.kind.is_using() {
        refuse(IllegalSyntax, it.span, "`using` is not part of AgentScript; use `const`")
    } else {
        None
    }
}

pub(super) fn decorator(_: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    refuse(IllegalSyntax, node.span(), "decorators are not part of AgentScript")
}

pub(super) fn accessor_field(_: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    refuse(
        IllegalSyntax,
        node.span(),
        "`accessor` fields are not part of AgentScript; write a getter and a setter",
    )
}

pub(super) fn unbounded_loop(_: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let name = match node {
        AstKind::WhileStatement(_) => "while",
        AstKind::DoWhileStatement(_) => "do … while",
        _ => "for … in",
    };
    refuse(
        IllegalLoop,
        node.span(),
        format!("`{name}` loops are off in this preset; use `for … of`, or `for` with a condition"),
    )
}

pub(super) fn for_without_test(_: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::ForStatement(it) = node else { return None };
    let endless = match it.test.as_ref().map(Expression::get_inner_expression) {
        None => true,
        Some(Expression::BooleanLiteral(test)) => test.value,
        Some(Expression::NumericLiteral(test)) => test.value != 0.0,
        Some(_) => false,
    };
    if endless {
        refuse(
            IllegalLoop,
            it.span,
            "a `for` loop needs a condition that can end it, such as `i < list.length`",
        )
    } else {
        None
    }
}

pub(super) fn regexp_literal(_: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    refuse(
        IllegalSyntax,
        node.span(),
        "regular expressions are off in this preset; use `includes`, `startsWith`, `split` or `indexOf`",
    )
}

pub(super) fn regexp_constructor(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::IdentifierReference(it) = node else { return None };
    if it.name != "RegExp" || !facts.is_free(it) {
        return None;
    }
    refuse(
        IllegalBuiltinAccess,
        it.span,
        "regular expressions are off in this preset; use `includes`, `startsWith`, `split` or `indexOf`",
    )
}

/// `'…'.match(text)` builds an expression from a string; calls are looked at as members, so that aliases count too.
pub(super) fn regexp_method(_: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::StaticMemberExpression(it) = node else { return None };
    let on_text = matches!(
        it.object.get_inner_expression(),
        Expression::StringLiteral(_) | Expression::TemplateLiteral(_)
    );
    if on_text && matches!(it.property.name.as_str(), "match" | "matchAll" | "search") {
        return refuse(
            IllegalBuiltinAccess,
            it.property.span,
            "regular expressions are off in this preset; use `includes` or `indexOf`",
        );
    }
    None
}
