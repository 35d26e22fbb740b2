//! The rules of each preset. The rules themselves, one function each, are in the modules below; `rule` has what they are made of.
//!
//! A rule looks at one node and returns a violation or nothing. It does not descend: the walk calls it for every node of its kind.

mod free;
mod hidden;
mod members;
mod narrow;
mod rule;
mod syntax;
mod tools;

use std::sync::OnceLock;

use oxc::ast::AstType;

pub(super) use rule::Facts;
use rule::Rule;

use crate::limits::Preset;

pub(super) use hidden::{ERROR, is_new_error};
pub(super) use tools::{TOOL_FUNCTION, is_alias};

/// Rules of every preset, by the node they look at.
const ALWAYS: &[(AstType, Rule)] = &[
    (AstType::IdentifierReference, free::reserved_reference),
    (AstType::IdentifierReference, free::free_name),
    (AstType::IdentifierReference, free::console_off),
    (AstType::IdentifierReference, free::assigned_builtin),
    (AstType::IdentifierReference, free::top_level_arguments),
    (AstType::UnaryExpression, free::probing_typeof),
    (AstType::StaticMemberExpression, hidden::symbol_hook),
    (AstType::ComputedMemberExpression, hidden::symbol_hook),
    (AstType::StaticMemberExpression, hidden::error_stack),
    (AstType::BinaryExpression, hidden::assembled_name),
    (AstType::ReturnStatement, hidden::returned_this),
    (AstType::ComputedMemberExpression, hidden::literal_key),
    (AstType::CallExpression, hidden::json_callback),
    (AstType::CallExpression, hidden::long_array),
    (AstType::NewExpression, hidden::long_array),
    (AstType::BindingIdentifier, free::declared_name),
    (AstType::StaticMemberExpression, members::member),
    (AstType::ComputedMemberExpression, members::computed_member),
    (AstType::BindingProperty, members::destructured),
    (AstType::ObjectAssignmentTarget, members::assigned_pattern),
    (AstType::ObjectProperty, members::proto_property),
    (AstType::MethodDefinition, members::proto_member),
    (AstType::PropertyDefinition, members::proto_member),
    (AstType::CallExpression, tools::self_reference),
    (AstType::ThisExpression, syntax::top_level_this),
    (AstType::ImportExpression, syntax::module_syntax),
    (AstType::ImportMeta, syntax::module_syntax),
    (AstType::ImportDeclaration, syntax::module_syntax),
    (AstType::ExportDeclaration, syntax::module_syntax),
    (AstType::ExportNamedDeclaration, syntax::module_syntax),
    (AstType::ExportFromDeclaration, syntax::module_syntax),
    (AstType::ExportDefaultDeclaration, syntax::module_syntax),
    (AstType::ExportAllDeclaration, syntax::module_syntax),
    (AstType::Hashbang, syntax::hashbang),
    (AstType::NewTarget, syntax::new_target),
    (AstType::WithStatement, syntax::with_statement),
    (AstType::DebuggerStatement, syntax::debugger_statement),
    (AstType::VariableDeclaration, syntax::using_declaration),
    (AstType::Decorator, syntax::decorator),
    (AstType::AccessorProperty, syntax::accessor_field),
];

/// Rules that `Preset::LockedDown` adds.
const LOCKED_DOWN: &[(AstType, Rule)] = &[
    (AstType::WhileStatement, syntax::unbounded_loop),
    (AstType::DoWhileStatement, syntax::unbounded_loop),
    (AstType::ForInStatement, syntax::unbounded_loop),
    (AstType::ForStatement, syntax::for_without_test),
    (AstType::RegExpLiteral, syntax::regexp_literal),
    (AstType::IdentifierReference, syntax::regexp_constructor),
    (AstType::StaticMemberExpression, syntax::regexp_method),
    (AstType::CallExpression, narrow::computed_length),
    (AstType::NewExpression, narrow::computed_length),
    (AstType::ObjectProperty, narrow::coercion_member),
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
