//! The path to resources and prompts: the caller's view, then the app that owns the object.
//!
//! `resources/read` and `prompts/get` of clients, and `readResource` and `getPrompt` inside a script, all come through here.

use std::{sync::Arc, time::Duration};

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, JsonObject,
        ReadResourceRequestParams, ReadResourceResponse, ResourceContents,
    },
    service::RequestContext,
};
use serde_json::json;

use crate::{
    Caller, Denied, Forbidden, InvokeError, Invoker, Permitted, Registry, RequestObject, Trail, Unavailable,
    access::{Requested, decide},
    codes,
    names::{LONGEST_URI, clipped},
    questions::{ArgumentsDigest, CallKey, Conversation, Unanswered},
    request_flow::{Brought, NotTaken, RequestFlow},
};

impl Invoker {
    /// Reads a resource for `caller`. The answer names it by the URI that was asked for.
    ///
    /// # Errors
    /// The caller lacks scopes, nothing has this URI, the policies forbid it, it is not approved, or the app failed.
    pub async fn read_resource(
        &self,
        mut params: ReadResourceRequestParams,
        caller: &Caller,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, InvokeError> {
        let object = RequestObject::Resource(params.uri.clone());
        let failed = |error| failed(&object, error);
        check_length(&params.uri).map_err(failed)?;
        let uri = params.uri.clone();
        let mut items = match self.registry().decide(caller, |view| view.resource(&uri)).await {
            Ok(items) => items,
            Err(denied) => {
                let error =
                    refused_or_busy(self.registry(), denied, ("resource", &*uri), caller, || not_found(&uri));
                return Err(failed(error.await));
            }
        };
        let (responses, state) = (params.input_responses.take(), params.request_state.take());
        let brought = || {
            let brought =
                self.brought(caller.principal(), &object.to_string(), responses.clone(), state.clone());
            brought.map_err(|problem| failed(invalid(problem)))
        };
        // An answer is for the one that was asked about: others of this URI were not there before.
        if let Some(answered) = brought()?.answered
            && let Some(at) = items.iter().position(|item| answered.is_for(&item.request_object()))
        {
            items.drain(..at);
        }
        for item in items {
            let brought = brought()?;
            let reading = self.respond(&object, &item, params.clone(), brought, context.clone());
            match noted("resources/read", &item, &context, reading).await {
                Ok(mut response) => {
                    if let ReadResourceResponse::Complete(result) = &mut response {
                        name_as_asked(&mut result.contents, uri.strip_suffix(item.local()));
                    }
                    return Ok(response);
                }
                Err(InvokeError::App { error, .. }) if is_not_found(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(failed(not_found(&uri)))
    }

    /// Gets a prompt for `caller`.
    ///
    /// # Errors
    /// The caller lacks scopes, no prompt has this name, the policies forbid it, it is not approved, or the app failed.
    pub async fn get_prompt(
        &self,
        mut params: GetPromptRequestParams,
        caller: &Caller,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, InvokeError> {
        let object = RequestObject::Prompt(params.name.clone());
        let failed = |error| failed(&object, error);
        let name = params.name.clone();
        let prompt = self.registry().decide(caller, |view| view.prompt(&name)).await;
        let unknown = || {
            let message = format!("unknown prompt `{}`; see prompts/list", clipped(&name));
            ErrorData::invalid_params(message, Some(json!({"code": "NOT_FOUND"})))
        };
        let prompt = match prompt {
            Ok(prompt) => prompt,
            Err(denied) => {
                let about = ("prompt", &*name);
                return Err(failed(refused_or_busy(self.registry(), denied, about, caller, unknown).await));
            }
        };
        if let Some(name) = no_text(params.arguments.as_ref()) {
            let message = format!(
                "the argument `{}` of the prompt is no text: in MCP, arguments of prompts are strings",
                clipped(name)
            );
            return Err(failed(invalid(message)));
        }
        let (responses, state) = (params.input_responses.take(), params.request_state.take());
        let brought = self.brought(caller.principal(), &object.to_string(), responses, state);
        let brought = brought.map_err(|problem| failed(invalid(problem)))?;
        let getting = self.respond(&object, &prompt, params, brought, context.clone());
        noted("prompts/get", &prompt, &context, getting).await
    }

    /// Sends a request for `object`, by its public name, to the app that owns it, if the policies let it pass.
    async fn respond<K>(
        &self,
        object: &RequestObject,
        item: &Permitted<K>,
        params: <Permitted<K> as Requested>::Params,
        brought: Brought,
        context: RequestContext<RoleServer>,
    ) -> Result<<Permitted<K> as Requested>::Response, InvokeError>
    where
        Permitted<K>: Requested,
    {
        let (principal, options, sealed_for) =
            (item.caller().principal(), item.options(), object.to_string());
        let conversation = Conversation {
            open_calls: self.open_calls(),
            principal,
            is_remote: item.transport().is_some(),
            timeout: options.timeout,
            longest: options.question_timeout,
        };
        let key = conversation.may_hold(&context).then(|| {
            let none = JsonObject::new();
            let arguments = <Permitted<K> as Requested>::arguments(&params).unwrap_or(&none);
            CallKey::new(principal, &sealed_for, ArgumentsDigest::of(arguments))
        });
        let decided = decide(item, params, &context).await.map_err(|why| failed(object, why.into()))?;
        let flow = RequestFlow { sealed_for: &sealed_for, conversation, key, brought, decided };
        self.take(flow, context).await.map_err(|why| match why {
            NotTaken::Stopped(InvokeError::InputExpired { .. }) => {
                failed(object, unanswered(&sealed_for, Unanswered::Over, options.timeout))
            }
            NotTaken::Stopped(error) => error,
            NotTaken::Unanswered(why) => failed(object, unanswered(&sealed_for, why, options.timeout)),
            NotTaken::Cancelled => InvokeError::Cancelled { name: sealed_for.clone() },
        })
    }
}

/// A protocol error of a request for `object`.
fn failed(object: &RequestObject, error: ErrorData) -> InvokeError {
    InvokeError::App { name: clipped(&object.to_string()).to_owned(), error }
}

/// The error of a request that has no response.
fn unanswered(object: &str, why: Unanswered, timeout: Duration) -> ErrorData {
    let object = clipped(object);
    let (code, message) = match why {
        Unanswered::App(error) => return error,
        Unanswered::Unfit(problem) => return invalid(problem),
        Unanswered::TimedOut => {
            (codes::TIMEOUT, format!("{object} was not there within {} ms", timeout.as_millis()))
        }
        Unanswered::Question(unasked) => {
            let said = unasked.said.as_ref().map(|said| format!(": {said}")).unwrap_or_default();
            (codes::INPUT_REQUIRED, format!("{object} needs an answer that it did not get{said}. {unasked}"))
        }
        Unanswered::Over => {
            let message = format!(
                "no request for {object} waits for these answers: it was answered already, nobody answered in time, or the server was \
                 restarted; send it again without `requestState`"
            );
            return ErrorData::invalid_params(message, Some(json!({"code": codes::INPUT_EXPIRED})));
        }
    };
    ErrorData::internal_error(message, Some(json!({"code": code})))
}

/// Does `work`, and notes it among the calls of an execution if it is part of one.
async fn noted<K, T>(
    method: &str,
    item: &Permitted<K>,
    context: &RequestContext<RoleServer>,
    work: impl Future<Output = Result<T, InvokeError>>,
) -> Result<T, InvokeError> {
    let Some(trail) = context.extensions.get::<Trail>() else { return work.await };
    let Some(note) = trail.begin(Arc::from(method), item.app_id().clone(), item.transport()) else {
        return Err(InvokeError::Cancelled { name: method.to_owned() });
    };
    let answer = work.await;
    note.end(&match &answer {
        Ok(_) => Ok(CallToolResult::success(Vec::new()).into()),
        Err(error) => Err(error.clone()),
    });
    answer
}

/// Puts the prefix by which the gateway tells an app's URIs from another's in front of those that the app answered with.
fn name_as_asked(contents: &mut [ResourceContents], prefix: Option<&str>) {
    let Some(prefix) = prefix.filter(|prefix| !prefix.is_empty()) else { return };
    for content in contents {
        match content {
            ResourceContents::TextResourceContents { uri, .. }
            | ResourceContents::BlobResourceContents { uri, .. } => uri.insert_str(0, prefix),
            _ => {}
        }
    }
}

/// The first argument that is no text. Policies compare texts, and an app that makes a text of whatever it gets would see another value than they.
fn no_text(arguments: Option<&JsonObject>) -> Option<&str> {
    arguments?.iter().find(|(_, value)| !value.is_string()).map(|(name, _)| name.as_str())
}

/// Refuses a URI that is too long to be looked at, or kept for a subscription.
pub(crate) fn check_length(uri: &str) -> Result<(), ErrorData> {
    if uri.len() <= LONGEST_URI {
        return Ok(());
    }
    let message = format!("the URI has {} bytes; {LONGEST_URI} is the limit", uri.len());
    Err(invalid(message))
}

/// The error of a request that its caller may not make: with the scopes that are missing, or as for something that does not exist.
pub(crate) fn refused(denied: Denied, unknown: impl FnOnce() -> ErrorData) -> ErrorData {
    match denied {
        Denied::Unknown => unknown(),
        Denied::Policies => Forbidden::NotPermitted.into(),
        Denied::Ended => Forbidden::Ended.into(),
        Denied::Scopes(missing) => {
            let message = format!("this needs the scope {}", missing.join(" "));
            let data = json!({"code": codes::ACCESS_DENIED, "requiredScopes": missing});
            ErrorData::new(ErrorCode::INVALID_REQUEST, message, Some(data))
        }
    }
}

/// The same for an object that an app may have which has no connection for the caller: `key` is its name, of this `kind`.
pub(crate) async fn refused_or_busy(
    registry: &Registry,
    denied: Denied,
    (kind, key): (&str, &str),
    caller: &Caller,
    unknown: impl FnOnce() -> ErrorData,
) -> ErrorData {
    let mut busy = None;
    if denied == Denied::Unknown && registry.view(caller).may_grow() {
        let unavailable = registry.ready_view(caller).await.unavailable();
        busy = unavailable.into_iter().find(|app| matches!(app.why, Unavailable::Busy(_)));
    }
    refused(denied, || match busy {
        None => unknown(),
        Some(app) => ErrorData::internal_error(
            format!("{kind} `{}` is not available now: {app}", clipped(key)),
            Some(json!({"code": app.code()})),
        ),
    })
}

pub(crate) fn invalid(message: String) -> ErrorData {
    ErrorData::invalid_params(message, None)
}

/// Returns `true` for the error of an app that has no such resource.
pub(crate) fn is_not_found(error: &ErrorData) -> bool {
    error.code == ErrorCode::RESOURCE_NOT_FOUND
        || (error.code == ErrorCode::INVALID_PARAMS
            && error.data.as_ref().is_some_and(|data| data.get("uri").is_some()))
}

pub(crate) fn not_found(uri: &str) -> ErrorData {
    ErrorData::resource_not_found(
        format!("resource `{}` does not exist", clipped(uri)),
        Some(json!({"uri": uri})),
    )
}
