//! Wrappers of scripts that were written for another runtime: `export default`, and a function whose parameters are named like functions
//! of AgentScript.

use oxc::{
    allocator::{Allocator, ArenaVec, TakeIn},
    ast::{
        ast::{
            BindingPattern, ExportDefaultDeclarationKind, Expression, FormalParameter, FormalParameters,
            Function, FunctionType, IdentifierReference, Program, Statement,
        },
        builder::AstBuilder,
    },
    ast_visit::VisitJs,
    semantic::ScopeFlags,
    span::Span,
    str::Ident,
};

use super::names;
use crate::facts::returns;

/// Takes a script that returns nothing out of its wrappers: what it exports by default is its value, and the function that it is needs no
/// parameters for what every script has. Anything else that a module has is left for the rules to refuse.
pub(super) fn unwrap<'a>(arena: &'a Allocator, program: &mut Program<'a>) {
    if returns(program) {
        return;
    }
    let build = AstBuilder::new(arena);
    if let Some(at) = only_export(program) {
        replace_export(program, at, &build);
    }
    let last = program.body.iter_mut().rfind(|it| !is_passed_over(it));
    if let Some(Statement::ExpressionStatement(it)) = last {
        match it.expression.get_inner_expression_mut() {
            Expression::ArrowFunctionExpression(it) => drop_parameters(&mut it.params),
            Expression::FunctionExpression(it) => drop_parameters(&mut it.params),
            _ => {}
        }
    }
}

fn is_passed_over(it: &Statement<'_>) -> bool {
    matches!(it, Statement::FunctionDeclaration(_) | Statement::EmptyStatement(_))
}

/// The index of the only `export` or `import` of a program, if it is an `export default`: of a function with a name, or last.
fn only_export(program: &Program<'_>) -> Option<usize> {
    let mut modules = program.body.iter().enumerate().filter(|(_, it)| it.is_module_declaration());
    let (at, Statement::ExportDefaultDeclaration(it)) = modules.next()? else { return None };
    let is_only = modules.next().is_none();
    let is_last = program.body[at + 1..].iter().all(is_passed_over);
    let is_meant = match &it.declaration {
        ExportDefaultDeclarationKind::FunctionDeclaration(it) => {
            it.body.is_some() && (it.id.is_some() || is_last)
        }
        declaration => declaration.as_expression().is_some() && is_last,
    };
    (is_only && is_meant).then_some(at)
}

fn replace_export<'a>(program: &mut Program<'a>, at: usize, build: &AstBuilder<'a>) {
    let Statement::ExportDefaultDeclaration(export) = program.body[at].take_in(build) else { return };
    let export = export.unbox();
    match export.declaration {
        ExportDefaultDeclarationKind::FunctionDeclaration(mut it) => {
            let Some(name) = it.id.as_ref().map(|id| (id.span, id.name)) else {
                it.r#type = FunctionType::FunctionExpression;
                let value = Expression::FunctionExpression(it);
                program.body[at] = Statement::new_expression_statement(export.span, value, build);
                return;
            };
            drop_parameters(&mut it.params);
            let is_callable = takes_nothing(&it.params) && !it.generator;
            program.body[at] = Statement::FunctionDeclaration(it);
            if is_callable && !is_used(program, &name.1) {
                program.body.push(call(name, build));
            }
        }
        declaration => {
            let Ok(value) = Expression::try_from(declaration) else { return };
            program.body[at] = match value.get_inner_expression() {
                Expression::Identifier(it) if is_callable(program, &it.name) => {
                    call((it.span, it.name), build)
                }
                it if it.is_function() => Statement::new_expression_statement(export.span, value, build),
                _ => Statement::new_return_statement(export.span, Some(value), build),
            };
        }
    }
}

fn call<'a>((span, name): (Span, Ident<'a>), build: &AstBuilder<'a>) -> Statement<'a> {
    let callee = Expression::new_identifier(span, name, build);
    let call = Expression::new_call_expression(span, callee, None, ArenaVec::new_in(build), false, build);
    Statement::new_expression_statement(span, call, build)
}

fn takes_nothing(it: &FormalParameters<'_>) -> bool {
    it.items.is_empty() && it.rest.is_none()
}

/// Tests for the name of a function without parameters that the script declares.
fn is_callable(program: &Program<'_>, name: &str) -> bool {
    program.body.iter().any(|it| match it {
        Statement::FunctionDeclaration(it) => {
            it.id.as_ref().is_some_and(|id| id.name == name)
                && takes_nothing(&it.params)
                && !it.generator
                && it.body.is_some()
        }
        Statement::VariableDeclaration(it) => it.declarations.iter().any(|it| {
            it.id.get_binding_identifier().is_some_and(|id| id.name == name)
                && match it.init.as_ref().map(Expression::get_inner_expression) {
                    Some(Expression::ArrowFunctionExpression(it)) => takes_nothing(&it.params),
                    Some(Expression::FunctionExpression(it)) => takes_nothing(&it.params) && !it.generator,
                    _ => false,
                }
        }),
        _ => false,
    })
}

/// Tests for a use of `name` outside of functions that are declared.
fn is_used(program: &Program<'_>, name: &str) -> bool {
    struct Uses<'n>(&'n str, bool);
    impl<'a> VisitJs<'a> for Uses<'_> {
        fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
            self.1 |= it.name == self.0;
        }
        fn visit_function(&mut self, it: &Function<'a>, _: ScopeFlags) {
            if it.is_expression()
                && let Some(body) = &it.body
            {
                self.visit_function_body(body);
            }
        }
    }
    let mut uses = Uses(name, false);
    uses.visit_program(program);
    uses.1
}

/// Removes the parameters of a function if each is a function of AgentScript, by its name.
fn drop_parameters(it: &mut FormalParameters<'_>) {
    if it.rest.is_none() && it.items.iter().all(is_available) {
        it.items.clear();
    }
}

fn is_available(it: &FormalParameter<'_>) -> bool {
    let is_given = |it: &BindingPattern<'_>| matches!(it, BindingPattern::BindingIdentifier(it) if names::is_given(&it.name));
    let is_available = match &it.pattern {
        BindingPattern::ObjectPattern(it) => {
            it.rest.is_none() && it.properties.iter().all(|it| it.shorthand && is_given(&it.value))
        }
        pattern => is_given(pattern),
    };
    it.initializer.is_none() && is_available
}
