//! `codecall:invoke`: one tool, no script.

use gatewright_agentscript::excerpt;
use gatewright_core::{
    AnswerRoom, AnswersByRetry, AskedAtOnce, Caller, InvokeError, PermittedTool, ToolEntry, Trail, codes,
    off_thread,
    rmcp::{
        RoleServer,
        model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject},
        service::RequestContext,
    },
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    CodeCall,
    host::without_tasks,
    meta_tools, plan_check,
    results::{Blocks, json_len},
    sent::{SentTexts, clean},
    shapes::{SentInput, restore_numbers},
    tool_result::answer,
    unwrap::{Failure, ToolValue, leave_out_null, replace_repeated},
};

/// Bytes up to which the exact size of a result matters.
const QUICK_BYTES: usize = 64 * 1024;

/// Input of `codecall:invoke`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InvokeInput {
    tool: String,
    input: JsonObject,
}

impl CodeCall {
    pub(crate) async fn invoke(
        &self,
        mut input: InvokeInput,
        outer: CallToolRequestParams,
        caller: &Caller,
        mut context: RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let mut sent = SentTexts::of_input(&input.input);
        let peer = context.peer.clone();
        let room = AnswerRoom::of(&context);
        context.meta = without_tasks(&context);
        context.extensions.insert(AnswersByRetry);
        context.extensions.insert(AskedAtOnce);
        let tool = match self.reachable(&input.tool, caller).await {
            Ok(tool) => match plan_check::misspelt(&tool, &input.input) {
                None => Ok(tool),
                Some(why) => Err(Failure::new(codes::VALIDATION_ERROR, why)),
            },
            Err(failure) => Err(failure),
        };
        let tool = match tool {
            Ok(tool) => tool,
            Err(failure) => {
                if let Some(trail) = context.extensions.get::<Trail>() {
                    trail.refused(&input.tool, &*failure.code);
                }
                return answer(self.invoke_error(&failure, &sent)).into();
            }
        };
        restore_numbers(&mut input.input, tool.input_schema());
        let sent_input = self.shapes.sent_input(&tool, caller, &input.input);
        let mut params = CallToolRequestParams::new(input.tool).with_arguments(input.input);
        params.meta = outer.meta;
        params.input_responses = outer.input_responses;
        params.request_state = outer.request_state;
        let mut answered = match self.invoker.call(&tool, params, context).await {
            Ok(asks @ CallToolResponse::InputRequired(_)) => return asks,
            answered => answered,
        };
        let mut blocks = Blocks::default();
        if let Ok(CallToolResponse::Complete(result)) = &mut answered {
            keep_beside(result, &mut blocks);
        }
        let reading = self.shapes.reading(&tool, caller);
        let (size, finish) = (size(&answered), self.finish(caller));
        let most = self.settings().limits.host_bytes;
        let value = ToolValue::of(answered, reading, |block| Ok(blocks.add(block))).await;
        match value.within(room.as_ref(), most) {
            ToolValue::Ok(read) => {
                sent_input.into_iter().for_each(SentInput::accepted);
                self.usage.called(caller, &tool);
                // In one step: values that wait for the next one would add up.
                let reply = move || {
                    finish.reply(json!({"status": "ok", "result": read.into_value_within(most)}), blocks)
                };
                off_thread(size, reply).await.into()
            }
            ToolValue::Failed(failure) => {
                let failure = failure.with_parameters_of(&tool);
                let (sanitizer, own) = (self.settings().sanitizer, self.own_paths());
                sent.add_roots(sanitizer, &failure.message, caller, &peer, &own, Some(&**tool.app())).await;
                finish.reply(self.invoke_error(&failure, &sent), blocks).into()
            }
        }
    }

    /// The error of a call with the texts `sent`.
    fn invoke_error(&self, failure: &Failure, sent: &SentTexts) -> Value {
        let message = clean(self.settings().sanitizer, &failure.message, sent);
        json!({"status": "error", "error": failure.to_json(&message)})
    }

    /// The tool of this name, if code mode reaches it for `caller`.
    async fn reachable(&self, name: &str, caller: &Caller) -> Result<PermittedTool, Failure> {
        if meta_tools::is_meta_tool(name) {
            let name = excerpt::name(name);
            let message = format!("`{name}` cannot be called from within code mode; call a tool of an app");
            return Err(Failure::new(codes::SELF_REFERENCE_BLOCKED, message));
        }
        let settings = self.settings();
        let reaches = |tool: &ToolEntry| settings.config.mode.in_code(tool);
        let tool = self.invoker.find_among(name, caller, reaches).await?;
        if !settings.config.mode.in_code(&tool) {
            let why = "it is not enabled in code mode; call it directly".to_owned();
            return Err(InvokeError::Denied { name: tool.name.to_string(), why }.into());
        }
        Ok(tool)
    }
}

/// Takes images, audio and resources out of a result whose value is structured: they go out beside it.
fn keep_beside(result: &mut CallToolResult, blocks: &mut Blocks) {
    leave_out_null(result);
    let Some(value) = result.structured_content.as_mut().filter(|_| result.is_error != Some(true)) else {
        return;
    };
    let content = std::mem::take(&mut result.content);
    let rest = replace_repeated(value, content, |block| Ok(blocks.add(block)));
    for block in rest.unwrap_or_default() {
        if !matches!(block, ContentBlock::Text(_)) {
            blocks.add(block);
        }
    }
}

/// Bytes of a result as text, about.
fn size(answered: &Result<CallToolResponse, InvokeError>) -> usize {
    let Ok(CallToolResponse::Complete(result)) = answered else { return 0 };
    let texts = result.content.iter().filter_map(|block| block.as_text());
    let structured = result.structured_content.as_ref().map_or(0, |value| json_len(value, QUICK_BYTES));
    texts.map(|text| text.text.len()).sum::<usize>().max(structured)
}
