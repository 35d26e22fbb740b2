//! Tools that a server runs as tasks: the gateway awaits them, so that the caller gets a plain result.
//!
//! A tool with `taskSupport: "required"` (MCP 2025-11-25) is called as a task. A server of the 2026-07-28 era decides by itself to answer with
//! one (SEP-2663); a caller that declared the extension follows that one itself.

use std::time::Duration;

use gatewright_core::CallContext;
use rmcp::{
    ErrorData, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
        CancelTaskRequest, ClientRequest, ContentBlock, CustomRequest, ErrorCode, GetTaskParams,
        GetTaskRequest, JsonObject, MetaObject, ServerResult, TaskPayload, TaskStatus,
    },
    service::RequestHandle,
};
use serde_json::{Value, json};

use crate::{
    call::{Abandoned, Exchange},
    failure,
    open_calls::{LONGEST_TASK_ID, RELATED_TASK},
    upstream::Upstream,
};

/// Bounds of the time between two requests for a status, whatever the server asks for.
const SOONEST: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::from_secs(5);
/// The same for a server that names none.
const USUAL: Duration = Duration::from_millis(500);
/// Longest status message that is shown, in characters.
const LONGEST_MESSAGE: usize = 300;
/// Time for which a server is asked to keep a task beyond the timeout of the call.
const SLACK: Duration = Duration::from_secs(10);
/// Longest wait for the answer to a call that is over, whose task is then cancelled.
const TO_CANCEL: Duration = Duration::from_secs(5);
/// Calls of one server that are over and whose tasks are being cancelled.
const MOST_CANCELLING: usize = 256;

impl Upstream {
    /// Calls a tool, as a task if it wants that, and waits for its result.
    pub(crate) async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: &CallContext,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut exchange = self.begin(context).await?;
        let connection = &exchange.connection;
        let as_task = !connection.era.is_stateless() && connection.task_tools.requires_task(&params.name);
        let answer = match as_task {
            true => exchange.run_as_task(params).await.map(CallToolResponse::Complete),
            false => exchange.call(params).await,
        };
        exchange.finish().await;
        answer
    }

    /// The error of an answer that does not match the request.
    pub(crate) fn bad_answer(&self, what: &str) -> ErrorData {
        failure::failed(format!("the server behind `{}` answered {what}", self.id), "UPSTREAM_BAD_ANSWER")
    }

    /// The result of a call whose task failed: a tool error with `code`, and `message` of the server.
    fn task_failed(&self, what: &str, message: Option<&str>, code: Option<&str>) -> CallToolResult {
        let message = message.map(|message| self.redactor.line(message, LONGEST_MESSAGE));
        let message = message.filter(|message| !message.is_empty()).map(|message| format!(": {message}"));
        let text = format!("the server behind `{}` {what}{}", self.id, message.unwrap_or_default());
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        result.meta = code.map(|code| MetaObject(JsonObject::from_iter([("code".to_owned(), code.into())])));
        result
    }
}

/// A status of a task.
enum Status {
    /// Not over, with the time after which to ask again.
    Working(Option<Duration>),
    /// Waits for an answer of the caller. `true` if the server asks for it by itself once the result is requested (MCP 2025-11-25).
    Asks(bool),
    /// Over, with the result where the status brings it.
    Completed(Option<JsonObject>),
    /// Failed, with the error where the status brings it, and a message.
    Failed(Option<JsonObject>, Option<String>),
    /// Cancelled at the server, with a message.
    Cancelled(Option<String>),
}

impl Status {
    /// Reads the answer to `tasks/get` for the task `id`; `None` for anything else, such as the status of another task.
    fn of(answer: ServerResult, id: &str) -> Option<Self> {
        match answer {
            ServerResult::GetTaskResult(result) if result.task.task.task_id == id => {
                let task = result.task.task;
                Some(match result.task.payload {
                    TaskPayload::Working => Self::Working(task.poll_interval_ms.map(Duration::from_millis)),
                    TaskPayload::InputRequired { .. } => Self::Asks(false),
                    TaskPayload::Completed { result } => Self::Completed(Some(result)),
                    TaskPayload::Failed { error } => Self::Failed(Some(error), task.status_message),
                    TaskPayload::Cancelled => Self::Cancelled(task.status_message),
                    _ => return None,
                })
            }
            ServerResult::CustomResult(custom) if custom.0["taskId"] == id => Self::of_value(&custom.0),
            _ => None,
        }
    }

    /// Reads a task as MCP 2025-11-25 writes it.
    fn of_value(task: &Value) -> Option<Self> {
        let message = || task["statusMessage"].as_str().map(str::to_owned);
        Some(match serde_json::from_value(task["status"].clone()).ok()? {
            TaskStatus::Working => Self::Working(task["pollInterval"].as_u64().map(Duration::from_millis)),
            TaskStatus::InputRequired => Self::Asks(true),
            TaskStatus::Completed => Self::Completed(None),
            TaskStatus::Failed => Self::Failed(None, message()),
            TaskStatus::Cancelled => Self::Cancelled(message()),
            _ => return None,
        })
    }
}

impl Exchange<'_> {
    /// Calls a tool, and awaits the task that the server may make of it unless the caller does.
    async fn call(&mut self, params: CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        match self.send(request).await? {
            ServerResult::CallToolResult(result) => Ok(CallToolResponse::Complete(result)),
            ServerResult::InputRequiredResult(result) => Ok(CallToolResponse::InputRequired(result)),
            // Requests about tasks of a server that did not announce them would not reach it.
            ServerResult::CreateTaskResult(result)
                if self.caller_follows_tasks() && self.connection.capabilities.supports_tasks() =>
            {
                Ok(CallToolResponse::Task(result))
            }
            ServerResult::CreateTaskResult(result) => {
                let mut open = OpenTask::new(self, Stage::Over);
                let interval = result.task.poll_interval_ms.map(Duration::from_millis);
                self.await_task(&mut open, result.task.task_id, Status::Working(interval))
                    .await
                    .map(Into::into)
            }
            _ => Err(self.upstream.bad_answer("with a result of another kind")),
        }
    }

    /// Calls a tool as a task (MCP 2025-11-25). Dropped, it cancels the task.
    async fn run_as_task(&mut self, params: CallToolRequestParams) -> Result<CallToolResult, ErrorData> {
        let ttl = self.upstream.config.timeout.saturating_add(SLACK).as_millis();
        let params = json!({
            "name": params.name,
            "arguments": Value::Object(params.arguments.unwrap_or_default()),
            "task": {"ttl": u64::try_from(ttl).unwrap_or(u64::MAX)},
        });
        let asked = self.start(custom("tools/call", params)).await?;
        let mut open = OpenTask::new(self, Stage::Asked(Box::new(asked)));
        let Stage::Asked(asked) = &mut open.stage else { unreachable!("it was made so above") };
        let created = self.answer(asked).await;
        open.stage = Stage::Over;
        let upstream = self.upstream;
        let bad = || upstream.bad_answer("to a call as a task with something else");
        match created? {
            // A server may do the work at once.
            ServerResult::CallToolResult(result) => Ok(result),
            ServerResult::CustomResult(custom) => {
                let task = &custom.0["task"];
                let id = task["taskId"].as_str().ok_or_else(bad)?.to_owned();
                let status = Status::of_value(task).ok_or_else(bad)?;
                self.await_task(&mut open, id, status).await
            }
            _ => Err(bad()),
        }
    }

    /// Waits for the end of the task, which is cancelled if that goes wrong.
    async fn await_task(
        &mut self,
        open: &mut OpenTask,
        id: String,
        mut status: Status,
    ) -> Result<CallToolResult, ErrorData> {
        if id.is_empty() || id.len() > LONGEST_TASK_ID {
            let what =
                format!("with a task whose id has {} bytes; 1 to {LONGEST_TASK_ID} are possible", id.len());
            return Err(self.upstream.bad_answer(&what));
        }
        if !self.guard.runs_as(&id) {
            return Err(self.upstream.bad_answer("with the task of another call"));
        }
        open.stage = Stage::Runs(id.clone());
        let mut interval = USUAL;
        loop {
            match status {
                Status::Working(asked_for) => {
                    interval = asked_for.map_or(interval, |interval| interval.clamp(SOONEST, LATEST));
                }
                Status::Asks(false) => return Ok(self.upstream.task_failed(
                    "asks for an answer of the user during the call, which the gateway cannot forward from a task",
                    None,
                    Some("INPUT_REQUIRED"),
                )),
                // The question comes with the result, which is there once it is answered.
                Status::Asks(true) => return self.result(open, &id).await,
                Status::Completed(None) => return self.result(open, &id).await,
                Status::Completed(Some(result)) => {
                    open.stage = Stage::Over;
                    let result = serde_json::from_value(Value::Object(result)).map(ServerResult::CallToolResult);
                    let result = match result {
                        Ok(result) => Some(self.upstream.redactor.result(result).await),
                        Err(_) => None,
                    };
                    return self.plain(result);
                }
                Status::Failed(None, message) => {
                    let fetched = self.result(open, &id).await;
                    open.stage = Stage::Over;
                    // Without a stored result, the message is all there is.
                    return Ok(fetched
                        .map(|mut result| {
                            result.is_error = Some(true);
                            result
                        })
                        .unwrap_or_else(|_| self.upstream.task_failed("failed", message.as_deref(), None)));
                }
                Status::Failed(Some(error), message) => {
                    open.stage = Stage::Over;
                    let said = error.get("message").and_then(Value::as_str).or(message.as_deref());
                    return Ok(self.upstream.task_failed("failed", said, None));
                }
                Status::Cancelled(message) => {
                    open.stage = Stage::Over;
                    let what = "cancelled the task of this call";
                    return Ok(self.upstream.task_failed(what, message.as_deref(), None));
                }
            }
            self.pause(SOONEST, false).await?;
            self.pause(interval.saturating_sub(SOONEST), true).await?;
            status = match self.status(&id).await {
                Ok(status) => status,
                Err(error) if error.code == ErrorCode::INVALID_PARAMS => {
                    open.stage = Stage::Over;
                    let what = "does not know the task of this call any more; it may have run";
                    return Ok(self.upstream.task_failed(
                        what,
                        Some(&error.message),
                        Some("UPSTREAM_TASK_LOST"),
                    ));
                }
                Err(error) => return Err(error),
            };
        }
    }

    async fn status(&mut self, id: &str) -> Result<Status, ErrorData> {
        let request = ClientRequest::GetTaskRequest(GetTaskRequest::new(GetTaskParams::new(id)));
        let mut asked = self.start_own(request).await?;
        let answer = self.answer(&mut asked).await.map_err(|error| self.own_failed(error))?;
        Status::of(answer, id)
            .ok_or_else(|| self.upstream.bad_answer("with no status of the task of this call"))
    }

    /// The error of a request of the gateway's own: the caller's method is known to the server.
    fn own_failed(&self, error: ErrorData) -> ErrorData {
        if error.code != ErrorCode::METHOD_NOT_FOUND {
            return error;
        }
        self.upstream.bad_answer("with a task, and does not know the methods for it")
    }

    /// Fetches the result of a task, for which the server waits if it has to.
    async fn result(&mut self, open: &mut OpenTask, id: &str) -> Result<CallToolResult, ErrorData> {
        let fetched = self.send(custom("tasks/result", json!({"taskId": id}))).await;
        let fetched = fetched.map_err(|error| self.own_failed(error))?;
        open.stage = Stage::Over;
        self.plain(Some(fetched))
    }

    fn plain(&self, result: Option<ServerResult>) -> Result<CallToolResult, ErrorData> {
        let Some(ServerResult::CallToolResult(mut result)) = result else {
            return Err(self
                .upstream
                .bad_answer("with something else than the result of the task of this call"));
        };
        if let Some(meta) = &mut result.meta {
            meta.0.shift_remove(RELATED_TASK);
        }
        Ok(result)
    }
}

fn custom(method: &str, params: Value) -> ClientRequest {
    ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)))
}

/// A task that is cancelled when dropped, unless it is over.
struct OpenTask {
    /// None once it was dropped.
    call: Option<Abandoned>,
    stage: Stage,
}

enum Stage {
    /// The call is sent, and its answer will name the task.
    Asked(Box<RequestHandle<RoleClient>>),
    /// The task of this id runs.
    Runs(String),
    Over,
}

impl OpenTask {
    fn new(exchange: &Exchange<'_>, stage: Stage) -> Self {
        Self { call: Some(exchange.abandoned()), stage }
    }
}

impl Drop for OpenTask {
    fn drop(&mut self) {
        if matches!(self.stage, Stage::Over) {
            return;
        }
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let Some(call) = self.call.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (place, tracker, connection) = (call.place(), call.tasks.clone(), call.connection.clone());
        let crowded = tracker.len() >= MOST_CANCELLING;
        let cancelling = async move {
            let id = match stage {
                Stage::Over => return,
                Stage::Runs(id) => id,
                Stage::Asked(handle) if crowded => return call.cancel(handle.id, place).await,
                Stage::Asked(mut handle) => match tokio::time::timeout(TO_CANCEL, &mut handle.rx).await {
                    Err(_) => return call.cancel(handle.id, place).await,
                    Ok(Ok(Ok(ServerResult::CustomResult(custom)))) => {
                        custom.0["task"]["taskId"].as_str().unwrap_or_default().to_owned()
                    }
                    Ok(_) => return,
                },
            };
            if id.is_empty() || id.len() > LONGEST_TASK_ID {
                return;
            }
            let cancel = ClientRequest::CancelTaskRequest(CancelTaskRequest::new(CancelTaskParams::new(id)));
            let sent = connection.peer.send_cancellable_request(cancel, connection.task_options()).await;
            if let Ok(mut handle) = sent
                && !crowded
            {
                let _ = tokio::time::timeout(TO_CANCEL, &mut handle.rx).await;
            }
        };
        tracker.spawn_on(cancelling, &runtime);
    }
}
