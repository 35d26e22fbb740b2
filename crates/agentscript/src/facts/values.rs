//! Values of expressions.

use std::rc::Rc;

use oxc::{
    ast::ast::{
        Argument, ArrayExpression, ArrayExpressionElement, AssignmentExpression, AssignmentTarget,
        BinaryExpression, BinaryOperator, CallExpression, ChainElement, ComputedMemberExpression, Expression,
        IdentifierReference, LogicalExpression, LogicalOperator, MemberExpression, SimpleAssignmentTarget,
        StaticMemberExpression, UnaryExpression, UnaryOperator,
    },
    ast_visit::{VisitJs, walk_js},
    semantic::SymbolFlags,
    span::GetSpan,
};
use serde_json::Value;

use super::{collector::Collector, known::Known, literal::scalar};
use crate::plan::Part;

/// Most elements of an array that are followed one by one.
const MAX_TUPLE: usize = 64;
/// Longest text of a constant that is followed, in bytes.
const MAX_TEXT: usize = 256;

impl Collector<'_> {
    /// Walks an expression. Returns its value as far as the text makes it certain.
    pub(super) fn value(&mut self, it: &Expression<'_>) -> Known {
        match it {
            Expression::ParenthesizedExpression(it) => self.value(&it.expression),
            Expression::Identifier(it) => self.name(it),
            Expression::StaticMemberExpression(it) => self.member(it),
            Expression::ComputedMemberExpression(it) => self.computed_member(it),
            Expression::CallExpression(it) => self.call(it, false),
            Expression::ChainExpression(it) => match &it.expression {
                ChainElement::CallExpression(call) => self.call(call, false),
                ChainElement::StaticMemberExpression(it) => self.member(it),
                ChainElement::ComputedMemberExpression(it) => self.computed_member(it),
                _ => {
                    walk_js::walk_chain_expression(self, it);
                    Known::Unknown
                }
            },
            Expression::AwaitExpression(it) => self.ending_value(&it.argument).awaited(),
            Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_) => {
                self.callback(it, &[])
            }
            Expression::ArrayExpression(it) => self.array(it),
            Expression::ConditionalExpression(it) => {
                self.condition(&it.test);
                match (self.value(&it.consequent), self.value(&it.alternate)) {
                    (Known::Result(yes), Known::Result(no)) if yes == no => Known::Result(yes),
                    _ => Known::Unknown,
                }
            }
            Expression::LogicalExpression(it) => self.logical(it),
            Expression::UnaryExpression(it) => self.unary(it),
            Expression::BinaryExpression(it) => self.binary(it),
            Expression::AssignmentExpression(it) => self.assignment(it),
            Expression::UpdateExpression(it) => {
                self.written(&it.argument);
                Known::Unknown
            }
            Expression::SequenceExpression(it) => {
                it.expressions.iter().map(|part| self.value(part)).last().unwrap_or(Known::Unknown)
            }
            Expression::ObjectExpression(_) | Expression::NewExpression(_) => {
                walk_js::walk_expression(self, it);
                Known::Own
            }
            it => match scalar(it) {
                Some(value) if value.as_str().is_none_or(|text| text.len() <= MAX_TEXT) => {
                    Known::Scalar(Rc::new(value))
                }
                _ => {
                    walk_js::walk_expression(self, it);
                    Known::Unknown
                }
            },
        }
    }

    /// Walks an expression whose error nothing catches between it and its statement.
    pub(super) fn ending_value(&mut self, it: &Expression<'_>) -> Known {
        match it {
            Expression::ParenthesizedExpression(it) => self.ending_value(&it.expression),
            Expression::CallExpression(it) => self.call(it, true),
            it => self.value(it),
        }
    }

    fn name(&self, it: &IdentifierReference<'_>) -> Known {
        let symbol = it.reference_id.get().and_then(|id| self.scoping.get_reference(id).symbol_id());
        match symbol {
            Some(symbol) => self.known.get(&symbol).cloned().unwrap_or(Known::Unknown),
            None => match it.name.as_str() {
                "callTool" => Known::CallTool,
                "getTool" => Known::GetTool,
                "__safe_parallel" => Known::SafeParallel,
                "readResource" | "listResources" | "getPrompt" => Known::Content,
                _ => Known::Unknown,
            },
        }
    }

    /// The value of a name or a literal without parts.
    pub(super) fn constant(&self, it: &Expression<'_>) -> Option<Value> {
        match it {
            Expression::Identifier(it) => match self.name(it) {
                Known::Scalar(value) => Some((*value).clone()),
                _ => None,
            },
            it => scalar(it),
        }
    }

    fn member(&mut self, it: &StaticMemberExpression<'_>) -> Known {
        let object = self.value(&it.object);
        if it.optional {
            self.doubt(&object);
        }
        self.property(&object, it.property.name.as_str(), it.property.span.start)
    }

    fn computed_member(&mut self, it: &ComputedMemberExpression<'_>) -> Known {
        let object = self.value(&it.object);
        if it.optional {
            self.doubt(&object);
        }
        let at = it.expression.span().start;
        match (self.value(&it.expression), &object) {
            (Known::Scalar(key), _) => match (key.as_str(), key.as_u64()) {
                (Some(name), _) => self.property(&object, name, at),
                (_, Some(index)) => self.element(&object, usize::try_from(index).ok(), at),
                _ => Known::Unknown,
            },
            (_, Known::Result(origin)) => self.part(*origin, Part::Computed, at),
            (_, Known::List(_)) => self.element(&object, None, at),
            _ => Known::Unknown,
        }
    }

    fn array(&mut self, it: &ArrayExpression<'_>) -> Known {
        let mut items = Vec::new();
        let mut spread = None;
        for element in &it.elements {
            match element {
                ArrayExpressionElement::SpreadElement(it) => spread = Some(self.value(&it.argument)),
                ArrayExpressionElement::Elision(_) => items.push(Known::Unknown),
                element => {
                    let item = element.as_expression().map_or(Known::Unknown, |it| self.value(it));
                    if items.len() <= MAX_TUPLE {
                        items.push(item);
                    }
                }
            }
        }
        match spread {
            Some(all @ (Known::List(_) | Known::Tuple(_))) if it.elements.len() == 1 => all,
            Some(all @ Known::Result(_)) if it.elements.len() == 1 => {
                self.element(&all, None, it.span.start).list()
            }
            None if items.len() <= MAX_TUPLE
                && items.iter().any(|item| !matches!(item, Known::Unknown | Known::Own)) =>
            {
                Known::Tuple(items.into())
            }
            _ => Known::Own,
        }
    }

    fn logical(&mut self, it: &LogicalExpression<'_>) -> Known {
        let left = self.value(&it.left);
        let right = self.value(&it.right);
        match it.operator {
            LogicalOperator::And => {
                self.doubt(&left);
                Known::Unknown
            }
            LogicalOperator::Or | LogicalOperator::Coalesce => self.or_else(&it.right, left, &right),
        }
    }

    /// The value of `value ?? fallback`: of an empty fallback nothing can be read that matters.
    pub(super) fn or_else(&mut self, fallback: &Expression<'_>, value: Known, other: &Known) -> Known {
        self.doubt(&value);
        self.doubt(other);
        let is_empty = match fallback.without_parentheses() {
            Expression::ArrayExpression(it) => it.elements.is_empty(),
            Expression::ObjectExpression(it) => it.properties.is_empty(),
            it => it.is_undefined() || it.is_null(),
        };
        if is_empty && !matches!(value, Known::Scalar(_)) { value } else { Known::Unknown }
    }

    fn unary(&mut self, it: &UnaryExpression<'_>) -> Known {
        if it.operator == UnaryOperator::Delete
            && let Some(member) = it.argument.without_parentheses().as_member_expression()
        {
            self.written_member(member);
            return Known::Unknown;
        }
        let value = self.value(&it.argument);
        match (it.operator, &value) {
            (UnaryOperator::LogicalNot, _) => self.doubt(&value),
            (UnaryOperator::Typeof, Known::Result(of)) => self.reads.test(*of),
            (UnaryOperator::UnaryNegation, Known::Scalar(_)) => {
                if let Some(value) = scalar(&it.argument).and_then(|value| value.as_i64()) {
                    return Known::Scalar(Rc::new(Value::from(-value)));
                }
            }
            _ => {}
        }
        Known::Unknown
    }

    fn binary(&mut self, it: &BinaryExpression<'_>) -> Known {
        let (left, right) = (self.value(&it.left), self.value(&it.right));
        match it.operator {
            BinaryOperator::In => {
                if let Known::Result(of) = right {
                    self.reads.test(of);
                }
            }
            BinaryOperator::Instanceof => {
                if let Known::Result(of) = left {
                    self.reads.test(of);
                }
            }
            // A comparison with `undefined` or `null`.
            _ if it.left.is_null_or_undefined() || it.right.is_null_or_undefined() => {
                self.doubt(&left);
                self.doubt(&right);
            }
            _ => {}
        }
        Known::Unknown
    }

    fn assignment(&mut self, it: &AssignmentExpression<'_>) -> Known {
        match it.left.as_simple_assignment_target() {
            Some(target) => self.written(target),
            None => self.written_pattern(&it.left),
        }
        self.value(&it.right)
    }

    fn written(&mut self, target: &SimpleAssignmentTarget<'_>) {
        match target.as_member_expression() {
            Some(member) => self.written_member(member),
            None => self.visit_simple_assignment_target(target),
        }
    }

    /// Members in a pattern are rare: no read is followed then.
    fn written_pattern(&mut self, target: &AssignmentTarget<'_>) {
        self.reads.give_up();
        self.visit_assignment_target(target);
    }

    fn written_member(&mut self, member: &MemberExpression<'_>) {
        let object = self.value(member.object());
        let name = match member {
            MemberExpression::StaticMemberExpression(it) => Some(it.property.name.to_string()),
            MemberExpression::ComputedMemberExpression(it) => {
                let key = self.value(&it.expression);
                key.text().map(str::to_owned)
            }
            MemberExpression::PrivateFieldExpression(_) => return,
        };
        match name {
            Some(name) => self.reads.assign(&name),
            None => self.added_to(member.object(), &object),
        }
    }

    /// Notes that properties with unknown names are added to `object`.
    pub(super) fn added_to(&mut self, it: &Expression<'_>, object: &Known) {
        match object {
            Known::Result(_) | Known::List(_) | Known::Tuple(_) => self.filled(object),
            // A parameter may be a result that came another way.
            Known::Unknown if self.is_parameter(it) => self.reads.give_up(),
            _ => {}
        }
    }

    fn is_parameter(&self, it: &Expression<'_>) -> bool {
        let symbol = it
            .get_identifier_reference()
            .and_then(|it| it.reference_id.get())
            .and_then(|id| self.scoping.get_reference(id).symbol_id());
        symbol.is_some_and(|symbol| {
            self.scoping.symbol_flags(symbol).contains(SymbolFlags::FunctionScopedVariable)
        })
    }

    pub(super) fn arguments(&mut self, call: &CallExpression<'_>) -> Vec<Known> {
        call.arguments.iter().map(|argument| self.argument(argument)).collect()
    }

    pub(super) fn argument(&mut self, argument: &Argument<'_>) -> Known {
        match argument {
            Argument::SpreadElement(it) => {
                self.value(&it.argument);
                Known::Unknown
            }
            argument => argument.as_expression().map_or(Known::Unknown, |it| self.value(it)),
        }
    }
}
