//! One walk over a program without types: applies the rules in order of the text and notes where ticks go.

use oxc::{
    ast::{
        AstKind,
        ast::{
            ArrowFunctionBody, BinaryOperator, BindingPattern, Expression, FunctionBody, Statement,
            VariableDeclarator,
        },
    },
    ast_visit::VisitJs,
    span::GetSpan,
};

use super::{
    Refusal,
    edits::Edit,
    fold::{Folder, Known, Value},
    parse::Parsed,
    rules::{self, Facts, Table},
};
use crate::script::ScriptPolicy;

const TICK: &str = "__ag_tick();";

/// What one walk found.
pub(super) struct Walked {
    /// The first broken rule in order of the text.
    pub(super) refusal: Option<Refusal>,
    /// The ticks to insert.
    pub(super) ticks: Vec<Edit>,
    /// Something looks like a call with type arguments.
    pub(super) maybe_generic: bool,
}

/// Applies the rules of `policy`.
pub(super) fn walk(parsed: &Parsed<'_>, policy: &ScriptPolicy) -> Walked {
    let known = Known::default();
    let mut walk = Walk {
        facts: Facts {
            policy,
            scoping: &parsed.scoping,
            known: &known,
            this_depth: 0,
            in_plain_function: false,
        },
        table: rules::table(policy.preset),
        method_next: false,
        plain: Vec::new(),
        found: Walked { refusal: None, ticks: Vec::new(), maybe_generic: false },
    };
    walk.visit_program(parsed.program);
    walk.found
}

struct Walk<'s> {
    facts: Facts<'s>,
    table: &'static Table,
    /// The next function is a method.
    method_next: bool,
    /// What `in_plain_function` was outside each function that is open.
    plain: Vec<bool>,
    found: Walked,
}

impl<'a> VisitJs<'a> for Walk<'_> {
    fn enter_node(&mut self, node: AstKind<'a>) {
        for rule in &self.table[node.ty() as usize] {
            if let Some(refusal) = rule(&self.facts, node) {
                // The walk is nearly, not quite, in order of the text.
                if self.found.refusal.as_ref().is_none_or(|first| refusal.offset < first.offset) {
                    self.found.refusal = Some(refusal);
                }
            }
        }
        match node {
            AstKind::ObjectProperty(it) => {
                self.method_next = matches!(it.value, Expression::FunctionExpression(_))
            }
            AstKind::MethodDefinition(_) => self.method_next = true,
            AstKind::Function(it) => {
                self.facts.this_depth += 1;
                self.plain.push(self.facts.in_plain_function);
                self.facts.in_plain_function = !std::mem::take(&mut self.method_next);
                if let Some(body) = &it.body {
                    self.tick_function(body);
                }
            }
            AstKind::PropertyDefinition(_) | AstKind::StaticBlock(_) => self.facts.this_depth += 1,
            AstKind::ArrowFunctionExpression(it) => self.tick_arrow(&it.body),
            AstKind::WhileStatement(it) => self.tick_loop(&it.body),
            AstKind::DoWhileStatement(it) => self.tick_loop(&it.body),
            AstKind::ForStatement(it) => self.tick_loop(&it.body),
            AstKind::ForInStatement(it) => self.tick_loop(&it.body),
            AstKind::ForOfStatement(it) => self.tick_loop(&it.body),
            AstKind::BinaryExpression(it) if it.operator == BinaryOperator::GreaterThan => {
                let paren = matches!(it.right, Expression::ParenthesizedExpression(_));
                self.found.maybe_generic |= paren && it.right.span().start == it.left.span().end + 1;
            }
            _ => {}
        }
    }

    fn leave_node(&mut self, node: AstKind<'a>) {
        match node {
            AstKind::Function(_) => {
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
    fn tick_function(&mut self, body: &FunctionBody<'_>) {
        self.found.ticks.push(Edit::open(body.span.start + 1, TICK));
    }

    fn tick_arrow(&mut self, body: &ArrowFunctionBody<'_>) {
        match body {
            ArrowFunctionBody::FunctionBody(body) => self.tick_function(body),
            body => {
                let span = body.span();
                self.found.ticks.push(Edit::open(span.start, "(__ag_tick(),"));
                self.found.ticks.push(Edit::close(span.end, ")"));
            }
        }
    }

    fn tick_loop(&mut self, body: &Statement<'_>) {
        if let Statement::BlockStatement(block) = body {
            self.found.ticks.push(Edit::open(block.span.start + 1, TICK));
        } else {
            let span = body.span();
            self.found.ticks.push(Edit::open(span.start, "{__ag_tick();"));
            self.found.ticks.push(Edit::close(span.end, "}"));
        }
    }

    /// Remembers what a variable holds, when the text spells it out and nothing changes it.
    fn note(&mut self, it: &VariableDeclarator<'_>) {
        let (BindingPattern::BindingIdentifier(name), Some(init)) = (&it.id, &it.init) else { return };
        let Some(symbol) = name.symbol_id.get() else { return };
        let values = if rules::is_alias(&self.facts, init) {
            vec![Value::Text(rules::DOOR.to_owned())]
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
