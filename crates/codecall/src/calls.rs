//! Calls of tools by a script: made, where they may ask and wait, or rehearsed.

use std::sync::Arc;

use gatewright_agentscript::{Resumed, ToolAnswer, ToolCall, ToolFailure};
use gatewright_core::{
    ApprovalExpired, CountedBefore, InvokeError, Paging, PermittedTool, Rehearsed, RequestObject, Trail,
    Unavailable, UnavailableApp, codes, off_thread,
    rmcp::model::{
        CallToolRequestParams, CallToolResponse, ElicitRequestParams, InputRequest, InputRequiredResult,
        JsonObject,
    },
};
use serde_json::{
    json,
    value::{RawValue, to_raw_value},
};

use crate::{
    examples,
    host::ScriptHost,
    pages::{self, CallPages},
    runs::{NestedOutOfBand, OutOfBand, Rehearsal},
    unwrap::Failure,
};

impl ScriptHost {
    /// Calls `tool`, which may ask and wait.
    pub(crate) async fn make(
        &self,
        index: u32,
        name: &str,
        resumed: Option<&Resumed>,
        tool: &PermittedTool,
        arguments: JsonObject,
        pages: Option<&CallPages>,
    ) -> Result<ToolAnswer, Failure> {
        let mut params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        let is_approval =
            |state: &str| self.awaits_approval(&RequestObject::Tool(tool.name.to_string()), state);
        let mut asking = match self.questions.asking(index, name, resumed, is_approval) {
            Ok(asking) => asking,
            Err(waits) => return Ok(waits),
        };
        let answer = loop {
            let is_repeated = asking.is_repeated();
            (params.input_responses, params.request_state) = asking.answers();
            let (mut context, _cancel) = self.inner_context(name, index);
            let within = NestedOutOfBand::default();
            context.extensions.insert(within.clone());
            if let Some(pages) = pages {
                context.extensions.insert(pages.paginate());
            }
            if is_repeated {
                context.extensions.insert(CountedBefore);
            }
            if self.is_detached && asking.is_expired() {
                // Nobody looks at it: it would be asked for again and again.
                context.extensions.insert(ApprovalExpired);
            }
            match self.invoker.call(tool, params.clone(), context).await {
                Err(InvokeError::ApprovalRequired { request: Ok(request), .. })
                    if let Some(waits) = asking.approval(&request) =>
                {
                    return Ok(waits);
                }
                Ok(CallToolResponse::InputRequired(asks)) => {
                    let mut out_of_band = within.take();
                    if self.lacks_sign_in(name, &asks).await {
                        out_of_band.sign_ins.push(name.to_owned());
                    }
                    match asking.again(asks, out_of_band)? {
                        Some(waits) => return Ok(waits),
                        // A plan in the background stopped with the gateway, and goes on with this run.
                        None if self.halt.is_cancelled() => return Ok(asking.parked()),
                        None => {}
                    }
                }
                answer => break answer,
            }
        };
        self.value(answer, tool).await
    }

    /// Asks the user to sign in at the app of a tool that `call` names, as a call of the app's own tool for that asks. Returns the host's answer to a
    /// call that waits; none once the user has signed in.
    pub(crate) async fn sign_in(&self, call: &ToolCall) -> Result<Option<ToolAnswer>, Failure> {
        let view = self.invoker.registry().ready_view(&self.caller).await;
        let Some(UnavailableApp { why: Unavailable::SignIn(name), .. }) = view.unavailable_owner(&call.name)
        else {
            return Ok(None);
        };
        let tool = self.invoker.find(&name, &self.caller).await?;
        let is_approval =
            |state: &str| self.awaits_approval(&RequestObject::Tool(tool.name.to_string()), state);
        let mut asking = match self.questions.asking(call.index, &name, call.resumed.as_ref(), is_approval) {
            Ok(asking) => asking,
            Err(waits) => return Ok(Some(waits)),
        };
        loop {
            let mut params = CallToolRequestParams::new(name.clone()).with_arguments(JsonObject::new());
            let (mut context, _cancel) = self.inner_context(&name, call.index);
            if asking.is_repeated() {
                context.extensions.insert(CountedBefore);
            }
            (params.input_responses, params.request_state) = asking.answers();
            match self.invoker.call(&tool, params, context).await? {
                CallToolResponse::InputRequired(asks) => {
                    let out_of_band = OutOfBand { sign_ins: vec![name.clone()], ..OutOfBand::default() };
                    if let Some(waits) = asking.again(asks, out_of_band)? {
                        return Ok(Some(waits));
                    }
                }
                _ => return Ok(None),
            }
        }
    }

    /// Returns `true` if a call of `name` asks because the caller has not signed in at the app.
    async fn lacks_sign_in(&self, name: &str, asks: &InputRequiredResult) -> bool {
        let is_address = |request: &InputRequest| match request {
            InputRequest::Elicitation(elicit) => {
                matches!(elicit.params, ElicitRequestParams::UrlElicitationParams { .. })
            }
            _ => false,
        };
        asks.input_requests.iter().flatten().any(|(_, request)| is_address(request))
            && self.invoker.lacks_sign_in(name, &self.caller).await
    }

    /// The pages of a call of `tool`, which the script calls `name`.
    ///
    /// # Errors
    /// Its app collects none.
    pub(crate) fn pages(&self, name: &str, tool: &PermittedTool, max: u32) -> Result<CallPages, ToolFailure> {
        if tool.paging() == Paging::Unavailable {
            return Err(self.failure(codes::VALIDATION_ERROR, &pages::no_pages(name)));
        }
        let (nesting, invoker) = (self.nesting().clone(), self.invoker.clone());
        Ok(CallPages::new(max, nesting, invoker, tool, self.request().clone()))
    }

    /// Tries a call of `tool`: one that only reads is made, and a saved plan is rehearsed. Of others the policies are asked, and the answer is
    /// assumed.
    pub(crate) async fn rehearse(
        &self,
        rehearsal: &Rehearsal,
        name: &str,
        index: u32,
        tool: &PermittedTool,
        arguments: JsonObject,
        pages: Option<&CallPages>,
    ) -> Result<ToolAnswer, Failure> {
        let arguments = self.invoker.check(tool, arguments).await?;
        let is_made = rehearsal.makes(tool) || self.is_plan(tool);
        let mut entry = rehearsal.list(if is_made { name } else { &tool.name }, Some(&arguments));
        let rehearsed = if is_made { Rehearsed::made() } else { Rehearsed::unmade() };
        let (mut context, _cancel) = self.inner_context(name, index);
        context.extensions.insert(rehearsed.clone());
        if let Some(pages) = pages {
            context.extensions.insert(pages.paginate());
        }
        if !is_made {
            // What is not made counts for no rate limit, and is in no audit.
            context.extensions.insert(CountedBefore);
            context.extensions.remove::<Trail>();
        }
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        let answer = self.invoker.call(tool, params, context).await;
        let Ok(CallToolResponse::InputRequired(asks)) = answer else {
            entry.decided(&rehearsed);
            return self.value(answer, tool).await;
        };
        let shape = self.shapes.result_shape(tool.entry(), &self.caller);
        // Making up a value takes long where the schema wants it: it stays off the threads that serve requests.
        let (entry_of, schema) = (tool.entry().clone(), shape.as_ref().map(|shape| shape.schema.clone()));
        let made =
            off_thread(usize::MAX, move || schema.and_then(|schema| examples::result(&entry_of, &schema)));
        let value = made.await;
        let value = match pages {
            Some(_) => value.map(pages::invented),
            None => value,
        };
        if rehearsed.has_passed() {
            entry.decided(&rehearsed);
            entry.asked(asks.input_requests.as_ref());
        } else {
            entry.assume(shape.as_ref().filter(|_| value.is_some()), &rehearsed);
        }
        let value = to_raw_value(&value.unwrap_or_else(|| json!({})));
        Ok(ToolAnswer::Value(value.unwrap_or_else(|_| RawValue::NULL.to_owned())))
    }

    /// Returns `true` if `tool` is a saved plan that this gateway runs.
    fn is_plan(&self, tool: &PermittedTool) -> bool {
        let app = Arc::as_ptr(tool.app()).cast::<()>();
        self.plans.iter().any(|plans| Arc::as_ptr(plans).cast::<()>() == app)
    }
}
