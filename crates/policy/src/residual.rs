//! Residuals: what partial evaluation leaves of a condition.

use crate::cedar::{Expr, ExprKind, Literal};

/// Returns `true` if `residual` is never true, whatever its unknown parts are. Cedar leaves `context.a == 1 && false` as it is, since its left
/// side may fail.
pub(crate) fn is_never_true(residual: &Expr) -> bool {
    match residual.expr_kind() {
        ExprKind::Lit(Literal::Bool(value)) => !value,
        ExprKind::And { left, right } => is_never_true(left) || is_never_true(right),
        ExprKind::Or { left, right } => is_never_true(left) && is_never_true(right),
        ExprKind::If { test_expr, then_expr, else_expr } => match is_never_true(test_expr) {
            true => is_never_true(else_expr),
            false => is_never_true(then_expr) && is_never_true(else_expr),
        },
        _ => false,
    }
}
