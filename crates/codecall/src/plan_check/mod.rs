//! Checks of plans before their first call: names, inputs and reads of results, against the tools that the caller may use.
//!
//! The facts come from the worker, which may lie: they are bounded, and a lie costs its own run the check. `input` judges inputs,
//! `reads` what a script reads of results, by the `shape` of each; `words` writes names that others chose.

mod input;
mod reads;
mod shape;
#[cfg(test)]
mod tests;
mod words;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use gatewright_agentscript::{
    CallSite, Origin, Partial, PlanFacts, PlanRefusal, PlanVerdict, PlanWarning, ToolFailure,
};
use gatewright_core::{Paging, ToolEntry, codes, rmcp::model::JsonObject};

use crate::{pages::no_pages, shapes::ResultShape};
use input::Unnamed;
use reads::BadRead;

/// Most tools of one plan that are looked up.
pub(crate) const MOST_TOOLS: usize = 50;
/// Most names without a tool that are looked up: for each, every tool's name is compared.
pub(crate) const MOST_UNKNOWN: usize = 5;

/// A tool that a plan names.
pub(crate) enum Named {
    /// It exists.
    Tool { entry: Arc<ToolEntry>, shape: Option<ResultShape> },
    /// There is none for the caller.
    Unknown(ToolFailure),
    /// Only the call itself can tell.
    Undecided,
}

/// The tools of a plan by the names that it uses.
pub(crate) type Tools = HashMap<String, Named>;

/// A problem of a call.
struct Problem {
    at: u32,
    code: String,
    message: String,
    /// The call is certain to be refused.
    is_certain: bool,
}

/// The calls whose results a plan reads.
pub(crate) fn read_calls(facts: &PlanFacts) -> HashSet<u32> {
    let call = |of: Origin| match of {
        Origin::Call(index) => Some(index),
        Origin::Use(_) => None,
    };
    facts.uses.iter().filter_map(|read| call(read.of)).collect()
}

/// The work of a check, as a number of bytes for `off_thread`.
pub(crate) fn work(facts: &PlanFacts, tools: &Tools) -> usize {
    fn values(partial: &Partial) -> usize {
        match partial {
            Partial::Hole { .. } | Partial::Scalar(_) => 1,
            Partial::List(items) => items.iter().map(values).sum::<usize>() + 1,
            Partial::Object { members, .. } => members.iter().map(|it| values(&it.value)).sum::<usize>() + 1,
        }
    }
    let inputs: usize = facts.calls.iter().filter_map(|call| call.input.as_ref()).map(values).sum();
    let entries = tools.values().filter_map(|named| match named {
        Named::Tool { entry, .. } => Some(entry.input_work()),
        Named::Unknown(_) | Named::Undecided => None,
    });
    let schemas = entries.fold(0usize, usize::saturating_add);
    (1_000 * facts.calls.len() + 100 * facts.uses.len() + 100 * inputs).saturating_add(schemas)
}

/// Room for the schemas that inputs are checked against. Schemas are compiled at their first use: those for which there is no room are left
/// to the calls.
struct SchemaRoom<'t> {
    left: usize,
    taken: HashSet<&'t str>,
}

impl<'t> SchemaRoom<'t> {
    /// Work on all schemas of a plan, as [`ToolEntry::input_work`] counts it.
    const ALL: usize = 2 << 20;
    /// Most that one counts as.
    const ONE: usize = Self::ALL / 4;

    fn new() -> Self {
        Self { left: Self::ALL, taken: HashSet::new() }
    }

    fn holds(&mut self, name: &'t str, tool: &ToolEntry) -> bool {
        if self.taken.contains(name) {
            return true;
        }
        let Some(left) = self.left.checked_sub(tool.input_work().min(Self::ONE)) else { return false };
        self.left = left;
        self.taken.insert(name)
    }
}

/// Judges a plan. The first call that is certain to fail and whose error the script does not catch is refused; what else is wrong is
/// a warning. A rehearsal is also refused for a read of what a declared result does not have: a plan that goes on with `undefined` shows
/// nothing.
pub(crate) fn judge(facts: &PlanFacts, tools: &Tools, is_rehearsal: bool) -> PlanVerdict {
    let caught: HashSet<&str> =
        facts.calls.iter().filter(|call| !call.ends_run).map(|call| call.name.as_str()).collect();
    let mut verdict = PlanVerdict::default();
    let (mut unknown, mut room) = (HashSet::new(), SchemaRoom::new());
    for call in &facts.calls {
        let problem = match tools.get(&call.name) {
            Some(Named::Tool { entry, .. }) => {
                let has_room = room.holds(&call.name, entry);
                let bad_input = has_room.then(|| input::check(call, entry)).flatten();
                bad_input.or_else(|| pages(call, entry))
            }
            // A script that asks for a tool where it may be missing knows that it may be.
            Some(Named::Unknown(failure)) if unknown.insert(&call.name) => {
                Some(unknown_tool(call, failure, !caught.contains(call.name.as_str())))
            }
            Some(Named::Unknown(_) | Named::Undecided) | None => None,
        };
        let mut problems = Vec::from_iter(problem);
        if let Some(Named::Tool { entry, .. }) = tools.get(&call.name) {
            for Unnamed { warning: PlanWarning { at, message }, is_misspelt } in input::unnamed(call, entry) {
                let code = codes::VALIDATION_ERROR.to_owned();
                problems.push(Problem { at, code, message, is_certain: is_misspelt });
            }
        }
        for Problem { at, code, message, is_certain } in problems {
            if is_certain && call.ends_run && verdict.refusal.is_none() {
                let message = refused(&message, "The plan was checked before it ran: no tool was called");
                verdict.refusal = Some(PlanRefusal { at, tool_name: call.name.clone(), code, message });
            } else {
                verdict.warnings.push(PlanWarning { at, message });
            }
        }
    }
    for BadRead { warning, call, is_certain } in reads::check(facts, tools, reads::ENOUGH_ANSWERS) {
        match facts.calls.get(call as usize) {
            Some(call) if is_rehearsal && is_certain && verdict.refusal.is_none() => {
                let message = refused(&warning.message, READ_REFUSED);
                let code = codes::VALIDATION_ERROR.to_owned();
                verdict.refusal =
                    Some(PlanRefusal { at: warning.at, tool_name: call.name.clone(), code, message });
            }
            _ => verdict.warnings.push(warning),
        }
    }
    make_printable(&mut verdict.warnings);
    if let Some(refusal) = &mut verdict.refusal {
        refusal.message = words::printable(&refusal.message);
    }
    verdict
}

/// The message on the first parameter of `input` that looks like a misspelt one of `tool`: the server may ignore it, and with `dry_run` for `dryRun` it would
/// act for real.
pub(crate) fn misspelt(tool: &ToolEntry, input: &JsonObject) -> Option<String> {
    let members: Vec<_> = input.keys().map(|name| (name.as_str(), 0)).collect();
    let found = input::unnamed_of(&tool.tool.name, &members, tool);
    let first = found.into_iter().find(|unnamed| unnamed.is_misspelt)?;
    Some(words::printable(&refused(&first.warning.message, "Nothing was called")))
}

/// Warnings about reads of what answers of the run itself lacked, by the shapes that were learned from them.
pub(crate) fn in_hindsight(facts: &PlanFacts, tools: &Tools) -> Vec<PlanWarning> {
    let mut warnings = reads::check(facts, tools, 1).into_iter().map(|bad| bad.warning).collect();
    make_printable(&mut warnings);
    warnings
}

fn make_printable(warnings: &mut Vec<PlanWarning>) {
    for warning in warnings {
        warning.message = words::printable(&warning.message);
    }
}

/// End of the message about a read for which a rehearsal is refused.
const READ_REFUSED: &str = "A dry run is refused for this, a run would be warned: no tool was called. Write `value.name ?? …` if the tool \
returns more than it declares";

/// A problem and what became of the plan.
fn refused(problem: &str, end: &str) -> String {
    let stop = if problem.ends_with('?') { "" } else { "." };
    format!("{problem}{stop} {end}")
}

/// `paginate` for a tool without pages.
fn pages(call: &CallSite, tool: &ToolEntry) -> Option<Problem> {
    (call.paginated && tool.paging() == Paging::Unavailable).then(|| Problem {
        at: call.at,
        code: codes::VALIDATION_ERROR.to_owned(),
        message: no_pages(&words::display_name(&call.name)),
        is_certain: true,
    })
}

fn unknown_tool(call: &CallSite, failure: &ToolFailure, is_certain: bool) -> Problem {
    Problem { at: call.at, code: failure.code.clone(), message: failure.message.clone(), is_certain }
}

/// `TOOL_NOT_FOUND` is for the check to report; other failures of the lookup are left to the call.
pub(crate) fn is_unknown(failure: &ToolFailure) -> bool {
    failure.code == codes::TOOL_NOT_FOUND
}
