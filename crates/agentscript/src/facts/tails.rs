//! The statements that a body may end with: the last one, and within blocks, branches, `try` and `switch` the last of each.

use oxc::ast::ast::{BreakStatement, Statement};

/// A statement that nothing follows.
#[derive(Clone, Copy)]
pub(crate) struct Tail<'p, 'a> {
    pub(crate) statement: &'p Statement<'a>,
    /// A `try` around it catches its error, or does something when it is done.
    pub(crate) in_try: bool,
    /// It is the last statement of the body itself.
    pub(crate) is_last: bool,
}

/// Returns the statements that `body` may end with, in order of the text. Functions that are declared behind them do not count.
pub(crate) fn tails<'p, 'a>(body: &'p [Statement<'a>]) -> Vec<Tail<'p, 'a>> {
    let mut tails = Tails(Vec::new());
    tails.body(body, Place { in_try: false, is_last: true, in_switch: false });
    tails.0
}

#[derive(Clone, Copy)]
struct Place {
    in_try: bool,
    is_last: bool,
    /// A `break` without a label ends the body.
    in_switch: bool,
}

struct Tails<'p, 'a>(Vec<Tail<'p, 'a>>);

impl<'p, 'a> Tails<'p, 'a> {
    fn body(&mut self, body: &'p [Statement<'a>], place: Place) {
        let is_passed_over = |it: &Statement<'_>| match it {
            Statement::FunctionDeclaration(_) | Statement::EmptyStatement(_) => true,
            Statement::BreakStatement(it) => place.in_switch && is_plain(it),
            _ => false,
        };
        if let Some(last) = body.iter().rfind(|it| !is_passed_over(it)) {
            self.statement(last, place);
        }
    }

    fn statement(&mut self, it: &'p Statement<'a>, place: Place) {
        let within = Place { is_last: false, ..place };
        match it {
            Statement::BlockStatement(it) => self.body(&it.body, within),
            Statement::IfStatement(it) => {
                self.statement(&it.consequent, within);
                if let Some(alternate) = &it.alternate {
                    self.statement(alternate, within);
                }
            }
            Statement::TryStatement(it) => {
                self.body(&it.block.body, Place { in_try: true, ..within });
                if let Some(handler) = &it.handler {
                    let in_try = place.in_try || it.finalizer.is_some();
                    self.body(&handler.body.body, Place { in_try, ..within });
                }
            }
            Statement::SwitchStatement(it) => {
                for (at, case) in it.cases.iter().enumerate() {
                    let is_left = matches!(case.consequent.last(), Some(last) if ends_with_break(last));
                    if is_left || at + 1 == it.cases.len() {
                        self.body(&case.consequent, Place { in_switch: true, ..within });
                    }
                }
            }
            Statement::LabeledStatement(it) if matches!(it.body, Statement::BlockStatement(_)) => {
                self.statement(&it.body, within);
            }
            statement => {
                self.0.push(Tail { statement, in_try: place.in_try, is_last: place.is_last });
            }
        }
    }
}

fn is_plain(it: &BreakStatement<'_>) -> bool {
    it.label.is_none()
}

/// Tests for a `break` without a label, or a block that ends with one.
fn ends_with_break(it: &Statement<'_>) -> bool {
    match it {
        Statement::BreakStatement(it) => is_plain(it),
        Statement::BlockStatement(it) => it.body.last().is_some_and(ends_with_break),
        _ => false,
    }
}
