//! The result of scripts that return nothing: the value of the statement that they end with.

use std::collections::HashMap;

use oxc::{
    allocator::{Allocator, ArenaVec, TakeIn},
    ast::{
        ast::{Expression, Program, Statement},
        builder::AstBuilder,
    },
    ast_visit::{VisitJsMut, walk_js_mut},
    span::GetSpan,
};

use crate::facts::{Tail, is_result, returns, tails};

/// Returns the value of the last statement, as consoles do: a model writes `main();` or `rows` and means `return await main()` and `return rows`.
/// Of an `if`, a `try` or a block it is the value of the last statement within. A function without parameters is called.
///
/// Returns the places of the `return`s that were put in, in order of the text.
pub(super) fn return_last<'a>(arena: &'a Allocator, program: &mut Program<'a>) -> Vec<u32> {
    if returns(program) {
        return Vec::new();
    }
    let ends = tails(&program.body).into_iter().filter_map(end).collect();
    let mut put = Put { build: AstBuilder::new(arena), ends, returns: Vec::new() };
    if !put.ends.is_empty() {
        put.visit_program(program);
    }
    put.returns
}

/// Use of the value of a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Returned,
    /// It is waited for, so that the `try` around it sees its error.
    Awaited,
    /// It is a function, which is called.
    Called,
}

/// The start of a statement whose value is the result, and what becomes of the value.
fn end(tail: Tail<'_, '_>) -> Option<(u32, End)> {
    let Statement::ExpressionStatement(it) = tail.statement else { return None };
    let value = &it.expression;
    let end = match value.without_parentheses() {
        _ if !is_result(value) => return None,
        function if function.is_function() => match tail.is_last {
            true if is_function_without_parameters(function) => End::Called,
            true => End::Returned,
            false => return None,
        },
        Expression::AwaitExpression(_) => End::Returned,
        _ if tail.in_try => End::Awaited,
        _ => End::Returned,
    };
    Some((it.span.start, end))
}

struct Put<'a> {
    build: AstBuilder<'a>,
    ends: HashMap<u32, End>,
    returns: Vec<u32>,
}

impl<'a> VisitJsMut<'a> for Put<'a> {
    fn visit_statement(&mut self, it: &mut Statement<'a>) {
        let Statement::ExpressionStatement(statement) = it else {
            return walk_js_mut::walk_statement(self, it);
        };
        // What an expression holds begins behind its statement.
        let Some(end) = self.ends.remove(&statement.span.start) else { return };
        let build = &self.build;
        let (span, value) = (statement.span, statement.expression.take_in(build));
        let value = match end {
            End::Returned => value,
            End::Awaited => Expression::new_await_expression(value.span(), value, build),
            End::Called => {
                Expression::new_call_expression(span, value, None, ArenaVec::new_in(build), false, build)
            }
        };
        *it = Statement::new_return_statement(span, Some(value), build);
        self.returns.push(span.start);
    }

    fn visit_expression(&mut self, _: &mut Expression<'a>) {}
}

fn is_function_without_parameters(it: &Expression<'_>) -> bool {
    let parameters = match it {
        Expression::ArrowFunctionExpression(it) => &it.params,
        Expression::FunctionExpression(it) if !it.generator => &it.params,
        _ => return false,
    };
    parameters.items.is_empty() && parameters.rest.is_none()
}
