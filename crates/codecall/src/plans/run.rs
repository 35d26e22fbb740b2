//! Runs of saved plans: as `codecall:execute` runs a script, for the same caller, within the limits of the run that waits for it.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use gatewright_agentscript::RunError;
use gatewright_core::{
    CallContext, codes, off_thread,
    rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject},
};
use serde_json::{Value, json, value::to_raw_value};

use super::plan::{Output, Plan};
use crate::{
    CallLog, CodeCall,
    host::ScriptHost,
    nesting::{Nesting, PlanName},
    results::{Blocks, random_name},
    runs::{Questions, RunStart},
    settings::Settings,
    unwrap::Failure,
};

/// Code of a result that does not fit the plan's output schema.
const INVALID_OUTPUT: &str = "INVALID_OUTPUT";
/// Problems of a result that are named.
const MOST_PROBLEMS: usize = 5;

impl CodeCall {
    /// Runs `plan`, whose name is `name`, for the caller of `context`.
    #[tracing::instrument(name = "plan.run", level = "debug", skip_all, fields(plan.name = %name.tool))]
    pub(crate) async fn run_plan(
        &self,
        plan: &Arc<Plan>,
        name: PlanName,
        input: JsonObject,
        context: CallContext,
    ) -> CallToolResult {
        let settings = self.settings();
        let public = format!("{}:{}", name.app, name.tool);
        let (caller, mut context) = (context.caller().clone(), context.into_request());
        let nesting = match Nesting::of_plan(&context.extensions, name, &settings.limits) {
            Ok(nesting) => nesting,
            Err(failure) => return failed(&failure.message.clone(), failure),
        };
        let Some(start) = start(plan, &input, &settings, &nesting) else {
            let failure = Failure::new(codes::TOOL_EXECUTION_ERROR, "the system gives no random numbers");
            return failed(&failure.message.clone(), failure);
        };
        let mut request = start.request(None);
        request.limits.max_tool_calls = nesting.calls_left();
        request.level = nesting.level();
        // A script takes the structured content, and its text would count for its memory.
        let has_text = nesting.level() == 0;
        context.extensions.insert(nesting);
        let cancel = context.ct.clone();
        let host = Arc::new(ScriptHost::new(self, &start, Questions::default(), None, caller, context));
        let outcome = self.pool.run(request, host.clone(), cancel).await;
        tracing::debug!(
            ok = outcome.result.is_ok(),
            duration_ms = outcome.duration.as_secs_f64() * 1e3,
            "a plan ended"
        );
        let error = match outcome.result {
            Ok(result) => {
                let (plan, host, size) = (plan.clone(), host.clone(), result.get().len());
                let ended = off_thread(size, move || {
                    let mut value: Value = serde_json::from_str(result.get()).ok()?;
                    let mut blocks = Blocks::default();
                    host.handles.release(&mut value, &mut blocks);
                    Some(complete(plan.output.as_ref(), value, blocks, has_text))
                });
                match ended.await {
                    Some(Ok(result)) => return result,
                    Some(Err(problem)) => {
                        let failure = Failure::new(INVALID_OUTPUT, problem);
                        return failed(&format!("plan `{public}`: {}", failure.message), failure);
                    }
                    None => RunError::Worker(gatewright_agentscript::WorkerError::MessageInvalid),
                }
            }
            Err(RunError::Suspended) => return asks(&public, &host),
            Err(error) => error,
        };
        let details = match &error {
            RunError::ToolError { tool_name, code, .. } => host.detailed(tool_name, code),
            _ => None,
        };
        let (_, error) = settings.failure(error, &host.failed_inputs());
        let code = error["code"].as_str().unwrap_or_default();
        let failure = Failure { code: code.to_owned(), ..details.unwrap_or_default() };
        failed(&message(&public, &error), failure)
    }
}

/// The run of `plan` with `input`; none if the system has no random numbers.
fn start(plan: &Plan, input: &JsonObject, settings: &Settings, nesting: &Nesting) -> Option<RunStart> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(RunStart {
        script: plan.source.clone(),
        context: to_raw_value(input).ok(),
        allowed_tools: None,
        log: CallLog::Off,
        limits: settings.limits.clone(),
        policy: settings.policy.clone(),
        seed: getrandom::u64().ok()?,
        started_ms: u64::try_from(now.as_millis()).unwrap_or(0),
        detached: false,
        dry_run: nesting.dry_run(),
        handles: random_name(),
    })
}

/// The answer of a plan with a call that asks the user.
fn asks(plan: &str, host: &ScriptHost) -> CallToolResult {
    let tool = host.questions.waiting().into_iter().next().map(|waiting| waiting.name).unwrap_or_default();
    let message = format!(
        "plan `{plan}`: {tool} needs an answer from the user, and a saved plan cannot ask; call it in a script or with codecall:invoke"
    );
    failed(&message, Failure::new(codes::INPUT_REQUIRED, message.clone()))
}

/// The answer with `value`.
///
/// # Errors
/// The value does not fit the output schema.
fn complete(
    output: Option<&Output>,
    value: Value,
    blocks: Blocks,
    has_text: bool,
) -> Result<CallToolResult, String> {
    let value = match output {
        Some(output) => {
            let value = output.wrap(value);
            if output.schema.check(&value).is_err() {
                return Err(misfit(output, &value));
            }
            value
        }
        None => value,
    };
    let is_structured = value.is_object();
    let mut content = Vec::new();
    if has_text || !is_structured {
        content.push(ContentBlock::text(value.to_string()));
    }
    content.extend(blocks.into_content());
    let mut result = CallToolResult::success(content);
    result.structured_content = is_structured.then_some(value);
    Ok(result)
}

fn misfit(output: &Output, value: &Value) -> String {
    let problems = output.schema.problems(value, MOST_PROBLEMS).into_iter();
    let problems: Vec<String> =
        problems.map(|problem| format!("{}: {}", problem.path, problem.message)).collect();
    let problems =
        if problems.is_empty() { "it is too large to say where".to_owned() } else { problems.join("; ") };
    format!("its result does not fit its output schema: {problems}")
}

/// What a caller reads of an error.
fn message(plan: &str, error: &Value) -> String {
    let text = |key: &str| error[key].as_str();
    let by = text("toolName").or(text("name")).map(|name| format!("{name}: ")).unwrap_or_default();
    let line = error["location"]["line"].as_u64().map(|line| format!(", line {line}")).unwrap_or_default();
    format!("plan `{plan}`{line}: {by}{}", text("message").unwrap_or_default())
}

/// An error as tools report it, with its code in `_meta`: structured content would have to fit the output schema.
fn failed(message: &str, failure: Failure) -> CallToolResult {
    let mut meta = json!({"code": failure.code});
    failure.add_details(&mut meta);
    let mut result = CallToolResult::error(vec![ContentBlock::text(message)]);
    if let Value::Object(meta) = meta {
        result.meta = Some(MetaObject(meta));
    }
    result
}
