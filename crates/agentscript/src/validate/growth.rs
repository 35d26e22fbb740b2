//! Where ticks go, and which variables each passes: those that may hold a text that grows with every turn.
//!
//! The engine keeps a concatenation as its two halves, so `s = s + s` makes a text of gigabytes without using memory. A tick
//! receives the variables that are joined to something in its loop or function; the realm charges their length.

use oxc::{
    ast::{
        AstKind,
        ast::{AssignmentOperator, AssignmentTarget, BinaryOperator, Expression, IdentifierReference},
    },
    semantic::{ScopeId, Scoping, SymbolId},
    span::Span,
};

use super::edits::Edit;

/// Variables that one tick passes at most: further ones grow with one of these or are not looked at.
const NAMES: usize = 6;
/// Longer names are left out, so that a long name does not multiply.
const NAME_BYTES: usize = 40;
/// Enclosing loops and functions that a joined variable is passed to the ticks of.
const AROUND: usize = 6;
/// Looks at scopes in one script, so that no text can make them many.
const LOOKS: usize = 4_000;

/// How a tick is written around a body.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// Behind the opening brace.
    Block,
    /// A statement that gets braces.
    Statement,
    /// An expression that gets parentheses.
    Expression,
}

/// A loop or a function.
struct Body {
    /// Where a joined variable counts for it.
    span: Span,
    /// Where the tick goes, and where the body ends.
    at: u32,
    end: u32,
    form: Form,
    scope: Option<ScopeId>,
    names: Vec<SymbolId>,
}

/// Bodies and joined variables in the order the walk finds them.
#[derive(Default)]
pub(super) struct Growth {
    bodies: Vec<Body>,
    joined: Vec<(u32, SymbolId)>,
}

impl Growth {
    /// A body within `span`; the tick goes in at the start of `body`.
    pub(super) fn body(&mut self, span: Span, body: Span, form: Form, scope: Option<ScopeId>) {
        let at = if matches!(form, Form::Block) { body.start + 1 } else { body.start };
        self.bodies.push(Body { span, at, end: body.end, form, scope, names: Vec::new() });
    }

    /// Notes the variables that `node` joins to something.
    pub(super) fn note(&mut self, scoping: &Scoping, node: AstKind<'_>) {
        match node {
            AstKind::BinaryExpression(it) if it.operator == BinaryOperator::Addition => {
                self.join(scoping, &it.left);
                self.join(scoping, &it.right);
            }
            AstKind::AssignmentExpression(it) if it.operator == AssignmentOperator::Addition => {
                if let AssignmentTarget::AssignmentTargetIdentifier(name) = &it.left {
                    self.add(scoping, name);
                }
                self.join(scoping, &it.right);
            }
            AstKind::TemplateLiteral(it) => it.expressions.iter().for_each(|part| self.join(scoping, part)),
            AstKind::CallExpression(it) => {
                if let Some(member) = it.callee.get_inner_expression().get_member_expr()
                    && member.static_property_name().is_some_and(|name| name == "concat")
                {
                    self.join(scoping, member.object());
                }
            }
            _ => {}
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

    /// The insertions, in no particular order.
    pub(super) fn ticks(mut self, scoping: &Scoping) -> Vec<Edit> {
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
        self.bodies.iter().flat_map(|body| body.tick(scoping)).collect()
    }
}

impl Body {
    /// Whether the symbol's name means the symbol where the tick goes, and has a value by then.
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

    fn tick(&self, scoping: &Scoping) -> impl Iterator<Item = Edit> + use<> {
        let names: Vec<&str> = self.names.iter().map(|symbol| scoping.symbol_name(*symbol)).collect();
        let names = names.join(",");
        let (open, close) = match self.form {
            Form::Block => (format!("__ag_tick({names});"), None),
            Form::Statement => (format!("{{__ag_tick({names});"), Some("}")),
            Form::Expression => (format!("(__ag_tick({names}),"), Some(")")),
        };
        let end = self.end;
        [Some(Edit::open(self.at, open)), close.map(|text| Edit::close(end, text))].into_iter().flatten()
    }
}
