//! One walk over a program without types: applies the rules in order of the text and notes what to count.

use oxc::{
    ast::{
        AstKind,
        ast::{ArrowFunctionExpression, BindingPattern, Expression, Program, Statement, VariableDeclarator},
    },
    ast_visit::VisitJs,
    semantic::{ScopeId, Scoping},
    span::{GetSpan, Span},
};

use super::{
    fold::{Folder, Known, Value},
    growth::Growth,
    rules::{self, Facts, Table},
    ticks::Additions,
    violation::Violation,
};
use crate::policy::ScriptPolicy;

/// Findings of one walk.
pub(super) struct Walked<'s> {
    /// The first broken rule in order of the text.
    pub(super) violation: Option<Violation>,
    /// The ticks and the like to insert.
    pub(super) additions: Additions<'s>,
}

/// Applies the rules of `policy`.
pub(super) fn walk<'s>(program: &Program<'_>, scoping: &'s Scoping, policy: &ScriptPolicy) -> Walked<'s> {
    let known = Known::default();
    let mut walk = Walk {
        facts: Facts {
            policy,
            scoping,
            known: &known,
            this_depth: 0,
            in_plain_function: false,
            compared: Vec::new(),
        },
        table: rules::table(policy.preset),
        method_next: false,
        plain: Vec::new(),
        growth: Growth::default(),
        functions: 0,
        violation: None,
    };
    walk.visit_program(program);
    Walked { violation: walk.violation, additions: walk.growth.additions(scoping) }
}

struct Walk<'s> {
    facts: Facts<'s>,
    table: &'static Table,
    /// The next function is a method.
    method_next: bool,
    /// `in_plain_function` outside each function that is open.
    plain: Vec<bool>,
    growth: Growth,
    /// Number of functions that are open.
    functions: u32,
    violation: Option<Violation>,
}

impl<'a> VisitJs<'a> for Walk<'_> {
    fn enter_node(&mut self, node: AstKind<'a>) {
        if let AstKind::BinaryExpression(it) = node
            && it.operator.is_equality()
        {
            let operands = [&it.left, &it.right].map(|side| side.get_inner_expression().span());
            self.facts.compared.extend(operands);
        }
        for rule in &self.table[node.ty() as usize] {
            if let Some(violation) = rule(&self.facts, node) {
                // The walk is nearly, not quite, in order of the text.
                if self.violation.as_ref().is_none_or(|first| violation.offset < first.offset) {
                    self.violation = Some(violation);
                }
            }
        }
        self.growth.note(self.facts.scoping, node);
        match node {
            AstKind::ObjectProperty(it) => {
                self.method_next = matches!(it.value, Expression::FunctionExpression(_))
            }
            AstKind::MethodDefinition(_) => self.method_next = true,
            AstKind::ReturnStatement(it) if self.functions == 0 => {
                self.growth.returned(it.span.start);
            }
            AstKind::Function(it) => {
                self.functions += 1;
                self.facts.this_depth += 1;
                self.plain.push(self.facts.in_plain_function);
                self.facts.in_plain_function = !std::mem::take(&mut self.method_next);
                if let Some(body) = &it.body {
                    self.growth.body(body.span, body.span, it.scope_id.get());
                }
            }
            AstKind::PropertyDefinition(_) | AstKind::StaticBlock(_) => self.facts.this_depth += 1,
            AstKind::ArrowFunctionExpression(it) => {
                self.functions += 1;
                self.tick_arrow(it);
            }
            AstKind::WhileStatement(it) => self.tick_loop(it.span, &it.body, None),
            AstKind::DoWhileStatement(it) => self.tick_loop(it.span, &it.body, None),
            AstKind::ForStatement(it) => self.tick_loop(it.span, &it.body, it.scope_id.get()),
            AstKind::ForInStatement(it) => self.tick_loop(it.span, &it.body, it.scope_id.get()),
            AstKind::ForOfStatement(it) => self.tick_loop(it.span, &it.body, it.scope_id.get()),
            _ => {}
        }
    }

    fn leave_node(&mut self, node: AstKind<'a>) {
        match node {
            AstKind::ArrowFunctionExpression(_) => self.functions -= 1,
            AstKind::BinaryExpression(it) if it.operator.is_equality() => {
                self.facts.compared.truncate(self.facts.compared.len() - 2);
            }
            AstKind::Function(_) => {
                self.functions -= 1;
                self.facts.this_depth -= 1;
                self.facts.in_plain_function = self.plain.pop().unwrap_or(false);
            }
            AstKind::PropertyDefinition(_) | AstKind::StaticBlock(_) => self.facts.this_depth -= 1,
            AstKind::VariableDeclarator(it) => self.note(it),
            _ => {}
        }
    }
}

impl Walk<'_> {
    fn tick_arrow(&mut self, arrow: &ArrowFunctionExpression<'_>) {
        let span = arrow.body.span();
        self.growth.body(span, span, arrow.scope_id.get());
    }

    fn tick_loop(&mut self, span: Span, body: &Statement<'_>, scope: Option<ScopeId>) {
        let scope = if let Statement::BlockStatement(block) = body { block.scope_id.get() } else { scope };
        self.growth.body(span, body.span(), scope);
    }

    /// Keeps the value of a variable, when the text spells it out and nothing changes it.
    fn note(&mut self, it: &VariableDeclarator<'_>) {
        let (BindingPattern::BindingIdentifier(name), Some(init)) = (&it.id, &it.init) else { return };
        let Some(symbol) = name.symbol_id.get() else { return };
        let values = if rules::is_alias(&self.facts, init) {
            vec![Value::Text(rules::TOOL_FUNCTION.to_owned())]
        } else if rules::is_new_error(init) {
            vec![Value::Text(rules::ERROR.to_owned())]
        } else {
            Folder { scoping: self.facts.scoping, known: self.facts.known }.values(init, 0)
        };
        if !values.is_empty() {
            self.facts.known.borrow_mut().insert(symbol, values);
        }
    }
}
