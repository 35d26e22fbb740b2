//! Finds loops and functions whose variables the engine would not bind as ECMAScript says.
//!
//! The engine gives each turn of `for (let …;;)` its own variables when the body runs to its end, not when it is left by `continue`. And of
//! a function whose parameters compute something it keeps every parameter twice, once for the parameters and once for the body: this shows
//! when one of them changes.

use oxc::{
    ast::ast::{
        ArrowFunctionExpression, Class, ForStatement, ForStatementInit, FormalParameters, Function,
        IdentifierReference, Program,
    },
    ast_visit::{VisitJs, walk_js},
    semantic::{ScopeFlags, ScopeId, Scoping, SymbolId},
    span::{GetSpan, Span},
};

/// Findings of [`find`].
#[derive(Default)]
pub(super) struct Split {
    /// Starts of `for` statements with variables of their own and a function within, in order.
    pub(super) loops: Vec<u32>,
    /// Start of the first use of a parameter that the engine would bind to the wrong one of two variables.
    pub(super) parameter: Option<u32>,
}

/// Looks for them in a program without types.
pub(super) fn find(program: &Program<'_>, scoping: &Scoping) -> Split {
    let mut find = Find { scoping, parameters: Vec::new(), depth: 0, functions: 0, found: Split::default() };
    find.visit_program(program);
    find.found.loops.sort_unstable();
    find.found
}

struct Find<'s> {
    scoping: &'s Scoping,
    /// Functions whose parameters are being read.
    parameters: Vec<Parameters>,
    /// Functions and classes around the node.
    depth: u32,
    /// Functions and classes so far.
    functions: u32,
    found: Split,
}

struct Parameters {
    scope: Option<ScopeId>,
    span: Span,
    /// `depth` of the function.
    depth: u32,
}

impl<'a> VisitJs<'a> for Find<'_> {
    fn visit_function(&mut self, it: &Function<'a>, _: ScopeFlags) {
        self.enter();
        self.read_parameters(&it.params, it.scope_id.get());
        if let Some(body) = &it.body {
            self.visit_function_body(body);
        }
        self.depth -= 1;
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        self.enter();
        self.read_parameters(&it.params, it.scope_id.get());
        self.visit_arrow_function_body(&it.body);
        self.depth -= 1;
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        self.enter();
        walk_js::walk_class(self, it);
        self.depth -= 1;
    }

    fn visit_for_statement(&mut self, it: &ForStatement<'a>) {
        let before = self.functions;
        walk_js::walk_for_statement(self, it);
        let binds =
            matches!(&it.init, Some(ForStatementInit::VariableDeclaration(it)) if it.kind.is_lexical());
        if binds && self.functions > before {
            self.found.loops.push(it.span.start);
        }
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        let Some(reference) = it.reference_id.get().filter(|_| !self.parameters.is_empty()) else { return };
        let reference = self.scoping.get_reference(reference);
        let Some(symbol) = reference.symbol_id() else { return };
        let scope = self.scoping.symbol_scope_id(symbol);
        let Some(owner) = self.parameters.iter().rev().find(|owner| owner.scope == Some(scope)) else {
            return;
        };
        let is_parameter = owner.span.contains_inclusive(self.scoping.symbol_span(symbol));
        let is_captured = self.depth > owner.depth;
        if is_parameter && (reference.is_write() || (is_captured && self.changes(symbol))) {
            self.found.parameter =
                Some(self.found.parameter.map_or(it.span.start, |at| at.min(it.span.start)));
        }
    }
}

impl<'a> Find<'_> {
    fn enter(&mut self) {
        self.depth += 1;
        self.functions += 1;
    }

    fn read_parameters(&mut self, it: &FormalParameters<'a>, scope: Option<ScopeId>) {
        self.parameters.push(Parameters { scope, span: it.span(), depth: self.depth });
        self.visit_formal_parameters(it);
        self.parameters.pop();
    }

    fn changes(&self, symbol: SymbolId) -> bool {
        self.scoping.get_resolved_references(symbol).any(|reference| reference.is_write())
    }
}
