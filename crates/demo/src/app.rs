//! The server handler that serves a table of tools and a shelf of resources and prompts.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    CompletionInfo, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation, JsonObject,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, Prompt, PromptMessage, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate, Role, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use crate::dataset::{Dataset, State};
use crate::tool::{Args, Failure, Spec};
use crate::{billing, check, crm, support};

/// One demo app: a server handler over a [`Dataset`]. Cloning it shares the data.
#[derive(Clone)]
pub struct App {
    inner: Arc<Inner>,
}

struct Inner {
    name: &'static str,
    instructions: &'static str,
    /// Sorted by name.
    tools: Vec<(Tool, Spec)>,
    shelf: Shelf,
    data: Arc<Dataset>,
}

/// Resources and prompts of an app.
pub(crate) struct Shelf {
    pub(crate) resources: Vec<Resource>,
    pub(crate) templates: Vec<ResourceTemplate>,
    pub(crate) prompts: Vec<Prompt>,
    /// The MIME type and text behind a URI.
    pub(crate) read: fn(&State, &str) -> Option<(&'static str, String)>,
    /// The text of a prompt; `None` when there is no prompt of that name.
    pub(crate) prompt: fn(&State, &str, &Args<'_>) -> Option<Result<String, Failure>>,
    /// Every value an argument can take, for the prompt or template named.
    pub(crate) values: fn(&State, &str, &str) -> Vec<String>,
}

impl App {
    /// Accounts and users. Tools begin with `accounts_`, `users_` and `exports_`.
    #[must_use]
    pub fn crm(data: Arc<Dataset>) -> Self {
        let instructions = "Accounts (customer companies) and the users who belong to them.";
        Self::new("crm", instructions, crm::tools(), crm::shelf(), data)
    }

    /// Products, orders, invoices and revenue.
    #[must_use]
    pub fn billing(data: Arc<Dataset>) -> Self {
        let instructions = "Products, orders, invoices and revenue. Amounts are in cents.";
        Self::new("billing", instructions, billing::tools(), billing::shelf(), data)
    }

    /// Support tickets and the agents who answer them.
    #[must_use]
    pub fn support(data: Arc<Dataset>) -> Self {
        let instructions = "Support tickets, their comments and the agents who answer them.";
        Self::new("support", instructions, support::tools(), support::shelf(), data)
    }

    fn new(
        name: &'static str,
        instructions: &'static str,
        specs: Vec<Spec>,
        shelf: Shelf,
        data: Arc<Dataset>,
    ) -> Self {
        let mut tools: Vec<(Tool, Spec)> = specs.into_iter().map(|spec| (spec.tool(name), spec)).collect();
        tools.sort_by_key(|(_, spec)| spec.name);
        let inner = Inner { name, instructions, tools, shelf, data };
        Self { inner: Arc::new(inner) }
    }

    /// The name the app is meant to be mounted under.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.inner.name
    }

    /// Every tool, sorted by name.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.inner.tools.iter().map(|(tool, _)| tool)
    }

    /// Calls a tool, without a client or a session.
    ///
    /// A refusal is a result with `isError`, whose `structuredContent` has `code` (`NOT_FOUND`,
    /// `VALIDATION_ERROR` or `RATE_LIMIT`) and `message`.
    ///
    /// # Errors
    /// When there is no tool of that name (-32602).
    pub fn call(&self, name: &str, arguments: &JsonObject) -> Result<CallToolResult, ErrorData> {
        let (tool, spec) = self
            .find(name)
            .ok_or_else(|| ErrorData::invalid_params(format!("Unknown tool: {name}"), None))?;
        let outcome = match check::problem(&tool.input_schema, arguments) {
            Some(problem) => Err(Failure::Validation(problem)),
            None => self.inner.data.with(|state| (spec.run)(state, &Args(arguments))),
        };
        Ok(match outcome {
            Ok(value) => CallToolResult::structured(value),
            Err(failure) => CallToolResult::structured_error(failure.to_value()),
        })
    }

    fn find(&self, name: &str) -> Option<&(Tool, Spec)> {
        let tools = &self.inner.tools;
        let at = tools.binary_search_by_key(&name, |(_, spec)| spec.name).ok()?;
        tools.get(at)
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("App").field(&self.inner.name).finish()
    }
}

/// The lists are short and go out whole, so every cursor is one we never issued.
fn one_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        Some(_) => Err(ErrorData::invalid_params("Unknown cursor: this list has one page", None)),
        None => Ok(()),
    }
}

impl ServerHandler for App {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .enable_completions()
            .build();
        let name = format!("gatewright-demo-{}", self.inner.name);
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new(name, env!("CARGO_PKG_VERSION")))
            .with_instructions(self.inner.instructions)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        one_page(request)?;
        Ok(ListToolsResult::with_all_items(self.tools().cloned().collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.find(name).map(|(tool, _)| tool.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        self.call(&request.name, &arguments).map(CallToolResponse::Complete)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        one_page(request)?;
        Ok(ListResourcesResult::with_all_items(self.inner.shelf.resources.clone()))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        one_page(request)?;
        Ok(ListResourceTemplatesResult::with_all_items(self.inner.shelf.templates.clone()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let read = self.inner.data.with(|state| (self.inner.shelf.read)(state, &uri));
        let Some((mime_type, text)) = read else {
            let message = format!("Resource not found: {uri}");
            return Err(ErrorData::resource_not_found(message, Some(json!({ "uri": uri }))));
        };
        let contents = ResourceContents::text(text, uri).with_mime_type(mime_type);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        one_page(request)?;
        Ok(ListPromptsResult::with_all_items(self.inner.shelf.prompts.clone()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let unknown = || ErrorData::invalid_params(format!("Unknown prompt: {}", request.name), None);
        let shelf = &self.inner.shelf;
        let prompt = shelf.prompts.iter().find(|prompt| prompt.name == request.name).ok_or_else(unknown)?;
        let arguments = request.arguments.clone().unwrap_or_default();
        for wanted in prompt.arguments.iter().flatten() {
            let given = arguments.get(&wanted.name).and_then(Value::as_str);
            if wanted.required == Some(true) && given.is_none_or(str::is_empty) {
                let message = format!("The prompt {} needs the argument '{}'", prompt.name, wanted.name);
                return Err(ErrorData::invalid_params(message, None));
            }
        }
        let text = self
            .inner
            .data
            .with(|state| (shelf.prompt)(state, &request.name, &Args(&arguments)))
            .ok_or_else(unknown)?
            .map_err(|failure| ErrorData::invalid_params(failure.message(), None))?;
        let mut result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
        result.description.clone_from(&prompt.description);
        Ok(result.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let target = match &request.r#ref {
            Reference::Prompt(prompt) => prompt.name.clone(),
            Reference::Resource(template) => template.uri.clone(),
            _ => return Ok(CompleteResult::default()),
        };
        let values =
            self.inner.data.with(|state| (self.inner.shelf.values)(state, &target, &request.argument.name));
        let start = request.argument.value.to_lowercase();
        let mut values: Vec<String> =
            values.into_iter().filter(|value| value.to_lowercase().starts_with(&start)).collect();
        let total = u32::try_from(values.len()).ok();
        let more = values.len() > CompletionInfo::MAX_VALUES;
        values.truncate(CompletionInfo::MAX_VALUES);
        let info = CompletionInfo::with_pagination(values, total, more)
            .map_err(|message| ErrorData::internal_error(message, None))?;
        Ok(CompleteResult::new(info))
    }
}
