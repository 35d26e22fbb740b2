//! Rewrites a checked program into equivalent syntax that the printer writes unchanged and the engine runs as ECMAScript says.
//!
//! The printer drops parentheses, flattens nested sequences and chains of one logical operator, and shortens `{ a: a }`. The tree gets this
//! form first, so that `verify` can compare it with what was printed. The engine does not spread a text into an object, leaves the array
//! of a template's parts open to changes, and knows only the last of several labels. Where functions could keep the variables of a
//! `for (let …;;)`, a `continue` that ends its turn would make all of them keep the same ones: the body gets a label, and `break` leaves it.
//! When the body of a `for await` throws, the engine closes the iterator and does not wait for that; it does on `break`: the body gets a
//! `catch` that breaks, and the error goes on behind the loop.
//!
//! An `if` that is the branch of another one gets the braces that the printer gives it.
//!
//! At an opening bracket the engine scans ahead to the closing one and guesses from the token before a slash whether it divides. The guess is
//! right for what is printed: a regular expression follows a comma (`(0, /x/)`), and what is divided ends in no template or keyword. From
//! the same scan it takes that parameters without a `=` compute nothing: a computed key among them gets a default.

use oxc::{
    allocator::{Allocator, ArenaVec, ReplaceWith, TakeIn},
    ast::{
        ast::{
            Argument, AssignmentExpression, BinaryExpression, BinaryOperator, BindingPattern,
            BindingProperty, BreakStatement, ContinueStatement, Expression, IfStatement, LabelIdentifier,
            LabeledStatement, LogicalExpression, LogicalOperator, ObjectProperty, ObjectPropertyKind,
            Program, PropertyKey, PropertyKind, SequenceExpression, Statement, TaggedTemplateExpression,
            TemplateLiteral, UnaryOperator,
        },
        builder::AstBuilder,
    },
    ast_visit::{VisitJsMut, walk_js_mut},
    parser::Parser,
    span::{SPAN, SourceType, Span},
    str::Ident,
};

use super::{nesting::MAX_DEPTH, slashes};

/// Rewrites `program`. In the `for` statements that start at `split`, in order, no `continue` stays.
pub(super) fn adapt<'a>(arena: &'a Allocator, program: &mut Program<'a>, split: &[u32]) {
    let build = AstBuilder::new(arena);
    Adapt { arena, build, labels: Vec::new(), split, label: None, loops: Vec::new() }.visit_program(program);
}

/// A `for await`, whose head and body are put in.
const FOR_AWAIT: &str = "{
    let __ag_error;
    try {
        for await (const head of list) {
            try {} catch (__ag_thrown) { __ag_error = [__ag_thrown]; break; }
        }
    } catch (__ag_thrown) { if (!__ag_error) throw __ag_thrown; }
    if (__ag_error) throw __ag_error[0];
}";

struct Adapt<'a, 's> {
    arena: &'a Allocator,
    build: AstBuilder<'a>,
    /// Labels around the node, and the label that replaces each.
    labels: Vec<(Ident<'a>, Ident<'a>)>,
    split: &'s [u32],
    /// The label of the loop that comes next.
    label: Option<Ident<'a>>,
    /// Loops around the node.
    loops: Vec<Loop<'a>>,
}

/// A loop that `continue` may mean.
struct Loop<'a> {
    label: Option<Ident<'a>>,
    /// The label of its body, which `continue` leaves instead.
    body: Option<Ident<'a>>,
    /// There is such a `continue`.
    is_left: bool,
}

impl<'a> VisitJsMut<'a> for Adapt<'a, '_> {
    fn visit_statement(&mut self, it: &mut Statement<'a>) {
        let label = self.label.take();
        if let Statement::ContinueStatement(jump) = it {
            self.relabel(jump.label.as_mut());
            if let Some(leave) = self.leave_body(jump) {
                *it = leave;
            }
            return;
        }
        let is_loop = it.is_iteration_statement();
        if is_loop {
            let body = match it {
                Statement::ForStatement(it) if self.split.binary_search(&it.span.start).is_ok() => {
                    Some(self.turn_label())
                }
                // The label will stand before a block, which nothing can continue.
                Statement::ForOfStatement(it) if it.r#await && label.is_some() => Some(self.turn_label()),
                _ => None,
            };
            self.loops.push(Loop { label, body, is_left: false });
        }
        walk_js_mut::walk_statement(self, it);
        let done = if is_loop { self.loops.pop() } else { None };
        let body = match it {
            Statement::ForStatement(it) => Some(&mut it.body),
            Statement::ForOfStatement(it) => Some(&mut it.body),
            _ => None,
        };
        if let (Some(Loop { body: Some(label), is_left: true, .. }), Some(body)) = (done, body) {
            let label = LabelIdentifier::new(SPAN, label, &self.build);
            body.replace_with(|body| Statement::new_labeled_statement(SPAN, label, body, &self.build));
        }
        if matches!(it, Statement::ForOfStatement(it) if it.r#await) {
            it.replace_with(|it| self.wait_for_close(it));
        }
    }

    fn visit_if_statement(&mut self, it: &mut IfStatement<'a>) {
        walk_js_mut::walk_if_statement(self, it);
        if matches!(it.consequent, Statement::IfStatement(_) | Statement::LabeledStatement(_)) {
            it.consequent.replace_with(|branch| {
                let body = ArenaVec::from_array_in([branch], &self.build);
                Statement::new_block_statement(SPAN, body, &self.build)
            });
        }
    }

    fn visit_expression(&mut self, it: &mut Expression<'a>) {
        unwrap(it);
        match it {
            Expression::RegExpLiteral(_) => it.replace_with(|it| slashes::behind_zero(it, &self.build)),
            Expression::SequenceExpression(_) => self.flatten_sequence(it),
            Expression::LogicalExpression(_) => self.flatten_logical(it),
            _ => {}
        }
        walk_js_mut::walk_expression(self, it);
        if matches!(it, Expression::TaggedTemplateExpression(_)) {
            it.replace_with(|it| match it {
                Expression::TaggedTemplateExpression(it) => self.tag_call(it.unbox()),
                it => it,
            });
        }
    }

    fn visit_sequence_expression(&mut self, it: &mut SequenceExpression<'a>) {
        it.expressions.iter_mut().for_each(unwrap);
        if matches!(it.expressions.first(), Some(Expression::RegExpLiteral(_))) {
            it.expressions.insert(0, slashes::zero(&self.build));
        }
        // A regular expression in a sequence follows a comma.
        for part in it.expressions.iter_mut().filter(|part| !matches!(part, Expression::RegExpLiteral(_))) {
            self.visit_expression(part);
        }
    }

    fn visit_binary_expression(&mut self, it: &mut BinaryExpression<'a>) {
        walk_js_mut::walk_binary_expression(self, it);
        if it.operator == BinaryOperator::Division && !slashes::may_divide(&it.left) {
            it.left.replace_with(|left| slashes::behind_zero(left, &self.build));
        }
    }

    fn visit_assignment_expression(&mut self, it: &mut AssignmentExpression<'a>) {
        walk_js_mut::walk_assignment_expression(self, it);
        slashes::adapt_assignment(it, &self.build);
    }

    fn visit_object_property_kind(&mut self, it: &mut ObjectPropertyKind<'a>) {
        walk_js_mut::walk_object_property_kind(self, it);
        if let ObjectPropertyKind::SpreadProperty(spread) = it
            && may_be_text(&spread.argument)
        {
            spread.argument.replace_with(|value| self.call("__ag_spread", value));
        }
    }

    fn visit_object_property(&mut self, it: &mut ObjectProperty<'a>) {
        walk_js_mut::walk_object_property(self, it);
        if let (PropertyKey::StaticIdentifier(key), Expression::Identifier(value), PropertyKind::Init) =
            (&it.key, &it.value, it.kind)
            && key.name != "__proto__"
        {
            it.shorthand = key.name == value.name;
        }
    }

    fn visit_binding_property(&mut self, it: &mut BindingProperty<'a>) {
        walk_js_mut::walk_binding_property(self, it);
        if it.computed && !matches!(it.value, BindingPattern::AssignmentPattern(_)) {
            it.value.replace_with(|value| slashes::with_default(value, &self.build));
        }
        let bound = match &it.value {
            BindingPattern::AssignmentPattern(pattern) => &pattern.left,
            value => value,
        };
        if let (PropertyKey::StaticIdentifier(key), BindingPattern::BindingIdentifier(name)) =
            (&it.key, bound)
        {
            it.shorthand = key.name == name.name;
        }
    }

    fn visit_labeled_statement(&mut self, it: &mut LabeledStatement<'a>) {
        let outside = self.labels.len();
        self.labels.push((it.label.name, it.label.name));
        while matches!(it.body, Statement::LabeledStatement(_)) {
            let Statement::LabeledStatement(inner) = it.body.take_in(&self.build) else { break };
            *it = inner.unbox();
            self.labels.push((it.label.name, it.label.name));
        }
        for (_, label) in &mut self.labels[outside..] {
            *label = it.label.name;
        }
        self.label = Some(it.label.name);
        walk_js_mut::walk_labeled_statement(self, it);
        self.labels.truncate(outside);
    }

    fn visit_break_statement(&mut self, it: &mut BreakStatement<'a>) {
        self.relabel(it.label.as_mut());
    }
}

impl<'a> Adapt<'a, '_> {
    fn turn_label(&self) -> Ident<'a> {
        Ident::from_str_in(&format!("__ag_turn_{}", self.loops.len()), &self.build)
    }

    /// Puts a `for await` into [`FOR_AWAIT`].
    fn wait_for_close(&self, mut it: Statement<'a>) -> Statement<'a> {
        let mut frame = Parser::new(self.arena, FOR_AWAIT, SourceType::mjs()).parse().program;
        WithoutPlaces.visit_program(&mut frame);
        let mut frame = frame.body.pop();
        let filled = (|| {
            let Some(Statement::BlockStatement(frame)) = &mut frame else { return None };
            let Statement::TryStatement(outer) = frame.body.get_mut(1)? else { return None };
            let slot = outer.block.body.first_mut()?;
            let (Statement::ForOfStatement(given), Statement::ForOfStatement(own)) = (&mut it, &mut *slot)
            else {
                return None;
            };
            std::mem::swap(&mut given.body, &mut own.body);
            let body = own.body.take_in(&self.build);
            let Statement::BlockStatement(block) = &mut given.body else { return None };
            let Statement::TryStatement(inner) = block.body.first_mut()? else { return None };
            inner.block.body.push(body);
            std::mem::swap(&mut it, slot);
            Some(())
        })();
        filled.and(frame).expect("the frame is a block with the loop in its `try`")
    }

    /// The `break` out of the body of the loop that `it` continues, if that body has a label for it.
    fn leave_body(&mut self, it: &ContinueStatement<'a>) -> Option<Statement<'a>> {
        let label = it.label.as_ref().map(|label| label.name);
        let meant = self.loops.iter_mut().rev().find(|turn| label.is_none() || turn.label == label)?;
        let body = meant.body?;
        meant.is_left = true;
        let label = LabelIdentifier::new(SPAN, body, &self.build);
        Some(Statement::new_break_statement(it.span, Some(label), &self.build))
    }

    fn relabel(&self, label: Option<&mut LabelIdentifier<'a>>) {
        let Some(label) = label else { return };
        if let Some((_, new)) = self.labels.iter().rev().find(|(old, _)| *old == label.name) {
            label.name = *new;
        }
    }

    /// `(a, (b, c))` becomes `(a, b, c)`.
    fn flatten_sequence(&self, it: &mut Expression<'a>) {
        let Expression::SequenceExpression(sequence) = it else { return };
        let is_sequence =
            |part: &Expression<'a>| matches!(part.without_parentheses(), Expression::SequenceExpression(_));
        if sequence.expressions.iter().any(is_sequence) {
            let parts = sequence.expressions.take_in(&self.build);
            sequence.expressions = ArenaVec::new_in(&self.build);
            for part in parts {
                sequence_parts(part, &mut sequence.expressions);
            }
        }
    }

    /// `a && (b && c)` becomes `a && b && c`.
    fn flatten_logical(&self, it: &mut Expression<'a>) {
        let Expression::LogicalExpression(logical) = it else { return };
        let (operator, span) = (logical.operator, logical.span);
        if !is_logical(&logical.right, operator) {
            return;
        }
        // Chains lean to the left: a longer one would be deeper than what walks over it may go.
        if count_operands(logical) > MAX_DEPTH as usize {
            return;
        }
        let mut operands = Vec::new();
        logical_operands(it.take_in(&self.build), operator, &mut operands);
        let chain = operands.into_iter().reduce(|left, right| {
            Expression::new_logical_expression(span, left, operator, right, &self.build)
        });
        if let Some(chain) = chain {
            *it = chain;
        }
    }

    /// `` tag`a${b}` `` becomes `` tag(__ag_parts`a${0}`, b) ``, and `__ag_parts` freezes the parts.
    fn tag_call(&self, it: TaggedTemplateExpression<'a>) -> Expression<'a> {
        let TaggedTemplateExpression { span, tag, quasi, .. } = it;
        let TemplateLiteral { span: parts_span, quasis, expressions, .. } = quasi;
        let build = &self.build;
        let zeros = ArenaVec::from_iter_in(expressions.iter().map(|_| slashes::zero(build)), build);
        let parts = Expression::new_tagged_template_expression(
            parts_span,
            Expression::new_identifier(SPAN, "__ag_parts", build),
            None,
            TemplateLiteral::new(parts_span, quasis, zeros, build),
            build,
        );
        let mut arguments = ArenaVec::from_array_in([Argument::from(parts)], build);
        arguments.extend(expressions.into_iter().map(Argument::from));
        Expression::new_call_expression(span, tag, None, arguments, false, build)
    }

    fn call(&self, function: &'static str, argument: Expression<'a>) -> Expression<'a> {
        let function = Expression::new_identifier(SPAN, function, &self.build);
        let arguments = ArenaVec::from_array_in([Argument::from(argument)], &self.build);
        Expression::new_call_expression(SPAN, function, None, arguments, false, &self.build)
    }
}

/// Takes the places off a tree: they are not those of the script.
struct WithoutPlaces;

impl VisitJsMut<'_> for WithoutPlaces {
    fn visit_span(&mut self, it: &mut Span) {
        *it = SPAN;
    }
}

/// Takes the parentheses off.
fn unwrap(it: &mut Expression<'_>) {
    while matches!(it, Expression::ParenthesizedExpression(_)) {
        it.replace_with(|it| match it {
            Expression::ParenthesizedExpression(it) => it.unbox().expression,
            it => it,
        });
    }
}

fn sequence_parts<'a>(part: Expression<'a>, parts: &mut ArenaVec<'a, Expression<'a>>) {
    match part {
        Expression::ParenthesizedExpression(part)
            if matches!(part.expression.without_parentheses(), Expression::SequenceExpression(_)) =>
        {
            sequence_parts(part.unbox().expression, parts);
        }
        Expression::SequenceExpression(inner) => {
            inner.unbox().expressions.into_iter().for_each(|part| sequence_parts(part, parts));
        }
        part => parts.push(part),
    }
}

fn is_logical(it: &Expression<'_>, operator: LogicalOperator) -> bool {
    matches!(it.without_parentheses(), Expression::LogicalExpression(it) if it.operator == operator)
}

fn count_operands(it: &LogicalExpression<'_>) -> usize {
    [&it.left, &it.right]
        .map(|side| match side.without_parentheses() {
            Expression::LogicalExpression(side) if side.operator == it.operator => count_operands(side),
            _ => 1,
        })
        .iter()
        .sum()
}

fn logical_operands<'a>(it: Expression<'a>, operator: LogicalOperator, operands: &mut Vec<Expression<'a>>) {
    match it {
        Expression::ParenthesizedExpression(it) if is_logical(&it.expression, operator) => {
            logical_operands(it.unbox().expression, operator, operands);
        }
        Expression::LogicalExpression(it) if it.operator == operator => {
            let LogicalExpression { left, right, .. } = it.unbox();
            logical_operands(left, operator, operands);
            logical_operands(right, operator, operands);
        }
        it => operands.push(it),
    }
}

/// Returns false when the value is surely no text, which is what most scripts spread.
fn may_be_text(value: &Expression<'_>) -> bool {
    match value {
        Expression::ObjectExpression(_)
        | Expression::ArrayExpression(_)
        | Expression::NewExpression(_)
        | Expression::FunctionExpression(_)
        | Expression::ArrowFunctionExpression(_)
        | Expression::ClassExpression(_)
        | Expression::RegExpLiteral(_)
        | Expression::NullLiteral(_)
        | Expression::BooleanLiteral(_)
        | Expression::NumericLiteral(_)
        | Expression::BigIntLiteral(_)
        | Expression::UpdateExpression(_) => false,
        Expression::UnaryExpression(it) => it.operator == UnaryOperator::Typeof,
        // A left side that decides is falsy: the text would be empty.
        Expression::LogicalExpression(it) if it.operator == LogicalOperator::And => may_be_text(&it.right),
        Expression::LogicalExpression(it) => may_be_text(&it.left) || may_be_text(&it.right),
        Expression::ConditionalExpression(it) => may_be_text(&it.consequent) || may_be_text(&it.alternate),
        _ => true,
    }
}
