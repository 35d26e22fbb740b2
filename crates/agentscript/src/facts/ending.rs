//! The end of a script, and statements that start work and leave it.

use oxc::{
    ast::ast::{
        ArrowFunctionExpression, CallExpression, Expression, Function, Program, ReturnStatement, Statement,
        UnaryOperator,
    },
    ast_visit::VisitJs,
    semantic::ScopeFlags,
};

use super::collector::Collector;
use crate::plan::Mistake;

/// Methods that are called for their value.
const FOR_THEIR_VALUE: &[&str] = &[
    "abs",
    "all",
    "allSettled",
    "any",
    "at",
    "catch",
    "ceil",
    "concat",
    "entries",
    "every",
    "filter",
    "finally",
    "find",
    "findIndex",
    "findLast",
    "flat",
    "flatMap",
    "floor",
    "from",
    "fromEntries",
    "get",
    "has",
    "includes",
    "indexOf",
    "join",
    "keys",
    "map",
    "match",
    "max",
    "min",
    "padEnd",
    "padStart",
    "parse",
    "race",
    "reduce",
    "reject",
    "repeat",
    "replace",
    "replaceAll",
    "resolve",
    "round",
    "slice",
    "some",
    "split",
    "stringify",
    "substring",
    "then",
    "toFixed",
    "toISOString",
    "toLowerCase",
    "toReversed",
    "toSorted",
    "toString",
    "toUpperCase",
    "trim",
    "values",
];
/// A function of scripts that is called for its effect.
const PROGRESS: &str = "progress";

/// Returns the index of the statement whose value is the result of a script that returns nothing: the last one, if it is an expression that is there for its value, or a
/// call whose end has to be waited for.
pub(crate) fn returned_statement(program: &Program<'_>) -> Option<usize> {
    let is_passed_over =
        |it: &Statement<'_>| matches!(it, Statement::FunctionDeclaration(_) | Statement::EmptyStatement(_));
    let last = program.body.iter().rposition(|it| !is_passed_over(it))?;
    let Statement::ExpressionStatement(it) = &program.body[last] else { return None };
    let is_meant = is_value(&it.expression) || is_waited_for(&it.expression);
    (is_meant && !returns(program)).then_some(last)
}

/// Tests for a `return` with a value outside of all functions.
fn returns(program: &Program<'_>) -> bool {
    struct Returns(bool);
    impl<'a> VisitJs<'a> for Returns {
        fn visit_return_statement(&mut self, it: &ReturnStatement<'a>) {
            self.0 |= it.argument.is_some();
        }
        fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}
        fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}
    }
    let mut found = Returns(false);
    found.visit_program(program);
    found.0
}

impl Collector<'_> {
    /// Reports that the value of the last statement, `it`, was returned although the script does not say so.
    pub(super) fn returned_unsaid(&mut self, at: u32, it: &Expression<'_>) {
        if it.without_parentheses().is_function() {
            self.note(at, Mistake::FunctionNotCalled, "");
        } else if is_value(it) || self.called.as_ref().is_some_and(|function| function.returns) {
            self.note(at, Mistake::NotReturned, "");
        }
    }

    /// Tests for a direct call of a function of the script that calls tools.
    pub(super) fn calls_own(&self, it: &Expression<'_>) -> bool {
        let Expression::CallExpression(call) = it.without_parentheses() else { return false };
        !matches!(call.callee.without_parentheses(), Expression::StaticMemberExpression(_))
            && self.called.as_ref().is_some_and(|function| function.calls_tools)
    }
}

/// Tests for a call of a function of the script or of the host, or of a promise's method.
fn is_waited_for(it: &Expression<'_>) -> bool {
    match it.without_parentheses() {
        Expression::AwaitExpression(it) => is_waited_for(&it.argument) || is_value(&it.argument),
        Expression::CallExpression(it) => match it.callee.without_parentheses() {
            Expression::Identifier(name) => name.name != PROGRESS,
            callee => callee.is_function(),
        },
        Expression::ConditionalExpression(it) => {
            let is_meant = |it| is_waited_for(it) || is_value(it);
            is_meant(&it.consequent) && is_meant(&it.alternate)
        }
        Expression::LogicalExpression(it) => is_waited_for(&it.right),
        _ => false,
    }
}

/// Tests for an expression without an effect of its own: it is there for its value.
fn is_value(it: &Expression<'_>) -> bool {
    match it.without_parentheses() {
        Expression::Identifier(_)
        | Expression::StaticMemberExpression(_)
        | Expression::ComputedMemberExpression(_)
        | Expression::ObjectExpression(_)
        | Expression::ArrayExpression(_)
        | Expression::TemplateLiteral(_)
        | Expression::StringLiteral(_)
        | Expression::NumericLiteral(_)
        | Expression::BigIntLiteral(_)
        | Expression::BooleanLiteral(_)
        | Expression::NullLiteral(_)
        | Expression::NewExpression(_)
        | Expression::TaggedTemplateExpression(_)
        | Expression::ArrowFunctionExpression(_)
        | Expression::FunctionExpression(_)
        | Expression::BinaryExpression(_) => true,
        Expression::UnaryExpression(it) => {
            !matches!(it.operator, UnaryOperator::Delete | UnaryOperator::Void)
        }
        Expression::ConditionalExpression(it) => is_value(&it.consequent) && is_value(&it.alternate),
        Expression::LogicalExpression(it) => is_value(&it.right),
        Expression::CallExpression(it) => has_value(it),
        _ => false,
    }
}

fn has_value(it: &CallExpression<'_>) -> bool {
    match it.callee.without_parentheses() {
        Expression::StaticMemberExpression(callee) => {
            FOR_THEIR_VALUE.contains(&callee.property.name.as_str())
        }
        _ => false,
    }
}
