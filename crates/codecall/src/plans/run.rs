//! Runs of saved plans: as `codecall:execute` runs a script, for the same caller, within the limits of the run that waits for it.

use std::sync::Arc;

use gatewright_core::{
    CallContext, codes, off_thread,
    rmcp::model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, MetaObject,
    },
};
use serde_json::{Value, json};

use super::plan::{Output, Plan, RESULT};
use crate::{
    CodeCall,
    execute::ExecuteInput,
    nesting::{Nesting, PlanName},
    runs::Rehearsal,
    unwrap::Failure,
};

/// Code of a result that does not fit the plan's output schema.
const INVALID_OUTPUT: &str = "INVALID_OUTPUT";
/// Problems of a result that are named.
const MOST_PROBLEMS: usize = 5;

impl CodeCall {
    /// Runs `plan`, whose name is `name`, for the caller of `context`. `outer` is the call, which may bring answers to what the plan asked.
    #[tracing::instrument(name = "plan.run", level = "debug", skip_all, fields(plan.name = %name.tool))]
    pub(crate) async fn run_plan(
        &self,
        plan: &Arc<Plan>,
        name: PlanName,
        mut outer: CallToolRequestParams,
        context: CallContext,
    ) -> CallToolResponse {
        let public = format!("{}:{}", name.app, name.tool);
        let (caller, mut context) = (context.caller().clone(), context.into_request());
        let nesting =
            match Nesting::of_plan(&context.extensions, name, &self.settings().limits, caller.claimant()) {
                Ok(nesting) => nesting,
                Err(failure) => return failed(&failure.message.clone(), failure).into(),
            };
        // A script takes the structured content, and its text would count for its memory.
        let has_text = nesting.level() == 0;
        let input = ExecuteInput {
            script: Some(plan.source.clone()),
            context: Some(outer.arguments.take().unwrap_or_default()),
            dry_run: nesting.rehearsal().map(Rehearsal::kind),
            title: Some(public.clone()),
            ..ExecuteInput::default()
        };
        context.extensions.insert(nesting);
        let reply = match self.execute(input, outer, caller, context).await {
            CallToolResponse::Complete(reply) => reply,
            // The answers come with the next call of the plan.
            asks => return asks,
        };
        let size = reply.content.first().and_then(ContentBlock::as_text).map_or(0, |text| text.text.len());
        let plan = plan.clone();
        off_thread(size, move || ended(&plan, &public, reply, has_text)).await.into()
    }
}

/// The result of the plan `name`, whose run ended with `reply`.
fn ended(plan: &Plan, name: &str, mut reply: CallToolResult, has_text: bool) -> CallToolResult {
    let mut body = reply.structured_content.take().unwrap_or_default();
    let mut result = if body["status"] == "ok" {
        // The first block is the text of the reply.
        let blocks = reply.content.into_iter().skip(1);
        complete(plan.output.as_ref(), body["result"].take(), blocks, has_text).unwrap_or_else(|problem| {
            failed(&format!("plan `{name}`: {problem}"), Failure::new(INVALID_OUTPUT, ""))
        })
    } else {
        let error = &body["error"];
        let scopes = error["requiredScopes"].as_array().into_iter().flatten();
        let failure = Failure {
            code: error["code"].as_str().unwrap_or(codes::TOOL_EXECUTION_ERROR).to_owned(),
            retry_after_seconds: error["retryAfterSeconds"].as_u64(),
            required_scopes: scopes.filter_map(Value::as_str).map(str::to_owned).collect(),
            ..Failure::default()
        };
        failed(&message(name, error), failure)
    };
    // It names the execution.
    if let Some(meta) = reply.meta {
        result.meta.get_or_insert_default().0.extend(meta.0);
    }
    result
}

/// The answer with `value`.
///
/// # Errors
/// The value does not fit the output schema.
fn complete(
    output: Option<&Output>,
    value: Value,
    blocks: impl Iterator<Item = ContentBlock>,
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
    let text = has_text.then(|| ContentBlock::text(value.to_string()));
    let mut result = CallToolResult::success(text.into_iter().chain(blocks).collect());
    // As the answers of OpenAPI apps: a number in a text alone would be read as text. An object that looks like such an answer is put into one, too.
    let looks_wrapped = |members: &JsonObject| members.len() == 1 && members.contains_key(RESULT);
    let stays = value.as_object().is_some_and(|members| output.is_some() || !looks_wrapped(members));
    result.structured_content = Some(if stays { value } else { json!({RESULT: value}) });
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

/// The part of an error that a caller reads.
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
