//! The one path to a tool: visibility → scopes → schema → rate limit → deadline → handler.

use std::{net::IpAddr, sync::Arc, time::Duration};

use rmcp::{
    RoleServer,
    model::{CallToolRequestParams, CallToolResponse, JsonObject},
    service::RequestContext,
};
use serde_json::Value;

use crate::{AppFuture, CallerAddress, InvokeError, Principal, Registry, SchemaMode, ToolEntry, Trail};

/// How long to wait before the next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryAfter(pub Duration);

/// Says whether one more call fits.
pub trait RateLimiter: Send + Sync + 'static {
    /// Counts one call of `tool` by `principal`, which came from `address` when it came over HTTP. Names are in the colon form.
    fn check<'a>(
        &'a self,
        tool: &'a str,
        principal: &'a Principal,
        address: Option<IpAddr>,
    ) -> AppFuture<'a, Result<(), RetryAfter>>;
}

/// Calls tools. Direct `tools/call`, `codecall:invoke` and `callTool` inside a script all come through here.
pub struct Invoker {
    registry: Arc<Registry>,
    limiter: Option<Arc<dyn RateLimiter>>,
}

impl std::fmt::Debug for Invoker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Invoker").finish_non_exhaustive()
    }
}

impl Invoker {
    /// An invoker over `registry`, without rate limits.
    pub fn new(registry: Arc<Registry>) -> Self {
        Self { registry, limiter: None }
    }

    /// Counts every call with `limiter`.
    #[must_use]
    pub fn rate_limiter(mut self, limiter: Arc<dyn RateLimiter>) -> Self {
        self.limiter = Some(limiter);
        self
    }

    /// The registry behind it.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Finds a tool by either spelling of its name.
    ///
    /// # Errors
    /// `TOOL_NOT_FOUND` with the nearest name that `principal` may call.
    pub fn find(&self, name: &str, principal: &Principal) -> Result<Arc<ToolEntry>, InvokeError> {
        let snapshot = self.registry.snapshot();
        snapshot.tool(name).cloned().ok_or_else(|| InvokeError::NotFound {
            name: name.to_owned(),
            nearest: snapshot.nearest(name, |tool| tool.is_granted_to(principal)),
        })
    }

    /// Counts one call of `tool`, which may be a meta-tool.
    ///
    /// # Errors
    /// `RATE_LIMIT` with the time to wait.
    pub async fn count(
        &self,
        tool: &str,
        principal: &Principal,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), InvokeError> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        let address = CallerAddress::of(context).map(|at| at.0);
        limiter.check(tool, principal, address).await.map_err(|RetryAfter(retry_after)| {
            InvokeError::RateLimited { name: tool.to_owned(), retry_after }
        })
    }

    /// Calls `tool` for `principal`. The call ends when `context.ct` is cancelled or the app's timeout passes; either
    /// way the work behind it is cancelled too.
    ///
    /// # Errors
    /// Every way a call can miss its tool; a tool that ran and failed is an `Ok` with `is_error`.
    pub async fn call(
        &self,
        tool: &ToolEntry,
        params: CallToolRequestParams,
        principal: &Principal,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, InvokeError> {
        let Some(trail) = context.extensions.get::<Trail>() else {
            return self.pass(tool, params, principal, context).await;
        };
        let note = trail.begin(tool.name.clone(), tool.app_id.clone(), tool.app.transport());
        note.tell(&mut context.meta.0);
        let answer = self.pass(tool, params, principal, context).await;
        note.end(&answer);
        answer
    }

    async fn pass(
        &self,
        tool: &ToolEntry,
        mut params: CallToolRequestParams,
        principal: &Principal,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, InvokeError> {
        let missing = principal.missing(&tool.meta.scopes);
        if !missing.is_empty() {
            let missing = missing.into_iter().map(str::to_owned).collect();
            return Err(InvokeError::MissingScopes { name: tool.name.to_string(), missing });
        }
        params.arguments = Some(check_arguments(tool, params.arguments.take().unwrap_or_default())?);
        self.count(&tool.name, principal, &context).await?;

        // An app that is taken out of the registry ends when the last of these is gone.
        let _open = tool.open.token();
        params.name = tool.local_name.to_string().into();
        let name = || tool.name.to_string();
        let cancelled = context.ct.clone();
        let answer = tool.app.call_tool(params, context);
        tokio::select! {
            biased;
            answer = tokio::time::timeout(tool.timeout, answer) => match answer {
                Ok(Ok(response)) => Ok(response),
                Ok(Err(error)) => Err(InvokeError::App { name: name(), error }),
                Err(_) => Err(InvokeError::TimedOut { name: name(), after: tool.timeout }),
            },
            () = cancelled.cancelled() => Err(InvokeError::Cancelled { name: name() }),
        }
    }
}

fn check_arguments(tool: &ToolEntry, arguments: JsonObject) -> Result<JsonObject, InvokeError> {
    if tool.schema_mode == SchemaMode::Off {
        return Ok(arguments);
    }
    // Moved into a `Value` and out again: the validator reads values, and a copy would cost more than the check.
    let value = Value::Object(arguments);
    tool.schema
        .check(&value)
        .map_err(|problems| InvokeError::InvalidArguments { name: tool.name.to_string(), problems })?;
    let Value::Object(arguments) = value else { unreachable!("it was made an object above") };
    Ok(arguments)
}
