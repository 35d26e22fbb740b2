//! Forms of scripts and statements that decide what is said of them.

use std::slice;

use oxc::{
    ast::ast::{
        ArrowFunctionExpression, AssignmentExpression, AwaitExpression, BindingIdentifier, CallExpression,
        Expression, Function, IdentifierReference, Program, SimpleAssignmentTarget, Statement,
    },
    ast_visit::{VisitJs, walk_js},
    semantic::{ScopeFlags, Scoping, SymbolId},
    span::GetSpan,
};

use super::tails::tails;

/// Methods that add to a list.
const ADD_TO_LIST: &[&str] = &["push", "unshift"];
/// Methods that add to a map or a set, which scripts also use to remember what they have done.
const ADD_TO_SET: &[&str] = &["add", "set"];

/// The last function of a script that only declares functions.
pub(super) fn only_function<'p>(program: &'p Program<'_>) -> Option<(u32, &'p str)> {
    let mut last = None;
    for statement in &program.body {
        match statement {
            Statement::FunctionDeclaration(it) => {
                last = it.id.as_ref().map(|id| (id.span.start, id.name.as_str()))
            }
            Statement::EmptyStatement(_) => {}
            _ => return None,
        }
    }
    last
}

/// The constant that a statement declares, if it is a function and nothing uses it.
pub(super) fn unused_function<'p>(it: &'p Statement<'_>, scoping: &Scoping) -> Option<(u32, &'p str)> {
    let Statement::VariableDeclaration(it) = it else { return None };
    let declarator = it.declarations.last()?;
    let is_function = declarator.init.as_ref()?.without_parentheses().is_function();
    let name = declarator.id.get_binding_identifier()?;
    (is_function && is_unused(name, scoping)).then(|| (name.span.start, name.name.as_str()))
}

/// The place and name of what a script seems to have meant to return with `it`, its last statement, which has no value: a variable that is
/// declared, set or added to and that nothing uses afterwards. The name is empty if there is none.
pub(super) fn wanted<'p>(it: &'p Statement<'_>, scoping: &Scoping) -> Option<(u32, &'p str)> {
    let wanted = Wanted { scoping, before: it.span().start, in_loop: false };
    match it {
        Statement::VariableDeclaration(it) => {
            let declarator = it.declarations.last()?;
            if declarator.init.as_ref()?.without_parentheses().is_function() {
                return None;
            }
            let names = declarator.id.get_binding_identifiers();
            let first = names.first()?;
            names.iter().all(|name| is_unused(name, scoping)).then(|| (first.span.start, first.name.as_str()))
        }
        Statement::LabeledStatement(it) if matches!(it.body, Statement::ExpressionStatement(_)) => {
            Some((it.span.start, ""))
        }
        Statement::ExpressionStatement(it) => wanted.value(&it.expression),
        Statement::ForOfStatement(it) => wanted.turn(&it.body),
        Statement::ForInStatement(it) => wanted.turn(&it.body),
        _ => None,
    }
}

/// Tests for an `await` outside of the functions of `it`.
pub(super) fn waits(it: &Statement<'_>) -> bool {
    struct Waits(bool);
    impl<'a> VisitJs<'a> for Waits {
        fn visit_await_expression(&mut self, it: &AwaitExpression<'a>) {
            self.0 = true;
            walk_js::walk_await_expression(self, it);
        }
        fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}
        fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}
    }
    let mut found = Waits(false);
    found.visit_statement(it);
    found.0
}

fn is_unused(name: &BindingIdentifier<'_>, scoping: &Scoping) -> bool {
    name.symbol_id.get().is_some_and(|symbol| scoping.get_resolved_references(symbol).next().is_none())
}

#[derive(Clone, Copy)]
struct Wanted<'s> {
    scoping: &'s Scoping,
    /// Only variables that are declared before this place count.
    before: u32,
    in_loop: bool,
}

impl Wanted<'_> {
    /// The value that a turn of a loop ends with.
    fn turn<'p>(self, body: &'p Statement<'_>) -> Option<(u32, &'p str)> {
        let within = Self { in_loop: true, ..self };
        tails(slice::from_ref(body)).into_iter().find_map(|tail| match tail.statement {
            Statement::ExpressionStatement(it) => within.value(&it.expression),
            Statement::ForOfStatement(it) => within.turn(&it.body),
            Statement::ForInStatement(it) => within.turn(&it.body),
            _ => None,
        })
    }

    fn value<'p>(self, it: &'p Expression<'_>) -> Option<(u32, &'p str)> {
        match it.without_parentheses() {
            Expression::AssignmentExpression(it) => self.assignment(it),
            Expression::UpdateExpression(it) => match &it.argument {
                SimpleAssignmentTarget::AssignmentTargetIdentifier(name) => self.set(name),
                _ => None,
            },
            Expression::CallExpression(it) => self.call(it),
            _ => None,
        }
    }

    fn assignment<'p>(self, it: &'p AssignmentExpression<'_>) -> Option<(u32, &'p str)> {
        match it.left.as_simple_assignment_target()? {
            SimpleAssignmentTarget::AssignmentTargetIdentifier(name) => self.set(name),
            target => {
                let name = root(target.as_member_expression()?.object())?;
                self.symbol(name).map(|_| (name.span.start, name.name.as_str()))
            }
        }
    }

    /// A variable that is set. One that a turn of a loop reads may be there for the next turn.
    fn set<'p>(self, name: &'p IdentifierReference<'_>) -> Option<(u32, &'p str)> {
        let symbol = self.symbol(name)?;
        let mut uses = self.scoping.get_resolved_references(symbol);
        let is_read = self.in_loop && uses.any(|it| it.is_read() && !it.is_write());
        (!is_read).then(|| (name.span.start, name.name.as_str()))
    }

    fn call<'p>(self, it: &'p CallExpression<'_>) -> Option<(u32, &'p str)> {
        let Expression::StaticMemberExpression(callee) = it.callee.without_parentheses() else { return None };
        let method = callee.property.name.as_str();
        if method == "forEach" {
            return match it.arguments.first()?.as_expression()?.without_parentheses() {
                Expression::ArrowFunctionExpression(it) => match it.body.as_expression() {
                    Some(value) => Self { in_loop: true, ..self }.value(value),
                    None => it.get_function_body().and_then(|body| self.turns(&body.statements)),
                },
                Expression::FunctionExpression(it) => {
                    it.body.as_ref().and_then(|body| self.turns(&body.statements))
                }
                _ => None,
            };
        }
        let name = root(&callee.object)?;
        let symbol = self.symbol(name)?;
        let adds = ADD_TO_LIST.contains(&method)
            || ADD_TO_SET.contains(&method) && self.scoping.get_resolved_references(symbol).count() == 1;
        adds.then(|| (name.span.start, name.name.as_str()))
    }

    fn turns<'p>(self, body: &'p [Statement<'_>]) -> Option<(u32, &'p str)> {
        let last = tails(body).into_iter().map(|tail| tail.statement);
        last.into_iter().find_map(|statement| self.turn(statement))
    }

    /// The variable of the script that `name` is.
    fn symbol(self, name: &IdentifierReference<'_>) -> Option<SymbolId> {
        let symbol = self.scoping.get_reference(name.reference_id.get()?).symbol_id()?;
        (self.scoping.symbol_span(symbol).start < self.before).then_some(symbol)
    }
}

/// The name that a chain of members begins with.
fn root<'p, 'a>(it: &'p Expression<'a>) -> Option<&'p IdentifierReference<'a>> {
    let mut at = it.without_parentheses();
    loop {
        at = match at {
            Expression::Identifier(name) => return Some(name),
            at => at.as_member_expression()?.object().without_parentheses(),
        };
    }
}

/// Tests for a statement that keeps its value in a variable or a member: it may be awaited later.
pub(super) fn is_kept(it: &Expression<'_>) -> bool {
    match it.without_parentheses() {
        Expression::AssignmentExpression(_) => true,
        Expression::SequenceExpression(it) => it.expressions.last().is_some_and(is_kept),
        _ => false,
    }
}
