//! Resources, prompts, completion and tasks: each request goes to the app that owns the object, if the caller may use it.

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CompleteRequestParams, CompleteResult, GetPromptRequestParams, GetPromptResponse,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Reference,
    },
    service::RequestContext,
};

use super::{Gateway, stamp};
use crate::{
    AnswersByRetry, AskedAtOnce, Caller, InvokeError, Permitted, PluginTasks, TaskItem,
    content::{check_length, invalid, refused, refused_or_busy},
    names::clipped,
};

impl Gateway {
    pub(super) async fn read(
        &self,
        params: ReadResourceRequestParams,
        caller: &Caller,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        check_length(&params.uri)?;
        let own = self.shared.plugins.iter().find_map(|plugin| plugin.read_resource(&params.uri, caller));
        if let Some(mut result) = own {
            self.complete_read(&mut result, &context);
            return Ok(result.into());
        }
        let mut asked = context.clone();
        asked.extensions.insert(AnswersByRetry);
        asked.extensions.insert(AskedAtOnce);
        let response = self.shared.invoker.read_resource(params, caller, asked).await;
        let mut response = response.map_err(InvokeError::into_protocol_error)?;
        match &mut response {
            ReadResourceResponse::Complete(result) => self.complete_read(result, &context),
            ReadResourceResponse::InputRequired(result) => self.stamp(&context, &mut result.meta),
            _ => {}
        }
        Ok(response)
    }

    fn complete_read(&self, result: &mut ReadResourceResult, context: &RequestContext<RoleServer>) {
        result.cache_scope.get_or_insert(rmcp::model::CacheScope::Private);
        stamp::complete(&mut result.result_type);
        self.stamp(context, &mut result.meta);
    }

    pub(super) async fn prompt(
        &self,
        params: GetPromptRequestParams,
        caller: &Caller,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let mut asked = context.clone();
        asked.extensions.insert(AnswersByRetry);
        asked.extensions.insert(AskedAtOnce);
        let response = self.shared.invoker.get_prompt(params, caller, asked).await;
        let mut response = response.map_err(InvokeError::into_protocol_error)?;
        match &mut response {
            GetPromptResponse::Complete(result) => {
                stamp::complete(&mut result.result_type);
                self.stamp(&context, &mut result.meta);
            }
            GetPromptResponse::InputRequired(result) => self.stamp(&context, &mut result.meta),
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
        let (kind, key) = match &params.r#ref {
            Reference::Prompt(prompt) => ("prompt", prompt.name.as_str()),
            Reference::Resource(resource) => ("resource", resource.uri.as_str()),
            _ => {
                return Err(invalid("unknown kind of reference; use ref/prompt or ref/resource".to_owned()));
            }
        };
        let completion = match completion {
            Ok(completion) => completion,
            Err(denied) => {
                let unknown = || invalid(format!("unknown {kind} `{}`", clipped(key)));
                let registry = &self.shared.registry;
                return Err(refused_or_busy(registry, denied, (kind, key), caller, unknown).await);
            }
        };
        let mut result = completion.complete(params, context.clone()).await?;
        stamp::complete(&mut result.result_type);
        self.stamp(&context, &mut result.meta);
        Ok(result)
    }

    /// The tasks of the plugin that names its tasks like `id`.
    pub(super) fn plugin_tasks(&self, id: &str) -> Option<&dyn PluginTasks> {
        self.shared.plugins.iter().filter_map(|plugin| plugin.tasks()).find(|tasks| tasks.is_own(id))
    }

    /// The task that was made for this caller under the public id `id`.
    pub(super) fn task(&self, id: &str, caller: &Caller) -> Result<Permitted<TaskItem>, ErrorData> {
        let unknown = || invalid(format!("unknown task `{}`", clipped(id)));
        let task = self.shared.invoker.sealer().open_task(caller.principal(), id).ok_or_else(unknown)?;
        self.shared.registry.view(caller).task(task).map_err(|denied| refused(denied, unknown))
    }
}
