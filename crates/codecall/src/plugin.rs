//! The plugin: four meta-tools in front of the gateway's tools.

use std::sync::Arc;

use arc_swap::ArcSwap;
use gatewright_agentscript::{Limits, WorkerPool};
use gatewright_core::{
    AppFuture, Caller, Change, DirectAccess, InputSchema, InvokeError, Invoker, Plugin, ToolEntry, ToolNames,
    rmcp::{
        ErrorData, RoleServer,
        model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, MetaObject, Tool},
        service::RequestContext,
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    CodeCallConfig, ConfigError, Strategy, invoke::Invoked, live_index::LiveIndex, meta_tools,
    semantic::Semantic, settings::Settings,
};

/// Code mode over the tools that `invoker` reaches.
pub struct CodeCall {
    settings: ArcSwap<Settings>,
    pub(crate) invoker: Arc<Invoker>,
    pub(crate) index: LiveIndex,
    pub(crate) semantic: Semantic,
    pub(crate) pool: Arc<WorkerPool>,
    tools: Vec<Tool>,
    schemas: Vec<InputSchema>,
}

impl std::fmt::Debug for CodeCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeCall").field("config", &self.settings().config).finish_non_exhaustive()
    }
}

impl CodeCall {
    /// Code mode with scripts run by `pool`. Follows the registry from now on, so it needs a Tokio runtime. With the
    /// strategy `embedding`, search is lexical until [`CodeCall::use_semantic`] or [`CodeCall::load_semantic`].
    pub fn new(
        config: CodeCallConfig,
        invoker: Arc<Invoker>,
        pool: Arc<WorkerPool>,
        names: ToolNames,
    ) -> Self {
        let tools = meta_tools::definitions(names);
        let semantic = Semantic::new(config.embedding.strategy == Strategy::Embedding);
        let schemas = tools.iter().map(|tool| InputSchema::new(tool.input_schema.clone())).collect();
        Self {
            index: LiveIndex::follow(invoker.registry().clone(), semantic.clone()),
            semantic,
            invoker,
            pool,
            tools,
            schemas,
            settings: ArcSwap::from_pointee(Settings::of(config)),
        }
    }

    /// What holds now.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// Takes over `mode`, `vm`, `sanitization` and `embedding.similarityThreshold` of `config` from the next request on; runs
    /// under way keep what they began with. The rest of the section needs a restart.
    ///
    /// # Errors
    /// The first field that is out of range; nothing has changed then.
    pub fn reconfigure(&self, config: &CodeCallConfig) -> Result<(), ConfigError> {
        if let Some(problem) = config.problems().into_iter().next() {
            return Err(problem);
        }
        let old = self.settings();
        let lists_differ = old.config.mode != config.mode;
        self.settings.store(Arc::new(old.changed(config)));
        if lists_differ {
            self.invoker.registry().announce(Change::Tools);
        }
        Ok(())
    }

    /// The settings of the `codecall` section that hold now.
    pub fn config(&self) -> CodeCallConfig {
        self.settings().config.clone()
    }

    /// What one script may spend now.
    pub fn limits(&self) -> Limits {
        self.settings().limits.clone()
    }

    async fn call(
        &self,
        at: usize,
        mut outer: CallToolRequestParams,
        caller: Caller,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, InvokeError> {
        let arguments = Value::Object(outer.arguments.take().unwrap_or_default());
        let name = outer.name.to_string();
        let invalid = |problems: String| InvokeError::InvalidArguments { name: name.clone(), problems };
        self.schemas[at].check(&arguments).map_err(invalid)?;
        let body = match at {
            0 => self.search(parse(arguments).map_err(invalid)?, &caller).await,
            1 => self.describe(parse(arguments).map_err(invalid)?, &caller).await,
            2 => return Ok(self.execute(parse(arguments).map_err(invalid)?, caller, context).await.into()),
            _ => match self.invoke(parse(arguments).map_err(invalid)?, outer, &caller, context).await {
                Invoked::Body(body) => body,
                Invoked::Asks(response) => return Ok(response),
            },
        };
        Ok(answer(body).into())
    }
}

fn parse<T: DeserializeOwned>(arguments: Value) -> Result<T, String> {
    serde_json::from_value(arguments).map_err(|error| error.to_string())
}

/// The body as `structuredContent` and as the one text item; an error when it has a `status` that is not `ok`.
pub(crate) fn answer(body: Value) -> CallToolResult {
    let failed = body.get("status").is_some_and(|status| status != "ok");
    let content = vec![ContentBlock::text(body.to_string())];
    let mut result = if failed { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = Some(body);
    result
}

impl Plugin for CodeCall {
    fn tools(&self) -> &[Tool] {
        &self.tools
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

    fn direct_access(&self, tool: &ToolEntry) -> DirectAccess {
        self.settings.load().config.mode.direct(tool)
    }

    fn refusal(&self, tool: &ToolEntry) -> String {
        format!(
            "it is reached through code mode; use codecall:invoke with {{\"tool\": \"{}\", \"input\": {{…}}}}, or \
             codecall:execute for several calls",
            tool.tool.name
        )
    }

    fn instructions(&self) -> Option<String> {
        Some(
            "Tools are reached in code mode: find them with codecall:search, read their schemas with codecall:describe, \
             then run one plan with codecall:execute, or a single call with codecall:invoke."
                .to_owned(),
        )
    }
}
