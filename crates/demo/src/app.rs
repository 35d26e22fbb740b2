//! The server handler of a demo app: its router of tools, and a shelf of resources and prompts.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::handler::server::wrapper::Json;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation, JsonObject,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, Prompt, PromptMessage, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate, Role, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use crate::answer::Failure;
use crate::dataset::{Dataset, State};
use crate::{billing, crm, support};

/// One demo app: a server handler over a [`Dataset`]. Cloning it shares the data.
#[derive(Clone)]
pub struct App {
    parts: Arc<Parts>,
}

struct Parts {
    name: &'static str,
    instructions: &'static str,
    router: ToolRouter<App>,
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
    pub(crate) prompt: fn(&State, &str, &JsonObject) -> Option<Result<String, Failure>>,
    /// Every value an argument can take, for the prompt or template named.
    pub(crate) values: fn(&State, &str, &str) -> Vec<String>,
}

/// Returns an argument of a prompt.
pub(crate) fn argument<'a>(arguments: &'a JsonObject, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

impl App {
    /// Accounts and users. Tools begin with `accounts_`, `users_` and `exports_`.
    #[must_use]
    pub fn crm(data: Arc<Dataset>) -> Self {
        let instructions = "Accounts (customer companies) and the users who belong to them.";
        Self::new("crm", instructions, Self::accounts() + Self::users(), crm::shelf(), data)
    }

    /// Products, orders, invoices and revenue.
    #[must_use]
    pub fn billing(data: Arc<Dataset>) -> Self {
        let instructions = "Products, orders, invoices and revenue. Amounts are in cents.";
        let router = Self::products() + Self::orders() + Self::invoices();
        Self::new("billing", instructions, router, billing::shelf(), data)
    }

    /// Support tickets and the agents who answer them.
    #[must_use]
    pub fn support(data: Arc<Dataset>) -> Self {
        let instructions = "Support tickets, their comments and the agents who answer them.";
        Self::new("support", instructions, Self::tickets() + Self::work(), support::shelf(), data)
    }

    fn new(
        name: &'static str,
        instructions: &'static str,
        router: ToolRouter<Self>,
        shelf: Shelf,
        data: Arc<Dataset>,
    ) -> Self {
        Self { parts: Arc::new(Parts { name, instructions, router, shelf, data }) }
    }

    /// The name the app is meant to be mounted under.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.parts.name
    }

    /// Every tool, sorted by name.
    #[must_use]
    pub fn tools(&self) -> Vec<Tool> {
        self.parts.router.list_all()
    }

    /// Runs `work` alone on the data; its result is the answer of a tool.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&mut State) -> Result<T, Failure>,
    ) -> Result<Json<T>, Failure> {
        self.parts.data.with(work).map(Json)
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("App").field(&self.parts.name).finish()
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
        let name = format!("gatewright-demo-{}", self.parts.name);
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new(name, env!("CARGO_PKG_VERSION")))
            .with_instructions(self.parts.instructions)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        one_page(request)?;
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.parts.router.get(name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.parts.router.call(ToolCallContext::new(self, request, context)).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        one_page(request)?;
        Ok(ListResourcesResult::with_all_items(self.parts.shelf.resources.clone()))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        one_page(request)?;
        Ok(ListResourceTemplatesResult::with_all_items(self.parts.shelf.templates.clone()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let read = self.parts.data.with(|state| (self.parts.shelf.read)(state, &uri));
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
        Ok(ListPromptsResult::with_all_items(self.parts.shelf.prompts.clone()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let unknown = || ErrorData::invalid_params(format!("Unknown prompt: {}", request.name), None);
        let shelf = &self.parts.shelf;
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
            .parts
            .data
            .with(|state| (shelf.prompt)(state, &request.name, &arguments))
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
            self.parts.data.with(|state| (self.parts.shelf.values)(state, &target, &request.argument.name));
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
