//! `codecall:invoke`: one tool, no script.

use gatewright_agentscript::excerpt;
use gatewright_core::{
    Caller, InvokeError, PermittedTool, codes,
    rmcp::{
        RoleServer,
        model::{CallToolRequestParams, CallToolResponse, JsonObject},
        service::RequestContext,
    },
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    CodeCall, meta_tools,
    unwrap::{Failure, ToolValue},
};

/// Input of `codecall:invoke`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InvokeInput {
    tool: String,
    input: JsonObject,
}

/// Outcome of an invocation: a body, or a question for the user that the client has to answer.
pub(crate) enum Invoked {
    Body(Value),
    Asks(CallToolResponse),
}

impl CodeCall {
    pub(crate) async fn invoke(
        &self,
        input: InvokeInput,
        outer: CallToolRequestParams,
        caller: &Caller,
        context: RequestContext<RoleServer>,
    ) -> Invoked {
        let tool = match self.reachable(&input.tool, caller).await {
            Ok(tool) => tool,
            Err(failure) => return Invoked::Body(self.invoke_error(&failure)),
        };
        let mut params = CallToolRequestParams::new(input.tool).with_arguments(input.input);
        params.meta = outer.meta;
        params.input_responses = outer.input_responses;
        params.request_state = outer.request_state;
        match self.invoker.call(&tool, params, context).await {
            Ok(asks @ CallToolResponse::InputRequired(_)) => Invoked::Asks(asks),
            answer => Invoked::Body(match ToolValue::of(answer) {
                ToolValue::Ok(result) => json!({"status": "ok", "result": result}),
                ToolValue::Failed(failure) => self.invoke_error(&failure),
            }),
        }
    }

    fn invoke_error(&self, failure: &Failure) -> Value {
        let message = self.settings().sanitizer.text(&failure.message).into_owned();
        json!({"status": "error", "error": failure.to_json(&message)})
    }

    /// The tool of this name, if code mode reaches it for `caller`.
    async fn reachable(&self, name: &str, caller: &Caller) -> Result<PermittedTool, Failure> {
        if meta_tools::is_meta_tool(name) {
            let name = excerpt::name(name);
            let message = format!("`{name}` cannot be called from within code mode; call a tool of an app");
            return Err(Failure::new(codes::SELF_REFERENCE_BLOCKED, message));
        }
        let tool = self.invoker.find(name, caller).await?;
        if !self.settings().config.mode.in_code(&tool) {
            let why = "it is not enabled in code mode; call it directly".to_owned();
            return Err(InvokeError::Denied { name: tool.name.to_string(), why }.into());
        }
        Ok(tool)
    }
}
