//! The path to resources and prompts: the caller's view, then the app that owns the object.
//!
//! `resources/read` and `prompts/get` of clients, and `readResource` and `getPrompt` inside a script, all come through here.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, ReadResourceRequestParams,
        ReadResourceResponse, Resource, ResourceContents,
    },
    service::RequestContext,
};
use serde_json::json;

use crate::{
    Caller, Denied, InvokeError, Invoker, Permitted, Trail, codes,
    names::{LONGEST_URI, clipped},
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
        let items = self.registry().decide(caller, |view| view.resource(&uri)).await;
        let items = items.map_err(|denied| refused(denied, || not_found(&uri)))?;
        params.request_state = self.state_of(caller, "resource", &uri, params.request_state.take())?;
        for item in items {
            let reading = item.read(params.clone(), context.clone());
            match noted("resources/read", &item, &context, reading).await {
                Ok(mut response) => {
                    match &mut response {
                        ReadResourceResponse::Complete(result) => {
                            name_as_asked(&mut result.contents, uri.strip_suffix(item.local()));
                        }
                        ReadResourceResponse::InputRequired(result) => {
                            self.seal_state(caller.principal(), &object("resource", &uri), result);
                        }
                        _ => {}
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
        let prompt = prompt.map_err(|denied| {
            let message = || format!("unknown prompt `{}`; see prompts/list", clipped(&name));
            refused(denied, || ErrorData::invalid_params(message(), Some(json!({"code": "NOT_FOUND"}))))
        })?;
        params.request_state = self.state_of(caller, "prompt", &name, params.request_state.take())?;
        let getting = prompt.get(params, context.clone());
        let mut response = noted("prompts/get", &prompt, &context, getting).await?;
        if let GetPromptResponse::InputRequired(result) = &mut response {
            self.seal_state(caller.principal(), &object("prompt", &name), result);
        }
        Ok(response)
    }

    fn state_of(
        &self,
        caller: &Caller,
        kind: &str,
        key: &str,
        sealed: Option<String>,
    ) -> Result<Option<String>, ErrorData> {
        self.opened(caller.principal(), &object(kind, key), sealed).map_err(invalid)
    }
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
        Denied::Scopes(missing) => {
            let message = format!("this needs the scope {}", missing.join(" "));
            let data = json!({"code": codes::ACCESS_DENIED, "requiredScopes": missing});
            ErrorData::new(ErrorCode::INVALID_REQUEST, message, Some(data))
        }
    }
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
