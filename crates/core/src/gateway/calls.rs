//! `tools/call`: a plugin's own tool, or an app's through the [`Invoker`](crate::Invoker).

use std::sync::atomic::Ordering;

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolRequestParams, CallToolResponse},
    service::RequestContext,
};

use super::{Gateway, SessionLogLevel, stamp};
use crate::{
    AppEntry, DirectAccess, InvokeError, Principal, REQUEST_CANCELLED,
    names::clipped,
    observe::{Begun, Watch},
};

impl Gateway {
    // At `info` a span for each call costs some 3 µs, and no line there needs it.
    #[tracing::instrument(name = "tool.call", level = "debug", skip_all, fields(tool.name = %params.name))]
    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let principal = self.principal(&context);
        let watch = self.watch(&params, &principal, &context, true);
        if let Some(watch) = &watch {
            context.extensions.insert(watch.trail());
        }
        let answer = self.dispatch(params, principal, context).await;
        if let Some(watch) = watch {
            watch.end(&answer);
        }
        answer
    }

    /// Calls an app's tool for an operator: one that clients reach through a plugin only, too. Scopes, schema, rate limit and
    /// deadline are those of any call, and observers are told.
    ///
    /// # Errors
    /// As [`Invoker::call`](crate::Invoker::call).
    pub async fn call_as_operator(
        &self,
        params: CallToolRequestParams,
        operator: &Principal,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, InvokeError> {
        let watch = self.watch(&params, operator, &context, false);
        if let Some(watch) = &watch {
            context.extensions.insert(watch.trail());
        }
        let answer = match self.shared.invoker.find(&params.name, operator) {
            Ok(tool) => self.shared.invoker.call(&tool, params, operator, context).await,
            Err(error) => Err(error),
        };
        if let Some(watch) = watch {
            watch.end_invoked(&answer);
        }
        answer
    }

    fn watch(
        &self,
        params: &CallToolRequestParams,
        principal: &Principal,
        context: &RequestContext<RoleServer>,
        by_client: bool,
    ) -> Option<Watch> {
        let observers = &self.shared.observers;
        if observers.is_empty() {
            return None;
        }
        let own = self.shared.plugins.iter().find_map(|plugin| plugin.own_tool(&params.name));
        let known = match own {
            Some(name) => Some(name.into()),
            None => self.shared.registry.snapshot().tool(&params.name).map(|entry| entry.name.clone()),
        };
        let begun = Begun {
            is_known: known.is_some(),
            tool: known.unwrap_or_else(|| params.name.as_ref().into()),
            is_meta: own.is_some(),
            principal,
            arguments: params.arguments.as_ref(),
            context,
            by_client,
        };
        Some(Watch::begin(observers, begun))
    }

    async fn dispatch(
        &self,
        params: CallToolRequestParams,
        principal: Principal,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // Asked for now: the context, with the request's headers, is given away and not copied.
        let (modern, cancelled) = (stamp::is_modern(&context), context.ct.clone());
        let own =
            self.shared.plugins.iter().find_map(|plugin| Some((plugin, plugin.own_tool(&params.name)?)));
        let mut response = match own {
            Some((plugin, name)) => match self.shared.invoker.count(name, &principal, &context).await {
                Ok(()) => {
                    let name = name.to_owned();
                    let response = plugin.call_tool(params, principal, context).await?;
                    if cancelled.is_cancelled() {
                        return Err(InvokeError::Cancelled { name }.as_protocol_error(REQUEST_CANCELLED));
                    }
                    response
                }
                Err(limited) => plugin.refused(name, &limited).into(),
            },
            None => {
                let name = params.name.clone();
                match self.call_app(params, &principal, context).await {
                    Ok(response) => response,
                    Err(error) => {
                        tracing::info!(tool.name = %name, error.code = error.code(), "a tool call was refused or failed");
                        error.into_call_result()?.into()
                    }
                }
            }
        };
        match &mut response {
            CallToolResponse::Complete(result) => {
                stamp::complete(&mut result.result_type);
                self.stamp_for(modern, &mut result.meta);
            }
            CallToolResponse::InputRequired(result) => self.stamp_for(modern, &mut result.meta),
            CallToolResponse::Task(result) => self.stamp_for(modern, &mut result.meta),
            _ => {}
        }
        Ok(response)
    }

    async fn call_app(
        &self,
        params: CallToolRequestParams,
        principal: &Principal,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, InvokeError> {
        let tool = self.shared.invoker.find(&params.name, principal)?;
        if self.direct_access(&tool) == DirectAccess::Refused {
            let strictest =
                self.shared.plugins.iter().find(|p| p.direct_access(&tool) == DirectAccess::Refused);
            let why = strictest.map(|plugin| plugin.refusal(&tool)).unwrap_or_default();
            return Err(InvokeError::Denied { name: tool.name.to_string(), why });
        }
        let mut context = context;
        let level = self.session.log_level.load(Ordering::Relaxed);
        if level > 0 {
            context.extensions.insert(SessionLogLevel::ranked(level));
        }
        let mut response = self.shared.invoker.call(&tool, params, principal, context).await?;
        if let CallToolResponse::Task(created) = &mut response {
            created.task.task_id = task_id(&tool.app_id, &created.task.task_id);
        }
        Ok(response)
    }

    /// The scopes `principal` lacks for a direct call of an app's tool. Empty for tools that do not exist, that no direct
    /// call reaches, or that are a plugin's own.
    pub fn missing_scopes(&self, tool: &str, principal: &Principal) -> Vec<String> {
        let snapshot = self.shared.registry.snapshot();
        match snapshot.tool(tool) {
            Some(tool) if self.direct_access(tool) != DirectAccess::Refused => {
                principal.missing(&tool.meta.scopes).into_iter().map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The app that made a task; its own id is put back into `task_id`.
    pub(super) fn task_owner(&self, task_id: &mut String) -> Result<AppEntry, ErrorData> {
        let unknown = || ErrorData::invalid_params(format!("unknown task `{}`", clipped(task_id)), None);
        let (app, own) = task_id.split_once(':').ok_or_else(unknown)?;
        let owner = self.shared.registry.snapshot().app(app).cloned().ok_or_else(unknown)?;
        *task_id = own.to_owned();
        Ok(owner)
    }
}

/// The public id of an app's task. App ids hold no `:`.
pub(super) fn task_id(app: &str, own: &str) -> String {
    format!("{app}:{own}")
}
