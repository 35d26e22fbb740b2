//! Inserts the calls that explain a value that is not what the script takes it for.
//!
//! The engine says `not a function` and no more. A guard throws the same `TypeError` at the same place and says which expression it was
//! and what its value is. Where a guard costs as little as the engine's own test, `a.b.c` becomes `(a.b ?? __ag_nil(…)).c`; names
//! of methods that look through a whole value get `__ag_has(list, …).map(…)`; what is iterated gets `__ag_iter(list, …)`. Members of
//! a call's input get `__ag_lack(user.ID, …)`, which notes that one is undefined.

use oxc::{
    allocator::{Allocator, ArenaVec, CloneIn, ReplaceWith},
    ast::{
        ast::{
            Argument, ArrayExpressionElement, BindingPattern, CallExpression, ChainElement, ChainExpression,
            Expression, ForOfStatement, LogicalOperator, ObjectPropertyKind, Program, PropertyKey,
            PropertyKind, VariableDeclarator,
        },
        builder::AstBuilder,
    },
    ast_visit::{VisitJsMut, walk_js_mut},
    semantic::Scoping,
    span::{GetSpan, SPAN, Span},
    str::{Ident, Str},
};

/// Guards of one script, at most: what is printed for them has to be compiled.
const MOST: usize = 2_000;
/// A script with brackets nested deeper gets no guards, whose own brackets would count.
const DEEPEST: usize = 60;
/// Parts of an expression that is named, at most.
const PARTS: usize = 5;
/// Longest name of an expression, in bytes.
const LONGEST: usize = 80;

/// Methods of lists and texts that take longer than their guard.
const METHODS: [&str; 35] = [
    "map",
    "filter",
    "forEach",
    "find",
    "findIndex",
    "findLast",
    "findLastIndex",
    "some",
    "every",
    "reduce",
    "reduceRight",
    "flatMap",
    "flat",
    "sort",
    "toSorted",
    "reverse",
    "toReversed",
    "join",
    "slice",
    "split",
    "trim",
    "toLowerCase",
    "toUpperCase",
    "replace",
    "replaceAll",
    "startsWith",
    "endsWith",
    "match",
    "matchAll",
    "padStart",
    "padEnd",
    "toFixed",
    "getTime",
    "toISOString",
    "localeCompare",
];
/// Methods that may give nothing.
const MAYBE: [&str; 7] = ["find", "findLast", "at", "get", "match", "pop", "shift"];

/// Adds guards to `program`, whose text is `source`.
pub(super) fn insert<'a>(arena: &'a Allocator, program: &mut Program<'a>, scoping: &Scoping, source: &str) {
    if depth(source) <= DEEPEST {
        Insert { arena, build: AstBuilder::new(arena), scoping, chains: 0, guarded: None, left: MOST }
            .visit_program(program);
    }
}

/// Returns how deep brackets nest in a text, or more: those in strings count too.
fn depth(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => {
                open += 1;
                most = most.max(open);
            }
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    most
}

struct Insert<'a, 's> {
    arena: &'a Allocator,
    build: AstBuilder<'a>,
    scoping: &'s Scoping,
    /// Optional chains around the node, whose parts have to stay together.
    chains: u32,
    /// A member whose call is guarded.
    guarded: Option<Span>,
    left: usize,
}

/// A name for an expression. A plain one can be evaluated once more without any effect.
struct Named {
    text: String,
    plain: bool,
}

impl<'a> VisitJsMut<'a> for Insert<'a, '_> {
    fn visit_chain_expression(&mut self, it: &mut ChainExpression<'a>) {
        self.chains += 1;
        walk_js_mut::walk_chain_expression(self, it);
        self.chains -= 1;
    }

    fn visit_arguments(&mut self, it: &mut ArenaVec<'a, Argument<'a>>) {
        let chains = std::mem::take(&mut self.chains);
        for argument in it {
            match argument {
                Argument::SpreadElement(spread) => self.visit_iterated(&mut spread.argument),
                argument => self.visit_expression(argument.to_expression_mut()),
            }
        }
        self.chains = chains;
    }

    fn visit_expression(&mut self, it: &mut Expression<'a>) {
        // Named as the script has it: inside, the guards of its parts follow.
        let guard = if self.chains == 0 && self.guarded != Some(it.span()) { self.guard(it) } else { None };
        // The guard of a method tests for nothing, too.
        self.guarded = match it {
            Expression::CallExpression(call) if guard.is_some() => Some(call.callee.span()),
            _ => None,
        };
        let lacks = match it {
            Expression::CallExpression(call) => self.lacks(call),
            _ => Vec::new(),
        };
        walk_js_mut::walk_expression(self, it);
        if let Expression::CallExpression(call) = it {
            self.put_lacks(lacks, call);
        }
        let Some(guard) = guard else { return };
        let member = match it {
            Expression::CallExpression(call) => &mut call.callee,
            member => member,
        };
        match member {
            Expression::StaticMemberExpression(it) => self.put(guard, &mut it.object),
            Expression::ComputedMemberExpression(it) => self.put(guard, &mut it.object),
            _ => {}
        }
    }

    fn visit_for_of_statement(&mut self, it: &mut ForOfStatement<'a>) {
        if it.r#await {
            return walk_js_mut::walk_for_of_statement(self, it);
        }
        let guard = self.iterated(&it.right);
        walk_js_mut::walk_for_of_statement(self, it);
        self.put_some(guard, &mut it.right);
    }

    fn visit_array_expression_element(&mut self, it: &mut ArrayExpressionElement<'a>) {
        match it {
            ArrayExpressionElement::SpreadElement(spread) => self.visit_iterated(&mut spread.argument),
            it => walk_js_mut::walk_array_expression_element(self, it),
        }
    }

    fn visit_variable_declarator(&mut self, it: &mut VariableDeclarator<'a>) {
        let guard = it.init.as_ref().and_then(|init| match &it.id {
            BindingPattern::ArrayPattern(_) => self.iterated(init),
            BindingPattern::ObjectPattern(pattern) => {
                let key = match &pattern.properties.first()?.key {
                    PropertyKey::StaticIdentifier(key) => key.name.as_str(),
                    _ => return None,
                };
                self.read(init, key)
            }
            _ => None,
        });
        walk_js_mut::walk_variable_declarator(self, it);
        if let Some(init) = &mut it.init {
            self.put_some(guard, init);
        }
    }
}

/// Tests for an expression that waits for nothing and makes no function.
fn is_calm(it: &Expression<'_>, depth: u8) -> bool {
    if depth > 8 {
        return false;
    }
    let calm = |it: &Expression<'_>| is_calm(it, depth + 1);
    match it.get_inner_expression() {
        Expression::Identifier(_) => true,
        Expression::StaticMemberExpression(it) => calm(&it.object),
        Expression::ComputedMemberExpression(it) => calm(&it.object) && calm(&it.expression),
        Expression::ChainExpression(it) => match &it.expression {
            ChainElement::StaticMemberExpression(it) => calm(&it.object),
            ChainElement::ComputedMemberExpression(it) => calm(&it.object) && calm(&it.expression),
            _ => false,
        },
        Expression::CallExpression(it) => {
            let plain = |it: &Argument<'_>| it.as_expression().is_some_and(calm);
            calm(&it.callee) && it.arguments.iter().all(plain)
        }
        Expression::UnaryExpression(it) => calm(&it.argument),
        Expression::BinaryExpression(it) => calm(&it.left) && calm(&it.right),
        Expression::LogicalExpression(it) => calm(&it.left) && calm(&it.right),
        Expression::ConditionalExpression(it) => {
            calm(&it.test) && calm(&it.consequent) && calm(&it.alternate)
        }
        Expression::TemplateLiteral(it) => it.expressions.iter().all(calm),
        Expression::ArrayExpression(it) => it.elements.iter().all(|it| it.as_expression().is_some_and(calm)),
        Expression::ObjectExpression(it) => it.properties.iter().all(|property| match property {
            ObjectPropertyKind::ObjectProperty(it) => !it.computed && calm(&it.value),
            ObjectPropertyKind::SpreadProperty(it) => calm(&it.argument),
        }),
        it => it.is_literal(),
    }
}

/// The guard of an expression.
enum Guard<'a> {
    /// Stands behind `??`.
    Nil(Expression<'a>),
    /// Takes the value and gives it back: the function, and what it is given beside the value.
    Around(&'static str, Vec<Expression<'a>>),
}

impl<'a> Insert<'a, '_> {
    /// The guard of the object whose member `it` reads or calls.
    fn guard(&self, it: &Expression<'a>) -> Option<Guard<'a>> {
        if let Expression::CallExpression(call) = it {
            let Expression::StaticMemberExpression(callee) = &call.callee else { return None };
            let method = callee.property.name.as_str();
            if call.optional || !METHODS.contains(&method) {
                return None;
            }
            let object = self.name(&callee.object, 0).filter(|_| self.may_miss(&callee.object))?;
            let mut arguments = vec![self.text(&object.text), self.text(method)];
            // It is evaluated with every call: a name alone has no effect.
            let base =
                self.base(&callee.object).filter(|[base, _]| matches!(base, Expression::Identifier(_)));
            arguments.extend(base.into_iter().flatten());
            return Some(Guard::Around("__ag_has", arguments));
        }
        match it {
            Expression::StaticMemberExpression(it) if !it.optional => {
                self.read(&it.object, it.property.name.as_str())
            }
            Expression::ComputedMemberExpression(it) if !it.optional => match &it.expression {
                Expression::NumericLiteral(key) => self.read(&it.object, &key.value.to_string()),
                Expression::StringLiteral(key) => self.read(&it.object, key.value.as_str()),
                _ => None,
            },
            _ => None,
        }
    }

    /// The guard of `object`, of which `key` is read.
    fn read(&self, object: &Expression<'a>, key: &str) -> Option<Guard<'a>> {
        let named = self.name(object, 0).filter(|_| self.may_miss(object) && key.len() <= LONGEST)?;
        let mut arguments = vec![self.text(&named.text), self.text(key)];
        if named.plain {
            let mut members = Vec::new();
            // A variable has no effect when it is read again, as a getter may: members are looked up without running one.
            if let Some(root) = self.root(object, &mut members) {
                arguments.push(root);
                arguments.extend(self.base(object).map(|[_, name]| name));
                arguments.extend(members);
            }
        }
        Some(Guard::Nil(self.call("__ag_nil", arguments)))
    }

    /// The variable that `object` begins with; `members` gets the keys behind it, in their order.
    fn root(&self, object: &Expression<'a>, members: &mut Vec<Expression<'a>>) -> Option<Expression<'a>> {
        let (base, key) = match object.get_inner_expression() {
            it @ Expression::Identifier(_) => return Some(it.clone_in(self.arena)),
            Expression::StaticMemberExpression(it) => (&it.object, self.text(it.property.name.as_str())),
            Expression::ComputedMemberExpression(it) => (&it.object, it.expression.clone_in(self.arena)),
            _ => return None,
        };
        let root = self.root(base, members)?;
        members.push(key);
        Some(root)
    }

    /// The object that `member` is read from, and its name.
    fn base(&self, member: &Expression<'a>) -> Option<[Expression<'a>; 2]> {
        let base = match member.get_inner_expression() {
            Expression::StaticMemberExpression(it) => &it.object,
            Expression::ComputedMemberExpression(it) => &it.object,
            _ => return None,
        };
        Some([base.clone_in(self.arena), self.text(&self.name(base, 0)?.text)])
    }

    /// The guards of the members of a tool call's input, with their indices. There are none where other code could run between them
    /// and the call.
    fn lacks(&self, call: &CallExpression<'a>) -> Vec<(usize, Guard<'a>)> {
        let is_tool = matches!(&call.callee, Expression::Identifier(it) if it.name == "callTool");
        let Some(Argument::ObjectExpression(input)) = call.arguments.get(1).filter(|_| is_tool) else {
            return Vec::new();
        };
        let calm = input.properties.iter().all(|property| match property {
            ObjectPropertyKind::ObjectProperty(it) => !it.computed && is_calm(&it.value, 0),
            ObjectPropertyKind::SpreadProperty(it) => is_calm(&it.argument, 0),
        });
        let lack = |(at, property): (usize, &ObjectPropertyKind<'a>)| {
            let ObjectPropertyKind::ObjectProperty(property) = property else { return None };
            let key = property.key.static_name().filter(|key| key.len() <= LONGEST)?;
            let value = &property.value;
            if property.kind != PropertyKind::Init || property.method || !self.may_miss(value) {
                return None;
            }
            let mut members = Vec::new();
            let (path, root) = (self.name(value, 0)?.text, self.root(value, &mut members)?);
            let mut arguments = vec![self.text(&key), self.text(&path), root];
            arguments.extend(self.base(value).map(|[_, name]| name));
            arguments.extend(members);
            Some((at, Guard::Around("__ag_lack", arguments)))
        };
        if calm { input.properties.iter().enumerate().filter_map(lack).collect() } else { Vec::new() }
    }

    fn put_lacks(&mut self, lacks: Vec<(usize, Guard<'a>)>, call: &mut CallExpression<'a>) {
        let Some(Argument::ObjectExpression(input)) = call.arguments.get_mut(1) else { return };
        for (at, guard) in lacks {
            if let Some(ObjectPropertyKind::ObjectProperty(property)) = input.properties.get_mut(at) {
                property.shorthand = false;
                self.put(guard, &mut property.value);
            }
        }
    }

    fn visit_iterated(&mut self, it: &mut Expression<'a>) {
        let guard = self.iterated(it);
        self.visit_expression(it);
        self.put_some(guard, it);
    }

    fn iterated(&self, value: &Expression<'a>) -> Option<Guard<'a>> {
        let named = self.name(value, 0).filter(|_| self.may_miss(value))?;
        Some(Guard::Around("__ag_iter", vec![self.text(&named.text)]))
    }

    /// The name of an expression that is worth naming.
    fn name(&self, it: &Expression<'a>, parts: usize) -> Option<Named> {
        let part = |object: &Expression<'a>, key: String| {
            let object = self.name(object, parts + 1).filter(|_| parts < PARTS)?;
            Some(Named { text: object.text + &key, plain: object.plain })
        };
        let named = match it.get_inner_expression() {
            Expression::Identifier(it) => Some(Named { text: it.name.to_string(), plain: true }),
            Expression::StaticMemberExpression(it) if !it.optional => {
                part(&it.object, format!(".{}", it.property.name))
            }
            Expression::ComputedMemberExpression(it) if !it.optional => match &it.expression {
                Expression::NumericLiteral(key) => part(&it.object, format!("[{}]", key.value)),
                Expression::StringLiteral(key) => part(&it.object, format!("[{:?}]", key.value)),
                Expression::Identifier(key) => part(&it.object, format!("[{}]", key.name)),
                _ => None,
            },
            Expression::CallExpression(call) if !call.optional => {
                let Expression::StaticMemberExpression(callee) = &call.callee else { return None };
                let method = callee.property.name.as_str();
                let object = self.name(&callee.object, parts + 1).filter(|_| MAYBE.contains(&method))?;
                Some(Named { text: format!("{}.{method}(…)", object.text), plain: false })
            }
            Expression::AwaitExpression(it) => {
                let Expression::CallExpression(call) = &it.argument else { return None };
                let Expression::Identifier(function) = &call.callee else { return None };
                let argument = match call.arguments.first() {
                    Some(Argument::StringLiteral(name)) => format!("'{}', …", name.value),
                    Some(_) => "…".to_owned(),
                    None => String::new(),
                };
                Some(Named { text: format!("(await {}({argument}))", function.name), plain: false })
            }
            _ => None,
        };
        named.filter(|named| named.text.len() <= LONGEST)
    }

    /// Returns false for names that surely have a value: those of the realm, functions and classes.
    fn may_miss(&self, it: &Expression<'a>) -> bool {
        let Expression::Identifier(it) = it.get_inner_expression() else { return true };
        let symbol = it.reference_id.get().and_then(|id| self.scoping.get_reference(id).symbol_id());
        symbol.is_some_and(|symbol| {
            let flags = self.scoping.symbol_flags(symbol);
            !flags.is_function() && !flags.is_class()
        })
    }

    fn put_some(&mut self, guard: Option<Guard<'a>>, it: &mut Expression<'a>) {
        if let Some(guard) = guard {
            self.put(guard, it);
        }
    }

    /// Puts `guard` around `it`.
    fn put(&mut self, guard: Guard<'a>, it: &mut Expression<'a>) {
        let Some(left) = self.left.checked_sub(1) else { return };
        self.left = left;
        it.replace_with(|it| match guard {
            Guard::Nil(nil) => {
                Expression::new_logical_expression(SPAN, it, LogicalOperator::Coalesce, nil, &self.build)
            }
            Guard::Around(function, mut arguments) => {
                arguments.insert(0, it);
                self.call(function, arguments)
            }
        });
    }

    fn text(&self, text: &str) -> Expression<'a> {
        Expression::new_string_literal(SPAN, Str::from_str_in(text, &self.build), None, &self.build)
    }

    fn call(&self, function: &'static str, arguments: Vec<Expression<'a>>) -> Expression<'a> {
        let function = Expression::new_identifier(SPAN, Ident::from(function), &self.build);
        let arguments = ArenaVec::from_iter_in(arguments.into_iter().map(Argument::from), &self.build);
        Expression::new_call_expression(SPAN, function, None, arguments, false, &self.build)
    }
}
