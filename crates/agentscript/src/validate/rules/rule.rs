//! A rule: its type, the facts about a node that it may use, and its refusal.

use oxc::{
    ast::{
        AstKind,
        ast::{Argument, Expression, IdentifierReference},
    },
    semantic::Scoping,
    span::{GetSpan, Span},
};

use crate::{
    outcome::IllegalKind,
    policy::ScriptPolicy,
    validate::{
        fold::{Folder, Known},
        violation::Violation,
    },
};

/// Returns the violation of a node, if it is one.
pub(super) type Rule = fn(&Facts<'_>, AstKind<'_>) -> Option<Violation>;

/// Facts about a node that rules need.
pub(crate) struct Facts<'s> {
    pub(crate) policy: &'s ScriptPolicy,
    pub(crate) scoping: &'s Scoping,
    pub(crate) known: &'s Known,
    /// Number of functions with a `this` of their own around the node.
    pub(crate) this_depth: u32,
    /// The innermost of them is a plain function, neither method nor accessor.
    pub(crate) in_plain_function: bool,
    /// Operands of the comparisons for equality around the node.
    pub(crate) compared: Vec<Span>,
}

impl Facts<'_> {
    pub(super) fn folder(&self) -> Folder<'_> {
        Folder { scoping: self.scoping, known: self.known }
    }

    /// Tests for a name that the script does not declare.
    pub(super) fn is_free(&self, reference: &IdentifierReference<'_>) -> bool {
        reference.reference_id.get().is_none_or(|id| self.scoping.get_reference(id).symbol_id().is_none())
    }
}

/// The argument of `Array(n)` or `new Array(n)`.
pub(super) fn array_length<'a>(facts: &Facts<'_>, node: AstKind<'a>) -> Option<&'a Argument<'a>> {
    let (callee, arguments) = match node {
        AstKind::CallExpression(it) => (&it.callee, &it.arguments),
        AstKind::NewExpression(it) => (&it.callee, &it.arguments),
        _ => return None,
    };
    let Expression::Identifier(array) = callee.get_inner_expression() else { return None };
    let [length] = arguments.as_slice() else { return None };
    (array.name == "Array" && facts.is_free(array)).then_some(length)
}

/// A violation at the start of `at`.
pub(super) fn refuse(kind: IllegalKind, at: impl GetSpan, message: impl Into<String>) -> Option<Violation> {
    Some(Violation::new(kind, at.span().start, message))
}
