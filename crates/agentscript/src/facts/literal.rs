//! Inputs of calls, as far as the text spells them out.

use std::{borrow::Cow, collections::HashMap};

use oxc::{
    ast::ast::{
        ArrayExpression, ArrayExpressionElement, BinaryOperator, Expression, ObjectExpression,
        ObjectProperty, ObjectPropertyKind, PropertyKey, PropertyKind, UnaryOperator,
    },
    semantic::Scoping,
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
pub(super) fn partial(it: &Expression<'_>, source: Source, lookup: Lookup<'_>, room: &mut usize) -> Partial {
    if source.shadows {
        return ANYTHING;
    }
    Reader { source, lookup, room }.value(it, 0)
}

/// Knowledge about the script around a literal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    names_json: bool,
    /// It declares `undefined` or `Symbol`.
    shadows: bool,
}

impl Source {
    /// Looks at the text of a script and its names.
    pub(super) fn of(text: &str, scoping: &Scoping) -> Self {
        let count = |part: &str| text.matches(part).count();
        let names_json =
            count("JSON") > count("JSON.parse") + count("JSON.stringify") || text.contains("\\u");
        let shadows = scoping.symbol_names().any(|name| name == "undefined" || name == "Symbol");
        Self { names_json, shadows }
    }

    /// An object of the script may have a `toJSON`, which decides what a tool receives in its place.
    fn may_make_json(self) -> bool {
        self.names_json
    }
}

/// A value of the type that the text shows.
const HOLE: Partial = Partial::Hole { optional: false };
/// Any value, or none.
const ANYTHING: Partial = Partial::Hole { optional: true };

struct Reader<'l, 'r> {
    source: Source,
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
        let (mut members, mut open) = (Members::default(), false);
        for property in &it.properties {
            let ObjectPropertyKind::ObjectProperty(property) = property else {
                if self.source.may_make_json() {
                    return ANYTHING;
                }
                // What follows may replace what stands before it.
                open = true;
                members.doubt();
                continue;
            };
            // A getter or setter may change the other members.
            if property.kind != PropertyKind::Init {
                return HOLE;
            }
            let Some(name) = key(property) else {
                // The key may be `toJSON`.
                if !is_plain(&property.value) {
                    return ANYTHING;
                }
                open = true;
                members.doubt();
                continue;
            };
            if name == "toJSON" && !is_plain(&property.value) {
                return ANYTHING;
            }
            if name == "__proto__" && !property.shorthand && !property.method {
                // What the object inherits may have a `toJSON`.
                match &property.value {
                    Expression::NullLiteral(_) => continue,
                    _ => return ANYTHING,
                }
            }
            // JSON leaves out what is undefined, functions and symbols.
            if property.value.is_undefined() || property.value.is_function() || is_symbol(&property.value) {
                members.remove(&name);
                continue;
            }
            if !self.take(40 + cost(&name)) {
                return HOLE;
            }
            let value = self.value(&property.value, depth + 1);
            members.put(Member { at: property.key.span().start, name: name.into_owned(), value });
        }
        Partial::Object { members: members.into_vec(), open }
    }
}

/// Members of an object in the making.
#[derive(Default)]
struct Members {
    members: Vec<Option<Member>>,
    places: HashMap<String, usize>,
}

impl Members {
    /// Notes that any of them may be replaced.
    fn doubt(&mut self) {
        self.members.iter_mut().flatten().for_each(|member| member.value = ANYTHING);
    }

    fn put(&mut self, member: Member) {
        match self.places.get(&member.name) {
            Some(&place) => self.members[place] = Some(member),
            None => {
                self.places.insert(member.name.clone(), self.members.len());
                self.members.push(Some(member));
            }
        }
    }

    fn remove(&mut self, name: &str) {
        if let Some(place) = self.places.remove(name) {
            self.members[place] = None;
        }
    }

    fn into_vec(self) -> Vec<Member> {
        self.members.into_iter().flatten().collect()
    }
}

/// The name of a property, if it is certain.
fn key<'a>(property: &ObjectProperty<'a>) -> Option<Cow<'a, str>> {
    if property.computed {
        return None;
    }
    match &property.key {
        PropertyKey::StaticIdentifier(it) => Some(Cow::Borrowed(it.name.as_str())),
        PropertyKey::StringLiteral(it) if !it.lone_surrogates => Some(Cow::Borrowed(it.value.as_str())),
        // Others are written as the language writes numbers.
        PropertyKey::NumericLiteral(it) if it.value.fract() == 0.0 && it.value.abs() <= MAX_EXACT => {
            number(it.value).as_i64().map(|it| Cow::Owned(it.to_string()))
        }
        _ => None,
    }
}

/// Tests for a value that is no function for certain.
fn is_plain(it: &Expression<'_>) -> bool {
    match it {
        Expression::ParenthesizedExpression(it) => is_plain(&it.expression),
        Expression::ObjectExpression(_) | Expression::ArrayExpression(_) | Expression::TemplateLiteral(_) => {
            true
        }
        it => it.is_undefined() || scalar(it).is_some(),
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

/// Tests for a symbol, such as `Symbol('a')` or `Symbol.iterator`.
fn is_symbol(it: &Expression<'_>) -> bool {
    let names_symbol =
        |it: &Expression<'_>| it.get_identifier_reference().is_some_and(|it| it.name == "Symbol");
    match it {
        Expression::ParenthesizedExpression(it) => is_symbol(&it.expression),
        Expression::CallExpression(it) => names_symbol(&it.callee),
        Expression::StaticMemberExpression(it) => {
            names_symbol(&it.object) && matches!(it.property.name.as_str(), "iterator" | "asyncIterator")
        }
        _ => false,
    }
}

/// Tests for an expression whose value is never `undefined`.
fn is_defined(it: &Expression<'_>) -> bool {
    match it {
        Expression::TemplateLiteral(_)
        | Expression::BigIntLiteral(_)
        | Expression::RegExpLiteral(_)
        | Expression::UpdateExpression(_) => true,
        Expression::UnaryExpression(it) => it.operator != UnaryOperator::Void,
        Expression::BinaryExpression(it) => it.operator != BinaryOperator::In,
        _ => false,
    }
}
