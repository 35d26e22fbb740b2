//! Code mode as a plugin of the gateway: four meta-tools in front of its tools.

use std::sync::Arc;

use gatewright_core::{
    AccessMode, AppFuture, Caller, DirectAccess, InvokeError, Plugin, PluginTasks, Principal, ToolEntry,
    bulk, bulk_of, off_thread,
    rmcp::{
        ErrorData, RoleServer,
        model::{
            CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject, MetaObject,
            ReadResourceResult, Tool,
        },
        service::RequestContext,
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{CodeCall, Mode, lenient, meta_tools, search::parameters, tool_result::answer};

impl CodeCall {
    async fn call(
        &self,
        at: usize,
        mut outer: CallToolRequestParams,
        caller: Caller,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, InvokeError> {
        let arguments = outer.arguments.take().unwrap_or_default();
        let name = outer.name.to_string();
        let invalid = |problems: String| InvokeError::InvalidArguments { name: name.clone(), problems };
        let body = match at {
            0 => {
                let input = self.read(at, arguments).await.map_err(invalid)?;
                self.search(input, &caller).await.map_err(invalid)?
            }
            1 => self.describe(self.read(at, arguments).await.map_err(invalid)?, &caller).await,
            2 => {
                let input = self.read(at, arguments).await.map_err(invalid)?;
                return Ok(self.execute(input, outer, caller, context).await);
            }
            _ => {
                let input = self.read(at, arguments).await.map_err(invalid)?;
                return Ok(self.invoke(input, outer, &caller, context).await);
            }
        };
        Ok(off_thread(bulk(&body), move || answer(body)).await.into())
    }

    /// The arguments of the meta-tool `at` as its input.
    ///
    /// # Errors
    /// They do not fit its schema.
    async fn read<T>(&self, at: usize, mut arguments: JsonObject) -> Result<T, String>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let schemas = self.schemas.clone();
        off_thread(bulk_of(&arguments), move || {
            let schema = &schemas[at];
            lenient::read_as(schema.source(), &mut arguments);
            let arguments = Value::Object(arguments);
            let teach = |why| format!("{why}; parameters: {}", parameters(schema.source()));
            schema.check(&arguments).map_err(teach)?;
            serde_json::from_value(arguments).map_err(|error| error.to_string())
        })
        .await
    }
}

impl Plugin for CodeCall {
    fn tools(&self) -> Arc<[Tool]> {
        self.meta_tools()
    }

    fn own_tool(&self, name: &str) -> Option<&str> {
        meta_tools::colon(name)
    }

    fn call_tool(
        &self,
        params: CallToolRequestParams,
        caller: Caller,
        context: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<CallToolResponse, ErrorData>> {
        Box::pin(async move {
            let Some(at) = meta_tools::position(&params.name) else {
                let unknown = InvokeError::NotFound { name: params.name.into_owned(), nearest: None };
                return Ok(unknown.into_call_result()?.into());
            };
            let answer = self.call(at, params, caller, context).await;
            Ok(answer.unwrap_or_else(|error| self.refused(meta_tools::ALL[at], &error).into()))
        })
    }

    fn refused(&self, name: &str, error: &InvokeError) -> CallToolResult {
        let details = error.details();
        let mut told = details.clone();
        told.insert("message".to_owned(), self.settings().sanitizer.text(&error.to_string()).into());
        let mut body = json!({"status": "error", "error": told});
        if name == meta_tools::EXECUTE {
            // A script that was not run ends as one that the worker pool refuses.
            body["status"] = "runtime_error".into();
            body["error"]["source"] = "script".into();
            body["error"]["name"] = "Error".into();
        }
        let mut result = answer(body);
        result.meta = Some(MetaObject(details));
        result
    }

    fn mode_of(&self, principal: &Principal) -> Option<AccessMode> {
        let settings = self.settings();
        settings.config.modes.iter().find(|rule| rule.fits(principal)).map(|rule| rule.mode)
    }

    fn direct_access(&self, tool: &ToolEntry, mode: Option<AccessMode>) -> DirectAccess {
        self.settings().config.mode.direct(tool, mode)
    }

    fn hides_apps(&self, mode: Option<AccessMode>) -> bool {
        match mode {
            Some(mode) => mode == AccessMode::Code,
            None => self.settings().config.mode == Mode::CodecallOnly,
        }
    }

    fn refusal(&self, tool: &ToolEntry) -> String {
        format!(
            "it is reached through code mode; use codecall:invoke with {{\"tool\": \"{}\", \"input\": {{…}}}}, or \
             codecall:execute for several calls",
            tool.tool.name
        )
    }

    fn read_resource(&self, uri: &str, caller: &Caller) -> Option<ReadResourceResult> {
        self.kept.read(uri, caller)
    }

    fn tasks(&self) -> Option<&dyn PluginTasks> {
        self.runs_in_background().then_some(self)
    }

    fn drain(&self) -> AppFuture<'_, ()> {
        Box::pin(self.halt_background())
    }

    fn instructions(&self) -> Option<String> {
        Some(
            "Tools are reached in code mode: find them with codecall:search, declare with codecall:describe those whose input \
             it did not give, then run one plan with codecall:execute, or a single call with codecall:invoke."
                .to_owned(),
        )
    }
}
