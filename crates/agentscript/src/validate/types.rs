//! Removes TypeScript's types from a syntax tree: rules, ticks and the printer see JavaScript.
//!
//! TypeScript's additions other than types (enums, namespaces, parameter properties) are refused.

use oxc::{
    allocator::{Allocator, ArenaVec, ReplaceWith, TakeIn},
    ast::{
        ast::{
            ArrowFunctionExpression, CallExpression, CatchParameter, ChainElement, Class, ClassElement,
            Expression, FormalParameter, FormalParameterRest, Function, MemberExpression, MethodDefinition,
            NewExpression, Program, PropertyDefinition, PropertyDefinitionType, SimpleAssignmentTarget,
            Statement, TaggedTemplateExpression, VariableDeclarator,
        },
        builder::AstBuilder,
    },
    ast_visit::{VisitJs, VisitJsMut, walk_js, walk_js_mut},
    semantic::ScopeFlags,
    span::{GetSpan, SourceType, Span},
};

use super::violation::{self, Violation};
use crate::outcome::IllegalKind;

/// Makes a typed program plain JavaScript. Spans stay those of the text.
///
/// # Errors
/// The program uses more of TypeScript than types.
pub(super) fn remove<'a>(arena: &'a Allocator, program: &mut Program<'a>) -> Result<(), Violation> {
    let mut types = Types { build: AstBuilder::new(arena), violation: None };
    types.visit_program(program);
    program.source_type = SourceType::mjs();
    types.violation.map_or(Ok(()), Err)
}

/// Tests for modifiers of TypeScript. Where they hold no type, the parser reads them in JavaScript too.
pub(super) fn remain(program: &Program<'_>) -> bool {
    let mut modifiers = Modifiers(false);
    modifiers.visit_program(program);
    modifiers.0
}

struct Modifiers(bool);

impl<'a> VisitJs<'a> for Modifiers {
    fn visit_class(&mut self, it: &Class<'a>) {
        self.0 |= it.r#abstract || it.declare || !it.implements.is_empty();
        walk_js::walk_class(self, it);
    }

    fn visit_class_element(&mut self, it: &ClassElement<'a>) {
        self.0 |= match it {
            ClassElement::TSIndexSignature(_) => true,
            ClassElement::MethodDefinition(it) => {
                it.accessibility.is_some() || it.optional || it.r#override || it.value.body.is_none()
            }
            ClassElement::PropertyDefinition(it) => {
                it.r#type != PropertyDefinitionType::PropertyDefinition
                    || it.accessibility.is_some()
                    || it.declare
                    || it.definite
                    || it.optional
                    || it.r#override
                    || it.readonly
            }
            ClassElement::StaticBlock(_) | ClassElement::AccessorProperty(_) => false,
        };
        walk_js::walk_class_element(self, it);
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        self.0 |= it.accessibility.is_some() || it.readonly || it.r#override || it.optional;
        walk_js::walk_formal_parameter(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        self.0 |= it.definite;
        walk_js::walk_variable_declarator(self, it);
    }

    fn visit_statement(&mut self, it: &Statement<'a>) {
        self.0 |= is_type_only(it);
        walk_js::walk_statement(self, it);
    }
}

struct Types<'a> {
    build: AstBuilder<'a>,
    /// The first in order of the text.
    violation: Option<Violation>,
}

impl<'a> VisitJsMut<'a> for Types<'a> {
    fn visit_statement(&mut self, it: &mut Statement<'a>) {
        if is_type_only(it) {
            *it = Statement::new_empty_statement(it.span(), &self.build);
            return;
        }
        match it {
            Statement::TSEnumDeclaration(it) => {
                self.refuse(it.span, "`enum` is not part of AgentScript; use an object with `as const`");
            }
            Statement::TSNamespaceDeclaration(it) => {
                self.refuse(it.span, "namespaces are not part of AgentScript; use an object");
            }
            Statement::TSExternalModuleDeclaration(it) => {
                self.refuse(it.span, "module declarations are not part of AgentScript");
            }
            Statement::TSGlobalDeclaration(it) => {
                self.refuse(it.span, "`declare global` is not part of AgentScript");
            }
            Statement::ImportDeclaration(_) | Statement::TSImportEqualsDeclaration(_) => {
                self.refuse_as(IllegalKind::IllegalModuleAccess, it.span(), violation::IMPORT);
            }
            Statement::TSExportAssignment(_) | Statement::TSNamespaceExportDeclaration(_) => {
                self.refuse_as(IllegalKind::IllegalModuleAccess, it.span(), violation::EXPORT);
            }
            it => walk_js_mut::walk_statement(self, it),
        }
    }

    fn visit_expression(&mut self, it: &mut Expression<'a>) {
        while matches!(
            it,
            Expression::TSAsExpression(_)
                | Expression::TSSatisfiesExpression(_)
                | Expression::TSNonNullExpression(_)
                | Expression::TSInstantiationExpression(_)
                | Expression::TSTypeAssertion(_)
        ) {
            it.replace_with(without_type);
        }
        walk_js_mut::walk_expression(self, it);
    }

    fn visit_chain_element(&mut self, it: &mut ChainElement<'a>) {
        let ChainElement::TSNonNullExpression(typed) = it else {
            return walk_js_mut::walk_chain_element(self, it);
        };
        self.visit_expression(&mut typed.expression);
        let plain = match typed.expression.take_in(&self.build) {
            Expression::CallExpression(call) => Some(ChainElement::CallExpression(call)),
            member => MemberExpression::try_from(member).ok().map(ChainElement::from),
        };
        match plain {
            Some(plain) => *it = plain,
            None => self.refuse(it.span(), "this `!` is not needed; remove it"),
        }
    }

    fn visit_simple_assignment_target(&mut self, it: &mut SimpleAssignmentTarget<'a>) {
        if let Some(typed) = it.get_expression_mut() {
            let plain = match typed.get_inner_expression_mut().take_in(&self.build) {
                Expression::Identifier(name) => {
                    Some(SimpleAssignmentTarget::AssignmentTargetIdentifier(name))
                }
                member => MemberExpression::try_from(member).ok().map(SimpleAssignmentTarget::from),
            };
            match plain {
                Some(plain) => *it = plain,
                None => self.refuse(it.span(), "this cannot be assigned to"),
            }
        }
        walk_js_mut::walk_simple_assignment_target(self, it);
    }

    fn visit_call_expression(&mut self, it: &mut CallExpression<'a>) {
        it.type_arguments = None;
        walk_js_mut::walk_call_expression(self, it);
    }

    fn visit_new_expression(&mut self, it: &mut NewExpression<'a>) {
        it.type_arguments = None;
        walk_js_mut::walk_new_expression(self, it);
    }

    fn visit_tagged_template_expression(&mut self, it: &mut TaggedTemplateExpression<'a>) {
        it.type_arguments = None;
        walk_js_mut::walk_tagged_template_expression(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &mut VariableDeclarator<'a>) {
        it.type_annotation = None;
        it.definite = false;
        walk_js_mut::walk_variable_declarator(self, it);
    }

    fn visit_catch_parameter(&mut self, it: &mut CatchParameter<'a>) {
        it.type_annotation = None;
        walk_js_mut::walk_catch_parameter(self, it);
    }

    fn visit_formal_parameter(&mut self, it: &mut FormalParameter<'a>) {
        if it.accessibility.is_some() || it.readonly || it.r#override {
            self.refuse(
                it.span,
                "parameter properties are not part of AgentScript; assign `this.name = name` in the constructor",
            );
        }
        it.type_annotation = None;
        it.optional = false;
        walk_js_mut::walk_formal_parameter(self, it);
    }

    fn visit_formal_parameter_rest(&mut self, it: &mut FormalParameterRest<'a>) {
        it.type_annotation = None;
        walk_js_mut::walk_formal_parameter_rest(self, it);
    }

    fn visit_function(&mut self, it: &mut Function<'a>, flags: ScopeFlags) {
        it.type_parameters = None;
        it.this_param = None;
        it.return_type = None;
        walk_js_mut::walk_function(self, it, flags);
    }

    fn visit_arrow_function_expression(&mut self, it: &mut ArrowFunctionExpression<'a>) {
        it.type_parameters = None;
        it.return_type = None;
        walk_js_mut::walk_arrow_function_expression(self, it);
    }

    fn visit_class(&mut self, it: &mut Class<'a>) {
        it.type_parameters = None;
        it.implements.clear();
        it.r#abstract = false;
        if let Some(heritage) = &mut it.heritage {
            heritage.type_arguments = None;
        }
        walk_js_mut::walk_class(self, it);
    }

    fn visit_class_elements(&mut self, it: &mut ArenaVec<'a, ClassElement<'a>>) {
        it.retain(|element| match element {
            ClassElement::TSIndexSignature(_) => false,
            ClassElement::MethodDefinition(it) => it.value.body.is_some(),
            ClassElement::PropertyDefinition(it) => {
                !it.declare && it.r#type == PropertyDefinitionType::PropertyDefinition
            }
            ClassElement::StaticBlock(_) | ClassElement::AccessorProperty(_) => true,
        });
        walk_js_mut::walk_class_elements(self, it);
    }

    fn visit_method_definition(&mut self, it: &mut MethodDefinition<'a>) {
        it.accessibility = None;
        it.optional = false;
        it.r#override = false;
        walk_js_mut::walk_method_definition(self, it);
    }

    fn visit_property_definition(&mut self, it: &mut PropertyDefinition<'a>) {
        it.type_annotation = None;
        it.accessibility = None;
        it.definite = false;
        it.optional = false;
        it.r#override = false;
        it.readonly = false;
        walk_js_mut::walk_property_definition(self, it);
    }
}

impl Types<'_> {
    fn refuse(&mut self, span: Span, message: &str) {
        self.refuse_as(IllegalKind::IllegalSyntax, span, message);
    }

    fn refuse_as(&mut self, kind: IllegalKind, span: Span, message: &str) {
        if self.violation.as_ref().is_none_or(|first| span.start < first.offset) {
            self.violation = Some(Violation::new(kind, span.start, message));
        }
    }
}

/// Tests for a statement that declares types and does nothing.
fn is_type_only(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::TSTypeAliasDeclaration(_) | Statement::TSInterfaceDeclaration(_) => true,
        Statement::VariableDeclaration(it) => it.declare,
        Statement::FunctionDeclaration(it) => it.declare || it.body.is_none(),
        Statement::ClassDeclaration(it) => it.declare,
        _ => false,
    }
}

/// Replaces a value with a type by the value.
fn without_type<'a>(typed: Expression<'a>) -> Expression<'a> {
    match typed {
        Expression::TSAsExpression(it) => it.unbox().expression,
        Expression::TSSatisfiesExpression(it) => it.unbox().expression,
        Expression::TSNonNullExpression(it) => it.unbox().expression,
        Expression::TSInstantiationExpression(it) => it.unbox().expression,
        Expression::TSTypeAssertion(it) => it.unbox().expression,
        plain => plain,
    }
}
