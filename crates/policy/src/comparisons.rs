//! Comparisons of attributes with values: those that a policy names, and those that are never true together.

use std::collections::HashMap;

use smol_str::SmolStr;

use crate::{
    cedar::{BinaryOp, Expr, ExprKind, Literal, Var},
    values::NAMES,
};

/// An attribute, such as `resource.name`, and the values of which it must have one for a comparison to be true.
pub(crate) struct Comparison {
    pub(crate) attribute: String,
    pub(crate) values: Vec<Literal>,
}

impl Comparison {
    fn text(attribute: &str, text: &str) -> Self {
        Self { attribute: attribute.to_owned(), values: vec![Literal::String(text.into())] }
    }

    /// The texts among the values.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &SmolStr> {
        self.values.iter().filter_map(|value| match value {
            Literal::String(text) => Some(text),
            _ => None,
        })
    }
}

/// Returns the comparison that `part` is: with `==`, or with `contains` of a set of values.
pub(crate) fn comparison(part: &Expr) -> Option<Comparison> {
    let ExprKind::BinaryApp { op, arg1, arg2 } = part.expr_kind() else { return None };
    let (attribute, values) = match op {
        BinaryOp::Eq => match (path(arg1), path(arg2)) {
            (Some(attribute), None) => (attribute, vec![literal(arg2)?.clone()]),
            (None, Some(attribute)) => (attribute, vec![literal(arg1)?.clone()]),
            _ => return None,
        },
        BinaryOp::Contains => {
            let ExprKind::Set(members) = arg1.expr_kind() else { return None };
            let values = members.iter().map(|member| literal(member).cloned());
            (path(arg2)?, values.collect::<Option<_>>()?)
        }
        _ => return None,
    };
    Some(Comparison { attribute, values })
}

/// The comparisons that are true wherever `part` is.
fn implied(part: &Expr) -> Vec<Comparison> {
    let mut found: Vec<Comparison> = comparison(part).into_iter().collect();
    let ExprKind::BinaryApp { op: BinaryOp::Eq | BinaryOp::In, arg1, arg2 } = part.expr_kind() else {
        return found;
    };
    if let (ExprKind::Var(Var::Resource), Some(Literal::EntityUID(named))) = (arg1.expr_kind(), literal(arg2))
    {
        let id: &str = named.eid().as_ref();
        if *named.entity_type() == NAMES.app {
            found.push(Comparison::text("resource.app", id));
        } else if let (true, Some((app, _))) =
            ([&NAMES.tool, &NAMES.prompt].contains(&named.entity_type()), id.split_once(':'))
        {
            found.extend([Comparison::text("resource.name", id), Comparison::text("resource.app", app)]);
        }
    }
    found
}

/// Returns the offset and the text of a comparison that is never true together with others that `condition` needs; offset 0 for one in
/// the head of the policy.
pub(crate) fn contradiction(condition: &Expr) -> Option<(usize, String)> {
    contradiction_with(&HashMap::new(), condition)
}

fn contradiction_with(outer: &HashMap<String, Vec<Literal>>, condition: &Expr) -> Option<(usize, String)> {
    let (mut allowed, mut either, mut parts) = (outer.clone(), Vec::new(), vec![condition]);
    while let Some(part) = parts.pop() {
        match part.expr_kind() {
            ExprKind::And { left, right } => parts.extend([&**right, &**left]),
            ExprKind::Or { left, right } => either.push((left, right)),
            _ => {
                for Comparison { attribute, values } in implied(part) {
                    let Some(before) = allowed.get(&attribute) else {
                        allowed.insert(attribute, values);
                        continue;
                    };
                    let both: Vec<_> =
                        before.iter().filter(|value| values.contains(value)).cloned().collect();
                    if both.is_empty() {
                        let (before, values) = (listed(before), listed(&values));
                        let problem = format!(
                            "never matches: `{attribute}` has to be {before}, and cannot be {values} as well"
                        );
                        return Some((part.source_loc().map_or(0, |loc| loc.start()), problem));
                    }
                    allowed.insert(attribute, both);
                }
            }
        }
    }
    either.into_iter().find_map(|(left, right)| {
        let found = contradiction_with(&allowed, left)?;
        contradiction_with(&allowed, right).map(|_| found)
    })
}

fn listed(values: &[Literal]) -> String {
    const MOST: usize = 5;
    let mut texts: Vec<String> = values.iter().take(MOST).map(|value| format!("`{value}`")).collect();
    if values.len() > MOST {
        texts.push("…".to_owned());
    }
    if texts.is_empty() { "any of no values".to_owned() } else { texts.join(" or ") }
}

/// The name of a variable or of an attribute of one, such as `context.arguments.id`.
fn path(expr: &Expr) -> Option<String> {
    match expr.expr_kind() {
        ExprKind::Var(var) => Some(var.to_string()),
        ExprKind::GetAttr { expr, attr } => Some(format!("{}.{attr}", path(expr)?)),
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<&Literal> {
    match expr.expr_kind() {
        ExprKind::Lit(literal) => Some(literal),
        _ => None,
    }
}
