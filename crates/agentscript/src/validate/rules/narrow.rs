//! Constructs that only `locked_down` refuses because what they cost is not in the text.

use oxc::{
    ast::{
        AstKind,
        ast::{Argument, Expression},
    },
    span::GetSpan,
};

use super::rule::{Facts, array_length, refuse};
use crate::{
    outcome::IllegalKind::{IllegalBuiltinAccess, IllegalSyntax},
    validate::violation::Violation,
};

/// `Array(n)` and `new Array(n)` where the text does not spell the length.
pub(super) fn computed_length(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let length = array_length(facts, node)?;
    let spelt = matches!(length, Argument::NumericLiteral(_) | Argument::StringLiteral(_));
    if spelt {
        return None;
    }
    refuse(
        IllegalBuiltinAccess,
        length.span(),
        "`Array(n)` takes only a number written out in this preset; start with `[]` and `push`, or use `Array.from(list, fn)`",
    )
}

/// An object literal that says how it becomes a text or a number: code that runs where none is written.
pub(super) fn coercion_member(_: &Facts<'_>, node: AstKind<'_>) -> Option<Violation> {
    let AstKind::ObjectProperty(it) = node else { return None };
    let name = it.key.static_name()?;
    let code = matches!(
        it.value.get_inner_expression(),
        Expression::FunctionExpression(_) | Expression::ArrowFunctionExpression(_)
    );
    if code && matches!(&*name, "toString" | "valueOf" | "toJSON") {
        return refuse(
            IllegalSyntax,
            it.key.span(),
            format!(
                "objects with a `{name}` of their own are off in this preset; make the text where it is needed"
            ),
        );
    }
    None
}
