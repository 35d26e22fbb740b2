//! `tools/call`: a plugin's own tool, or an app's through the [`Invoker`](crate::Invoker).

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolRequestParams, CallToolResponse},
    service::RequestContext,
};

use super::{Gateway, stamp};
use crate::{
    AccessMode, AnswersByRetry, AskedAtOnce, Caller, CallerAddress, DirectAccess, Era, InvokeError,
    REQUEST_CANCELLED, ToolEntry,
    observe::{Begun, ExecutionWatch},
};

impl Gateway {
    /// Answers `tools/call`.
    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context)?;
        self.note_level(&mut context);
        let watch = self.watch(&params, &caller, &context, true);
        if let Some(watch) = &watch {
            context.extensions.insert(watch.trail());
        }
        let answer = self.dispatch(params, caller, context).await;
        if let Some(watch) = watch {
            watch.end(&answer);
        }
        answer
    }

    /// Calls an app's tool for an operator: one that clients reach through a plugin only, too. Scopes, schema, rate limit and
    /// deadline are those of any call, and observers are notified.
    ///
    /// # Errors
    /// As [`Invoker::call`](crate::Invoker::call).
    pub async fn call_as_operator(
        &self,
        params: CallToolRequestParams,
        operator: &Caller,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, InvokeError> {
        let watch = self.watch(&params, operator, &context, false);
        if let Some(watch) = &watch {
            context.extensions.insert(watch.trail());
        }
        let answer = match self.shared.invoker.find(&params.name, operator).await {
            Ok(tool) => self.shared.invoker.call(&tool, params, context).await,
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
        caller: &Caller,
        context: &RequestContext<RoleServer>,
        by_client: bool,
    ) -> Option<ExecutionWatch> {
        let observers = self.shared.invoker.observers();
        if observers.is_empty() {
            return None;
        }
        let own = self.shared.plugins.iter().find_map(|plugin| plugin.own_tool(&params.name));
        let known = match own {
            Some(name) => Some(name.into()),
            None => {
                self.shared.registry.view(caller).known_tool(&params.name).map(|entry| entry.name.clone())
            }
        };
        let begun = Begun {
            is_known: known.is_some(),
            tool: known.unwrap_or_else(|| params.name.as_ref().into()),
            is_meta: own.is_some(),
            principal: caller.principal(),
            arguments: params.arguments.as_ref(),
            context: Some(context),
            address: CallerAddress::of(context).map(|at| at.0),
            by_client,
            plan: None,
        };
        Some(ExecutionWatch::begin(observers, begun))
    }

    async fn dispatch(
        &self,
        params: CallToolRequestParams,
        caller: Caller,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // Asked for now: the context, with the request's headers, is given away and not copied.
        let (era, cancelled) = (Era::of(&context), context.ct.clone());
        let own =
            self.shared.plugins.iter().find_map(|plugin| Some((plugin, plugin.own_tool(&params.name)?)));
        let mut response = match own {
            Some((plugin, name)) if caller.mode() == Some(AccessMode::Direct) => {
                let why = "this client is in direct mode; call the tools of apps by their own names, see tools/list";
                plugin
                    .refused(name, &InvokeError::Denied { name: name.to_owned(), why: why.to_owned() })
                    .into()
            }
            Some((plugin, name)) => match self.shared.invoker.count(name, caller.principal(), &context).await
            {
                Ok(()) => {
                    let name = name.to_owned();
                    let response = plugin.call_tool(params, caller, context).await?;
                    if cancelled.is_cancelled() {
                        return Err(InvokeError::Cancelled { name }.as_protocol_error(REQUEST_CANCELLED));
                    }
                    response
                }
                Err(limited) => plugin.refused(name, &limited).into(),
            },
            None => {
                let name = params.name.clone();
                match self.call_app(params, &caller, context).await {
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
                self.stamp_for(era, &mut result.meta);
            }
            CallToolResponse::InputRequired(result) => self.stamp_for(era, &mut result.meta),
            CallToolResponse::Task(result) => self.stamp_for(era, &mut result.meta),
            _ => {}
        }
        Ok(response)
    }

    async fn call_app(
        &self,
        params: CallToolRequestParams,
        caller: &Caller,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, InvokeError> {
        let mode = caller.mode();
        let reaches = |tool: &ToolEntry| self.direct_access(tool, mode) != DirectAccess::Refused;
        let tool = self.shared.invoker.find_among(&params.name, caller, reaches).await?;
        if self.direct_access(&tool, mode) == DirectAccess::Refused {
            let strictest =
                self.shared.plugins.iter().find(|p| p.direct_access(&tool, mode) == DirectAccess::Refused);
            let why = strictest.map(|plugin| plugin.refusal(&tool)).unwrap_or_default();
            return Err(InvokeError::Denied { name: tool.name.to_string(), why });
        }
        context.extensions.insert(AnswersByRetry);
        context.extensions.insert(AskedAtOnce);
        self.shared.invoker.call(&tool, params, context).await
    }
}
