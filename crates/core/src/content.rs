//! The path to resources and prompts: the caller's view, then the app that owns the object.
//!
//! `resources/read` and `prompts/get` of clients, and `readResource` and `getPrompt` inside a script, all come through here.

use std::{sync::Arc, time::Duration};

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, JsonObject,
        ReadResourceRequestParams, ReadResourceResponse, Resource, ResourceContents,
    },
    service::RequestContext,
};
use serde_json::json;

use crate::{
    AppFuture, Caller, Denied, Forbidden, InvokeError, Invoker, Permitted, Registry, Trail, Unavailable,
    access::Stopped,
    codes,
    names::{LONGEST_URI, clipped},
    questions::{Answers, ArgumentsDigest, Asking, CallKey, Conversation, Response, Sending, Unanswered},
};

impl Invoker {
    /// Every resource that `caller` may read, by its public URI.
    pub async fn resources(&self, caller: &Caller) -> Vec<Resource> {
        let view = self.registry().ready_view(caller).await;
        view.resources().into_iter().map(|listed| listed.item.into_owned()).collect()
    }

    /// Reads a resource for `caller`. The answer names it by the URI that was asked for.
    ///
    /// # Errors
    /// The caller lacks scopes, nothing has this URI, or the app failed.
    pub async fn read_resource(
        &self,
        mut params: ReadResourceRequestParams,
        caller: &Caller,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        check_length(&params.uri)?;
        let uri = params.uri.clone();
        let items = match self.registry().decide(caller, |view| view.resource(&uri)).await {
            Ok(items) => items,
            Err(denied) => {
                let about = ("resource", &*uri);
                return Err(refused_or_busy(self.registry(), denied, about, caller, || not_found(&uri)).await);
            }
        };
        let (responses, state) = (params.input_responses.take(), params.request_state.take());
        let object = object("resource", &uri);
        let principal = caller.principal();
        for item in items {
            let answers = self.answers(principal, &object, responses.clone(), state.clone());
            let about =
                About { object: &object, arguments: &JsonObject::new(), answers: answers.map_err(invalid)? };
            let mut send = |answers: Answers, context, _| -> AppFuture<'static, _> {
                let (item, mut params) = (item.clone(), params.clone());
                (params.input_responses, params.request_state) = (answers.responses, answers.state);
                Box::pin(async move { item.read(params, context).await })
            };
            let reading = self.respond(about, &item, context.clone(), &mut send);
            match noted("resources/read", &item, &context, reading).await {
                Ok(mut response) => {
                    if let ReadResourceResponse::Complete(result) = &mut response {
                        name_as_asked(&mut result.contents, uri.strip_suffix(item.local()));
                    }
                    return Ok(response);
                }
                Err(error) if is_not_found(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(not_found(&uri))
    }

    /// Gets a prompt for `caller`.
    ///
    /// # Errors
    /// The caller lacks scopes, no prompt has this name, or the app failed.
    pub async fn get_prompt(
        &self,
        mut params: GetPromptRequestParams,
        caller: &Caller,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
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
                return Err(refused_or_busy(self.registry(), denied, about, caller, unknown).await);
            }
        };
        let (responses, state) = (params.input_responses.take(), params.request_state.take());
        let object = object("prompt", &name);
        let answers = self.answers(caller.principal(), &object, responses, state).map_err(invalid)?;
        let arguments = params.arguments.clone().unwrap_or_default();
        let about = About { object: &object, arguments: &arguments, answers };
        let mut send = |answers: Answers, context, _| -> AppFuture<'static, _> {
            let (prompt, mut params) = (prompt.clone(), params.clone());
            (params.input_responses, params.request_state) = (answers.responses, answers.state);
            Box::pin(async move { prompt.get(params, context).await })
        };
        let getting = self.respond(about, &prompt, context.clone(), &mut send);
        noted("prompts/get", &prompt, &context, getting).await
    }

    /// Sends a request to the app that owns `item`. Its questions are asked, or given to the caller.
    async fn respond<K, T: Asking>(
        &self,
        about: About<'_>,
        item: &Permitted<K>,
        context: RequestContext<RoleServer>,
        send: &mut Sending<'_, T>,
    ) -> Result<T, ErrorData> {
        let (principal, options) = (item.caller().principal(), item.options());
        let conversation = Conversation {
            held: self.held(),
            principal,
            is_remote: item.transport().is_some(),
            timeout: options.timeout,
            longest: options.question_timeout,
        };
        let key = conversation
            .may_hold(&context)
            .then(|| CallKey::new(principal, about.object, ArgumentsDigest::of(about.arguments)));
        let response = conversation.respond(about.answers, key, context, send).await;
        match response.map_err(|why| unanswered(about.object, why, options.timeout))? {
            Response::Held(asks, id) => Ok(self.held_asks(principal, about.object, asks, id).into()),
            Response::App(response) => match response.question() {
                Ok(mut asks) => {
                    self.seal_state(principal, about.object, &mut asks);
                    Ok(asks.into())
                }
                Err(response) => Ok(response),
            },
        }
    }
}

/// A request for a resource or prompt.
struct About<'a> {
    object: &'a str,
    arguments: &'a JsonObject,
    answers: Answers,
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
    work: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    let Some(trail) = context.extensions.get::<Trail>() else { return work.await };
    let note = trail.begin(Arc::from(method), item.app_id().clone(), item.transport());
    let answer = work.await;
    note.end(&match &answer {
        Ok(_) => Ok(CallToolResult::success(Vec::new()).into()),
        Err(error) => Err(InvokeError::App { name: method.to_owned(), error: error.clone() }),
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

/// Refuses a URI that is too long to be looked at, or kept for a subscription.
pub(crate) fn check_length(uri: &str) -> Result<(), ErrorData> {
    if uri.len() <= LONGEST_URI {
        return Ok(());
    }
    let message = format!("the URI has {} bytes; {LONGEST_URI} is the limit", uri.len());
    Err(invalid(message))
}

/// Names what the state of a request belongs to. Tools are named by their colon form alone, which holds no space.
fn object(kind: &str, key: &str) -> String {
    format!("{kind} {key}")
}

/// The error of a request that its caller may not make: with the scopes that are missing, or as for something that does not exist.
pub(crate) fn refused(denied: Denied, unknown: impl FnOnce() -> ErrorData) -> ErrorData {
    match denied {
        Denied::Unknown => unknown(),
        Denied::Policies => Stopped::Forbidden(Forbidden::NotPermitted).into(),
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
