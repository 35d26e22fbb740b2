//! The walk: statements, declarations and functions.

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

use oxc::{
    ast::ast::{
        ArrowFunctionBody, BindingPattern, DoWhileStatement, Expression, ExpressionStatement, ForOfStatement,
        ForStatement, ForStatementLeft, FormalParameters, Function as FunctionNode, FunctionBody,
        IfStatement, Program, ReturnStatement, Statement, TryStatement, VariableDeclarator, WhileStatement,
    },
    ast_visit::VisitJs,
    semantic::{Scoping, SymbolFlags, SymbolId},
    span::GetSpan,
    syntax::scope::ScopeFlags,
};

use super::{
    forms::{is_kept, only_function},
    known::{Function, Known},
    literal::Source,
    reads::Reads,
};
use crate::plan::{CallSite, Mistake, Note, Origin, Part, PlanFacts};

/// The function that calls tools. No script can declare another one.
pub(super) const CALL_TOOL: &str = "callTool";
/// Most calls that are kept.
const MAX_CALLS: usize = 200;
/// Most notes that are kept.
const MAX_NOTES: usize = 20;
/// Bytes of names and inputs that are kept.
const ROOM: usize = 32 * 1024;

/// An open function.
#[derive(Debug, Default)]
pub(super) struct Frame {
    /// Values of its `return` statements.
    returned: Vec<Known>,
    calls_tools: bool,
    /// It has a `return` statement with a value.
    returns: bool,
}

/// The catching of a call's errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exposure {
    /// The error may be caught.
    Caught,
    /// The error ends the run unless the script catches errors somewhere.
    Loose,
    /// The error ends the run.
    Bare,
}

pub(super) struct Collector<'s> {
    pub(super) scoping: &'s Scoping,
    pub(super) source: Source,
    pub(super) known: HashMap<SymbolId, Known>,
    pub(super) calls: Vec<(CallSite, Exposure)>,
    pub(super) reads: Reads,
    pub(super) notes: Vec<Note>,
    /// Functions around the node.
    pub(super) frames: Vec<Frame>,
    /// Calls of tools so far, whatever their names.
    pub(super) started: u32,
    /// `try` blocks around the node.
    pub(super) tries: u32,
    /// The script catches errors somewhere.
    pub(super) catches: bool,
    /// A `return` with a value stands outside all functions.
    pub(super) returns: bool,
    /// Places of the `return`s that were put in for a script without one, in order.
    pub(super) unsaid: &'s [u32],
    /// The function that the last call was one of, if it is the script's own.
    pub(super) called: Option<Rc<Function>>,
    /// Bytes left for names and inputs.
    pub(super) room: usize,
    /// Places of `callTool` in calls that are kept.
    pub(super) named: HashSet<u32>,
}

impl<'s> Collector<'s> {
    pub(super) fn new(scoping: &'s Scoping, text: &str, unsaid: &'s [u32]) -> Self {
        Self {
            unsaid,
            scoping,
            source: Source::of(text, scoping),
            known: HashMap::new(),
            calls: Vec::new(),
            reads: Reads::default(),
            notes: Vec::new(),
            frames: Vec::new(),
            started: 0,
            tries: 0,
            catches: false,
            returns: false,
            called: None,
            room: ROOM,
            named: HashSet::new(),
        }
    }

    pub(super) fn collect(mut self, program: &Program<'_>) -> (PlanFacts, bool) {
        self.statements(&program.body, |collector, statement| collector.visit_statement(statement));
        if let Some((at, name)) = only_function(program) {
            self.note(at, Mistake::FunctionNotCalled, name);
        }
        self.note_unreturned(program);
        let catches = self.catches;
        let ends_run = |(mut call, exposure): (CallSite, Exposure)| {
            call.ends_run = exposure == Exposure::Bare || (exposure == Exposure::Loose && !catches);
            call
        };
        let mut notes = self.notes;
        notes.sort_by_key(|note| note.at);
        let uses = self.scoping.root_unresolved_references().get(CALL_TOOL).map_or(0, |uses| uses.len());
        let facts = PlanFacts {
            calls: self.calls.into_iter().map(ends_run).collect(),
            uses: self.reads.finish(),
            notes,
        };
        (facts, self.named.len() == uses)
    }

    /// Walks statements up to one that ends their block, and the functions declared behind it.
    fn statements<'p, 'a>(
        &mut self,
        statements: &'p [Statement<'a>],
        mut visit: impl FnMut(&mut Self, &'p Statement<'a>),
    ) {
        let mut ended = false;
        for statement in statements {
            if !ended || matches!(statement, Statement::FunctionDeclaration(_)) {
                visit(self, statement);
            }
            ended |= statement.is_jump_statement();
        }
    }

    fn expression_statement(&mut self, it: &Expression<'_>) -> Known {
        let (calls_before, started_before) = (self.calls.len(), self.started);
        self.called = None;
        let value = self.value(it);
        let is_kept = is_kept(it);
        if matches!(value, Known::Promise(_))
            && !is_kept
            && (self.started > started_before || self.calls_own(it))
        {
            let name = function_name(it);
            self.note(it.span().start, Mistake::NotAwaited, name);
            // Nobody sees its error.
            for (_, exposure) in &mut self.calls[calls_before..] {
                *exposure = Exposure::Caught;
            }
        }
        value
    }

    pub(super) fn note(&mut self, at: u32, mistake: Mistake, name: &str) {
        if self.notes.len() < MAX_NOTES {
            let name = name.chars().take(100).collect();
            self.notes.push(Note { at, mistake, name });
        }
    }

    /// Keeps a call. Returns its index.
    pub(super) fn keep_call(&mut self, call: CallSite, exposure: Exposure) -> Option<u32> {
        if self.calls.len() == MAX_CALLS {
            return None;
        }
        self.calls.push((call, exposure));
        u32::try_from(self.calls.len() - 1).ok()
    }

    /// Notes that tools are called here, so by the functions around the node.
    pub(super) fn calls_tools(&mut self) {
        self.started += 1;
        self.frames.iter_mut().rev().take(64).for_each(|frame| frame.calls_tools = true);
    }

    /// Walks a function that is called with `arguments` as far as they are known.
    pub(super) fn function(
        &mut self,
        parameters: &FormalParameters<'_>,
        body: Option<&FunctionBody<'_>>,
        expression: Option<&Expression<'_>>,
        is_async: bool,
        arguments: &[Known],
    ) -> Known {
        self.frames.push(Frame::default());
        for (at, parameter) in parameters.items.iter().enumerate() {
            let argument = arguments.get(at).cloned().unwrap_or(Known::Unknown);
            if let Some(default) = &parameter.initializer {
                self.value(default);
            }
            self.bind(&parameter.pattern, argument);
        }
        if let Some(rest) = &parameters.rest {
            self.bind(&rest.rest.argument, Known::Unknown);
        }
        if let Some(expression) = expression {
            let value = self.value(expression);
            if let Some(frame) = self.frames.last_mut() {
                frame.returned.push(value);
            }
        }
        let ends =
            body.is_none_or(|body| matches!(body.statements.last(), Some(Statement::ReturnStatement(_))));
        if let Some(body) = body {
            self.visit_function_body(body);
        }
        let Frame { returned, calls_tools, returns } = self.frames.pop().unwrap_or_default();
        let unreturned =
            body.filter(|_| calls_tools && !returns).and_then(|body| self.unreturned_value(body));
        let value = match <[Known; 1]>::try_from(returned) {
            Ok([value]) if ends => value,
            _ => Known::Unknown,
        };
        Known::Function(Rc::new(Function { value, is_async, calls_tools, unreturned }))
    }

    /// Walks a function expression that is called with `arguments`; any other expression as a value.
    pub(super) fn callback(&mut self, it: &Expression<'_>, arguments: &[Known]) -> Known {
        match it {
            Expression::ParenthesizedExpression(it) => self.callback(&it.expression, arguments),
            Expression::ArrowFunctionExpression(it) => match &it.body {
                ArrowFunctionBody::FunctionBody(body) => {
                    self.function(&it.params, Some(body), None, it.r#async, arguments)
                }
                body => self.function(&it.params, None, body.as_expression(), it.r#async, arguments),
            },
            Expression::FunctionExpression(it) => self.plain_function(it, arguments),
            it => self.value(it),
        }
    }

    fn plain_function(&mut self, it: &FunctionNode<'_>, arguments: &[Known]) -> Known {
        let function = self.function(&it.params, it.body.as_deref(), None, it.r#async, arguments);
        if it.generator { Known::Own } else { function }
    }

    /// Binds the names of `pattern` to the parts of `value`.
    pub(super) fn bind(&mut self, pattern: &BindingPattern<'_>, value: Known) {
        match pattern {
            BindingPattern::BindingIdentifier(name) => {
                if let Some(symbol) = name.symbol_id.get()
                    && !matches!(value, Known::Unknown)
                    && !self.may_be_unset(symbol, &value)
                    && !self.scoping.symbol_is_mutated(symbol)
                    && self.scoping.symbol_redeclarations(symbol).is_empty()
                {
                    self.known.insert(symbol, value);
                }
            }
            BindingPattern::ObjectPattern(it) => {
                for property in &it.properties {
                    let has_default = matches!(property.value, BindingPattern::AssignmentPattern(_));
                    let name = if property.computed { None } else { property.key.static_name() };
                    let part = match name {
                        Some(name) => self.property(&value, &name, property.key.span().start),
                        None => {
                            if let Some(key) = property.key.as_expression() {
                                self.value(key);
                            }
                            Known::Unknown
                        }
                    };
                    if has_default {
                        self.doubt(&part);
                    }
                    self.bind(&property.value, part);
                }
                if let Some(rest) = &it.rest {
                    self.bind(&rest.argument, Known::Unknown);
                }
            }
            BindingPattern::ArrayPattern(it) => {
                for (at, element) in it.elements.iter().enumerate() {
                    let Some(element) = element else { continue };
                    let part = self.each(&value, Some(at), element.span().start);
                    self.bind(element, part);
                }
                if let Some(rest) = &it.rest {
                    let rest_value = if matches!(value, Known::Tuple(_)) { Known::Own } else { value };
                    self.bind(&rest.argument, rest_value);
                }
            }
            BindingPattern::AssignmentPattern(it) => {
                let default = self.value(&it.right);
                let value = self.or_else(&it.right, value, &default);
                self.bind(&it.left, value);
            }
        }
    }

    /// A `var` can be read in another branch than the one that sets it.
    fn may_be_unset(&self, symbol: SymbolId, value: &Known) -> bool {
        let flags = self.scoping.symbol_flags(symbol);
        matches!(value, Known::Scalar(_)) && flags.contains(SymbolFlags::FunctionScopedVariable)
    }

    /// The value of property `name`.
    pub(super) fn property(&mut self, of: &Known, name: &str, at: u32) -> Known {
        match of {
            Known::Result(origin) => self.part(*origin, Part::Property(name.to_owned()), at),
            Known::Promise(_) if !matches!(name, "then" | "catch" | "finally") => {
                self.note(at, Mistake::ReadFromPromise, name);
                Known::Unknown
            }
            _ => Known::Unknown,
        }
    }

    /// The value of an element; of `index` where the text has one.
    pub(super) fn element(&mut self, of: &Known, index: Option<usize>, at: u32) -> Known {
        match of {
            Known::Result(origin) => self.part(*origin, Part::Item, at),
            Known::List(item) => (**item).clone(),
            // The array may have changed.
            Known::Tuple(items) => match index.and_then(|index| items.get(index)) {
                Some(Known::Scalar(_)) | None => Known::Unknown,
                Some(item) => item.clone(),
            },
            _ => Known::Unknown,
        }
    }

    /// The value of an element of what is taken apart one by one.
    pub(super) fn each(&mut self, of: &Known, index: Option<usize>, at: u32) -> Known {
        let item = self.element(of, index, at);
        if let (Known::Result(_), Known::Result(item)) = (of, &item) {
            self.reads.iterate(*item, at);
        }
        item
    }

    pub(super) fn part(&mut self, of: Origin, part: Part, at: u32) -> Known {
        self.reads.read(of, part, at).map_or(Known::Unknown, Known::Result)
    }

    /// Notes that the script provides for the absence of `value`.
    pub(super) fn doubt(&mut self, value: &Known) {
        if let Known::Result(part) = value {
            self.reads.doubt(*part);
        }
    }

    /// Walks the condition of a statement or an expression.
    pub(super) fn condition(&mut self, it: &Expression<'_>) {
        let value = self.value(it);
        self.doubt(&value);
    }
}

/// The name of the function that a statement calls.
fn function_name<'e>(it: &'e Expression<'_>) -> &'e str {
    match it.without_parentheses() {
        Expression::CallExpression(call) => match call.callee.without_parentheses() {
            Expression::Identifier(it)
                if !matches!(
                    it.name.as_str(),
                    "callTool" | "__safe_parallel" | "readResource" | "listResources" | "getPrompt"
                ) =>
            {
                it.name.as_str()
            }
            _ => "",
        },
        _ => "",
    }
}

impl<'a> VisitJs<'a> for Collector<'_> {
    fn visit_expression(&mut self, it: &Expression<'a>) {
        self.value(it);
    }

    fn visit_statements(&mut self, it: &oxc::allocator::ArenaVec<'a, Statement<'a>>) {
        self.statements(it, |collector, statement| collector.visit_statement(statement));
    }

    fn visit_expression_statement(&mut self, it: &ExpressionStatement<'a>) {
        self.expression_statement(&it.expression);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        let value = it.init.as_ref().map_or(Known::Unknown, |init| self.value(init));
        self.bind(&it.id, value);
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        let list = self.value(&it.right);
        match &it.left {
            ForStatementLeft::VariableDeclaration(declaration) => {
                let mut item = self.each(&list, None, it.right.span().start);
                if it.r#await {
                    item = item.awaited();
                }
                for declarator in &declaration.declarations {
                    self.bind(&declarator.id, item.clone());
                }
            }
            left => self.visit_for_statement_left(left),
        }
        self.visit_statement(&it.body);
    }

    fn visit_if_statement(&mut self, it: &IfStatement<'a>) {
        self.condition(&it.test);
        self.visit_statement(&it.consequent);
        if let Some(alternate) = &it.alternate {
            self.visit_statement(alternate);
        }
    }

    fn visit_while_statement(&mut self, it: &WhileStatement<'a>) {
        self.condition(&it.test);
        self.visit_statement(&it.body);
    }

    fn visit_do_while_statement(&mut self, it: &DoWhileStatement<'a>) {
        self.visit_statement(&it.body);
        self.condition(&it.test);
    }

    fn visit_for_statement(&mut self, it: &ForStatement<'a>) {
        if let Some(init) = &it.init {
            self.visit_for_statement_init(init);
        }
        if let Some(test) = &it.test {
            self.condition(test);
        }
        if let Some(update) = &it.update {
            self.value(update);
        }
        self.visit_statement(&it.body);
    }

    fn visit_return_statement(&mut self, it: &ReturnStatement<'a>) {
        let Some(argument) = &it.argument else { return };
        self.called = None;
        let value = if self.frames.is_empty() { self.ending_value(argument) } else { self.value(argument) };
        match self.frames.last_mut() {
            Some(frame) => {
                frame.returned.push(value);
                frame.returns = true;
            }
            None => {
                self.returns = true;
                let is_unsaid = self.unsaid.binary_search(&it.span.start).is_ok();
                if is_unsaid && argument.without_parentheses().is_function() {
                    self.note(it.span.start, Mistake::FunctionNotCalled, "");
                }
                let called = self.called.take();
                if let Some((at, name)) = called.as_ref().and_then(|it| it.unreturned.as_ref()) {
                    self.note(*at, Mistake::NotReturned, name);
                }
            }
        }
    }

    fn visit_try_statement(&mut self, it: &TryStatement<'a>) {
        self.catches = true;
        self.tries += 1;
        self.visit_block_statement(&it.block);
        self.tries -= 1;
        if let Some(handler) = &it.handler {
            self.visit_catch_clause(handler);
        }
        if let Some(finalizer) = &it.finalizer {
            self.visit_block_statement(finalizer);
        }
    }

    fn visit_function(&mut self, it: &FunctionNode<'a>, _: ScopeFlags) {
        let function = self.plain_function(it, &[]);
        if let Some(symbol) = it.id.as_ref().and_then(|id| id.symbol_id.get())
            && !self.scoping.symbol_is_mutated(symbol)
            && self.scoping.symbol_redeclarations(symbol).is_empty()
        {
            self.known.insert(symbol, function);
        }
    }
}
