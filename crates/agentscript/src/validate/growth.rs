//! Finds which variables each tick passes: those that may hold a text that grows with every turn.
//!
//! The engine keeps a concatenation as its two halves, so `s = s + s` makes a text of gigabytes without using memory. A tick
//! receives the variables that are joined to something in its loop or function; the realm charges their length. A text that is joined from
//! anything else (`o.text += o.text`, `f() + row[0]`), or outside all loops and functions, is charged where it is made.

use oxc::{
    ast::{
        AstKind,
        ast::{
            AssignmentOperator, AssignmentTarget, BinaryExpression, BinaryOperator, ChainElement, Expression,
            IdentifierReference,
        },
    },
    semantic::{ScopeId, Scoping, SymbolId},
    span::Span,
};

use super::ticks::Additions;

/// Most variables that one tick passes. Further ones grow with one of these or are not charged.
const NAMES: usize = 6;
/// Longest name that a tick passes, in bytes, so that a long name does not multiply.
const NAME_BYTES: usize = 40;
/// Most enclosing loops and functions whose ticks receive a joined variable.
const AROUND: usize = 6;
/// Most lookups of scopes for one script.
const LOOKS: usize = 4_000;
/// Most expressions of one script that are charged where they make a text.
const MADE: usize = 4_000;

/// A loop or a function.
struct Body {
    /// Text in which a joined variable counts for it.
    span: Span,
    /// Start of the body, where the tick goes.
    at: u32,
    scope: Option<ScopeId>,
    names: Vec<SymbolId>,
}

/// Bodies and joined variables in the order the walk finds them.
#[derive(Default)]
pub(super) struct Growth {
    bodies: Vec<Body>,
    joined: Vec<(u32, SymbolId)>,
    /// Expressions that make a text no tick sees, outer ones first.
    made: Vec<Span>,
    /// Starts of the `return`s outside all functions.
    returns: Vec<u32>,
    /// The template behind a tag, which is no expression.
    tagged: Option<Span>,
    /// An addition that is the left side of one that was looked at.
    chain: Option<Span>,
    /// End of the outermost loops and functions so far.
    outer_end: u32,
    /// End of the parameters and fields so far.
    unticked_end: u32,
}

impl Growth {
    /// Notes a loop or function with its variables in `span`; the tick goes in front of what `body` holds.
    pub(super) fn body(&mut self, span: Span, body: Span, scope: Option<ScopeId>) {
        self.outer_end = self.outer_end.max(span.end);
        self.bodies.push(Body { span, at: body.start, scope, names: Vec::new() });
    }

    /// Notes a `return` outside all functions.
    pub(super) fn returned(&mut self, at: u32) {
        self.returns.push(at);
    }

    /// Notes the variables that `node` joins to something.
    pub(super) fn note(&mut self, scoping: &Scoping, node: AstKind<'_>) {
        match node {
            AstKind::BinaryExpression(it) if it.operator == BinaryOperator::Addition => {
                self.join(scoping, &it.left);
                self.join(scoping, &it.right);
                if !matches!(self.chain, Some(chain) if chain == it.span) {
                    self.make(it.span, addition_is_hidden(it));
                }
                self.chain = chained(&it.left);
            }
            AstKind::AssignmentExpression(it) if it.operator == AssignmentOperator::Addition => {
                if let AssignmentTarget::AssignmentTargetIdentifier(name) = &it.left {
                    self.add(scoping, name);
                    self.make(it.span, false);
                } else {
                    self.make(it.span, !it.right.is_number_literal());
                }
                self.join(scoping, &it.right);
            }
            // These run before any tick of their function, or without one.
            AstKind::FormalParameters(it) => self.unticked_end = self.unticked_end.max(it.span.end),
            AstKind::PropertyDefinition(it) => self.unticked_end = self.unticked_end.max(it.span.end),
            AstKind::TaggedTemplateExpression(it) => self.tagged = Some(it.quasi.span),
            AstKind::TemplateLiteral(it) => {
                it.expressions.iter().for_each(|part| self.join(scoping, part));
                if self.tagged != Some(it.span) && !it.expressions.is_empty() {
                    self.make(it.span, it.expressions.iter().any(is_hidden));
                }
            }
            AstKind::CallExpression(it) => {
                if let Some(member) = it.callee.get_inner_expression().get_member_expr()
                    && member.static_property_name().is_some_and(|name| name == "concat")
                {
                    self.join(scoping, member.object());
                    // Within `a?.b.concat(c).d()` a call of ours would end the chain too early: the chain is charged as a whole
                    // (below), when it ends in a call. One that ends in a member leaves no text behind.
                    if !it.optional && !has_optional(&it.callee) {
                        self.make(it.span, is_hidden(member.object()));
                    }
                }
            }
            AstKind::ChainExpression(it) => {
                if let ChainElement::CallExpression(call) = &it.expression
                    && joins(&call.callee)
                {
                    self.make(it.span, true);
                }
            }
            _ => {}
        }
    }

    /// Notes an expression that makes a text: `hidden` when no tick would see it grow.
    fn make(&mut self, span: Span, hidden: bool) {
        // Outside loops and functions there is no tick.
        let no_tick = self.outer_end <= span.start || span.start < self.unticked_end;
        if (hidden || no_tick) && self.made.len() < MADE {
            self.made.push(span);
        }
    }

    fn join(&mut self, scoping: &Scoping, part: &Expression<'_>) {
        if let Expression::Identifier(name) = part.get_inner_expression() {
            self.add(scoping, name);
        }
    }

    fn add(&mut self, scoping: &Scoping, name: &IdentifierReference<'_>) {
        let symbol = name.reference_id.get().and_then(|id| scoping.get_reference(id).symbol_id());
        if let Some(symbol) = symbol
            && name.name.len() <= NAME_BYTES
        {
            self.joined.push((name.span.start, symbol));
        }
    }

    /// Returns the calls to put into the program.
    pub(super) fn additions(mut self, scoping: &Scoping) -> Additions<'_> {
        self.bodies.sort_by_key(|body| (body.span.start, u32::MAX - body.span.end));
        self.joined.sort_unstable();
        let (mut open, mut next, mut looks): (Vec<usize>, usize, usize) = (Vec::new(), 0, 0);
        for (at, symbol) in &self.joined {
            while self.bodies.get(next).is_some_and(|body| body.span.start <= *at) {
                let start = self.bodies[next].span.start;
                while open.last().is_some_and(|last| self.bodies[*last].span.end <= start) {
                    open.pop();
                }
                open.push(next);
                next += 1;
            }
            while open.last().is_some_and(|last| self.bodies[*last].span.end <= *at) {
                open.pop();
            }
            for body in open.iter().rev().take(AROUND) {
                let body = &mut self.bodies[*body];
                if looks < LOOKS && body.names.len() < NAMES && !body.names.contains(symbol) {
                    looks += 1;
                    if body.sees(scoping, *symbol) {
                        body.names.push(*symbol);
                    }
                }
            }
        }
        let charged = self.bodies.into_iter().filter(|body| !body.names.is_empty());
        let names = |body: Body| body.names.iter().map(|symbol| scoping.symbol_name(*symbol)).collect();
        let mut charged: Vec<_> = charged.map(|body| (body.at, names(body))).collect();
        charged.sort_unstable_by_key(|(at, _)| *at);
        self.made.sort_unstable();
        self.returns.sort_unstable();
        Additions { charged, made: self.made, returns: self.returns }
    }
}

/// Tests for a value that can be a text in no variable of its own.
fn is_hidden(part: &Expression<'_>) -> bool {
    let part = part.get_inner_expression();
    !matches!(part, Expression::Identifier(_) | Expression::BinaryExpression(_)) && !part.is_literal()
}

/// Tests for an addition with a hidden part.
fn addition_is_hidden(it: &BinaryExpression<'_>) -> bool {
    let mut at = it;
    loop {
        if is_hidden(&at.right) {
            return true;
        }
        match at.left.get_inner_expression() {
            Expression::BinaryExpression(left) if left.operator == BinaryOperator::Addition => at = left,
            left => return is_hidden(left),
        }
    }
}

/// The addition that is the left side of another.
fn chained(left: &Expression<'_>) -> Option<Span> {
    match left.get_inner_expression() {
        Expression::BinaryExpression(it) if it.operator == BinaryOperator::Addition => Some(it.span),
        _ => None,
    }
}

/// Tests for a chain of members and calls with a `?.`.
fn has_optional(chain: &Expression<'_>) -> bool {
    let mut at = chain;
    loop {
        at = match at {
            Expression::CallExpression(it) if it.optional => return true,
            Expression::CallExpression(it) => &it.callee,
            at => match at.as_member_expression() {
                Some(member) if member.optional() => return true,
                Some(member) => member.object(),
                None => return false,
            },
        };
    }
}

/// Tests for a chain of members and calls with a member named `concat`.
fn joins(chain: &Expression<'_>) -> bool {
    let mut at = chain.get_inner_expression();
    loop {
        at = match at {
            Expression::CallExpression(it) => it.callee.get_inner_expression(),
            at => match at.get_member_expr() {
                Some(member) if member.static_property_name().is_some_and(|name| name == "concat") => {
                    return true;
                }
                Some(member) => member.object().get_inner_expression(),
                None => return false,
            },
        };
    }
}

impl Body {
    /// Tests whether the symbol's name refers to the symbol where the tick goes, and has a value by then.
    fn sees(&self, scoping: &Scoping, symbol: SymbolId) -> bool {
        let declared = scoping.symbol_span(symbol).start;
        match self.scope {
            Some(scope) => {
                declared < self.at
                    && scoping.find_binding(scope, scoping.symbol_ident(symbol)) == Some(symbol)
            }
            None => declared < self.span.start,
        }
    }
}
