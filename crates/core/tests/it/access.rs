//! Access by scopes, for every method.

use std::sync::Arc;

use gatewright_core::{
    AppOptions, Caller, Gateway, GatewayConfig, Invoker, LocalApp, METHODS, Principal, Registry, ScopeRule,
    Scopes, ToolNames, ToolOverride, memory_transport,
    rmcp::{
        ErrorData, RoleClient, RoleServer, ServerHandler, ServiceError, ServiceExt as _,
        model::{
            CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientConfig, ClientRequest,
            CompleteRequestParams, CompleteResult, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
            GetTaskResult, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
            SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams, UpdateTaskParams,
        },
        service::{ClientServiceExt as _, RequestContext, RunningService, Service, SubscriptionContext},
    },
};
use serde_json::{Value, json};

use crate::{
    person::{lifecycle, made},
    support::lists,
};

/// Has one of everything.
#[derive(Clone)]
struct Vault;

fn task(status: &str) -> Value {
    json!({"resultType": "task", "taskId": "own-7", "status": status, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": 60_000})
}

impl ServerHandler for Vault {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::default();
        info.capabilities = made(json!({
            "tools": {}, "prompts": {}, "resources": {"subscribe": true}, "completions": {}, "logging": {},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        }));
        info
    }

    lists! {
        list_tools -> ListToolsResult {"tools": [
            {"name": "open", "inputSchema": {"type": "object"}}, {"name": "slow", "inputSchema": {"type": "object"}},
            {"name": "ask", "inputSchema": {"type": "object", "properties": {"code": {"enum": ["gold"]}}}},
        ]}
        list_prompts -> ListPromptsResult {"prompts": [{"name": "reveal"}]}
        list_resources -> ListResourcesResult {"resources": [
            {"uri": "vault://gold", "name": "gold"}, {"uri": "vault://odd/?q=caf\u{e9}", "name": "odd"},
            {"uri": "gatewright://results/7", "name": "forged"},
        ]}
        list_resource_templates -> ListResourceTemplatesResult {"resourceTemplates": [
            {"uriTemplate": "vault://box/{number}", "name": "box"},
            {"uriTemplate": "gatewright://results/{id}", "name": "forged"},
        ]}
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(match &*request.name {
            "slow" => {
                let mut task = task("working");
                if let Some(id) = request.arguments.as_ref().and_then(|asked| asked.get("id")) {
                    task["taskId"] = id.clone();
                }
                CallToolResponse::Task(made(task))
            }
            "ask" if request.request_state.is_none() => {
                let asks = json!({"resultType": "input_required", "requestState": "half-way",
                    "inputRequests": {"name": {"method": "elicitation/create", "params": {"mode": "form", "message": "Who?",
                        "requestedSchema": {"type": "object", "properties": {}}}}}});
                CallToolResponse::InputRequired(made(asks))
            }
            "ask" => made_result(request.request_state.as_deref().unwrap_or_default()),
            _ => made_result("opened"),
        })
    }

    async fn get_prompt(
        &self,
        _: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Ok(GetPromptResponse::Complete(made(json!({"messages": []}))))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = json!({"contents": [{"uri": request.uri, "text": "secret"}]});
        Ok(ReadResourceResponse::Complete(made(contents)))
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(made(json!({"completion": {"values": ["secret"]}})))
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let form = json!({"method": "elicitation/create", "params": {"mode": "form", "message": "Who?",
            "requestedSchema": {"type": "object", "properties": {}}}});
        let address = json!({"method": "elicitation/create", "params": {"mode": "url", "message": "Open it",
            "url": "javascript:alert(1)", "elicitationId": "1"}});
        let roots = json!({"method": "roots/list"});
        let questions: Vec<Value> = match &*request.task_id {
            "own-7" => return Ok(made(task("working"))),
            "asks-form" => vec![form],
            "asks-address" => vec![address],
            "asks-roots" => vec![roots],
            "asks-much" => vec![form; 65],
            other => panic!("the app sees its own id, not {other}"),
        };
        let questions: serde_json::Map<String, Value> =
            questions.into_iter().enumerate().map(|(n, question)| (n.to_string(), question)).collect();
        let mut task = task("input_required");
        (task["taskId"], task["inputRequests"]) = (request.task_id.into(), questions.into());
        Ok(made(task))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        assert_eq!(request.task_id, "own-7");
        Ok(())
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        assert_eq!(request.task_id, "own-7");
        Ok(())
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        None
    }

    async fn listen(&self, _: SubscriptionContext) -> Result<(), ErrorData> {
        Ok(())
    }
}

fn made_result(text: &str) -> CallToolResponse {
    CallToolResponse::Complete(made(json!({"content": [{"type": "text", "text": text}]})))
}

pub(crate) fn granted(subject: &str, scopes: &str) -> Principal {
    Principal {
        subject: subject.into(),
        client_id: Some("desk".into()),
        scopes: Scopes::parse(scopes),
        ..Principal::local()
    }
}

pub(crate) async fn gateway(options: AppOptions) -> Arc<Gateway> {
    let registry = Registry::new(ToolNames::Colon);
    registry.add("vault", Arc::new(LocalApp::start(Vault).await.unwrap()), options);
    Arc::new(Gateway::new(GatewayConfig::new("test", "1"), Arc::new(Invoker::new(registry)), Vec::new()))
}

/// The app twice, once with scopes.
pub(crate) async fn two_vaults() -> Arc<Registry> {
    let registry = Registry::new(ToolNames::Colon);
    for (app, options) in [("vault", AppOptions::default()), ("safe", scoped())] {
        registry.add(app, Arc::new(LocalApp::start(Vault).await.unwrap()), options);
    }
    registry
}

fn scoped() -> AppOptions {
    AppOptions { scopes: vec!["vault:use".to_owned()], ..AppOptions::default() }
}

pub(crate) type Client = RunningService<RoleClient, ClientConfig>;

pub(crate) async fn client(gateway: &Gateway, principal: Principal, modern: bool) -> Client {
    let (client_end, server_end) = memory_transport();
    let server = gateway.session_of(principal);
    tokio::spawn(async move {
        if let Ok(running) = server.serve(server_end).await {
            let _ = running.waiting().await;
        }
    });
    let mut config = ClientConfig::default();
    config.capabilities =
        made(json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}));
    config.serve_with_lifecycle(client_end, lifecycle(modern)).await.unwrap()
}

/// Sends a request; the result or the error as JSON.
pub(crate) async fn ask<S: Service<RoleClient>>(
    client: &RunningService<RoleClient, S>,
    method: &str,
    params: Value,
) -> Result<Value, ErrorData> {
    let request: ClientRequest = made(json!({"method": method, "params": params}));
    match client.peer().send_request(request).await {
        Ok(result) => Ok(serde_json::to_value(result).unwrap()),
        Err(ServiceError::McpError(error)) => Err(error),
        Err(error) => panic!("{method}: {error}"),
    }
}

pub(crate) async fn new_task(gateway: &Gateway, principal: Principal) -> String {
    let client = client(gateway, principal, true).await;
    let made = ask(&client, "tools/call", json!({"name": "vault:slow"})).await.unwrap();
    let id = made["taskId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    assert!(!id.contains("own-7") && !id.contains("vault"), "the id shows nothing: {id}");
    id
}

/// Treatment of an app's scopes by a method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Row {
    /// It gives nothing away.
    Free,
    /// It lists what the caller may use.
    Listed,
    /// It needs them.
    Guarded,
}

/// Each method: how it treats scopes, whether it is of the newer era, and what it asks for. A method without a row fails.
pub(crate) fn row(method: &str, task: &str) -> (Row, bool, Value) {
    let uri = json!({"uri": "vault://gold"});
    match method {
        "initialize" => (
            Row::Free,
            false,
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}),
        ),
        "ping" => (Row::Free, false, json!({})),
        "logging/setLevel" => (Row::Free, false, json!({"level": "info"})),
        "server/discover" => (Row::Free, true, json!({})),
        "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
            (Row::Listed, true, json!({}))
        }
        "tools/call" => (Row::Guarded, true, json!({"name": "vault:open"})),
        "prompts/get" => (Row::Guarded, true, json!({"name": "reveal"})),
        "resources/read" => (Row::Guarded, true, uri),
        "resources/subscribe" => (Row::Guarded, false, uri),
        // Whoever may not read any more may still stop following.
        "resources/unsubscribe" => (Row::Free, false, uri),
        "completion/complete" => {
            let reference = json!({"type": "ref/prompt", "name": "reveal"});
            (Row::Guarded, true, json!({"ref": reference, "argument": {"name": "a", "value": ""}}))
        }
        "subscriptions/listen" => {
            (Row::Guarded, true, json!({"notifications": {"resourceSubscriptions": ["vault://gold"]}}))
        }
        "tasks/get" | "tasks/cancel" => (Row::Guarded, true, json!({"taskId": task})),
        "tasks/update" => (Row::Guarded, true, json!({"taskId": task, "inputResponses": {}})),
        other => panic!("the method {other} has no row: say here how it treats scopes"),
    }
}

#[tokio::test]
async fn a_resource_answers_with_the_uri_that_was_asked_for() {
    let registry = Registry::new(ToolNames::Colon);
    for app in ["one", "two"] {
        let vault = Arc::new(LocalApp::start(Vault).await.unwrap());
        registry.add(app, vault, AppOptions::default());
    }
    let gateway = Gateway::new(GatewayConfig::new("test", "1"), Arc::new(Invoker::new(registry)), Vec::new());
    let client = client(&gateway, granted("ada", ""), false).await;
    let listed = ask(&client, "resources/list", json!({})).await.unwrap();
    let mut uris: Vec<&str> =
        listed["resources"].as_array().unwrap().iter().map(|one| one["uri"].as_str().unwrap()).collect();
    uris.push("two:vault://box/7");
    assert!(uris.iter().any(|uri| uri.contains(":vault://")), "{uris:?}");
    for uri in uris {
        let read = ask(&client, "resources/read", json!({"uri": uri})).await.unwrap();
        assert_eq!(read["contents"][0]["uri"], uri);
    }
}

#[tokio::test]
async fn every_method_asks_for_the_scopes_of_what_it_names_and_lists_show_nothing_else() {
    let gateway = gateway(scoped()).await;
    let (full, narrow, anonymous) =
        (granted("ada", "vault:use"), granted("ada", "other"), granted("anonymous", ""));
    let task = new_task(&gateway, full.clone()).await;
    for method in METHODS {
        let (row, modern, params) = row(method, &task);
        for (who, may) in [(&full, true), (&narrow, false), (&anonymous, false)] {
            let context = format!("{method} by {} with {:?}", who.subject, who.scopes);
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let missing = gateway.missing_scopes(Caller::new(who.clone()), None, message.to_string()).await;
            // Another subject's task is unknown, scopes or not.
            let knows = !method.starts_with("tasks/") || who.subject == full.subject;
            let challenged = !may && knows && row == Row::Guarded;
            assert_eq!(missing, if challenged { vec!["vault:use"] } else { Vec::new() }, "{context}");

            let client = client(&gateway, who.clone(), modern).await;
            if method == "subscriptions/listen" && may {
                // It ends with the server only: see `changes`.
                continue;
            }
            let answer = ask(&client, method, params.clone()).await;
            match row {
                Row::Free => drop(answer.unwrap_or_else(|error| panic!("{context}: {error}"))),
                Row::Listed => {
                    let answer = answer.unwrap();
                    let items = answer.as_object().unwrap().values().find_map(Value::as_array).unwrap();
                    assert_eq!(items.is_empty(), !may, "{context}: {answer}");
                }
                Row::Guarded if may => drop(answer.unwrap_or_else(|error| panic!("{context}: {error}"))),
                Row::Guarded if !knows => {
                    let error = answer.unwrap_err();
                    let made_up = ask(&client, method, json!({"taskId": "made-up", "inputResponses": {}}))
                        .await
                        .unwrap_err();
                    assert_eq!((error.code, &error.data), (made_up.code, &made_up.data), "{context}");
                    assert!(error.message.starts_with("unknown task `"), "{context}: {error}");
                }
                Row::Guarded if method == "tools/call" => {
                    let refused = answer.unwrap();
                    assert_eq!(refused["isError"], true, "{context}");
                    assert_eq!(refused["_meta"]["requiredScopes"], json!(["vault:use"]), "{context}");
                }
                Row::Guarded => {
                    let error = answer.unwrap_err();
                    let required = error.data.as_ref().map(|data| &data["requiredScopes"]);
                    assert_eq!(required, Some(&json!(["vault:use"])), "{context}: {error}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_request_without_a_principal_is_refused_whatever_it_asks_for() {
    let gateway = gateway(AppOptions::default()).await;
    // A session whose transport names nobody.
    let (client_end, server_end) = memory_transport();
    let server = gateway.session();
    tokio::spawn(async move { server.serve(server_end).await.map(drop) });
    let error = ().serve(client_end).await.unwrap_err().to_string();
    assert!(error.contains("names no caller"), "{error}");
}

#[tokio::test]
async fn a_task_is_unknown_to_every_other_subject_and_client() {
    let gateway = gateway(AppOptions::default()).await;
    let ada = granted("ada", "*");
    let task = new_task(&gateway, ada.clone()).await;
    let other_client = Principal { client_id: Some("other".into()), ..ada.clone() };
    for thief in [granted("bob", "*"), other_client, Principal::local()] {
        let client = client(&gateway, thief, true).await;
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({"taskId": task, "inputResponses": {}});
            let error = ask(&client, method, params).await.unwrap_err();
            assert_eq!(error.code.0, -32602, "{method}: {error}");
            assert!(error.message.starts_with("unknown task"), "{method}: {error}");
        }
    }
    let client = client(&gateway, ada, true).await;
    let own = ask(&client, "tasks/get", json!({"taskId": task})).await.unwrap();
    assert_eq!(own["taskId"], json!(task), "its owner reads it under the id that was given out");
}

#[tokio::test]
async fn a_task_asks_only_what_its_call_might_ask() {
    let gateway = gateway(AppOptions::default()).await;
    let client = client(&gateway, granted("ada", "*"), true).await;
    let call = json!({"name": "vault:slow", "arguments": {"id": "asks-roots"}});
    let task = ask(&client, "tools/call", call).await.unwrap();
    let found = ask(&client, "tasks/get", json!({"taskId": task["taskId"]})).await.unwrap();
    assert_eq!(
        (&found["status"], &found["inputRequests"]),
        (&json!("input_required"), &json!({})),
        "it has no roots"
    );
    for (id, refused) in [
        ("asks-form", None),
        ("asks-address", Some("https and http only")),
        ("asks-much", Some("64 questions")),
    ] {
        let call = json!({"name": "vault:slow", "arguments": {"id": id}});
        let task = ask(&client, "tools/call", call).await.unwrap();
        let found = ask(&client, "tasks/get", json!({"taskId": task["taskId"]})).await;
        match refused {
            None => assert_eq!(found.unwrap()["inputRequests"]["0"]["params"]["message"], "Who?"),
            Some(why) => {
                let error = found.unwrap_err();
                assert!(error.message.contains(why), "{id}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn the_state_of_a_question_works_for_the_caller_and_tool_it_was_given_to_only() {
    let gateway = gateway(AppOptions::default()).await;
    let (ada, bob) = (
        client(&gateway, granted("ada", "*"), true).await,
        client(&gateway, granted("bob", "*"), true).await,
    );
    let asked = ask(&ada, "tools/call", json!({"name": "vault:ask"})).await.unwrap();
    let state = asked["requestState"].as_str().unwrap().to_owned();
    assert_ne!(state, "half-way", "what the server wrote is not shown");
    let again = |tool: &str| json!({"name": tool, "requestState": state, "inputResponses": {}});
    let done = ask(&ada, "tools/call", again("vault:ask")).await.unwrap();
    assert_eq!(done["content"][0]["text"], "half-way", "the server gets its own state back");
    for (who, tool) in [(&bob, "vault:ask"), (&ada, "vault:open")] {
        let refused = ask(who, "tools/call", again(tool)).await.unwrap_err();
        assert_eq!(refused.code.0, -32602, "{refused}");
        assert!(refused.message.contains("was not given to you"), "{refused}");
    }
}

#[tokio::test]
async fn patterns_guard_resources_and_templates_names_guard_prompts_and_tools() {
    let rule = |scope: &str| ScopeRule { scopes: vec![scope.to_owned()] };
    let tool = ToolOverride { scopes: vec!["t".to_owned()], ..ToolOverride::default() };
    let options = AppOptions {
        resources: [("vault://box/*".to_owned(), rule("r")), ("vault://gold".to_owned(), rule("g"))].into(),
        prompts: [("reveal".to_owned(), rule("p"))].into(),
        tools: [("open".to_owned(), tool)].into(),
        ..AppOptions::default()
    };
    let gateway = gateway(options).await;
    let listed = async |scopes: &str| {
        let client = client(&gateway, granted("ada", scopes), true).await;
        let mut names = Vec::new();
        for (method, key) in [
            ("tools/list", "name"),
            ("prompts/list", "name"),
            ("resources/list", "uri"),
            ("resources/templates/list", "uriTemplate"),
        ] {
            let answer = ask(&client, method, json!({})).await.unwrap();
            let items =
                answer.as_object().unwrap().values().find_map(|value| value.as_array().cloned()).unwrap();
            names.extend(items.iter().map(|item| item[key].as_str().unwrap().to_owned()));
        }
        names
    };
    assert_eq!(listed("").await, ["vault:ask", "vault:slow", "vault://odd/?q=caf\u{e9}"]);
    assert_eq!(
        listed("r g p t").await,
        [
            "vault:ask",
            "vault:open",
            "vault:slow",
            "reveal",
            "vault://gold",
            "vault://odd/?q=caf\u{e9}",
            "vault://box/{number}"
        ]
    );
    let read = async |scopes: &str, uri: &str| {
        let client = client(&gateway, granted("ada", scopes), true).await;
        ask(&client, "resources/read", json!({"uri": uri}))
            .await
            .map(drop)
            .map_err(|error| error.data.unwrap())
    };
    assert_eq!(read("r", "vault://box/7").await, Ok(()));
    assert_eq!(read("g", "vault://box/7").await.unwrap_err()["requiredScopes"], json!(["r"]));
    assert_eq!(read("r", "vault://gold#part").await.unwrap_err()["requiredScopes"], json!(["g"]));
    for other_spelling in ["vault://x/../box/7", "vault://bo%78/7", "vault://BOX/7"] {
        let refused = read("g", other_spelling).await.unwrap_err();
        assert_eq!(refused["requiredScopes"], json!(["r"]), "{other_spelling}");
    }
    let reference =
        json!({"ref": {"type": "ref/prompt", "name": "reveal"}, "argument": {"name": "a", "value": ""}});
    for (method, params) in [("prompts/get", json!({"name": "reveal"})), ("completion/complete", reference)] {
        let others = client(&gateway, granted("ada", "r g t"), true).await;
        let refused = ask(&others, method, params.clone()).await.unwrap_err();
        assert_eq!(refused.data.unwrap()["requiredScopes"], json!(["p"]), "{method}");
        let own = client(&gateway, granted("ada", "p"), true).await;
        ask(&own, method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"));
    }
    let others = client(&gateway, granted("ada", "r g p"), true).await;
    let refused = ask(&others, "tools/call", json!({"name": "vault:open"})).await.unwrap();
    assert_eq!(
        (&refused["isError"], &refused["_meta"]["requiredScopes"]),
        (&json!(true), &json!(["t"])),
        "{refused}"
    );
    let own = client(&gateway, granted("ada", "t"), true).await;
    let opened = ask(&own, "tools/call", json!({"name": "vault:open"})).await.unwrap();
    assert_eq!(opened["content"][0]["text"], "opened", "{opened}");
}

#[tokio::test]
async fn a_task_asks_for_the_scopes_of_its_tool_again_with_each_request_of_its_owner() {
    let tool = ToolOverride { scopes: vec!["t".to_owned()], ..ToolOverride::default() };
    let gateway =
        gateway(AppOptions { tools: [("slow".to_owned(), tool)].into(), ..AppOptions::default() }).await;
    let task = new_task(&gateway, granted("ada", "t")).await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({"taskId": task, "inputResponses": {}});
        let narrow = granted("ada", "other");
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let missing = gateway.missing_scopes(Caller::new(narrow.clone()), None, message).await;
        assert_eq!(missing, ["t"], "{method}");
        let refused = ask(&client(&gateway, narrow, true).await, method, params.clone()).await.unwrap_err();
        assert_eq!(refused.data.unwrap()["requiredScopes"], json!(["t"]), "{method}");
        let owner = client(&gateway, granted("ada", "t"), true).await;
        ask(&owner, method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"));
    }
}
