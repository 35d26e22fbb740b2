//! Runs that wait in a call which another instance holds open: what takes them on is brought there.

use std::net::IpAddr;

use gatewright_core::{
    Caller, CallerAddress, PassedOn,
    rmcp::{
        ErrorData, RoleServer,
        model::{
            CallToolResult, ClientCapabilities, InputResponses, JsonObject, TASKS_EXTENSION_ID,
            UpdateTaskParams,
        },
        service::RequestContext,
    },
};
use gatewright_executions::{ABORTED, ExecutionError, ExecutionId, Head, Reader, State};
use serde_json::{Value, json};

use super::{
    Past, Ticket,
    ask::Round,
    flow::{Entered, Next},
    questions::{Open, Waiting, held_call},
    refusal::Refusal,
};
use crate::{CodeCall, execute::ExecuteInput, meta_tools::EXECUTE};

impl CodeCall {
    /// Has the instance that holds a call of the task take the answers. `None` if that is this one, or is gone.
    pub(super) async fn update_at_other_instance(
        &self,
        request: &UpdateTaskParams,
        caller: &Caller,
    ) -> Option<Result<(), ErrorData>> {
        if !self.invoker.has_others() {
            return None;
        }
        let reader = Reader::Owner(caller.principal());
        let execution = self.executions.open(&request.task_id, reader).await.ok()?;
        if execution.head.state != State::Waiting {
            return None;
        }
        let waiting = Past::open(execution.chunks).await?.1.waiting();
        self.update_at(held_call(&waiting)?, request, caller, &execution.head).await
    }

    /// Has the instance that holds the call of `state` take the answers.
    async fn update_at(
        &self,
        state: &str,
        request: &UpdateTaskParams,
        caller: &Caller,
        head: &Head,
    ) -> Option<Result<(), ErrorData>> {
        let mut capabilities = ClientCapabilities::default();
        capabilities
            .extensions
            .get_or_insert_default()
            .insert(TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
        let params = json!({"taskId": request.task_id, "inputResponses": request.input_responses});
        let passed = passed_on("tasks/update", &request.task_id, params, capabilities, head.about.address);
        let answer = self.invoker.pass_on(state, caller, passed).await?;
        Some(answer.map(drop))
    }

    /// Has the instance that holds the call of `state` cancel it, of a run that was cancelled here.
    pub(super) async fn cancel_at_other_instance(&self, state: &str, id: &str, caller: &Caller, head: &Head) {
        let params = json!({"name": EXECUTE, "arguments": {"resume": id, "cancel": true}});
        let capabilities = ClientCapabilities::default();
        let passed = passed_on("tools/call", EXECUTE, params, capabilities, head.about.address);
        let _ = self.invoker.pass_on(state, caller, passed).await;
    }

    /// Has the instance that holds a call of a run go on with it, with the answers to the questions `asks`, for a client that waits here. `None` if that is
    /// this one, or is gone.
    pub(super) async fn go_on_at_other_instance(
        &self,
        open: &Open,
        asks: &[Round],
        responses: &InputResponses,
        (caller, context): (&Caller, &RequestContext<RoleServer>),
    ) -> Option<Result<Next, Refusal>> {
        let state = held_call(&open.waiting)?;
        let id = open.id.to_string();
        let input = ExecuteInput { resume: Some(id), ..ExecuteInput::default() };
        let ticket = Ticket::new(open.id, &input.digest(), asks.to_vec(), open.expires_ms);
        let ticket = ticket.seal(&self.invoker, caller.principal())?;
        let answers = Some((ticket, responses));
        self.bring_home(state, (open.id, &open.request), answers, (caller, context)).await
    }

    /// Has the instance that holds the call of `state` go on with its run, for a client that waits here with `request`. `None` if that is this one, or is gone.
    pub(super) async fn bring_home(
        &self,
        state: &str,
        (id, request): (ExecutionId, &str),
        answers: Option<(String, &InputResponses)>,
        (caller, context): (&Caller, &RequestContext<RoleServer>),
    ) -> Option<Result<Next, Refusal>> {
        if !self.invoker.has_others() {
            return None;
        }
        let id = id.to_string();
        let mut params = json!({"name": EXECUTE, "arguments": {"resume": id}});
        if let Some((ticket, responses)) = answers {
            params["requestState"] = ticket.into();
            params["inputResponses"] = json!(responses);
        }
        let mut capabilities = context.client_capabilities().unwrap_or_default();
        if let Some(extensions) = &mut capabilities.extensions {
            // Its client follows no tasks.
            extensions.remove(TASKS_EXTENSION_ID);
        }
        let address = CallerAddress::of(context).map(|at| at.0);
        let passed = passed_on("tools/call", EXECUTE, params, capabilities, address);
        let answer = tokio::select! {
            biased;
            () = context.ct.cancelled() => return Some(Err(Refusal::new(ABORTED, "the request was cancelled"))),
            answer = self.invoker.pass_on(state, caller, passed) => answer?,
        };
        Some(match answer {
            Ok(result) if result["resultType"] == "input_required" => {
                Box::pin(self.asked_again(&id, request, (caller, context))).await
            }
            Ok(result) => match serde_json::from_value::<CallToolResult>(result) {
                Ok(result) => Ok(Next::Reply(Box::new(result.into()))),
                Err(_) => Err(unreachable(&id, "its answer cannot be read")),
            },
            Err(error) => Err(unreachable(&id, &error.message)),
        })
    }

    /// Has the instance that holds the call `waiting` of a run in the background go on with it, for its owner `caller`. `None` if that is this one, or is gone.
    pub(super) async fn answer_at_home(
        &self,
        head: &Head,
        waiting: &Waiting,
        caller: &Caller,
        responses: &InputResponses,
    ) -> Option<Result<(), ExecutionError>> {
        let of_call =
            responses.iter().map(|(key, response)| (format!("{}.{key}", waiting.index), response.clone()));
        let request = UpdateTaskParams::new(head.id.to_string(), of_call.collect());
        let answer =
            self.update_at(held_call(std::slice::from_ref(waiting))?, &request, caller, head).await?;
        Some(answer.map_err(|_| ExecutionError::Unavailable))
    }

    /// Asks the client what the run waits for by now.
    async fn asked_again(
        &self,
        id: &str,
        request: &str,
        (caller, context): (&Caller, &RequestContext<RoleServer>),
    ) -> Result<Next, Refusal> {
        match self.resume(id, request, (caller, context)).await? {
            Entered::Asks(open) => self.ask(open, caller, context).await,
            Entered::Run(run) => Ok(Next::GoOn(run)),
            Entered::Over(response) => Ok(Next::Reply(response)),
        }
    }
}

fn passed_on(
    method: &'static str,
    name: &str,
    params: Value,
    capabilities: ClientCapabilities,
    address: Option<IpAddr>,
) -> PassedOn {
    let params = if let Value::Object(params) = params { params } else { JsonObject::new() };
    PassedOn { method, name: name.to_owned(), params, capabilities, address }
}

fn unreachable(id: &str, why: &str) -> Refusal {
    let message = format!(
        "the instance that holds a call of the plan gave no result ({why}); codecall:execute {{\"resume\": \"{id}\"}} says how the plan goes on"
    );
    Refusal::new(ExecutionError::Unavailable.code(), message)
}
