//! Evaluates the usual conditions on arguments in place: without copies of values, and without the entities that Cedar looks attributes up in.
//!
//! It knows a part of Cedar, and of that only what succeeds. Whatever it does not know, and whatever fails, is left to Cedar, which also has
//! the words for failures.

use std::collections::{BTreeMap, HashSet};

use smol_str::SmolStr;

use crate::cedar::{BinaryOp, Entity, Expr, ExprKind, Literal, PartialValue, UnaryOp, Value, ValueKind, Var};

/// Deepest condition that is evaluated here.
const DEEPEST: usize = 64;

/// A request, as conditions see it.
pub(crate) struct Scene<'s> {
    pub(crate) user: &'s Entity,
    /// Makes the object, for the first condition that looks at it.
    pub(crate) object: &'s dyn Fn() -> &'s Entity,
    pub(crate) context: &'s BTreeMap<SmolStr, Value>,
}

/// A value that a part of a condition has.
#[derive(Clone, Copy)]
enum Seen<'s> {
    Bool(bool),
    Long(i64),
    Text(&'s str),
    Record(&'s BTreeMap<SmolStr, Value>),
    Entity(&'s Entity),
    /// A set of simple values.
    Set(&'s HashSet<Literal>),
}

impl<'s> Seen<'s> {
    fn of(value: &'s Value) -> Option<Self> {
        match value.value_kind() {
            ValueKind::Lit(literal) => Self::literal(literal),
            ValueKind::Record(record) => Some(Self::Record(record)),
            ValueKind::Set(set) => set.fast.as_deref().map(Self::Set),
            ValueKind::ExtensionValue(_) => None,
        }
    }

    fn literal(literal: &'s Literal) -> Option<Self> {
        match literal {
            Literal::Bool(value) => Some(Self::Bool(*value)),
            Literal::Long(value) => Some(Self::Long(*value)),
            Literal::String(value) => Some(Self::Text(value)),
            Literal::EntityUID(_) => None,
        }
    }

    fn as_bool(self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(value) } else { None }
    }

    /// Compares two values of the same simple type.
    fn equals(self, other: Self) -> Option<bool> {
        match (self, other) {
            (Self::Bool(one), Self::Bool(other)) => Some(one == other),
            (Self::Long(one), Self::Long(other)) => Some(one == other),
            (Self::Text(one), Self::Text(other)) => Some(one == other),
            _ => None,
        }
    }

    /// The attribute `name`: `Some(None)` for one that is not there.
    fn attribute(self, name: &str) -> Option<Option<Self>> {
        let value = match self {
            Self::Record(record) => record.get(name),
            Self::Entity(entity) => match entity.get(name) {
                Some(PartialValue::Value(value)) => Some(value),
                Some(PartialValue::Residual(_)) => return None,
                None => None,
            },
            Self::Bool(_) | Self::Long(_) | Self::Text(_) | Self::Set(_) => return None,
        };
        match value {
            Some(value) => Self::of(value).map(Some),
            None => Some(None),
        }
    }
}

impl<'s> Scene<'s> {
    /// Returns `true` or `false` if `condition` is that; nothing for what Cedar has to evaluate.
    pub(crate) fn is_true(&self, condition: &'s Expr) -> Option<bool> {
        self.evaluate(condition, DEEPEST)?.as_bool()
    }

    fn evaluate(&self, expr: &'s Expr, depth: usize) -> Option<Seen<'s>> {
        let depth = depth.checked_sub(1)?;
        let is_true = |expr: &'s Expr| self.evaluate(expr, depth)?.as_bool();
        match expr.expr_kind() {
            ExprKind::Lit(literal) => Seen::literal(literal),
            ExprKind::Var(Var::Principal) => Some(Seen::Entity(self.user)),
            ExprKind::Var(Var::Resource) => Some(Seen::Entity((self.object)())),
            ExprKind::Var(Var::Context) => Some(Seen::Record(self.context)),
            ExprKind::And { left, right } => Some(Seen::Bool(is_true(left)? && is_true(right)?)),
            ExprKind::Or { left, right } => Some(Seen::Bool(is_true(left)? || is_true(right)?)),
            ExprKind::UnaryApp { op: UnaryOp::Not, arg } => Some(Seen::Bool(!is_true(arg)?)),
            ExprKind::If { test_expr, then_expr, else_expr } => {
                self.evaluate(if is_true(test_expr)? { then_expr } else { else_expr }, depth)
            }
            ExprKind::BinaryApp { op, arg1, arg2 } => self.binary(*op, arg1, arg2, depth).map(Seen::Bool),
            ExprKind::GetAttr { expr, attr } => self.evaluate(expr, depth)?.attribute(attr)?,
            ExprKind::HasAttr { expr, attr } => {
                Some(Seen::Bool(self.evaluate(expr, depth)?.attribute(attr)?.is_some()))
            }
            ExprKind::ExtHasAttr { expr, attrs } => {
                let mut value = self.evaluate(expr, depth)?;
                for attribute in attrs.iter() {
                    match value.attribute(attribute)? {
                        Some(member) => value = member,
                        None => return Some(Seen::Bool(false)),
                    }
                }
                Some(Seen::Bool(true))
            }
            ExprKind::Like { expr, pattern } => match self.evaluate(expr, depth)? {
                Seen::Text(text) => Some(Seen::Bool(pattern.wildcard_match(text))),
                _ => None,
            },
            _ => None,
        }
    }

    fn binary(&self, op: BinaryOp, left: &'s Expr, right: &'s Expr, depth: usize) -> Option<bool> {
        let value = |expr: &'s Expr| self.evaluate(expr, depth);
        match op {
            BinaryOp::Eq => value(left)?.equals(value(right)?),
            BinaryOp::Less | BinaryOp::LessEq => match (value(left)?, value(right)?) {
                (Seen::Long(left), Seen::Long(right)) if op == BinaryOp::Less => Some(left < right),
                (Seen::Long(left), Seen::Long(right)) => Some(left <= right),
                _ => None,
            },
            BinaryOp::Contains => match (left.expr_kind(), right.expr_kind()) {
                // Every item, as one of another type is left to Cedar.
                (ExprKind::Set(items), _) => {
                    let wanted = value(right)?;
                    let mut found = false;
                    for item in items.iter() {
                        found |= value(item)?.equals(wanted)?;
                    }
                    Some(found)
                }
                (_, ExprKind::Lit(wanted)) => match value(left)? {
                    Seen::Set(set) => Some(set.contains(wanted)),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use gatewright_core::{Effects, Groups, PolicyObject, PolicyRequest, PolicyTool, Principal, Scopes};
    use serde_json::json;

    use super::*;
    use crate::{CedarPolicies, PolicyFile, reads::Reads, values};

    /// Conditions that are evaluated here, as long as they succeed.
    const USUAL: &[&str] = &[
        "context.arguments has n && context.arguments.n > 5",
        "context.arguments has n && context.arguments.n >= 5 && context.arguments.n != 7",
        "context.arguments has n && (context.arguments.n < 5 || context.arguments.n <= 7)",
        "!(context.arguments has text) || context.arguments.text like \"*@example.com\"",
        "context.arguments has text && context.arguments.text == \"ann@example.com\"",
        "context.arguments has text && [\"ann@example.com\", \"b\"].contains(context.arguments.text)",
        "context.arguments has list && context.arguments.list.contains(\"b\")",
        "context.arguments has deep.inner && context.arguments.deep.inner == true",
        "context.arguments has deep && context.arguments.deep has inner",
        "context.arguments has n && principal.scopes.contains(\"crm:read\") && resource.destructive",
        "if context.arguments has n then context.arguments.n == 7 else principal has client",
        "context.arguments has n && principal.groups.contains(\"ops\")",
        "context.calls < 3 && context.script == true && principal.subject == \"ada\"",
    ];
    /// Conditions that are left to Cedar, wholly or for some arguments.
    const OTHER: &[&str] = &[
        "context.arguments.n == 5",
        "context.arguments.n == \"5\"",
        "context.arguments.n + 1 > 5",
        "context.arguments.text < 5",
        "context.arguments has n && context.arguments",
        "context.arguments.deep == {\"inner\": true}",
        "context.arguments.list.containsAny([\"b\", \"c\"])",
        "context.arguments.list.contains(1)",
        "[1, \"b\"].contains(context.arguments.text)",
        "context.arguments.money.greaterThan(decimal(\"1.5\"))",
        "resource == Tool::\"shop:pay\" && context.arguments has n",
        "context.time > datetime(\"2020-01-01\") && context.arguments.text.text",
    ];

    #[test]
    fn conditions_are_what_cedar_says_and_the_usual_ones_are_not_left_to_it() {
        let principal = Principal {
            subject: "ada".into(),
            client_id: Some("desk".into()),
            scopes: Scopes::parse("crm:* shop"),
            groups: Groups::new(["ops"]).unwrap(),
            ..Principal::local()
        };
        let schema = json!({"properties": {"money": {"type": "number"}}});
        let effects = Effects { read_only: false, destructive: true, idempotent: false, open_world: false };
        let tool = PolicyTool {
            app: "shop",
            name: "shop:pay",
            local: "pay",
            effects,
            approval: None,
            input_schema: schema.as_object().unwrap(),
        };
        let (mut compared, mut failed) = (0, 0);
        for (condition, is_usual) in
            USUAL.iter().map(|one| (one, true)).chain(OTHER.iter().map(|one| (one, false)))
        {
            let text = format!("permit (principal, action, resource) when {{ {condition} }};");
            let policies = CedarPolicies::read(vec![PolicyFile { name: "p".to_owned(), text }]).unwrap();
            let reads = Reads::of(&policies.rules);
            for arguments in [
                json!({}),
                json!({"n": 5}),
                json!({"n": 7, "text": "ann@example.com", "list": ["a", "b"], "deep": {"inner": true}, "money": 2}),
                json!({"n": -1, "text": "b", "list": [], "deep": {}, "money": 1}),
                json!({"n": 9, "text": "", "list": [1, 2], "deep": {"inner": false}}),
            ] {
                let request = PolicyRequest {
                    principal: &principal,
                    object: PolicyObject::Tool(tool),
                    arguments: arguments.as_object(),
                    script: true,
                    calls: 2,
                    time: SystemTime::now(),
                };
                let context = values::context(&request, &reads).unwrap();
                let user = values::user(&principal.subject, &principal, &reads);
                let object = values::object("shop:pay", &request.object);
                let scene = Scene { user: &user, object: &|| &object, context: &context };
                let found = scene.is_true(policies.rules[0].policy.non_scope_constraints().unwrap());
                let cedar = policies.explain(&request);
                match found {
                    Some(found) => assert_eq!(
                        (found, cedar.failed.len()),
                        (cedar.matched.len() == 1, 0),
                        "{condition} {arguments}"
                    ),
                    None => assert!(!is_usual, "{condition} {arguments}"),
                }
                compared += usize::from(found.is_some());
                failed += cedar.failed.len();
            }
        }
        assert!(compared > 5 * USUAL.len() && failed > 10, "{compared} {failed}");
    }

    #[test]
    fn a_condition_that_is_too_deep_is_left_to_cedar() {
        for (nested, is_known) in [(10, true), (30, false)] {
            let condition = (0..nested).fold("context has a".to_owned(), |inner, _| format!("!!!({inner})"));
            let text = format!("permit (principal, action, resource) when {{ {condition} }};");
            let policies = CedarPolicies::read(vec![PolicyFile { name: "p".to_owned(), text }]).unwrap();
            let user = values::user("", &Principal::local(), &Reads::default());
            let scene = Scene {
                user: &user,
                object: &|| unreachable!("no condition looks at it"),
                context: &BTreeMap::new(),
            };
            let found = scene.is_true(policies.rules[0].policy.non_scope_constraints().unwrap());
            assert_eq!(found.is_some(), is_known, "{nested}");
        }
    }
}
