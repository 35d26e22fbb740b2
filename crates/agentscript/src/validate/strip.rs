//! Types: where they are, so that blanks can stand in for them.
//!
//! Everything TypeScript adds that is not a plain annotation (enums, namespaces, decorators, parameter properties) is refused.

use oxc::{
    ast::{
        AstKind,
        ast::{
            Class, FormalParameter, Function, FunctionType, MethodDefinition, Program, PropertyDefinition,
            TSTypeAnnotation,
        },
    },
    ast_visit::VisitJs,
    span::{GetSpan, Span},
};

use super::{
    Refusal,
    edits::{Change, Edit},
};
use crate::outcome::IllegalKind;

/// The blanks that turn a typed program into JavaScript.
///
/// # Errors
/// The program uses more of TypeScript than types.
pub(super) fn erasures(text: &str, program: &Program<'_>) -> Result<Vec<Edit>, Refusal> {
    let mut strip = Strip { text, blanks: Vec::new(), refusal: None };
    strip.visit_program(program);
    strip.refusal.map_or(Ok(strip.blanks), Err)
}

struct Strip<'t> {
    text: &'t str,
    blanks: Vec<Edit>,
    refusal: Option<Refusal>,
}

impl<'a> VisitJs<'a> for Strip<'_> {
    fn enter_node(&mut self, node: AstKind<'a>) {
        match node {
            AstKind::TSAsExpression(it) => self.blank(it.expression.span().end, it.span.end),
            AstKind::TSSatisfiesExpression(it) => self.blank(it.expression.span().end, it.span.end),
            AstKind::TSNonNullExpression(it) => self.blank(it.expression.span().end, it.span.end),
            AstKind::TSInstantiationExpression(it) => self.blank(it.expression.span().end, it.span.end),
            AstKind::TSTypeAssertion(it) => {
                let (start, end) = (it.span.start, it.expression.span().start);
                if self.has_line_end(start, end) {
                    self.refuse(it.span, "write this type assertion on one line, or as `value as Type`");
                }
                self.blank(start, end);
            }
            AstKind::CallExpression(it) => self.blank_some(it.type_arguments.as_deref().map(GetSpan::span)),
            AstKind::NewExpression(it) => self.blank_some(it.type_arguments.as_deref().map(GetSpan::span)),
            AstKind::TaggedTemplateExpression(it) => {
                self.blank_some(it.type_arguments.as_deref().map(GetSpan::span))
            }
            AstKind::VariableDeclaration(it) if it.declare => self.blank_statement(it.span),
            AstKind::VariableDeclarator(it) if it.definite || it.type_annotation.is_some() => {
                let end =
                    it.type_annotation.as_deref().map_or(it.id.span().end, |annotation| annotation.span.end);
                self.blank(it.id.span().end, end);
            }
            AstKind::CatchParameter(it) => self.blank_annotation(it.type_annotation.as_deref()),
            AstKind::FormalParameter(it) => self.parameter(it),
            AstKind::FormalParameterRest(it) => self.blank_annotation(it.type_annotation.as_deref()),
            AstKind::Function(it) => self.function(it),
            AstKind::ArrowFunctionExpression(it) => {
                self.blank_some(it.type_parameters.as_deref().map(GetSpan::span));
                if let Some(annotation) = it.return_type.as_deref() {
                    self.return_type(it.params.span, annotation.span);
                }
            }
            AstKind::Class(it) => self.class(it),
            AstKind::MethodDefinition(it) => self.method(it),
            AstKind::PropertyDefinition(it) => self.property(it),
            AstKind::TSEnumDeclaration(it) => {
                self.refuse(it.span, "`enum` is not part of AgentScript; use an object with `as const`")
            }
            AstKind::TSNamespaceDeclaration(it) => {
                self.refuse(it.span, "namespaces are not part of AgentScript; use an object")
            }
            AstKind::TSExternalModuleDeclaration(it) => {
                self.refuse(it.span, "module declarations are not part of AgentScript")
            }
            AstKind::TSGlobalDeclaration(it) => {
                self.refuse(it.span, "`declare global` is not part of AgentScript")
            }
            AstKind::TSImportEqualsDeclaration(it) => self.refuse_module(it.span),
            AstKind::TSExportAssignment(it) => self.refuse_module(it.span),
            AstKind::TSNamespaceExportDeclaration(it) => self.refuse_module(it.span),
            AstKind::ImportDeclaration(it) => self.refuse_module(it.span),
            AstKind::Decorator(it) => self.refuse(it.span, "decorators are not part of AgentScript"),
            AstKind::AccessorProperty(it) => {
                self.refuse(it.span, "`accessor` fields are not part of AgentScript")
            }
            _ => {}
        }
    }

    fn leave_node(&mut self, node: AstKind<'a>) {
        // `a as T` and a line end: without the type the next line could join this one.
        if matches!(
            node,
            AstKind::ExpressionStatement(_)
                | AstKind::VariableDeclaration(_)
                | AstKind::ReturnStatement(_)
                | AstKind::ThrowStatement(_)
                | AstKind::PropertyDefinition(_)
        ) {
            self.end_statement(node.span());
        }
    }

    fn visit_declaration(&mut self, it: &oxc::ast::ast::Declaration<'a>) {
        use oxc::ast::ast::Declaration;
        match it {
            Declaration::TSTypeAliasDeclaration(it) => self.blank_statement(it.span),
            Declaration::TSInterfaceDeclaration(it) => self.blank_statement(it.span),
            it => oxc::ast_visit::walk_js::walk_declaration(self, it),
        }
    }

    fn visit_class_element(&mut self, it: &oxc::ast::ast::ClassElement<'a>) {
        if let oxc::ast::ast::ClassElement::TSIndexSignature(it) = it {
            self.blank_statement(it.span);
        } else {
            oxc::ast_visit::walk_js::walk_class_element(self, it);
        }
    }
}

impl Strip<'_> {
    fn blank(&mut self, start: u32, end: u32) {
        if start < end {
            self.blanks.push(Edit::blank(start, end));
        }
    }

    fn blank_some(&mut self, span: Option<Span>) {
        if let Some(span) = span {
            self.blank(span.start, span.end);
        }
    }

    fn blank_annotation(&mut self, annotation: Option<&TSTypeAnnotation<'_>>) {
        self.blank_some(annotation.map(|annotation| annotation.span));
    }

    /// A statement that vanishes still ends the one before it.
    fn blank_statement(&mut self, span: Span) {
        self.blanks.push(Edit {
            start: span.start,
            end: span.end,
            change: Change::Blank { first: ';', last: ' ' },
        });
    }

    fn end_statement(&mut self, statement: Span) {
        for edit in self.blanks.iter_mut().rev().take_while(|edit| edit.end >= statement.start) {
            if edit.end == statement.end && edit.start > statement.start {
                edit.change = Change::Blank { first: ';', last: ' ' };
            }
        }
    }

    fn refuse(&mut self, span: Span, message: &str) {
        if self.refusal.as_ref().is_none_or(|first| span.start < first.offset) {
            self.refusal = Some(Refusal::new(IllegalKind::IllegalSyntax, span.start, message));
        }
    }

    fn refuse_module(&mut self, span: Span) {
        self.refuse(span, "modules are not available; call tools with `await callTool(name, input)`");
        if let Some(refusal) = &mut self.refusal
            && refusal.offset == span.start
        {
            refusal.kind = IllegalKind::IllegalModuleAccess;
        }
    }

    fn has_line_end(&self, start: u32, end: u32) -> bool {
        self.text[start as usize..end as usize].contains(['\n', '\r'])
    }

    fn parameter(&mut self, it: &FormalParameter<'_>) {
        if it.accessibility.is_some() || it.readonly || it.r#override {
            self.refuse(it.span, "parameter properties are not part of AgentScript; assign `this.name = name` in the constructor");
        }
        let end = it.type_annotation.as_deref().map(|annotation| annotation.span.end);
        if it.optional {
            let from = it.pattern.span().end;
            let mark = self.text[from as usize..]
                .find('?')
                .map_or(from, |at| from + u32::try_from(at).unwrap_or(0) + 1);
            self.blank(from, end.unwrap_or(mark));
        } else {
            self.blank_annotation(it.type_annotation.as_deref());
        }
    }

    /// An arrow may not stand on another line than its parameters: the closing parenthesis moves behind the type.
    fn return_type(&mut self, parameters: Span, annotation: Span) {
        if self.has_line_end(annotation.start, annotation.end)
            && self.text.as_bytes().get(parameters.end as usize - 1) == Some(&b')')
        {
            let change = Change::Blank { first: ' ', last: ')' };
            self.blanks.push(Edit { start: parameters.end - 1, end: annotation.end, change });
        } else {
            self.blank(annotation.start, annotation.end);
        }
    }

    fn function(&mut self, it: &Function<'_>) {
        if it.declare || it.r#type == FunctionType::TSDeclareFunction {
            self.blank_statement(it.span);
            return;
        }
        self.blank_some(it.type_parameters.as_deref().map(GetSpan::span));
        if let Some(this) = it.this_param.as_deref() {
            let end = this.span.end as usize;
            let rest = &self.text[end..];
            let comma = rest.len() - rest.trim_start().len();
            let extra = if rest.trim_start().starts_with(',') { comma + 1 } else { 0 };
            self.blank(this.span.start, u32::try_from(end + extra).unwrap_or(this.span.end));
        }
        self.blank_annotation(it.return_type.as_deref());
    }

    fn class(&mut self, it: &Class<'_>) {
        if it.declare {
            self.blank_statement(it.span);
            return;
        }
        if it.r#abstract {
            let end = it.span.start + "abstract".len() as u32;
            if self.text[it.span.start as usize..].starts_with("abstract") {
                self.blank(it.span.start, end);
            }
        }
        self.blank_some(it.type_parameters.as_deref().map(GetSpan::span));
        if let Some(heritage) = &it.heritage {
            self.blank_some(heritage.type_arguments.as_deref().map(GetSpan::span));
        }
        if let (Some(first), Some(last)) = (it.implements.first(), it.implements.last()) {
            let before = &self.text[it.span.start as usize..first.span.start as usize];
            if let Some(at) = before.rfind("implements") {
                self.blank(it.span.start + u32::try_from(at).unwrap_or(0), last.span.end);
            }
        }
    }

    fn method(&mut self, it: &MethodDefinition<'_>) {
        if it.value.body.is_none() {
            self.blank_statement(it.span);
            return;
        }
        self.modifiers(it.span.start, it.key.span().start);
        if it.optional {
            self.mark_after(it.key.span().end, '?');
        }
    }

    fn property(&mut self, it: &PropertyDefinition<'_>) {
        if it.declare || it.r#type == oxc::ast::ast::PropertyDefinitionType::TSAbstractPropertyDefinition {
            self.blank_statement(it.span);
            return;
        }
        self.modifiers(it.span.start, it.key.span().start);
        if it.optional {
            self.mark_after(it.key.span().end, '?');
        }
        if it.definite {
            self.mark_after(it.key.span().end, '!');
        }
        self.blank_annotation(it.type_annotation.as_deref());
    }

    /// Blanks the next `mark` at or behind `from`.
    fn mark_after(&mut self, from: u32, mark: char) {
        if let Some(at) = self.text[from as usize..].find(mark) {
            let at = from + u32::try_from(at).unwrap_or(0);
            self.blank(at, at + 1);
        }
    }

    /// Blanks `private`, `readonly` and the like in front of a member's name.
    fn modifiers(&mut self, start: u32, end: u32) {
        let mut first = true;
        let mut at = start as usize;
        let between = &self.text[..end as usize];
        while at < between.len() {
            let rest = &between[at..];
            if let Some(comment) = rest.strip_prefix("/*") {
                at += comment.find("*/").map_or(rest.len(), |len| len + 4);
                continue;
            }
            if rest.starts_with("//") {
                at += rest.find(['\n', '\r']).unwrap_or(rest.len());
                continue;
            }
            let len = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            if len == 0 {
                at += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            }
            if matches!(
                &rest[..len],
                "private" | "public" | "protected" | "readonly" | "override" | "abstract" | "declare"
            ) {
                let (start, end) =
                    (u32::try_from(at).unwrap_or(start), u32::try_from(at + len).unwrap_or(end));
                let change = Change::Blank { first: if first { ';' } else { ' ' }, last: ' ' };
                self.blanks.push(Edit { start, end, change });
            }
            first = false;
            at += len;
        }
    }
}
