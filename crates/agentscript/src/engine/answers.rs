//! The host's answers to the calls of a script.

use std::time::Instant;

use rquickjs::{Ctx, Object, Value};

use super::{limit_errors, state::RunState};
use crate::{host::ToolFailure, protocol::MessageKind};

/// The host's answer to a call.
pub(super) struct Answer<'js> {
    pub(super) id: u32,
    pub(super) ok: bool,
    /// The result, or code and message of the failure.
    pub(super) value: Value<'js>,
}

/// Waits for one frame of the pool; `None` when it was no answer, or one that ends the run. `question` is the id of the `getTool` that is waited for:
/// its answer stops the clock of a run whose deadline pauses, but does not set it back, for no limit counts such questions.
pub(super) fn receive<'js>(
    ctx: &Ctx<'js>,
    state: &RunState,
    question: Option<u32>,
) -> rquickjs::Result<Option<Answer<'js>>> {
    let mut link = state.link.borrow_mut();
    let began = Instant::now();
    let frame = link.next_answer();
    if state.deadline_pauses.get() {
        let is_answer = |kind| matches!(kind, MessageKind::Answer | MessageKind::Failure);
        let is_of_call =
            matches!(&frame, Ok(Some(frame)) if is_answer(frame.kind) && Some(frame.id) != question);
        state.deadline.set(match state.deadline.get() {
            Some(deadline) if !is_of_call => deadline.checked_add(began.elapsed()),
            _ => Instant::now().checked_add(state.limits.borrow().timeout),
        });
    }
    let Ok(Some(frame)) = frame else {
        state.end(limit_errors::timeout);
        return Ok(None);
    };
    if frame.run != state.run.get() {
        return Ok(None);
    }
    let (ok, value) = match frame.kind {
        MessageKind::Answer => {
            state.advance_clock(frame.head);
            (true, ctx.json_parse(frame.body)?)
        }
        MessageKind::Failure => {
            state.advance_clock(frame.body);
            let Ok(failure) = serde_json::from_str::<ToolFailure>(frame.head) else {
                state.end(limit_errors::timeout);
                return Ok(None);
            };
            if failure.ends_run {
                state.end(|_| limit_errors::by_host(&failure.code, failure.message));
                return Ok(None);
            }
            let value = Object::new(ctx.clone())?;
            value.set("code", failure.code)?;
            value.set("message", failure.message)?;
            if let Some(seconds) = failure.retry_after_seconds {
                value.set("retryAfterSeconds", seconds as f64)?;
            }
            if !failure.required_scopes.is_empty() {
                value.set("requiredScopes", failure.required_scopes)?;
            }
            (false, value.into_value())
        }
        MessageKind::Ping => {
            let (run, id) = (frame.run, frame.id);
            if link.send(MessageKind::Idle, run, id, "", &[]).is_err() {
                state.end(limit_errors::timeout);
            }
            return Ok(None);
        }
        _ => {
            state.end(limit_errors::timeout);
            return Ok(None);
        }
    };
    state.open.set(state.open.get().saturating_sub(1));
    Ok(Some(Answer { id: frame.id, ok, value }))
}
