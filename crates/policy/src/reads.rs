//! Parts of requests that policies read, arguments included: nothing else is converted, and requests that differ in nothing else are
//! decided on alike.

use std::collections::{BTreeSet, HashSet};

use smol_str::SmolStr;

use crate::{
    cedar::{EntityUID, Expr, ExprKind, Literal, Var},
    load::Rule,
    values::NAMES,
};

/// Attributes and names that policies look at.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// Attributes of the caller, or its identity.
    pub(crate) subject: bool,
    pub(crate) client: bool,
    pub(crate) endpoint: bool,
    pub(crate) scopes: bool,
    pub(crate) groups: bool,
    /// Attributes of the object.
    pub(crate) name: bool,
    pub(crate) uri: bool,
    /// Members of the arguments, `None` for all of them.
    pub(crate) arguments: Option<BTreeSet<SmolStr>>,
    /// Attributes of the context, `None` for all of them.
    pub(crate) context: Option<BTreeSet<SmolStr>>,
    /// Tools, resources and prompts that policies name.
    pub(crate) tools: HashSet<SmolStr>,
    pub(crate) resources: HashSet<SmolStr>,
    pub(crate) prompts: HashSet<SmolStr>,
    /// Texts in policies: those that a scope with `*` may cover.
    pub(crate) texts: BTreeSet<SmolStr>,
}

impl Reads {
    pub(crate) fn of(rules: &[Rule]) -> Self {
        let mut reads =
            Self { arguments: Some(BTreeSet::new()), context: Some(BTreeSet::new()), ..Self::default() };
        let mut uses = Uses::default();
        for part in rules.iter().flat_map(|rule| rule.condition.subexpressions()) {
            reads.add(part, &mut uses);
        }
        // Used as a whole: in a comparison, or as a member of something.
        reads.subject |= uses.principal != uses.of_principal;
        if uses.context != uses.of_context {
            reads.context = None;
            reads.arguments = None;
        }
        if uses.arguments != uses.of_arguments {
            reads.arguments = None;
        }
        reads
    }

    fn add(&mut self, part: &Expr, uses: &mut Uses) {
        match part.expr_kind() {
            ExprKind::Var(Var::Principal) => uses.principal += 1,
            ExprKind::Var(Var::Context) => uses.context += 1,
            ExprKind::Lit(Literal::EntityUID(uid)) => self.add_name(uid),
            ExprKind::Lit(Literal::String(text)) => drop(self.texts.insert(text.clone())),
            ExprKind::Is { expr, .. } if is_var(expr, Var::Principal) => uses.of_principal += 1,
            ExprKind::GetAttr { expr, attr } => {
                self.add_attribute(expr, attr, uses);
                uses.arguments += usize::from(is_arguments(part));
            }
            ExprKind::HasAttr { expr, attr } => {
                self.add_attribute(expr, attr, uses);
                // `context has arguments` reads nothing of them.
            }
            ExprKind::ExtHasAttr { expr, attrs } => {
                self.add_attribute(expr, &attrs.head, uses);
                if let (true, Some(member), Some(known)) = (
                    is_var(expr, Var::Context) && attrs.head == "arguments",
                    attrs.tail.first(),
                    &mut self.arguments,
                ) {
                    known.insert(member.clone());
                }
            }
            _ => {}
        }
    }

    fn add_name(&mut self, uid: &EntityUID) {
        let kind = uid.entity_type();
        let names = if *kind == NAMES.tool {
            &mut self.tools
        } else if *kind == NAMES.resource {
            &mut self.resources
        } else if *kind == NAMES.prompt {
            &mut self.prompts
        } else {
            return;
        };
        names.insert(uid.eid().as_ref().into());
    }

    fn add_attribute(&mut self, of: &Expr, attribute: &SmolStr, uses: &mut Uses) {
        if is_var(of, Var::Principal) {
            uses.of_principal += 1;
            match attribute.as_str() {
                "client" => self.client = true,
                "endpoint" => self.endpoint = true,
                "scopes" => self.scopes = true,
                "groups" => self.groups = true,
                _ => self.subject = true,
            }
        } else if is_var(of, Var::Resource) {
            self.name |= attribute == "name";
            self.uri |= attribute == "uri";
        } else if is_var(of, Var::Context) {
            uses.of_context += 1;
            if let Some(known) = &mut self.context {
                known.insert(attribute.clone());
            }
        } else if is_arguments(of) {
            uses.of_arguments += 1;
            if let Some(known) = &mut self.arguments {
                known.insert(attribute.clone());
            }
        }
    }

    /// Returns `true` if policies look at this attribute of the context.
    pub(crate) fn sees(&self, attribute: &str) -> bool {
        self.context.as_ref().is_none_or(|known| known.contains(attribute))
    }
}

/// Occurrences of variables, and those that only an attribute is read of.
#[derive(Default)]
struct Uses {
    principal: usize,
    of_principal: usize,
    context: usize,
    of_context: usize,
    arguments: usize,
    of_arguments: usize,
}

fn is_var(expr: &Expr, var: Var) -> bool {
    matches!(expr.expr_kind(), ExprKind::Var(found) if *found == var)
}

/// Returns `true` for `context.arguments`.
pub(crate) fn is_arguments(expr: &Expr) -> bool {
    matches!(expr.expr_kind(), ExprKind::GetAttr { expr, attr } if attr == "arguments" && is_var(expr, Var::Context))
}
