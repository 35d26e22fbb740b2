//! Inputs of calls, as far as the text spells them out.

use oxc::{
    ast::ast::{
        ArrayExpression, ArrayExpressionElement, BinaryOperator, Expression, ObjectExpression,
        ObjectPropertyKind, PropertyKind, UnaryOperator,
    },
    span::GetSpan,
};
use serde_json::{Number, Value};

use crate::plan::{Member, Partial};

/// Deepest literal that is followed.
const MAX_DEPTH: u8 = 16;
/// Longest array that is followed.
const MAX_ITEMS: usize = 500;
/// Largest integer that a script's number holds exactly.
const MAX_EXACT: f64 = 9_007_199_254_740_991.0;

/// The value of a name, where the text spells it out.
pub(super) type Lookup<'l> = &'l dyn Fn(&Expression<'_>) -> Option<Value>;

/// Reads the literal `it`. Takes what it keeps off `room`, in bytes; without room, values are holes.
pub(super) fn partial(it: &Expression<'_>, lookup: Lookup<'_>, room: &mut usize) -> Partial {
    Reader { lookup, room }.value(it, 0)
}

const HOLE: Partial = Partial::Hole { optional: false };

struct Reader<'l, 'r> {
    lookup: Lookup<'l>,
    room: &'r mut usize,
}

impl Reader<'_, '_> {
    fn take(&mut self, bytes: usize) -> bool {
        match self.room.checked_sub(bytes) {
            Some(room) => {
                *self.room = room;
                true
            }
            None => false,
        }
    }

    fn value(&mut self, it: &Expression<'_>, depth: u8) -> Partial {
        if depth > MAX_DEPTH {
            return HOLE;
        }
        match it {
            Expression::ParenthesizedExpression(it) => self.value(&it.expression, depth),
            Expression::ObjectExpression(it) => self.object(it, depth),
            Expression::ArrayExpression(it) => self.list(it, depth),
            it => match scalar(it).or_else(|| (self.lookup)(it)) {
                Some(value) => {
                    let len = value.as_str().map_or(8, cost);
                    if self.take(16 + len) { Partial::Scalar(value) } else { HOLE }
                }
                None => Partial::Hole { optional: !is_defined(it) },
            },
        }
    }

    fn list(&mut self, it: &ArrayExpression<'_>, depth: u8) -> Partial {
        if it.elements.len() > MAX_ITEMS || !self.take(16) {
            return HOLE;
        }
        let mut items = Vec::with_capacity(it.elements.len());
        for element in &it.elements {
            match element {
                // The length is known at run time.
                ArrayExpressionElement::SpreadElement(_) => return HOLE,
                ArrayExpressionElement::Elision(_) => items.push(Partial::Scalar(Value::Null)),
                element => match element.as_expression() {
                    Some(element) => items.push(self.value(element, depth + 1)),
                    None => return HOLE,
                },
            }
        }
        Partial::List(items)
    }

    fn object(&mut self, it: &ObjectExpression<'_>, depth: u8) -> Partial {
        let (mut members, mut open) = (Vec::<Member>::new(), false);
        // What follows a spread or a computed key may replace what stands before it.
        let forget = |members: &mut Vec<Member>| {
            members.iter_mut().for_each(|member| member.value = Partial::Hole { optional: true });
        };
        let mut places = std::collections::HashMap::new();
        for property in &it.properties {
            let ObjectPropertyKind::ObjectProperty(property) = property else {
                open = true;
                forget(&mut members);
                continue;
            };
            let Some(name) = property.key.static_name().filter(|_| !property.computed) else {
                open = true;
                forget(&mut members);
                continue;
            };
            // JSON leaves out what is undefined and functions; the rest has no fixed value.
            if property.value.is_undefined() || property.value.is_function() {
                if places.contains_key(&*name) {
                    open = true;
                    forget(&mut members);
                }
                continue;
            }
            if name == "__proto__" || property.kind != PropertyKind::Init || !self.take(40 + cost(&name)) {
                open = true;
                continue;
            }
            let value = self.value(&property.value, depth + 1);
            let member = Member { at: property.key.span().start, name: name.to_string(), value };
            match places.get(&*name) {
                Some(&place) => members[place] = member,
                None => {
                    places.insert(name.to_string(), members.len());
                    members.push(member);
                }
            }
        }
        Partial::Object { members, open }
    }
}

/// Bytes of a text as JSON, about.
pub(super) fn cost(text: &str) -> usize {
    let escaped = text.bytes().filter(|byte| *byte < b' ' || matches!(byte, b'"' | b'\\')).count();
    text.len() + 5 * escaped
}

/// The value of a literal without parts, as `JSON.stringify` writes it.
pub(super) fn scalar(it: &Expression<'_>) -> Option<Value> {
    match it {
        Expression::NullLiteral(_) => Some(Value::Null),
        Expression::BooleanLiteral(it) => Some(Value::Bool(it.value)),
        Expression::NumericLiteral(it) => Some(number(it.value)),
        // A lone surrogate becomes another character on its way out.
        Expression::StringLiteral(it) => (!it.lone_surrogates).then(|| Value::String(it.value.to_string())),
        Expression::TemplateLiteral(it) if it.expressions.is_empty() => {
            let quasi = it.quasis.first().filter(|quasi| !quasi.lone_surrogates)?;
            quasi.value.cooked.as_ref().map(|text| Value::String(text.to_string()))
        }
        Expression::UnaryExpression(it) if it.operator == UnaryOperator::UnaryNegation => {
            match it.argument.without_parentheses() {
                Expression::NumericLiteral(it) => Some(number(-it.value)),
                _ => None,
            }
        }
        Expression::ParenthesizedExpression(it) => scalar(&it.expression),
        _ => None,
    }
}

fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() <= MAX_EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "a whole number within the bounds of i64")]
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// Tests for an expression whose value is never `undefined`.
fn is_defined(it: &Expression<'_>) -> bool {
    match it {
        Expression::TemplateLiteral(_)
        | Expression::BigIntLiteral(_)
        | Expression::RegExpLiteral(_)
        | Expression::NewExpression(_)
        | Expression::UpdateExpression(_) => true,
        Expression::UnaryExpression(it) => it.operator != UnaryOperator::Void,
        Expression::BinaryExpression(it) => it.operator != BinaryOperator::In,
        _ => false,
    }
}
