//! The end of a script that returns nothing, and statements that start work and leave it.

use oxc::{
    ast::ast::{Expression, UnaryOperator},
    span::GetSpan,
};

use super::{collector::Collector, known::Known};
use crate::plan::{Mistake, Origin};

impl Collector<'_> {
    /// Looks for a value that the last statement throws away. Returns the call whose result it is.
    pub(super) fn ending(&mut self, (last, value): (&Expression<'_>, Known)) -> Option<u32> {
        let (at, last) = (last.span().start, last.without_parentheses());
        if let Expression::AwaitExpression(it) = last {
            return match value {
                Known::Result(Origin::Call(call)) if self.called.is_none() && is_call(&it.argument) => {
                    Some(call)
                }
                _ => {
                    self.unreturned_call(at, &it.argument);
                    None
                }
            };
        }
        if last.is_function() {
            self.note(at, Mistake::FunctionNotCalled, "");
        } else if is_value(last) {
            self.note(at, Mistake::NotReturned, "");
        } else if matches!(value, Known::Promise(_)) {
            // Reported already where it calls tools: it is not awaited.
        } else {
            self.unreturned_call(at, last);
        }
        None
    }

    /// Reports a call of a function of the script that returns a value.
    fn unreturned_call(&mut self, at: u32, it: &Expression<'_>) {
        let Expression::CallExpression(call) = it.without_parentheses() else { return };
        // A function that takes something is called for its effect as well.
        if !call.arguments.is_empty() {
            return;
        }
        let name = match call.callee.without_parentheses() {
            Expression::Identifier(it) => it.name.as_str(),
            Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_) => "",
            _ => return,
        };
        if self.called.as_ref().is_some_and(|function| function.returns && function.calls_tools) {
            self.note(at, Mistake::CallNotReturned, name);
        }
    }

    /// Tests for a direct call of a function of the script that calls tools.
    pub(super) fn calls_own(&self, it: &Expression<'_>) -> bool {
        let Expression::CallExpression(call) = it.without_parentheses() else { return false };
        !matches!(call.callee.without_parentheses(), Expression::StaticMemberExpression(_))
            && self.called.as_ref().is_some_and(|function| function.calls_tools)
    }
}

fn is_call(it: &Expression<'_>) -> bool {
    matches!(it.without_parentheses(), Expression::CallExpression(_))
}

/// Tests for an expression without an effect: it is there for its value.
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
        | Expression::BinaryExpression(_) => true,
        Expression::UnaryExpression(it) => {
            !matches!(it.operator, UnaryOperator::Delete | UnaryOperator::Void)
        }
        Expression::ConditionalExpression(it) => is_value(&it.consequent) && is_value(&it.alternate),
        Expression::LogicalExpression(it) => is_value(&it.right),
        Expression::CallExpression(it) => match it.callee.without_parentheses() {
            Expression::StaticMemberExpression(callee) => {
                callee.property.name == "stringify"
                    && matches!(&callee.object, Expression::Identifier(object) if object.name == "JSON")
            }
            _ => false,
        },
        _ => false,
    }
}
