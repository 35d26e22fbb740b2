//! Rules about names: free ones, reserved ones, and those of the API.

use oxc::ast::{
    AstKind,
    ast::{Expression, UnaryOperator},
};

use super::rule::{Facts, refuse};
use crate::{
    outcome::IllegalKind::{IllegalGlobalAccess, IllegalIdentifier},
    validate::{names, violation::Violation},
};

fn reserved_message(name: &str) -> String {
    format!(
        "`{name}` is reserved: names that begin with `__safe_` or `__ag_` belong to the runtime; rename it"
    )
}

pub(super) fn reserved_reference(_: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::IdentifierReference(it) = node else { return None };
    if names::is_reserved(&it.name) {
        refuse(IllegalIdentifier, it.span, reserved_message(&it.name))
    } else {
        None
    }
}

pub(super) fn free_name(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::IdentifierReference(it) = node else { return None };
    let (kind, message) = names::free_name(&it.name)?;
    if facts.is_free(it) { refuse(kind, it.span, message) } else { None }
}

pub(super) fn console_off(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::IdentifierReference(it) = node else { return None };
    if it.name != "console" || facts.policy.console_allowed() || !facts.is_free(it) {
        return None;
    }
    refuse(IllegalGlobalAccess, it.span, "`console` is turned off; return what you want to see")
}

pub(super) fn assigned_builtin(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::IdentifierReference(it) = node else { return None };
    let reference = facts.scoping.get_reference(it.reference_id.get()?);
    if !reference.is_write() || reference.symbol_id().is_some() || !names::is_frozen(&it.name) {
        return None;
    }
    refuse(
        IllegalIdentifier,
        it.span,
        format!("`{}` cannot be assigned to; use a variable of your own", it.name),
    )
}

pub(super) fn top_level_arguments(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::IdentifierReference(it) = node else { return None };
    if it.name != "arguments" || facts.this_depth > 0 {
        return None;
    }
    refuse(
        IllegalGlobalAccess,
        it.span,
        "`arguments` is not available outside functions; what the caller gave is in `codecallContext`",
    )
}

/// Rejects `typeof` of an undeclared name: its only use is to probe the realm.
pub(super) fn probing_typeof(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::UnaryExpression(it) = node else { return None };
    let Expression::Identifier(name) = it.argument.get_inner_expression() else { return None };
    if it.operator != UnaryOperator::Typeof
        || !facts.is_free(name)
        || names::exists(&name.name)
        || names::free_name(&name.name).is_some()
    {
        return None;
    }
    let message = format!(
        "`{}` is not declared: `typeof` works on variables, `codecallContext` and the built-in names",
        name.name
    );
    refuse(IllegalGlobalAccess, name.span, message)
}

pub(super) fn declared_name(_: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::BindingIdentifier(it) = node else { return None };
    if names::is_reserved(&it.name) {
        return refuse(IllegalIdentifier, it.span, reserved_message(&it.name));
    }
    if names::is_api(&it.name) {
        return refuse(
            IllegalIdentifier,
            it.span,
            format!("`{}` is part of AgentScript and cannot be declared again; rename yours", it.name),
        );
    }
    None
}
