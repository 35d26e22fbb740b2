//! Names that policies compare the caller with. Only the configuration knows which of them exist.

use smol_str::SmolStr;

use crate::{
    CedarPolicies,
    cedar::{BinaryOp, Expr, ExprKind, Literal, Var},
    load::{Grant, Rule, line_of},
};

/// The kind of a name that a policy compares the caller with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallerNameKind {
    /// A member of `principal.scopes`, or the scope of `@approvers`.
    Scope,
    /// `principal.client`.
    Client,
    /// `principal.endpoint`.
    Endpoint,
}

/// A name that a policy compares the caller with, and its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallerName {
    /// Path of the file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// The attribute that the name is compared with.
    pub kind: CallerNameKind,
    /// The name.
    pub name: String,
}

impl CedarPolicies {
    /// Returns scopes, clients and endpoints that policies name in conditions, each once for a line. Patterns of `like` are left out.
    pub fn caller_names(&self) -> Vec<CallerName> {
        let mut found = Vec::new();
        for rule in &self.rules {
            if let Grant::Ask { approvers: Some(scope), .. } = &rule.grant {
                found.push(self.caller_name(rule, None, CallerNameKind::Scope, scope));
            }
            for part in rule.condition.subexpressions() {
                let ExprKind::BinaryApp { op, arg1, arg2 } = part.expr_kind() else { continue };
                let Some((kind, names)) = compared(*op, arg1, arg2) else { continue };
                let at = part.source_loc().map(|loc| loc.start());
                found.extend(names.iter().map(|name| self.caller_name(rule, at, kind, name)));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn caller_name(&self, rule: &Rule, at: Option<usize>, kind: CallerNameKind, name: &str) -> CallerName {
        let file = &self.files[rule.file];
        let line = at.map_or(rule.line, |at| line_of(&file.text, at));
        CallerName { file: file.name.clone(), line, kind, name: name.to_owned() }
    }
}

/// The texts that an attribute of the caller is compared with.
fn compared(op: BinaryOp, left: &Expr, right: &Expr) -> Option<(CallerNameKind, Vec<SmolStr>)> {
    let (attribute, other) = match (attribute(left), attribute(right)) {
        (Some(attribute), None) => (attribute, right),
        (None, Some(attribute)) => (attribute, left),
        _ => return None,
    };
    let kind = match (attribute, op) {
        ("scopes", BinaryOp::Contains | BinaryOp::ContainsAll | BinaryOp::ContainsAny) => {
            CallerNameKind::Scope
        }
        ("client", BinaryOp::Eq | BinaryOp::Contains) => CallerNameKind::Client,
        ("endpoint", BinaryOp::Eq | BinaryOp::Contains) => CallerNameKind::Endpoint,
        _ => return None,
    };
    Some((kind, texts(other)))
}

/// The name of an attribute of the caller.
fn attribute(expr: &Expr) -> Option<&str> {
    let ExprKind::GetAttr { expr, attr } = expr.expr_kind() else { return None };
    matches!(expr.expr_kind(), ExprKind::Var(Var::Principal)).then_some(attr)
}

/// A text, or the texts of a set.
fn texts(expr: &Expr) -> Vec<SmolStr> {
    match expr.expr_kind() {
        ExprKind::Lit(Literal::String(text)) => vec![text.clone()],
        ExprKind::Set(members) => members.iter().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}
