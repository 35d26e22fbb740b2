//! Collects facts about the tool calls of a checked script, in one walk over its tree.
//!
//! A fact is reported only when the text makes it certain: constants, destructuring, callbacks of array methods, `await` and the like are
//! followed; variables that change, and everything else, end the trail. The work and the facts are bounded.
//!
//! `known` has the values that the walk follows, `reads` the reads of results, `literal` inputs, `collector` statements, `values`
//! expressions, `methods` calls of methods, `ending` the value that a script ends with, `tails` the statements
//! that it may end with, `forms` whole scripts.

mod collector;
mod ending;
mod forms;
mod known;
mod literal;
mod methods;
mod reads;
mod tails;
mod values;

pub(crate) use ending::{is_result, returns};
use oxc::{ast::ast::Program, semantic::Scoping};
pub(crate) use tails::{Tail, tails};

use crate::plan::PlanFacts;

/// Collects the facts of a program without types. Its places are byte offsets in the text that was parsed.
///
/// At each of `unsaid`, in order, a `return` was put in. Also returns whether `callTool` is used for nothing but calls that are among the facts.
pub(crate) fn collect(program: &Program<'_>, scoping: &Scoping, unsaid: &[u32]) -> (PlanFacts, bool) {
    collector::Collector::new(scoping, program.source_text, unsaid).collect(program)
}
