//! Rules about property names, written or computed, read, destructured or defined.

use oxc::{
    ast::{
        AstKind,
        ast::{AssignmentTargetProperty, Expression, PropertyKey},
    },
    span::GetSpan,
};

use super::rule::{Facts, refuse};
use crate::{
    outcome::IllegalKind::IllegalPrototypeAccess,
    validate::{names, violation::Violation},
};

pub(super) fn member(_: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::StaticMemberExpression(it) = node else { return None };
    let name = it.property.name.as_str();
    if let Some((kind, message)) = names::property(name) {
        return refuse(kind, it.property.span, message);
    }
    arguments_link(&it.object, name).then(|| stack_walk(it.property.span.start))
}

pub(super) fn computed_member(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::ComputedMemberExpression(it) = node else { return None };
    if matches!(it.expression, Expression::NumericLiteral(_)) {
        return None;
    }
    facts.folder().texts(&it.expression).iter().find_map(|name| {
        if let Some((kind, message)) = names::property(name) {
            return refuse(kind, it.expression.span(), message);
        }
        arguments_link(&it.object, name).then(|| stack_walk(it.expression.span().start))
    })
}

/// `arguments.callee` and `.caller`.
fn arguments_link(object: &Expression<'_>, name: &str) -> bool {
    matches!(name, "callee" | "caller") && object.get_inner_expression().is_specific_id("arguments")
}

fn stack_walk(offset: u32) -> Violation {
    Violation::new(
        IllegalPrototypeAccess,
        offset,
        "`arguments.callee` is not available; give the function a name and call that",
    )
}

/// The refused name that `key` can spell.
fn key_violation(facts: &Facts<'_>, key: &PropertyKey<'_>) -> Option<Violation> {
    let found =
        |name: &str| names::property(name).and_then(|(kind, message)| refuse(kind, key.span(), message));
    match key {
        PropertyKey::StaticIdentifier(it) => found(&it.name),
        PropertyKey::PrivateIdentifier(_) => None,
        key => facts.folder().texts(key.as_expression()?).iter().find_map(|name| found(name)),
    }
}

pub(super) fn destructured(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::BindingProperty(it) = node else { return None };
    key_violation(facts, &it.key)
}

pub(super) fn assigned_pattern(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::ObjectAssignmentTarget(it) = node else { return None };
    it.properties.iter().find_map(|property| match property {
        AssignmentTargetProperty::AssignmentTargetPropertyIdentifier(it) => names::property(&it.binding.name)
            .and_then(|(kind, message)| refuse(kind, it.binding.span, message)),
        AssignmentTargetProperty::AssignmentTargetPropertyProperty(it) => key_violation(facts, &it.name),
    })
}

fn proto_key(facts: &Facts<'_>, key: &PropertyKey<'_>) -> Option<Violation> {
    let message =
        "`__proto__` is not available as a key; choose another name, or keep the data as an array of pairs";
    let found = |name: &str| {
        if name == "__proto__" { refuse(IllegalPrototypeAccess, key.span(), message) } else { None }
    };
    match key {
        PropertyKey::StaticIdentifier(it) => found(&it.name),
        PropertyKey::PrivateIdentifier(_) => None,
        key => facts.folder().texts(key.as_expression()?).iter().find_map(|name| found(name)),
    }
}

pub(super) fn proto_property(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::ObjectProperty(it) = node else { return None };
    proto_key(facts, &it.key)
}

pub(super) fn proto_member(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    match node {
        AstKind::MethodDefinition(it) => proto_key(facts, &it.key),
        AstKind::PropertyDefinition(it) => proto_key(facts, &it.key),
        _ => None,
    }
}
