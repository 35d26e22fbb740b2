//! The end of a script, and statements that start work and leave it.

use std::rc::Rc;

use oxc::{
    ast::ast::{
        ArrowFunctionExpression, CallExpression, ChainElement, Expression, Function, FunctionBody, Program,
        ReturnStatement, Statement, UnaryOperator,
    },
    ast_visit::VisitJs,
    semantic::ScopeFlags,
};

use super::{
    collector::Collector,
    forms::{unused_function, waits, wanted},
    tails::{Tail, tails},
};
use crate::plan::Mistake;

/// Methods that are called for their effect: what they return is seldom meant.
const FOR_THEIR_EFFECT: &[&str] = &[
    "add",
    "clear",
    "copyWithin",
    "debug",
    "delete",
    "error",
    "fill",
    "forEach",
    "info",
    "log",
    "push",
    "set",
    "unshift",
    "warn",
];
/// Methods that are called for their value, at the end of a script.
const FOR_THEIR_VALUE: &[&str] = &[
    "abs",
    "all",
    "allSettled",
    "any",
    "assign",
    "at",
    "catch",
    "ceil",
    "charAt",
    "concat",
    "endsWith",
    "entries",
    "every",
    "exec",
    "filter",
    "finally",
    "find",
    "findIndex",
    "findLast",
    "findLastIndex",
    "flat",
    "flatMap",
    "floor",
    "from",
    "fromCharCode",
    "fromEntries",
    "get",
    "groupBy",
    "has",
    "hasOwn",
    "includes",
    "indexOf",
    "is",
    "isArray",
    "isFinite",
    "isInteger",
    "isNaN",
    "join",
    "keys",
    "lastIndexOf",
    "localeCompare",
    "map",
    "match",
    "matchAll",
    "max",
    "min",
    "now",
    "of",
    "padEnd",
    "padStart",
    "parse",
    "pop",
    "pow",
    "race",
    "reduce",
    "reduceRight",
    "reject",
    "repeat",
    "replace",
    "replaceAll",
    "resolve",
    "reverse",
    "round",
    "search",
    "shift",
    "slice",
    "some",
    "sort",
    "splice",
    "split",
    "sqrt",
    "startsWith",
    "stringify",
    "substr",
    "substring",
    "test",
    "then",
    "toFixed",
    "toISOString",
    "toLocaleDateString",
    "toLocaleString",
    "toLowerCase",
    "toReversed",
    "toSorted",
    "toSpliced",
    "toString",
    "toUpperCase",
    "trim",
    "trimEnd",
    "trimStart",
    "trunc",
    "values",
    "with",
];
/// A function of scripts that is called for its effect.
const PROGRESS: &str = "progress";

/// Tests for an expression whose value is the result if a script ends with it and returns nothing: one that is there for its value, or a
/// call whose end has to be waited for.
pub(crate) fn is_result(it: &Expression<'_>) -> bool {
    is_value(it) || is_waited_for(it)
}

/// Tests for a `return` with a value outside of all functions.
pub(crate) fn returns(program: &Program<'_>) -> bool {
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
    /// Reports what a script that may end without a result seems to have meant to return, or to call.
    pub(super) fn note_unreturned(&mut self, program: &Program<'_>) {
        let says_some = self.returns && self.unsaid.is_empty();
        for Tail { statement, .. } in tails(&program.body) {
            // One that returns elsewhere may collect what it needs.
            let is_value =
                matches!(statement, Statement::VariableDeclaration(_)) || named_value(statement).is_some();
            if (says_some && !is_value) || (self.started == 0 && !waits(statement)) {
                continue;
            }
            if let Some((at, name)) = named_value(statement).or_else(|| wanted(statement, self.scoping)) {
                return self.note(at, Mistake::NotReturned, name);
            }
            if let Some((at, name)) = unused_function(statement, self.scoping) {
                return self.note(at, Mistake::FunctionNotCalled, name);
            }
        }
    }

    /// The value that the body of a function without `return` seems to have meant to return.
    pub(super) fn unreturned_value(&self, body: &FunctionBody<'_>) -> Option<(u32, Rc<str>)> {
        let meant = tails(&body.statements)
            .into_iter()
            .find_map(|tail| named_value(tail.statement).or_else(|| wanted(tail.statement, self.scoping)));
        meant.map(|(at, name)| (at, Rc::from(name)))
    }

    /// Tests for a direct call of a function of the script that calls tools.
    pub(super) fn calls_own(&self, it: &Expression<'_>) -> bool {
        let Expression::CallExpression(call) = it.without_parentheses() else { return false };
        !matches!(call.callee.without_parentheses(), Expression::StaticMemberExpression(_))
            && self.called.as_ref().is_some_and(|function| function.calls_tools)
    }
}

/// The place of an expression that is there for its value, and its name if it is one.
fn named_value<'p>(it: &'p Statement<'_>) -> Option<(u32, &'p str)> {
    let Statement::ExpressionStatement(it) = it else { return None };
    let name = || it.expression.get_identifier_reference().map_or("", |it| it.name.as_str());
    is_value(&it.expression).then(|| (it.span.start, name()))
}

/// Tests for a call of a function of the script or of the host, or of a promise's method.
fn is_waited_for(it: &Expression<'_>) -> bool {
    match it.without_parentheses() {
        Expression::AwaitExpression(it) => is_waited_for(&it.argument) || is_value(&it.argument),
        Expression::CallExpression(it) => is_call_waited_for(it),
        Expression::ChainExpression(it) => match &it.expression {
            ChainElement::CallExpression(it) => is_call_waited_for(it),
            _ => false,
        },
        Expression::ConditionalExpression(it) => {
            let is_meant = |it| is_waited_for(it) || is_value(it);
            is_meant(&it.consequent) && is_meant(&it.alternate)
        }
        Expression::LogicalExpression(it) => is_waited_for(&it.right),
        Expression::SequenceExpression(it) => it.expressions.last().is_some_and(is_waited_for),
        _ => false,
    }
}

fn is_call_waited_for(it: &CallExpression<'_>) -> bool {
    match it.callee.without_parentheses() {
        Expression::Identifier(name) => name.name != PROGRESS,
        Expression::StaticMemberExpression(callee) => {
            !FOR_THEIR_EFFECT.contains(&callee.property.name.as_str())
        }
        _ => true,
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
        Expression::ChainExpression(it) => match &it.expression {
            ChainElement::CallExpression(it) => has_value(it),
            _ => true,
        },
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
