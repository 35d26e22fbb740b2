//! Inserts the calls that count turns and charge growing texts.
//!
//! Only the tree changes; `growth` decides where.

use oxc::{
    allocator::{Allocator, ArenaVec, ReplaceWith},
    ast::{
        ast::{
            Argument, ArrowFunctionBody, BinaryOperator, DoWhileStatement, Expression, ForInStatement,
            ForOfStatement, ForStatement, FunctionBody, NumberBase, Program, PropertyKey, ReturnStatement,
            Statement, WhileStatement,
        },
        builder::AstBuilder,
    },
    ast_visit::{VisitJsMut, walk_js_mut},
    span::{GetSpan, SPAN, Span},
    str::Ident,
};

/// Calls to put into a program, found by the places of what they go into.
#[derive(Default)]
pub(super) struct Additions<'s> {
    /// Start of a body, and the variables whose length its tick charges, in order of the starts. A body without any is left out.
    pub(super) charged: Vec<(u32, Vec<&'s str>)>,
    /// Expressions that make a text no tick sees, in order.
    pub(super) made: Vec<Span>,
    /// Starts of the `return`s outside all functions, in order.
    pub(super) returns: Vec<u32>,
}

/// Adds a tick to every loop and function of `program`, and the other calls of `additions`. Removes comments and directives.
pub(super) fn insert<'a>(arena: &'a Allocator, program: &mut Program<'a>, additions: &Additions<'_>) {
    program.comments.clear();
    program.directives.clear();
    Insert { build: AstBuilder::new(arena), additions }.visit_program(program);
}

struct Insert<'a, 'w> {
    build: AstBuilder<'a>,
    additions: &'w Additions<'w>,
}

impl<'a> VisitJsMut<'a> for Insert<'a, '_> {
    fn visit_function_body(&mut self, it: &mut FunctionBody<'a>) {
        it.directives.clear();
        walk_js_mut::walk_function_body(self, it);
        let tick = self.tick_statement(it.span.start);
        it.statements.insert(0, tick);
    }

    fn visit_arrow_function_body(&mut self, it: &mut ArrowFunctionBody<'a>) {
        let at = it.span().start;
        walk_js_mut::walk_arrow_function_body(self, it);
        if !matches!(it, ArrowFunctionBody::FunctionBody(_)) {
            let tick = self.tick(at);
            let build = &self.build;
            it.to_expression_mut().replace_with(|body| {
                let both = ArenaVec::from_array_in([tick, body], build);
                Expression::new_sequence_expression(SPAN, both, build)
            });
        }
    }

    fn visit_while_statement(&mut self, it: &mut WhileStatement<'a>) {
        walk_js_mut::walk_while_statement(self, it);
        self.turn(&mut it.body);
    }

    fn visit_do_while_statement(&mut self, it: &mut DoWhileStatement<'a>) {
        walk_js_mut::walk_do_while_statement(self, it);
        self.turn(&mut it.body);
    }

    fn visit_for_statement(&mut self, it: &mut ForStatement<'a>) {
        walk_js_mut::walk_for_statement(self, it);
        self.turn(&mut it.body);
    }

    fn visit_for_in_statement(&mut self, it: &mut ForInStatement<'a>) {
        walk_js_mut::walk_for_in_statement(self, it);
        self.turn(&mut it.body);
    }

    fn visit_for_of_statement(&mut self, it: &mut ForOfStatement<'a>) {
        walk_js_mut::walk_for_of_statement(self, it);
        self.turn(&mut it.body);
    }

    fn visit_return_statement(&mut self, it: &mut ReturnStatement<'a>) {
        walk_js_mut::walk_return_statement(self, it);
        // With several, the engine records which one it was, for the place of a bad result.
        let returns = &self.additions.returns;
        if let (Some(value), Ok(number), true) =
            (&mut it.argument, returns.binary_search(&it.span.start), returns.len() > 1)
        {
            let number = f64::from(u32::try_from(number).unwrap_or(u32::MAX));
            let number =
                Expression::new_numeric_literal(SPAN, number, None, NumberBase::Decimal, &self.build);
            value.replace_with(|value| self.call("__ag_returns", [number, value]));
        }
    }

    fn visit_expression(&mut self, it: &mut Expression<'a>) {
        let makes_text = matches!(
            it,
            Expression::BinaryExpression(_)
                | Expression::AssignmentExpression(_)
                | Expression::TemplateLiteral(_)
                | Expression::CallExpression(_)
                | Expression::ChainExpression(_)
        ) && self.additions.made.binary_search(&it.span()).is_ok();
        walk_js_mut::walk_expression(self, it);
        if makes_text {
            it.replace_with(|text| self.call("__ag_made", [text]));
        }
        // Printed as a number this would be the name `Infinity`, which a script may give a meaning of its own.
        if matches!(it, Expression::NumericLiteral(number) if number.value.is_infinite()) {
            let build = &self.build;
            let number =
                |value| Expression::new_numeric_literal(SPAN, value, None, NumberBase::Decimal, build);
            *it = Expression::new_binary_expression(
                it.span(),
                number(1.0),
                BinaryOperator::Division,
                number(0.0),
                build,
            );
        }
    }

    fn visit_property_key(&mut self, it: &mut PropertyKey<'a>) {
        if matches!(it, PropertyKey::NumericLiteral(number) if number.value.is_infinite()) {
            *it = PropertyKey::new_string_literal(it.span(), "Infinity", None, &self.build);
        }
        walk_js_mut::walk_property_key(self, it);
    }
}

impl<'a> Insert<'a, '_> {
    /// Adds a tick to the body of a loop.
    fn turn(&self, body: &mut Statement<'a>) {
        let tick = self.tick_statement(body.span().start);
        match body {
            Statement::BlockStatement(block) => block.body.insert(0, tick),
            body => body.replace_with(|body| {
                let both = ArenaVec::from_array_in([tick, body], &self.build);
                Statement::new_block_statement(SPAN, both, &self.build)
            }),
        }
    }

    fn tick_statement(&self, at: u32) -> Statement<'a> {
        Statement::new_expression_statement(SPAN, self.tick(at), &self.build)
    }

    /// The tick of the body that starts at `at`.
    fn tick(&self, at: u32) -> Expression<'a> {
        let charged = &self.additions.charged;
        let names = match charged.binary_search_by_key(&at, |(start, _)| *start) {
            Ok(found) => charged[found].1.as_slice(),
            Err(_) => &[],
        };
        self.call("__ag_tick", names.iter().map(|name| self.name(name)))
    }

    fn name(&self, name: &str) -> Expression<'a> {
        Expression::new_identifier(SPAN, Ident::from_str_in(name, &self.build), &self.build)
    }

    fn call(
        &self,
        function: &'static str,
        arguments: impl IntoIterator<Item = Expression<'a>, IntoIter: ExactSizeIterator>,
    ) -> Expression<'a> {
        let function = Expression::new_identifier(SPAN, function, &self.build);
        let arguments = ArenaVec::from_iter_in(arguments.into_iter().map(Argument::from), &self.build);
        Expression::new_call_expression(SPAN, function, None, arguments, false, &self.build)
    }
}
