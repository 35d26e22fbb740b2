//! Evaluates computed keys as far as the text spells them out.
//!
//! Every answer lists strings that the value *can* be. Keys that no rule can read are stopped by the realm,
//! where reading `constructor` or `__proto__` throws.

use std::{cell::RefCell, collections::HashMap};

use oxc::{
    ast::ast::{
        Argument, ArrayExpressionElement, ArrowFunctionBody, BinaryOperator, CallExpression, Expression,
        ObjectPropertyKind, Statement, TemplateLiteral,
    },
    semantic::{Scoping, SymbolId},
};

/// A value that the text spells out.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Number(f64),
    List(Vec<String>),
}

/// Values of variables declared with a value the text spells out.
pub(super) type Known = RefCell<HashMap<SymbolId, Vec<Value>>>;

/// Most values per expression, longest text and deepest expression to evaluate.
const MAX_GUESSES: usize = 16;
const MAX_TEXT: usize = 256;
const MAX_DEPTH: u8 = 24;

impl Value {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::List(items) => items.join(","),
        }
    }
}

pub(super) struct Folder<'s> {
    pub(super) scoping: &'s Scoping,
    pub(super) known: &'s Known,
}

impl Folder<'_> {
    /// The strings that `expression` can be.
    pub(super) fn texts(&self, expression: &Expression<'_>) -> Vec<String> {
        self.values(expression, 0).iter().map(Value::text).collect()
    }

    pub(super) fn values(&self, expression: &Expression<'_>, depth: u8) -> Vec<Value> {
        if depth > MAX_DEPTH {
            return Vec::new();
        }
        let deeper = depth + 1;
        let mut values = match expression {
            Expression::StringLiteral(it) if it.value.len() <= MAX_TEXT => {
                vec![Value::Text(it.value.to_string())]
            }
            Expression::NumericLiteral(it) => vec![Value::Number(it.value)],
            Expression::TemplateLiteral(it) => self.template(it, deeper),
            Expression::ParenthesizedExpression(it) => self.values(&it.expression, deeper),
            Expression::SequenceExpression(it) => {
                it.expressions.last().map_or_else(Vec::new, |last| self.values(last, deeper))
            }
            Expression::AssignmentExpression(it) => self.values(&it.right, deeper),
            Expression::AwaitExpression(it) => self.values(&it.argument, deeper),
            Expression::ConditionalExpression(it) => {
                let mut both = self.values(&it.consequent, deeper);
                both.extend(self.values(&it.alternate, deeper));
                both
            }
            Expression::LogicalExpression(it) => {
                let mut both = self.values(&it.left, deeper);
                both.extend(self.values(&it.right, deeper));
                both
            }
            Expression::BinaryExpression(it) if it.operator == BinaryOperator::Addition => {
                let left = self.values(&it.left, deeper);
                if left.is_empty() { Vec::new() } else { add(&left, &self.values(&it.right, deeper)) }
            }
            Expression::Identifier(it) => it
                .reference_id
                .get()
                .and_then(|id| self.scoping.get_reference(id).symbol_id())
                .and_then(|symbol| self.known.borrow().get(&symbol).cloned())
                .unwrap_or_default(),
            Expression::ArrayExpression(it) => self.list(&it.elements, deeper),
            Expression::ObjectExpression(it) => {
                it.properties.iter().flat_map(|property| self.coerced(property, deeper)).collect()
            }
            Expression::TaggedTemplateExpression(it) => self.template(&it.quasi, deeper),
            Expression::CallExpression(it) => self.call(it, deeper),
            Expression::ChainExpression(it) => match &it.expression {
                oxc::ast::ast::ChainElement::CallExpression(call) => self.call(call, deeper),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        values.truncate(MAX_GUESSES);
        values
    }

    fn template(&self, it: &TemplateLiteral<'_>, depth: u8) -> Vec<Value> {
        let mut values = vec![Value::Text(String::new())];
        for (nth, part) in it.quasis.iter().enumerate() {
            let cooked = part.value.cooked.as_ref().unwrap_or(&part.value.raw);
            values = add(&values, &[Value::Text(cooked.to_string())]);
            if let Some(expression) = it.expressions.get(nth) {
                values = add(&values, &self.values(expression, depth));
            }
            if values.is_empty() {
                break;
            }
        }
        values
    }

    fn list(&self, elements: &[ArrayExpressionElement<'_>], depth: u8) -> Vec<Value> {
        let mut items = Vec::new();
        for element in elements {
            match element {
                ArrayExpressionElement::SpreadElement(spread) => {
                    match self.values(&spread.argument, depth).into_iter().next() {
                        Some(Value::List(list)) => items.extend(list),
                        Some(Value::Text(text)) => items.extend(text.chars().map(String::from)),
                        _ => return Vec::new(),
                    }
                }
                ArrayExpressionElement::Elision(_) => items.push(String::new()),
                element => {
                    let Some(value) =
                        element.as_expression().and_then(|e| self.values(e, depth).into_iter().next())
                    else {
                        return Vec::new();
                    };
                    items.push(value.text());
                }
            }
            // What is kept is copied at every use: it stays small.
            let bytes = items.iter().map(String::len).sum::<usize>();
            if items.len() > MAX_TEXT || bytes > MAX_TEXT * 4 {
                return Vec::new();
            }
        }
        vec![Value::List(items)]
    }

    /// Evaluates objects that convert to a string, such as `{ toString: () => 'constructor' }`.
    fn coerced(&self, property: &ObjectPropertyKind<'_>, depth: u8) -> Vec<Value> {
        let ObjectPropertyKind::ObjectProperty(property) = property else { return Vec::new() };
        let key = property.key.static_name();
        if !property.computed && !matches!(key.as_deref(), Some("toString" | "valueOf")) {
            return Vec::new();
        }
        match &property.value {
            Expression::ArrowFunctionExpression(arrow) => match &arrow.body {
                ArrowFunctionBody::FunctionBody(body) => self.returned(&body.statements, depth),
                body => body.as_expression().map_or_else(Vec::new, |e| self.values(e, depth)),
            },
            Expression::FunctionExpression(function) => {
                function.body.as_ref().map_or_else(Vec::new, |body| self.returned(&body.statements, depth))
            }
            _ => Vec::new(),
        }
    }

    fn returned(&self, statements: &[Statement<'_>], depth: u8) -> Vec<Value> {
        let argument = statements.iter().find_map(|statement| match statement {
            Statement::ReturnStatement(it) => it.argument.as_ref(),
            _ => None,
        });
        argument.map_or_else(Vec::new, |argument| self.values(argument, depth))
    }

    /// Evaluates methods that build strings, for the first value of the receiver and of each argument.
    fn call(&self, call: &CallExpression<'_>, depth: u8) -> Vec<Value> {
        let (object, method) = match &call.callee {
            Expression::StaticMemberExpression(it) => (&it.object, it.property.name.to_string()),
            Expression::ComputedMemberExpression(it) => {
                match self.values(&it.expression, depth).into_iter().next() {
                    Some(method) => (&it.object, method.text()),
                    None => return Vec::new(),
                }
            }
            Expression::Identifier(it) if it.name == "String" => {
                return call
                    .arguments
                    .first()
                    .and_then(Argument::as_expression)
                    .map_or_else(Vec::new, |e| self.values(e, depth));
            }
            Expression::Identifier(it)
                if matches!(it.name.as_str(), "decodeURIComponent" | "decodeURI" | "unescape" | "atob") =>
            {
                return Vec::new();
            }
            // A function called on the spot: `(() => 'constructor')()`.
            Expression::ParenthesizedExpression(it) => {
                return match &it.expression {
                    Expression::ArrowFunctionExpression(arrow) => match &arrow.body {
                        ArrowFunctionBody::FunctionBody(body) => self.returned(&body.statements, depth),
                        body => body.as_expression().map_or_else(Vec::new, |e| self.values(e, depth)),
                    },
                    Expression::FunctionExpression(function) => function
                        .body
                        .as_ref()
                        .map_or_else(Vec::new, |body| self.returned(&body.statements, depth)),
                    _ => Vec::new(),
                };
            }
            _ => return Vec::new(),
        };
        let mut arguments = Vec::new();
        for argument in &call.arguments {
            match argument {
                Argument::SpreadElement(spread) => {
                    match self.values(&spread.argument, depth).into_iter().next() {
                        Some(Value::List(list)) => arguments.extend(list.into_iter().map(Value::Text)),
                        _ => return Vec::new(),
                    }
                }
                argument => {
                    match argument.as_expression().and_then(|e| self.values(e, depth).into_iter().next()) {
                        Some(value) => arguments.push(value),
                        None if matches!(method.as_str(), "map" | "filter") => {}
                        None => return Vec::new(),
                    }
                }
            }
        }
        if let Expression::Identifier(object) = object
            && object.name == "String"
        {
            return match method.as_str() {
                "fromCharCode" | "fromCodePoint" => {
                    vec![Value::Text(arguments.iter().filter_map(char_of).collect())]
                }
                _ => Vec::new(),
            };
        }
        let Some(receiver) = self.values(object, depth).into_iter().next() else { return Vec::new() };
        method_call(&receiver, &method, &arguments)
            .filter(|value| value.text().len() <= MAX_TEXT)
            .into_iter()
            .collect()
    }
}

fn char_of(value: &Value) -> Option<char> {
    let number = match value {
        Value::Number(number) => *number,
        Value::Text(text) => text.parse().ok()?,
        Value::List(_) => return None,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a code point: out of range is no character"
    )]
    char::from_u32(number as u32)
}

fn add(left: &[Value], right: &[Value]) -> Vec<Value> {
    let mut sums = Vec::new();
    for a in left {
        for b in right {
            let sum = match (a, b) {
                (Value::Number(a), Value::Number(b)) => Value::Number(a + b),
                (a, b) => Value::Text(a.text() + &b.text()),
            };
            if sums.len() < MAX_GUESSES && sum.text().len() <= MAX_TEXT {
                sums.push(sum);
            }
        }
    }
    sums
}

fn index(value: Option<&Value>, len: usize, default: usize) -> usize {
    let Some(Value::Number(number)) = value else { return default };
    let len_f = f64::from(u32::try_from(len).unwrap_or(u32::MAX));
    let at = if *number < 0.0 { len_f + number } else { *number };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the length")]
    let at = at.clamp(0.0, len_f) as usize;
    at
}

fn method_call(receiver: &Value, method: &str, arguments: &[Value]) -> Option<Value> {
    let text_at = |nth: usize| arguments.get(nth).map(Value::text);
    match receiver {
        Value::List(items) => match method {
            "join" => Some(Value::Text(items.join(&text_at(0).unwrap_or_else(|| ",".to_owned())))),
            "reverse" | "toReversed" => Some(Value::List(items.iter().rev().cloned().collect())),
            "toString" => Some(Value::Text(items.join(","))),
            "at" => items.get(index(arguments.first(), items.len(), 0)).cloned().map(Value::Text),
            "pop" => items.last().cloned().map(Value::Text),
            "shift" => items.first().cloned().map(Value::Text),
            "concat" => {
                let mut all = items.clone();
                for argument in arguments {
                    match argument {
                        Value::List(more) => all.extend(more.iter().cloned()),
                        other => all.push(other.text()),
                    }
                }
                Some(Value::List(all))
            }
            // What a callback makes of char codes is most often the characters.
            "map" => Some(Value::List(
                items
                    .iter()
                    .map(|item| {
                        char_of(&Value::Text(item.clone())).map_or_else(|| item.clone(), String::from)
                    })
                    .collect(),
            )),
            "slice" | "filter" | "flat" | "sort" => Some(receiver.clone()),
            _ => None,
        },
        Value::Number(number) => {
            matches!(method, "toString" | "valueOf").then(|| Value::Text(number.to_string()))
        }
        Value::Text(text) => {
            let chars: Vec<char> = text.chars().collect();
            let part = |start: usize, end: usize| Value::Text(chars[start.min(end)..end].iter().collect());
            Some(match method {
                "toString" | "valueOf" | "normalize" | "toWellFormed" => Value::Text(text.clone()),
                "trim" | "trimStart" | "trimEnd" => Value::Text(text.trim().to_owned()),
                "toLowerCase" | "toLocaleLowerCase" => Value::Text(text.to_lowercase()),
                "toUpperCase" | "toLocaleUpperCase" => Value::Text(text.to_uppercase()),
                "concat" => {
                    Value::Text(text.clone() + &arguments.iter().map(Value::text).collect::<String>())
                }
                "slice" | "substring" => part(
                    index(arguments.first(), chars.len(), 0),
                    index(arguments.get(1), chars.len(), chars.len()),
                ),
                "substr" => {
                    let start = index(arguments.first(), chars.len(), 0);
                    part(start, (start + index(arguments.get(1), chars.len(), chars.len())).min(chars.len()))
                }
                "charAt" | "at" => {
                    chars.get(index(arguments.first(), chars.len(), 0)).map(|c| Value::Text(c.to_string()))?
                }
                "replace" => Value::Text(text.replacen(&text_at(0)?, &text_at(1)?, 1)),
                "replaceAll" => {
                    let (from, to) = (text_at(0)?, text_at(1)?);
                    if from.is_empty() || to.len() > MAX_TEXT {
                        return None;
                    }
                    Value::Text(text.replace(&from, &to))
                }
                "split" => {
                    let by = text_at(0)?;
                    Value::List(if by.is_empty() {
                        chars.iter().map(char::to_string).collect()
                    } else {
                        text.split(&by).map(str::to_owned).collect()
                    })
                }
                "padStart" | "padEnd" | "repeat" => Value::Text(text.clone()),
                _ => return None,
            })
        }
    }
}
