//! Runs in the background as MCP tasks (SEP-2663): their id is that of the execution.

use std::time::{Duration, UNIX_EPOCH};

use gatewright_core::{
    AppFuture, Caller, PluginTasks,
    rmcp::{
        ErrorData,
        model::{
            CancelTaskParams, CreateTaskResult, DetailedTask, GetTaskParams, GetTaskResult, Task,
            TaskPayload, TaskStatus, UpdateTaskParams,
        },
    },
};
use gatewright_executions::{Ending, ExecutionError, ExecutionId, Head, Reader, State};
use serde_json::{Value, json};

use super::{
    Past,
    answering::asks_anybody,
    questions::{Waiting, by_call, requests},
    refusal::Refusal,
};
use crate::CodeCall;

/// Time that a client is asked to wait before it looks again, in milliseconds.
const POLL_MS: u64 = 1_000;

impl CodeCall {
    /// The answer to a client that follows tasks, when its run begins in the background.
    ///
    /// # Errors
    /// The store does not answer.
    pub(crate) async fn created_task(
        &self,
        id: ExecutionId,
        caller: &Caller,
    ) -> Result<CreateTaskResult, Refusal> {
        let reader = Reader::Owner(caller.principal());
        let head = self.executions.head(&id.to_string(), reader).await?;
        Ok(CreateTaskResult::new(described(&head)))
    }
}

impl CodeCall {
    /// Goes on with a run in the background whose approval was decided on elsewhere, whose user has signed in, or that waits for its owner alone. Returns `true` if it did.
    async fn goes_on(&self, id: &str, waiting: &[Waiting], caller: &Caller) -> bool {
        if asks_anybody(waiting) && !self.can_go_on(waiting, caller).await {
            return false;
        }
        match self.acquire(id, caller, None).await {
            Ok(run) => self.detach(run, caller).await.is_ok(),
            Err(_) => false,
        }
    }
}

impl PluginTasks for CodeCall {
    fn is_own(&self, id: &str) -> bool {
        id.parse::<ExecutionId>().is_ok()
    }

    fn get<'a>(
        &'a self,
        request: GetTaskParams,
        caller: &'a Caller,
    ) -> AppFuture<'a, Result<GetTaskResult, ErrorData>> {
        Box::pin(async move {
            let reader = Reader::Owner(caller.principal());
            let execution = self.executions.open(&request.task_id, reader).await.map_err(refused)?;
            let (head, past) = (execution.head, Past::open(execution.chunks).await.map(|(_, past)| past));
            let payload = match head.state {
                State::Running => TaskPayload::Working,
                State::Waiting => {
                    let waiting = past.unwrap_or_default().waiting();
                    match self.goes_on(&request.task_id, &waiting, caller).await {
                        true => TaskPayload::Working,
                        false => TaskPayload::InputRequired { input_requests: requests(&waiting) },
                    }
                }
                State::Ended => ended(&head, past.unwrap_or_default()),
            };
            Ok(GetTaskResult::new(DetailedTask::new(described(&head), payload)))
        })
    }

    fn update(&self, request: UpdateTaskParams, caller: Caller) -> AppFuture<'_, Result<(), ErrorData>> {
        Box::pin(async move {
            if let Some(answer) = self.update_at_other_instance(&request, &caller).await {
                return answer;
            }
            let refused = |refusal: Refusal| ErrorData::invalid_params(refusal.to_string(), None);
            let mut run = self.acquire(&request.task_id, &caller, None).await.map_err(refused)?;
            let (waiting, mut answers) = (run.past.waiting(), by_call(request.input_responses));
            answers.retain(|index, _| waiting.iter().any(|waiting| waiting.index == *index));
            run.answer(answers);
            self.detach(run, &caller).await.map(|_| ()).map_err(refused)
        })
    }

    fn cancel<'a>(
        &'a self,
        request: CancelTaskParams,
        caller: &'a Caller,
    ) -> AppFuture<'a, Result<(), ErrorData>> {
        Box::pin(async move {
            let ending = Ending::cancelled();
            let reader = Reader::Owner(caller.principal());
            match self.executions.cancel(&request.task_id, reader, &ending).await {
                Ok(()) => {
                    self.withdraw_calls(&request.task_id, caller).await;
                    Ok(())
                }
                // A task that has ended stays as it is.
                Err(ExecutionError::Ended) => Ok(()),
                Err(error) => Err(refused(error)),
            }
        })
    }
}

fn refused(error: ExecutionError) -> ErrorData {
    ErrorData::invalid_params(error.to_string(), Some(json!({"code": error.code()})))
}

fn ended(head: &Head, past: Past) -> TaskPayload {
    let result = past.reply.and_then(|reply| serde_json::to_value(reply).ok());
    match (result, &head.ending) {
        (Some(Value::Object(result)), _) => TaskPayload::Completed { result },
        (_, Some(ending)) if ending.is_cancelled() => TaskPayload::Cancelled,
        _ => {
            let error = json!({"code": -32603, "message": "the run ended, and its result was not kept"});
            TaskPayload::Failed { error: error.as_object().cloned().unwrap_or_default() }
        }
    }
}

fn described(head: &Head) -> Task {
    let time = |ms| {
        humantime_serde::re::humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms))
            .to_string()
    };
    let status = match head.state {
        State::Running => TaskStatus::Working,
        State::Waiting => TaskStatus::InputRequired,
        State::Ended => TaskStatus::Completed,
    };
    let calls = format!("{} calls", head.calls.made);
    Task::new(head.id.to_string(), status, time(head.created_ms), time(head.updated_ms))
        .with_status_message(calls)
        .with_ttl_ms(head.expires_ms.saturating_sub(head.created_ms))
        .with_poll_interval_ms(POLL_MS)
}
