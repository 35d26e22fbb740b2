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
use gatewright_core::{Paging, ToolEntry, codes};

use crate::{pages::no_pages, shapes::ResultShape};

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
pub(crate) fn work(facts: &PlanFacts) -> usize {
    fn values(partial: &Partial) -> usize {
        match partial {
            Partial::Hole { .. } | Partial::Scalar(_) => 1,
            Partial::List(items) => items.iter().map(values).sum::<usize>() + 1,
            Partial::Object { members, .. } => members.iter().map(|it| values(&it.value)).sum::<usize>() + 1,
        }
    }
    let inputs: usize = facts.calls.iter().filter_map(|call| call.input.as_ref()).map(values).sum();
    1_000 * facts.calls.len() + 100 * facts.uses.len() + 100 * inputs
}

/// Judges a plan. The first call that is certain to fail and whose error the script does not catch is refused; what else is wrong is
/// a warning.
pub(crate) fn judge(facts: &PlanFacts, tools: &Tools) -> PlanVerdict {
    let caught: HashSet<&str> =
        facts.calls.iter().filter(|call| !call.ends_run).map(|call| call.name.as_str()).collect();
    let mut verdict = PlanVerdict::default();
    let mut unknown = HashSet::new();
    for call in &facts.calls {
        let problem = match tools.get(&call.name) {
            Some(Named::Tool { entry, .. }) => input::check(call, entry).or_else(|| pages(call, entry)),
            // A script that asks for a tool where it may be missing knows that it may be.
            Some(Named::Unknown(failure)) if unknown.insert(&call.name) => {
                Some(unknown_tool(call, failure, !caught.contains(call.name.as_str())))
            }
            Some(Named::Unknown(_) | Named::Undecided) | None => None,
        };
        if let Some(Named::Tool { entry, .. }) = tools.get(&call.name) {
            verdict.warnings.extend(input::unnamed(call, entry));
        }
        let Some(Problem { at, code, message, is_certain }) = problem else { continue };
        if is_certain && call.ends_run && verdict.refusal.is_none() {
            let message = format!("{message}. The plan was checked before it ran: no tool was called");
            verdict.refusal = Some(PlanRefusal { at, tool_name: call.name.clone(), code, message });
        } else {
            verdict.warnings.push(PlanWarning { at, message });
        }
    }
    reads::check(facts, tools, &mut verdict.warnings);
    verdict.warnings.extend(discarded(facts, tools));
    for warning in &mut verdict.warnings {
        warning.message = words::printable(&warning.message);
    }
    if let Some(refusal) = &mut verdict.refusal {
        refusal.message = words::printable(&refusal.message);
    }
    verdict
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

/// A last call whose result nobody sees. Tools that change something may be called for that alone.
fn discarded(facts: &PlanFacts, tools: &Tools) -> Option<PlanWarning> {
    let call = facts.calls.get(facts.discarded? as usize)?;
    let Some(Named::Tool { entry, .. }) = tools.get(&call.name) else { return None };
    let only_reads = entry.tool.annotations.as_ref()?.read_only_hint == Some(true);
    only_reads.then(|| PlanWarning {
        at: call.at,
        message: format!(
            "the result of `{}` is not returned, so the result of the plan is null; write `return await callTool(…)`",
            words::display_name(&call.name)
        ),
    })
}

/// `TOOL_NOT_FOUND` is for the check to report; other failures of the lookup are left to the call.
pub(crate) fn is_unknown(failure: &ToolFailure) -> bool {
    failure.code == codes::TOOL_NOT_FOUND
}
