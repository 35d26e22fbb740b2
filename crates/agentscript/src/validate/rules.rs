//! The rules, one function each, and which preset applies which.
//!
//! A rule looks at one node and says nothing, or what is wrong with it. It does not descend: the walk calls it for every node of its kind.

use std::sync::OnceLock;

use oxc::{
    ast::{
        AstKind, AstType,
        ast::{
            AssignmentTargetProperty, BinaryOperator, CallExpression, Expression, IdentifierReference,
            PropertyKey, UnaryOperator,
        },
    },
    semantic::Scoping,
    span::GetSpan,
};

use super::{
    Refusal,
    fold::{Folder, Known, Value},
    names,
};
use crate::{
    limits::Preset,
    outcome::IllegalKind::{
        self, IllegalBuiltinAccess, IllegalGlobalAccess, IllegalIdentifier, IllegalLoop, IllegalModuleAccess,
        IllegalPrototypeAccess, IllegalSyntax, SelfReferenceBlocked,
    },
    script::ScriptPolicy,
};

/// What a rule may ask about.
pub(super) struct Facts<'s> {
    pub(super) policy: &'s ScriptPolicy,
    pub(super) scoping: &'s Scoping,
    pub(super) known: &'s Known,
    /// How many functions with a `this` of their own surround the node.
    pub(super) this_depth: u32,
    /// Whether the innermost of them is a plain function, neither method nor accessor.
    pub(super) in_plain_function: bool,
}

impl Facts<'_> {
    fn folder(&self) -> Folder<'_> {
        Folder { scoping: self.scoping, known: self.known }
    }

    /// Whether the script does not declare what `reference` names.
    fn is_free(&self, reference: &IdentifierReference<'_>) -> bool {
        reference.reference_id.get().is_none_or(|id| self.scoping.get_reference(id).symbol_id().is_none())
    }
}

pub(super) type Rule = fn(&Facts<'_>, AstKind<'_>) -> Option<Refusal>;

/// Rules of every preset, by the node they look at.
const ALWAYS: &[(AstType, Rule)] = &[
    (AstType::IdentifierReference, reserved_reference),
    (AstType::IdentifierReference, free_name),
    (AstType::IdentifierReference, console_off),
    (AstType::IdentifierReference, assigned_builtin),
    (AstType::IdentifierReference, top_level_arguments),
    (AstType::UnaryExpression, probing_typeof),
    (AstType::StaticMemberExpression, symbol_hook),
    (AstType::ComputedMemberExpression, symbol_hook),
    (AstType::StaticMemberExpression, error_stack),
    (AstType::BinaryExpression, assembled_name),
    (AstType::ReturnStatement, returned_this),
    (AstType::ComputedMemberExpression, literal_key),
    (AstType::CallExpression, json_callback),
    (AstType::CallExpression, long_array),
    (AstType::NewExpression, long_array),
    (AstType::BindingIdentifier, declared_name),
    (AstType::StaticMemberExpression, member),
    (AstType::ComputedMemberExpression, computed_member),
    (AstType::BindingProperty, destructured),
    (AstType::ObjectAssignmentTarget, assigned_pattern),
    (AstType::ObjectProperty, proto_property),
    (AstType::MethodDefinition, proto_member),
    (AstType::PropertyDefinition, proto_member),
    (AstType::CallExpression, self_reference),
    (AstType::ThisExpression, top_level_this),
    (AstType::ImportExpression, module_syntax),
    (AstType::ImportMeta, module_syntax),
    (AstType::ImportDeclaration, module_syntax),
    (AstType::ExportDeclaration, module_syntax),
    (AstType::ExportNamedDeclaration, module_syntax),
    (AstType::ExportFromDeclaration, module_syntax),
    (AstType::ExportDefaultDeclaration, module_syntax),
    (AstType::ExportAllDeclaration, module_syntax),
    (AstType::NewTarget, new_target),
    (AstType::WithStatement, with_statement),
    (AstType::DebuggerStatement, debugger_statement),
    (AstType::VariableDeclaration, using_declaration),
    (AstType::Decorator, decorator),
    (AstType::AccessorProperty, accessor_field),
];

/// Rules that `Preset::LockedDown` adds.
const LOCKED_DOWN: &[(AstType, Rule)] = &[
    (AstType::WhileStatement, unbounded_loop),
    (AstType::DoWhileStatement, unbounded_loop),
    (AstType::ForInStatement, unbounded_loop),
    (AstType::ForStatement, for_without_test),
    (AstType::RegExpLiteral, regexp_literal),
    (AstType::IdentifierReference, regexp_constructor),
    (AstType::StaticMemberExpression, regexp_method),
];

/// Rules by node type.
pub(super) type Table = [Vec<Rule>; 256];

/// The rules that go with `preset`.
pub(super) fn table(preset: Preset) -> &'static Table {
    static STRICT: OnceLock<Box<Table>> = OnceLock::new();
    static USUAL: OnceLock<Box<Table>> = OnceLock::new();
    let build = |lists: &[&[(AstType, Rule)]]| {
        let mut table: Box<Table> = Box::new([const { Vec::new() }; 256]);
        for (node, rule) in lists.iter().copied().flatten() {
            table[*node as usize].push(*rule);
        }
        table
    };
    match preset {
        Preset::LockedDown => STRICT.get_or_init(|| build(&[ALWAYS, LOCKED_DOWN])),
        Preset::Secure | Preset::Balanced | Preset::Experimental => USUAL.get_or_init(|| build(&[ALWAYS])),
    }
}

fn refuse(kind: IllegalKind, at: impl GetSpan, message: impl Into<String>) -> Option<Refusal> {
    Some(Refusal::new(kind, at.span().start, message))
}

fn reserved_message(name: &str) -> String {
    format!(
        "`{name}` is reserved: names that begin with `__safe_` or `__ag_` belong to the runtime; rename it"
    )
}

fn reserved_reference(_: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::IdentifierReference(it) = node else { return None };
    if names::is_reserved(&it.name) {
        refuse(IllegalIdentifier, it.span, reserved_message(&it.name))
    } else {
        None
    }
}

fn free_name(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::IdentifierReference(it) = node else { return None };
    let (kind, message) = names::free_name(&it.name)?;
    if facts.is_free(it) { refuse(kind, it.span, message) } else { None }
}

fn console_off(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::IdentifierReference(it) = node else { return None };
    if it.name != "console" || facts.policy.console_allowed() || !facts.is_free(it) {
        return None;
    }
    refuse(IllegalGlobalAccess, it.span, "`console` is turned off; return what you want to see")
}

fn assigned_builtin(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::IdentifierReference(it) = node else { return None };
    let reference = facts.scoping.get_reference(it.reference_id.get()?);
    if !reference.is_write() || reference.symbol_id().is_some() || !names::is_frozen(&it.name) {
        return None;
    }
    refuse(
        IllegalIdentifier,
        it.span,
        format!("`{}` cannot be assigned to; use a variable of your own", it.name),
    )
}

fn top_level_arguments(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::IdentifierReference(it) = node else { return None };
    if it.name != "arguments" || facts.this_depth > 0 {
        return None;
    }
    refuse(
        IllegalGlobalAccess,
        it.span,
        "`arguments` is not available outside functions; what the caller gave is in `codecallContext`",
    )
}

/// `typeof` of a name nobody declared only asks what the realm has.
fn probing_typeof(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::UnaryExpression(it) = node else { return None };
    let Expression::Identifier(name) = it.argument.get_inner_expression() else { return None };
    if it.operator != UnaryOperator::Typeof
        || !facts.is_free(name)
        || names::exists(&name.name)
        || names::free_name(&name.name).is_some()
    {
        return None;
    }
    let message = format!(
        "`{}` is not declared: `typeof` works on variables, `codecallContext` and the built-in names",
        name.name
    );
    refuse(IllegalGlobalAccess, name.span, message)
}

fn symbol_hook(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let (object, names, span) = match node {
        AstKind::StaticMemberExpression(it) => {
            (&it.object, vec![it.property.name.to_string()], it.property.span)
        }
        AstKind::ComputedMemberExpression(it) if matches!(it.object, Expression::Identifier(_)) => {
            (&it.object, facts.folder().texts(&it.expression), it.expression.span())
        }
        _ => return None,
    };
    let Expression::Identifier(symbol) = object.get_inner_expression() else { return None };
    if symbol.name != "Symbol" || !facts.is_free(symbol) {
        return None;
    }
    let name = names.iter().find(|name| names::symbol_hook(name))?;
    refuse(
        IllegalBuiltinAccess,
        span,
        format!("`Symbol.{name}` is not available: write what the value should do as a method and call it"),
    )
}

/// `.stack` of what a `catch` caught or of a new error.
fn error_stack(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::StaticMemberExpression(it) = node else { return None };
    if it.property.name != "stack" {
        return None;
    }
    let of_error = match it.object.get_inner_expression() {
        Expression::Identifier(name) => {
            let symbol =
                name.reference_id.get().and_then(|id| facts.scoping.get_reference(id).symbol_id())?;
            facts.scoping.symbol_flags(symbol).is_catch_variable()
                || facts.folder().texts(&it.object).iter().any(|text| text == ERROR)
        }
        object => is_new_error(object),
    };
    if of_error {
        refuse(
            IllegalBuiltinAccess,
            it.property.span,
            "stack traces are out of reach; use the error's `message`",
        )
    } else {
        None
    }
}

/// What the walk notes as the value of a variable that holds a new error.
pub(super) const ERROR: &str = "\0error";

/// Whether `expression` makes an error.
pub(super) fn is_new_error(expression: &Expression<'_>) -> bool {
    match expression.get_inner_expression() {
        Expression::NewExpression(it) => {
            matches!(&it.callee, Expression::Identifier(name) if name.name.ends_with("Error"))
        }
        _ => false,
    }
}

/// `'con' + 'structor'`: nobody writes a refused name in pieces but to hide it.
fn assembled_name(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::BinaryExpression(it) = node else { return None };
    let Expression::StringLiteral(last) = it.right.get_inner_expression() else { return None };
    let end = last.value.as_str();
    let hides = |name: &&str| name.ends_with(end) && name.len() > end.len() && !end.is_empty();
    if it.operator != BinaryOperator::Addition || !["constructor", "__proto__", "prototype"].iter().any(hides)
    {
        return None;
    }
    let left = facts.folder().texts(&it.left);
    let spelled = left
        .iter()
        .map(|left| format!("{left}{end}"))
        .find(|name| matches!(name.as_str(), "constructor" | "__proto__" | "prototype"))?;
    let (kind, message) = names::property(&spelled)?;
    refuse(kind, it.span, message)
}

/// `function () { return this }` asks for the global object.
fn returned_this(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::ReturnStatement(it) = node else { return None };
    let this = matches!(it.argument.as_ref()?.get_inner_expression(), Expression::ThisExpression(_));
    if !this || !facts.in_plain_function {
        return None;
    }
    refuse(
        IllegalGlobalAccess,
        it.span,
        "`this` of a plain function is nothing here; return a variable, or use a method",
    )
}

/// `o[['a']]` and `o[{ … }]`: a key that only becomes text when it is used.
fn literal_key(_: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::ComputedMemberExpression(it) = node else { return None };
    let key = it.expression.get_inner_expression();
    if !matches!(key, Expression::ArrayExpression(_) | Expression::ObjectExpression(_)) {
        return None;
    }
    refuse(IllegalPrototypeAccess, key.span(), "a key must be text or a number; write it as such")
}

/// Callbacks of `JSON.parse` and `JSON.stringify` run once per value, out of sight.
fn json_callback(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::CallExpression(it) = node else { return None };
    let callback = it.arguments.get(1)?.as_expression()?.get_inner_expression();
    if !matches!(callback, Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_)) {
        return None;
    }
    let member = it.callee.get_inner_expression().get_member_expr()?;
    let Expression::Identifier(json) = member.object().get_inner_expression() else { return None };
    let method = member.static_property_name()?;
    if json.name != "JSON" || !facts.is_free(json) || !matches!(method, "parse" | "stringify") {
        return None;
    }
    refuse(
        IllegalBuiltinAccess,
        callback.span(),
        format!("`JSON.{method}` takes no callback here; change the value before or after"),
    )
}

/// Longest array that may be made by its length alone.
const MAX_ARRAY: f64 = 100_000.0;

fn long_array(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let (callee, arguments) = match node {
        AstKind::CallExpression(it) => (&it.callee, &it.arguments),
        AstKind::NewExpression(it) => (&it.callee, &it.arguments),
        _ => return None,
    };
    let Expression::Identifier(array) = callee.get_inner_expression() else { return None };
    if array.name != "Array" || arguments.len() != 1 || !facts.is_free(array) {
        return None;
    }
    let length = arguments.first()?.as_expression()?;
    let long = facts
        .folder()
        .values(length, 0)
        .iter()
        .any(|value| matches!(value, Value::Number(length) if *length > MAX_ARRAY));
    if !long {
        return None;
    }
    refuse(
        IllegalBuiltinAccess,
        length.span(),
        format!("an array may be made with at most {MAX_ARRAY} elements; `push` what is needed"),
    )
}

fn declared_name(_: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::BindingIdentifier(it) = node else { return None };
    if names::is_reserved(&it.name) {
        return refuse(IllegalIdentifier, it.span, reserved_message(&it.name));
    }
    if names::is_api(&it.name) {
        return refuse(
            IllegalIdentifier,
            it.span,
            format!("`{}` is part of AgentScript and cannot be declared again; rename yours", it.name),
        );
    }
    None
}

fn member(_: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::StaticMemberExpression(it) = node else { return None };
    let name = it.property.name.as_str();
    if let Some((kind, message)) = names::property(name) {
        return refuse(kind, it.property.span, message);
    }
    arguments_link(&it.object, name).then(|| stack_walk(it.property.span.start))
}

fn computed_member(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::ComputedMemberExpression(it) = node else { return None };
    if matches!(it.expression, Expression::NumericLiteral(_)) {
        return None;
    }
    facts.folder().texts(&it.expression).iter().find_map(|name| {
        if let Some((kind, message)) = names::property(name) {
            return refuse(kind, it.expression.span(), message);
        }
        arguments_link(&it.object, name).then(|| stack_walk(it.expression.span().start))
    })
}

/// `arguments.callee` and `.caller`.
fn arguments_link(object: &Expression<'_>, name: &str) -> bool {
    matches!(name, "callee" | "caller") && object.get_inner_expression().is_specific_id("arguments")
}

fn stack_walk(offset: u32) -> Refusal {
    Refusal::new(
        IllegalPrototypeAccess,
        offset,
        "`arguments.callee` is not available; give the function a name and call that",
    )
}

/// The refused name that `key` can spell.
fn key_refusal(facts: &Facts<'_>, key: &PropertyKey<'_>) -> Option<Refusal> {
    let found =
        |name: &str| names::property(name).and_then(|(kind, message)| refuse(kind, key.span(), message));
    match key {
        PropertyKey::StaticIdentifier(it) => found(&it.name),
        PropertyKey::PrivateIdentifier(_) => None,
        key => facts.folder().texts(key.as_expression()?).iter().find_map(|name| found(name)),
    }
}

fn destructured(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::BindingProperty(it) = node else { return None };
    key_refusal(facts, &it.key)
}

fn assigned_pattern(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::ObjectAssignmentTarget(it) = node else { return None };
    it.properties.iter().find_map(|property| match property {
        AssignmentTargetProperty::AssignmentTargetPropertyIdentifier(it) => names::property(&it.binding.name)
            .and_then(|(kind, message)| refuse(kind, it.binding.span, message)),
        AssignmentTargetProperty::AssignmentTargetPropertyProperty(it) => key_refusal(facts, &it.name),
    })
}

fn proto_key(facts: &Facts<'_>, key: &PropertyKey<'_>) -> Option<Refusal> {
    let message =
        "`__proto__` is not available as a key; choose another name, or keep the data as an array of pairs";
    let found = |name: &str| {
        if name == "__proto__" { refuse(IllegalPrototypeAccess, key.span(), message) } else { None }
    };
    match key {
        PropertyKey::StaticIdentifier(it) => found(&it.name),
        PropertyKey::PrivateIdentifier(_) => None,
        key => facts.folder().texts(key.as_expression()?).iter().find_map(|name| found(name)),
    }
}

fn proto_property(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::ObjectProperty(it) = node else { return None };
    proto_key(facts, &it.key)
}

fn proto_member(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    match node {
        AstKind::MethodDefinition(it) => proto_key(facts, &it.key),
        AstKind::PropertyDefinition(it) => proto_key(facts, &it.key),
        _ => None,
    }
}

fn self_reference(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::CallExpression(call) = node else { return None };
    if facts.policy.reserved_tool_prefixes.is_empty() {
        return None;
    }
    let name = tool_name(facts, call)?;
    let spelled = facts.folder().texts(name);
    let reserved = spelled.iter().find(|spelled| {
        let spelled = spelled.trim().to_ascii_lowercase();
        facts
            .policy
            .reserved_tool_prefixes
            .iter()
            .any(|prefix| spelled.starts_with(&prefix.to_ascii_lowercase()))
    })?;
    refuse(
        SelfReferenceBlocked,
        name.span(),
        format!("`{reserved}` runs scripts and cannot be called from one; call the tools it would call"),
    )
}

/// The first argument of a call that reaches `callTool` or `getTool` as far as the text says.
fn tool_name<'c, 'a>(facts: &Facts<'_>, call: &'c CallExpression<'a>) -> Option<&'c Expression<'a>> {
    let is_door = |expression: &Expression<'_>| is_tool_door(facts, expression, 0);
    if is_door(&call.callee) {
        return call.arguments.first()?.as_expression();
    }
    // `callTool.call(null, name)`, `.bind(null, name)`, `.apply(null, [name])`.
    let member = call.callee.get_inner_expression().get_member_expr()?;
    let method = member.static_property_name()?;
    if !matches!(method, "call" | "bind" | "apply") || !is_door(member.object()) {
        return None;
    }
    let second = call.arguments.get(1)?.as_expression()?;
    match second {
        Expression::ArrayExpression(list) => list.elements.first()?.as_expression(),
        other => Some(other),
    }
}

fn is_tool_door(facts: &Facts<'_>, expression: &Expression<'_>, depth: u8) -> bool {
    match expression.get_inner_expression() {
        Expression::Identifier(it) => {
            if facts.is_free(it) {
                return matches!(it.name.as_str(), "callTool" | "getTool");
            }
            facts.folder().texts(expression).iter().any(|text| text == DOOR)
        }
        Expression::SequenceExpression(it) if depth < 8 => {
            it.expressions.last().is_some_and(|last| is_tool_door(facts, last, depth + 1))
        }
        Expression::LogicalExpression(it) if depth < 8 => {
            is_tool_door(facts, &it.left, depth + 1) || is_tool_door(facts, &it.right, depth + 1)
        }
        Expression::ConditionalExpression(it) if depth < 8 => {
            is_tool_door(facts, &it.consequent, depth + 1) || is_tool_door(facts, &it.alternate, depth + 1)
        }
        _ => false,
    }
}

/// What the walk notes as the value of a variable that is an alias of `callTool` or `getTool`.
pub(super) const DOOR: &str = "\0door";

/// Whether `expression` is an alias of a function that reaches tools.
pub(super) fn is_alias(facts: &Facts<'_>, expression: &Expression<'_>) -> bool {
    is_tool_door(facts, expression, 0)
}

fn top_level_this(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    if facts.this_depth > 0 {
        return None;
    }
    refuse(
        IllegalGlobalAccess,
        node.span(),
        "`this` is not available outside functions and classes; use a variable",
    )
}

fn module_syntax(_: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let message = "modules are not available: no `import`, no `export`; call tools with `await callTool(name, input)` and `return` the result";
    refuse(IllegalModuleAccess, node.span(), message)
}

fn new_target(_: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    refuse(IllegalSyntax, node.span(), "`new.target` is not part of AgentScript")
}

fn with_statement(_: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    refuse(IllegalSyntax, node.span(), "`with` is not part of AgentScript; use destructuring")
}

fn debugger_statement(_: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    refuse(IllegalSyntax, node.span(), "`debugger` is not part of AgentScript; remove it")
}

fn using_declaration(_: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::VariableDeclaration(it) = node else { return None };
    if it.kind.is_using() {
        refuse(IllegalSyntax, it.span, "`using` is not part of AgentScript; use `const`")
    } else {
        None
    }
}

fn decorator(_: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    refuse(IllegalSyntax, node.span(), "decorators are not part of AgentScript")
}

fn accessor_field(_: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    refuse(
        IllegalSyntax,
        node.span(),
        "`accessor` fields are not part of AgentScript; write a getter and a setter",
    )
}

fn unbounded_loop(_: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let name = match node {
        AstKind::WhileStatement(_) => "while",
        AstKind::DoWhileStatement(_) => "do … while",
        _ => "for … in",
    };
    refuse(
        IllegalLoop,
        node.span(),
        format!("`{name}` loops are off in this preset; use `for … of`, or `for` with a condition"),
    )
}

fn for_without_test(_: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::ForStatement(it) = node else { return None };
    let endless = match it.test.as_ref().map(Expression::get_inner_expression) {
        None => true,
        Some(Expression::BooleanLiteral(test)) => test.value,
        Some(Expression::NumericLiteral(test)) => test.value != 0.0,
        Some(_) => false,
    };
    if endless {
        refuse(
            IllegalLoop,
            it.span,
            "a `for` loop needs a condition that can end it, such as `i < list.length`",
        )
    } else {
        None
    }
}

fn regexp_literal(_: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    refuse(
        IllegalSyntax,
        node.span(),
        "regular expressions are off in this preset; use `includes`, `startsWith`, `split` or `indexOf`",
    )
}

fn regexp_constructor(facts: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::IdentifierReference(it) = node else { return None };
    if it.name != "RegExp" || !facts.is_free(it) {
        return None;
    }
    refuse(
        IllegalBuiltinAccess,
        it.span,
        "regular expressions are off in this preset; use `includes`, `startsWith`, `split` or `indexOf`",
    )
}

/// `'…'.match(text)` builds an expression from a string; calls are looked at as members, so that aliases count too.
fn regexp_method(_: &Facts<'_>, node: AstKind<'_>) -> Option<Refusal> {
    let AstKind::StaticMemberExpression(it) = node else { return None };
    let on_text = matches!(
        it.object.get_inner_expression(),
        Expression::StringLiteral(_) | Expression::TemplateLiteral(_)
    );
    if on_text && matches!(it.property.name.as_str(), "match" | "matchAll" | "search") {
        return refuse(
            IllegalBuiltinAccess,
            it.property.span,
            "regular expressions are off in this preset; use `includes` or `indexOf`",
        );
    }
    None
}
