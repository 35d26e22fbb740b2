//! The result of scripts that return nothing: the value of their last statement.

use oxc::{
    allocator::{Allocator, ArenaVec, TakeIn},
    ast::{
        ast::{Expression, Program, Statement},
        builder::AstBuilder,
    },
};

use crate::facts::returned_statement;

/// Returns the value of the last statement, as consoles do: a model writes `main();` or `rows` and means `return await main()` and `return rows`.
/// A function without parameters is called. Returns the place of the `return` that was put in.
pub(super) fn return_last<'a>(arena: &'a Allocator, program: &mut Program<'a>) -> Option<u32> {
    let at = returned_statement(program)?;
    let build = AstBuilder::new(arena);
    let last = &mut program.body[at];
    let Statement::ExpressionStatement(it) = last else { return None };
    let (span, mut value) = (it.span, it.expression.take_in(&build));
    if is_function_without_parameters(&value) {
        value = Expression::new_call_expression(span, value, None, ArenaVec::new_in(&build), false, &build);
    }
    *last = Statement::new_return_statement(span, Some(value), &build);
    Some(span.start)
}

fn is_function_without_parameters(it: &Expression<'_>) -> bool {
    let parameters = match it.without_parentheses() {
        Expression::ArrowFunctionExpression(it) => &it.params,
        Expression::FunctionExpression(it) if !it.generator => &it.params,
        _ => return false,
    };
    parameters.items.is_empty() && parameters.rest.is_none()
}
