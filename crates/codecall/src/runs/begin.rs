//! The start of a run: what it runs with, and the first chunk of its journal.

use std::time::{SystemTime, UNIX_EPOCH};

use gatewright_core::{
    Caller, CallerAddress, codes, off_thread,
    rmcp::{RoleServer, model::JsonObject, service::RequestContext},
};
use gatewright_executions::{NewExecution, Terms};
use gatewright_shape::{Digits, keep_digits};
use serde_json::value::RawValue;

use super::{Past, RunJournal, RunStart, flow::Run, refusal::Refusal};
use crate::{CodeCall, call_log::CallLog, execute::ExecuteInput, nesting::Nesting, results::random_name};

/// Longest title of an execution, in characters: the beginning of its script.
const TITLE: usize = 80;

impl CodeCall {
    /// A new run.
    pub(super) async fn begin(
        &self,
        input: ExecuteInput,
        log: Option<CallLog>,
        terms: Terms,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Run, Refusal> {
        let (settings, bytes) = (self.settings(), input.bulk());
        let Some(script) = input.script else {
            let message = "name a `script` to run, or an execution to `resume`".to_owned();
            return Err(Refusal::new(codes::VALIDATION_ERROR, message));
        };
        let Ok(seed) = getrandom::u64() else {
            let message = "the system gives no random numbers".to_owned();
            return Err(Refusal::new(codes::TOOL_EXECUTION_ERROR, message));
        };
        let (calls_left, is_within) = (
            context.extensions.get::<Nesting>().map(Nesting::calls_left),
            Nesting::is_within(&context.extensions),
        );
        let address = CallerAddress::of(context).map(|at| at.0);
        let (executions, owner, has_journals) =
            (self.executions.clone(), caller.principal().clone(), self.has_journals);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let begin = move || {
            let mut start = RunStart {
                context: input.context.and_then(|context| context_of(&context)),
                allowed_tools: input.allowed_tools,
                log: log.unwrap_or(settings.config.vm.call_log),
                limits: settings.limits.clone(),
                policy: settings.policy.clone(),
                seed,
                started_ms: u64::try_from(now.as_millis()).unwrap_or(0),
                handles: random_name(),
                detached: input.detach.unwrap_or_default() && input.dry_run.is_none(),
                dry_run: input.dry_run,
                script,
            };
            if let Some(calls_left) = calls_left {
                start.limits.max_tool_calls = calls_left;
            }
            if start.detached {
                start.limits.wait = Some(settings.config.vm.wait());
            }
            let title = input
                .title
                .as_deref()
                .unwrap_or_else(|| start.script.trim_start().lines().next().unwrap_or_default());
            let about = NewExecution {
                title: Some(shortened(title)),
                script: digest(&start.script),
                detached: start.detached,
                terms,
                address,
                ..NewExecution::default()
            };
            let mut draft = executions.draft(&owner, about);
            // It is refused before anything is read of it.
            if start.script.len() as u64 > start.limits.script_bytes && !start.detached {
                draft.drop_journal();
            }
            let journal = match has_journals {
                true => RunJournal::begin(draft, &start, settings.limits.host_bytes),
                false => RunJournal::none(draft.id()),
            };
            let journal = if is_within { journal.within() } else { journal };
            let mut run = Run::new(start, Past::default(), journal, settings);
            run.address = address;
            run
        };
        Ok(off_thread(bytes, begin).await)
    }
}

/// The context as scripts read it: integers that JavaScript would round are text, as they are in results.
fn context_of(context: &JsonObject) -> Option<Box<RawValue>> {
    let text = serde_json::to_string(context).ok()?;
    RawValue::from_string(keep_digits(&text, Digits::OfIntegers).into_owned()).ok()
}

fn digest(script: &str) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, script.as_bytes());
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

/// A title of at most [`TITLE`] characters. One that goes on ends with `…`.
fn shortened(title: &str) -> String {
    match title.chars().nth(TITLE) {
        Some(_) => title.chars().take(TITLE - 1).chain(['…']).collect(),
        None => title.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_title_says_that_it_goes_on() {
        assert_eq!(shortened(&"é".repeat(TITLE)), "é".repeat(TITLE));
        assert_eq!(shortened(&"é".repeat(TITLE + 1)), format!("{}…", "é".repeat(TITLE - 1)));
    }
}
