//! Forms of scripts and statements that decide what is said of them.

use oxc::ast::ast::{BindingPattern, Expression, Program, Statement};

/// The variable that a script ends with, when it waits for its value.
pub(super) fn last_constant<'p>(program: &'p Program<'_>) -> Option<(u32, &'p str)> {
    let Some(Statement::VariableDeclaration(it)) = program.body.last() else { return None };
    let [declarator] = it.declarations.as_slice() else { return None };
    let BindingPattern::BindingIdentifier(name) = &declarator.id else { return None };
    matches!(declarator.init, Some(Expression::AwaitExpression(_)))
        .then(|| (name.span.start, name.name.as_str()))
}

/// The last function of a script that only declares functions.
pub(super) fn only_function<'p>(program: &'p Program<'_>) -> Option<(u32, &'p str)> {
    let mut last = None;
    for statement in &program.body {
        match statement {
            Statement::FunctionDeclaration(it) => {
                last = it.id.as_ref().map(|id| (id.span.start, id.name.as_str()))
            }
            Statement::EmptyStatement(_) => {}
            _ => return None,
        }
    }
    last
}

/// Tests for a statement that keeps its value in a variable or a member: it may be awaited later.
pub(super) fn is_kept(it: &Expression<'_>) -> bool {
    match it.without_parentheses() {
        Expression::AssignmentExpression(_) => true,
        Expression::SequenceExpression(it) => it.expressions.last().is_some_and(is_kept),
        _ => false,
    }
}
