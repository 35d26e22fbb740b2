//! Tools that go on as tasks (SEP-2663).

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CreateTaskResult, InputRequest,
    TASKS_EXTENSION_ID,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::{TaskContext, TaskExit, TaskFuture, TaskOptions};
use serde_json::{Value, json};

use super::ask::{asking, filled, form};
use super::tools::{argument, failed, said};
use super::{Everything, capabilities, missing};

const SHORT: Duration = Duration::from_millis(300);

impl Everything {
    pub(super) async fn call_task(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let follows = capabilities(&context)
            .extensions
            .is_some_and(|extensions| extensions.contains_key(TASKS_EXTENSION_ID));
        if !follows && !matches!(request.name.as_ref(), "slow_compute" | "confirm_delete") {
            return Err(missing(json!({ "extensions": { TASKS_EXTENSION_ID: {} } })));
        }
        match request.name.as_ref() {
            "slow_compute" => {
                let seconds = request.arguments.as_ref().and_then(|all| all.get("seconds")?.as_f64());
                let time =
                    Duration::try_from_secs_f64(seconds.unwrap_or(1.0).clamp(0.0, 120.0)).unwrap_or_default();
                let result = said(format!("Computed {}", argument(&request, "label")));
                if follows {
                    return Ok(self.start(move |task| Box::pin(compute(task, time, result))));
                }
                tokio::select! {
                    () = tokio::time::sleep(time) => Ok(CallToolResponse::Complete(result)),
                    () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
                }
            }
            "failing_job" => {
                let result = failed("The job failed");
                Ok(self.start(move |task| Box::pin(compute(task, SHORT, result))))
            }
            "protocol_error_job" => Ok(self.start(|_| {
                Box::pin(async { Err(TaskExit::Error(ErrorData::internal_error("The job broke", None))) })
            })),
            "confirm_delete" if !follows => {
                let filename = argument(&request, "filename");
                Ok(said(format!("{filename} was kept: without a task nobody can be asked")).into())
            }
            "confirm_delete" => {
                let filename = argument(&request, "filename").to_owned();
                Ok(self.start(move |task| Box::pin(confirm(task, filename))))
            }
            "multi_input" => Ok(self.start(|task| Box::pin(two_questions(task)))),
            _ => {
                match filled(request.input_responses.as_ref(), "user_name", "name").and_then(Value::as_str) {
                    Some(name) => {
                        let result = said(format!("Hello, {name}, from a task"));
                        Ok(self.start(move |task| Box::pin(compute(task, SHORT, result))))
                    }
                    None => {
                        asking(json!({ "user_name": form("What is your name?", "name", "string") }), None)
                            .map(CallToolResponse::InputRequired)
                    }
                }
            }
        }
    }

    fn start(&self, work: impl FnOnce(TaskContext) -> TaskFuture) -> CallToolResponse {
        let options = TaskOptions::new().with_poll_interval_ms(100);
        CallToolResponse::Task(CreateTaskResult::new(self.shared.tasks.spawn(options, work)))
    }
}

async fn compute(
    task: TaskContext,
    time: Duration,
    result: CallToolResult,
) -> Result<CallToolResult, TaskExit> {
    tokio::select! {
        () = tokio::time::sleep(time) => Ok(result),
        () = task.cancelled() => Err(TaskExit::Cancelled),
    }
}

fn question(message: &str, field: &str, kind: &str) -> Result<InputRequest, TaskExit> {
    serde_json::from_value(form(message, field, kind)).map_err(|error| {
        TaskExit::Error(ErrorData::internal_error(format!("the question does not fit: {error}"), None))
    })
}

async fn confirm(task: TaskContext, filename: String) -> Result<CallToolResult, TaskExit> {
    let question = question(&format!("Delete {filename}?"), "confirm", "boolean")?;
    let answer = task.request_input("confirm", question).await?;
    let yes = answer["action"] == "accept" && answer["content"]["confirm"] != false;
    Ok(said(format!("{filename} was {}", if yes { "deleted" } else { "kept" })))
}

async fn two_questions(task: TaskContext) -> Result<CallToolResult, TaskExit> {
    let name = task.request_input("name", question("What is your name?", "name", "string")?);
    let confirm = task.request_input("confirm", question("Go on?", "confirm", "boolean")?);
    let (name, confirm) = tokio::try_join!(name, confirm)?;
    Ok(said(format!("name: {}, confirm: {}", name["content"], confirm["content"])))
}
