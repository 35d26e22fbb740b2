//! A shop whose requests need approvals, behind gateways that share their records.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use gatewright_core::{
    AppFuture, AppOptions, Approval, ApprovalEvent, ApprovalListener, ApprovalRecord, ApprovalStore,
    Approver, Gateway, GatewayConfig, Invoker, LocalApp, Policies, Principal, RateLimiter, Registry,
    RetryAfter, SealKey, SharedRecords, ToolNames, ToolOverride, memory_transport,
    rmcp::{
        ErrorData, RoleServer, ServerHandler, ServiceExt as _,
        model::{
            CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse,
            InputRequiredResult, InputResponses, ReadResourceRequestParams, ReadResourceResponse,
            ServerConfig,
        },
        service::{ClientServiceExt as _, RequestContext},
    },
};
use serde_json::json;

use crate::{
    access::granted,
    person::{Client, Person, lifecycle, made},
    support::lists,
};

/// Tools, resources and prompts: `pay` and `send` count their requests, `ask` asks for a name first and counts what it gets.
#[derive(Clone, Default)]
pub(crate) struct Shop {
    pub(crate) made: Arc<AtomicUsize>,
    /// It has the resource `shop:hidden`, which no list has.
    pub(crate) has_hidden: bool,
}

impl Shop {
    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }

    /// The text of an answer, or what is asked.
    fn answer(
        &self,
        name: &str,
        state: Option<&str>,
        responses: Option<InputResponses>,
    ) -> Result<Result<String, InputRequiredResult>, ErrorData> {
        let text = match (name, state) {
            ("ask", None) => {
                return Ok(Err(made(json!({"resultType": "input_required",
                    "requestState": "asked", "inputRequests": {"approval": {"method": "elicitation/create",
                    "params": {"mode": "form", "message": "Who are you?",
                        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}}}}))));
            }
            ("ask", Some("asked")) => {
                let answer = responses.unwrap_or_default().remove("approval").unwrap_or_default();
                answer["content"]["name"].to_string()
            }
            (name, None) => name.to_owned(),
            (_, Some(state)) => return Err(ErrorData::invalid_params(format!("odd state {state}"), None)),
        };
        self.made.fetch_add(1, Ordering::SeqCst);
        Ok(Ok(text))
    }
}

impl ServerHandler for Shop {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::default();
        info.capabilities = made(json!({"tools": {}, "prompts": {}, "resources": {}}));
        info
    }

    lists! {
        list_tools -> ListToolsResult {"tools": [
            {"name": "pay", "inputSchema": {"type": "object"}}, {"name": "send", "inputSchema": {"type": "object"}},
            {"name": "ask", "inputSchema": {"type": "object"}},
        ]}
        list_prompts -> ListPromptsResult {"prompts": [{"name": "pay"}, {"name": "ask"}]}
        list_resources -> ListResourcesResult {"resources": [
            {"uri": "shop:pay", "name": "pay"}, {"uri": "shop:send", "name": "send"}, {"uri": "shop:ask", "name": "ask"},
        ]}
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = self.answer(&request.name, request.request_state.as_deref(), request.input_responses)?;
        let complete = |text| made(json!({"content": [{"type": "text", "text": text}]}));
        Ok(text.map_or_else(CallToolResponse::InputRequired, |text: String| {
            CallToolResponse::Complete(complete(text))
        }))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let name = request.uri.strip_prefix("shop:").unwrap_or_default();
        if name == "hidden" && !self.has_hidden {
            return Err(ErrorData::resource_not_found("not here", Some(json!({"uri": request.uri}))));
        }
        let text = self.answer(name, request.request_state.as_deref(), request.input_responses)?;
        let complete = |text| made(json!({"contents": [{"uri": request.uri, "text": text}]}));
        Ok(text.map_or_else(ReadResourceResponse::InputRequired, |text: String| {
            ReadResourceResponse::Complete(complete(text))
        }))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let text = self.answer(&request.name, request.request_state.as_deref(), request.input_responses)?;
        let complete =
            |text| made(json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}));
        Ok(text.map_or_else(GetPromptResponse::InputRequired, |text: String| {
            GetPromptResponse::Complete(complete(text))
        }))
    }
}

/// Keeps what it hears.
#[derive(Default)]
pub(crate) struct Listener(Mutex<Vec<ApprovalEvent>>);

impl ApprovalListener for Listener {
    fn notice(&self, event: &ApprovalEvent) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Listener {
    pub(crate) fn heard(&self) -> Vec<String> {
        let events = std::mem::take(&mut *self.0.lock().unwrap());
        let line = |event: &ApprovalEvent| {
            let by = event.by.as_deref().unwrap_or("nobody");
            format!("{} {} {} {by}", event.kind.name(), event.subject, event.object)
        };
        events.iter().map(line).collect()
    }
}

/// Counts calls as rate limits do.
#[derive(Default)]
pub(crate) struct Counted(pub(crate) AtomicUsize);

impl RateLimiter for Counted {
    fn check<'a>(
        &'a self,
        _: &'a str,
        _: &'a Principal,
        _: Option<std::net::IpAddr>,
    ) -> AppFuture<'a, Result<(), RetryAfter>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(()) })
    }
}

/// A gateway, one of several that share their records.
pub(crate) struct Instance {
    pub(crate) gateway: Gateway,
    pub(crate) counted: Arc<Counted>,
    pub(crate) store: Arc<ApprovalStore>,
    pub(crate) listener: Arc<Listener>,
}

impl Instance {
    pub(crate) async fn under(shop: &Shop, policies: Policies, records: Arc<dyn SharedRecords>) -> Self {
        let registry = Registry::new(ToolNames::Colon);
        let app = Arc::new(LocalApp::start(shop.clone()).await.unwrap());
        let always = ToolOverride { approval: Some(Approval::Always), ..ToolOverride::default() };
        let options = AppOptions { tools: [("send".to_owned(), always)].into(), ..AppOptions::default() };
        registry.add("shop", app, options);
        registry.set_policies(Some(policies));
        let key = SealKey::derived(b"shared");
        let (store, listener) = (Arc::new(ApprovalStore::new(records, key.clone())), Arc::default());
        store.notify(Arc::clone(&listener) as Arc<dyn ApprovalListener>);
        let counted = Arc::new(Counted::default());
        let invoker = Invoker::new(registry).seal_key(&key).approvals_in(store.clone());
        let invoker = invoker.rate_limiter(counted.clone());
        let gateway = Gateway::new(GatewayConfig::new("test", "1"), Arc::new(invoker), Vec::new());
        Self { gateway, counted, store, listener }
    }

    pub(crate) async fn client(&self, principal: Principal, person: &Person, modern: bool) -> Client {
        let (client_end, server_end) = memory_transport();
        let serving = self.gateway.session_of(principal).serve(server_end);
        tokio::spawn(async move { serving.await.unwrap().waiting().await });
        person.clone().serve_with_lifecycle(client_end, lifecycle(modern)).await.unwrap()
    }

    pub(crate) async fn ada(&self, person: &Person, modern: bool) -> Client {
        self.client(granted("ada", "*"), person, modern).await
    }

    pub(crate) async fn waiting(&self, subject: &str) -> Vec<ApprovalRecord> {
        self.store.list(Approver::User { subject, holds: &|_| true }).await.unwrap()
    }
}
