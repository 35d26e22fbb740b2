//! Resources, prompts, completion and tasks: each request goes to the app that owns the object, if the caller may use it.

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CompleteRequestParams, CompleteResult, ErrorCode, GetPromptRequestParams, GetPromptResponse,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Reference, ResourceContents,
    },
    service::RequestContext,
};
use serde_json::json;

use super::{Gateway, stamp};
use crate::{
    Caller, Denied, Permitted, TaskItem, codes,
    names::{LONGEST_URI, clipped},
};

impl Gateway {
    pub(super) async fn read(
        &self,
        mut params: ReadResourceRequestParams,
        caller: &Caller,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        check_length(&params.uri)?;
        let uri = params.uri.clone();
        let own = self.shared.plugins.iter().find_map(|plugin| plugin.read_resource(&uri, caller));
        if let Some(mut result) = own {
            self.complete_read(&mut result, &context);
            return Ok(result.into());
        }
        let items = self.shared.registry.decide(caller, |view| view.resource(&uri)).await;
        let items = items.map_err(|denied| refused(denied, || not_found(&uri)))?;
        params.request_state = self.state_of(caller, "resource", &uri, params.request_state.take())?;
        for item in items {
            match item.read(params.clone(), context.clone()).await {
                Ok(mut response) => {
                    match &mut response {
                        ReadResourceResponse::Complete(result) => {
                            name_as_asked(&mut result.contents, uri.strip_suffix(item.local()));
                            self.complete_read(result, &context);
                        }
                        ReadResourceResponse::InputRequired(result) => {
                            let object = object("resource", &uri);
                            self.shared.invoker.seal_state(caller.principal(), &object, result);
                            self.stamp(&context, &mut result.meta);
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

    fn complete_read(&self, result: &mut ReadResourceResult, context: &RequestContext<RoleServer>) {
        result.cache_scope.get_or_insert(rmcp::model::CacheScope::Private);
        stamp::complete(&mut result.result_type);
        self.stamp(context, &mut result.meta);
    }

    pub(super) async fn prompt(
        &self,
        mut params: GetPromptRequestParams,
        caller: &Caller,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let name = params.name.clone();
        let prompt = self.shared.registry.decide(caller, |view| view.prompt(&name)).await;
        let prompt = prompt.map_err(|denied| {
            refused(denied, || invalid(format!("unknown prompt `{}`; see prompts/list", clipped(&name))))
        })?;
        params.request_state = self.state_of(caller, "prompt", &name, params.request_state.take())?;
        let mut response = prompt.get(params, context.clone()).await?;
        match &mut response {
            GetPromptResponse::Complete(result) => {
                stamp::complete(&mut result.result_type);
                self.stamp(&context, &mut result.meta);
            }
            GetPromptResponse::InputRequired(result) => {
                self.shared.invoker.seal_state(caller.principal(), &object("prompt", &name), result);
                self.stamp(&context, &mut result.meta);
            }
            _ => {}
        }
        Ok(response)
    }

    pub(super) async fn completion(
        &self,
        params: CompleteRequestParams,
        caller: &Caller,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        if let Reference::Resource(resource) = &params.r#ref {
            check_length(&resource.uri)?;
        }
        let completion = self.shared.registry.decide(caller, |view| view.completion(&params.r#ref)).await;
        let completion = completion.map_err(|denied| {
            refused(denied, || match &params.r#ref {
                Reference::Prompt(prompt) => invalid(format!("unknown prompt `{}`", clipped(&prompt.name))),
                Reference::Resource(resource) => {
                    invalid(format!("unknown resource `{}`", clipped(&resource.uri)))
                }
                _ => invalid("unknown kind of reference; use ref/prompt or ref/resource".to_owned()),
            })
        })?;
        let mut result = completion.complete(params, context.clone()).await?;
        stamp::complete(&mut result.result_type);
        self.stamp(&context, &mut result.meta);
        Ok(result)
    }

    /// The task that was made for this caller under the public id `id`.
    pub(super) fn task(&self, id: &str, caller: &Caller) -> Result<Permitted<TaskItem>, ErrorData> {
        let unknown = || invalid(format!("unknown task `{}`", clipped(id)));
        let task = self.shared.invoker.sealer().open_task(caller.principal(), id).ok_or_else(unknown)?;
        self.shared.registry.view(caller).task(task).map_err(|denied| refused(denied, unknown))
    }

    fn state_of(
        &self,
        caller: &Caller,
        kind: &str,
        key: &str,
        sealed: Option<String>,
    ) -> Result<Option<String>, ErrorData> {
        self.shared.invoker.opened(caller.principal(), &object(kind, key), sealed).map_err(invalid)
    }
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
pub(super) fn check_length(uri: &str) -> Result<(), ErrorData> {
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
pub(super) fn refused(denied: Denied, unknown: impl FnOnce() -> ErrorData) -> ErrorData {
    match denied {
        Denied::Unknown => unknown(),
        Denied::Scopes(missing) => {
            let message = format!("this needs the scope {}", missing.join(" "));
            let data = json!({"code": codes::ACCESS_DENIED, "requiredScopes": missing});
            ErrorData::new(ErrorCode::INVALID_REQUEST, message, Some(data))
        }
    }
}

fn invalid(message: String) -> ErrorData {
    ErrorData::invalid_params(message, None)
}

fn is_not_found(error: &ErrorData) -> bool {
    error.code == ErrorCode::RESOURCE_NOT_FOUND
        || (error.code == ErrorCode::INVALID_PARAMS
            && error.data.as_ref().is_some_and(|data| data.get("uri").is_some()))
}

pub(super) fn not_found(uri: &str) -> ErrorData {
    ErrorData::resource_not_found(
        format!("resource `{}` does not exist", clipped(uri)),
        Some(json!({"uri": uri})),
    )
}
