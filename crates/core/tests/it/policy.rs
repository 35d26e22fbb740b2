//! Policies, for every method, and approvals.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use gatewright_core::{
    AppOptions, Approval, Approvals, Approved, Caller, Decision, Forbidden, Gateway, GatewayConfig, Groups,
    InvokeError, Invoker, LocalApp, METHODS, Policies, PolicyEngine, PolicyObject, PolicyRequest, Principal,
    Registry, RequestDigest, ScriptRun, ToolNames, ToolOverride,
    rmcp::{
        ErrorData, RoleServer, ServerHandler,
        model::{
            CallToolRequestParams, CallToolResponse, JsonObject, ListResourcesResult, PaginatedRequestParams,
            RequestId, ServerConfig,
        },
        service::{Peer, RequestContext, ServiceExt as _},
    },
};
use serde_json::{Value, json};

use crate::{
    access::{Row, ask, client, gateway, granted, new_task, row},
    person::made,
};

/// Answers as the test says, and notes what it was asked.
#[derive(Debug)]
struct Engine {
    may: bool,
    decision: Decision,
    asked: Mutex<Vec<String>>,
    looked_at: AtomicUsize,
}

impl Engine {
    fn of(may: bool, decision: Decision) -> Arc<Self> {
        Arc::new(Self { may, decision, asked: Mutex::default(), looked_at: AtomicUsize::default() })
    }

    fn forbidding() -> Arc<Self> {
        Self::of(false, Decision::Forbid(Forbidden::Policy("closed".into())))
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl PolicyEngine for Engine {
    fn decide(&self, request: &PolicyRequest<'_>) -> Decision {
        let object = match request.object {
            PolicyObject::Tool(tool) => tool.name.to_string(),
            PolicyObject::Resource(resource) => format!("{} plain={}", resource.uri, resource.is_plain),
            PolicyObject::Template { template, .. } => template.to_owned(),
            PolicyObject::Prompt { app, name } => format!("{app}:{name}"),
        };
        let arguments = json!(request.arguments);
        let line = format!(
            "{} {object} {arguments} script={} calls={}",
            request.principal.subject, request.script, request.calls
        );
        self.asked.lock().unwrap().push(line);
        self.decision.clone()
    }

    fn may_permit(&self, _: &Principal, _: &PolicyObject<'_>) -> bool {
        self.looked_at.fetch_add(1, Ordering::Relaxed);
        self.may
    }
}

fn rule(gateway: &Gateway, engine: &Arc<Engine>) {
    let policies = Policies { engine: Some(engine.clone()), approvals: Approvals::default() };
    gateway.registry().set_policies(Some(policies));
}

fn asks() -> Decision {
    Decision::Ask { policy: "big".into(), reason: "It is big".into(), may_stand: true, approvers: None }
}

#[tokio::test]
async fn every_method_that_scopes_guard_is_stopped_by_policies_too() {
    let gateway = gateway(AppOptions::default()).await;
    let task = new_task(&gateway, granted("ada", "*")).await;
    rule(&gateway, &Engine::forbidding());
    for method in METHODS {
        let (row, modern, params) = row(method, &task);
        let client = client(&gateway, granted("ada", "*"), modern).await;
        match row {
            Row::Free => {}
            Row::Listed => {
                let answer = ask(&client, method, params).await.unwrap();
                let items = answer.as_object().unwrap().values().find_map(Value::as_array).unwrap();
                assert!(items.is_empty(), "{method}: {answer}");
            }
            Row::Guarded if method == "tools/call" => {
                let refused = ask(&client, method, params).await.unwrap();
                assert_eq!(refused["isError"], true, "{method}");
                assert_eq!(refused["_meta"]["code"], "ACCESS_DENIED");
                assert_eq!(refused["_meta"]["policy"], "closed");
            }
            Row::Guarded => {
                let error = ask(&client, method, params).await.unwrap_err();
                let code = error.data.as_ref().map(|data| &data["code"]);
                assert_eq!(code, Some(&json!("ACCESS_DENIED")), "{method}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn policies_refuse_a_subscription_whether_others_have_it_or_not() {
    let gateway = gateway(AppOptions::default()).await;
    let (_, modern, params) = row("resources/subscribe", "");
    let first = client(&gateway, granted("ada", "*"), modern).await;
    ask(&first, "resources/subscribe", params.clone()).await.unwrap();
    rule(&gateway, &Engine::forbidding());
    let second = client(&gateway, granted("bob", "*"), modern).await;
    let error = ask(&second, "resources/subscribe", params).await.unwrap_err();
    assert_eq!(error.data.as_ref().map(|data| &data["code"]), Some(&json!("ACCESS_DENIED")), "{error}");
}

#[tokio::test]
async fn the_parameters_of_a_tool_that_policies_forbid_are_in_no_refusal() {
    let gateway = gateway(AppOptions::default()).await;
    let client = client(&gateway, granted("ada", "*"), true).await;
    let call = json!({"name": "vault:ask", "arguments": {"code": "x"}});
    let refused = ask(&client, "tools/call", call.clone()).await.unwrap();
    assert!(refused.to_string().contains("gold"), "{refused}");
    rule(&gateway, &Engine::forbidding());
    let refused = ask(&client, "tools/call", call).await.unwrap();
    assert_eq!(refused["_meta"]["code"], "ACCESS_DENIED");
    assert!(!refused.to_string().contains("gold"), "{refused}");
}

/// Forbids resources whose URI ends in `secret`.
#[derive(Debug)]
struct NoSecret;

impl PolicyEngine for NoSecret {
    fn decide(&self, request: &PolicyRequest<'_>) -> Decision {
        match self.may_permit(request.principal, &request.object) {
            true => Decision::Permit,
            false => Decision::Forbid(Forbidden::NotPermitted),
        }
    }

    fn may_permit(&self, _: &Principal, object: &PolicyObject<'_>) -> bool {
        !matches!(object, PolicyObject::Resource(resource) if resource.uri.ends_with("/secret"))
    }
}

#[tokio::test]
async fn completions_of_a_template_leave_out_what_policies_let_nobody_read() {
    let gateway = gateway(AppOptions::default()).await;
    let client = client(&gateway, granted("ada", "*"), true).await;
    let reference = json!({"ref": {"type": "ref/resource", "uri": "vault://box/{number}"},
        "argument": {"name": "number", "value": "s"}});
    let values = async || {
        let answer = ask(&client, "completion/complete", reference.clone()).await.unwrap();
        answer["completion"]["values"].clone()
    };
    assert_eq!(values().await, json!(["secret"]));
    let policies = Policies { engine: Some(Arc::new(NoSecret)), approvals: Approvals::default() };
    gateway.registry().set_policies(Some(policies));
    assert_eq!(values().await, json!([]));
}

/// Permits what it is about to the group `keepers` only.
#[derive(Debug)]
struct Keepers;

impl PolicyEngine for Keepers {
    fn decide(&self, request: &PolicyRequest<'_>) -> Decision {
        match self.may_permit(request.principal, &request.object) {
            true => Decision::Permit,
            false => Decision::Forbid(Forbidden::Policy("keepers".into())),
        }
    }

    fn may_permit(&self, principal: &Principal, _: &PolicyObject<'_>) -> bool {
        principal.groups.names().any(|group| group == "keepers")
    }
}

#[tokio::test]
async fn each_caller_is_shown_what_its_own_groups_permit() {
    let gateway = gateway(AppOptions::default()).await;
    let policies = Policies { engine: Some(Arc::new(Keepers)), approvals: Approvals::default() };
    gateway.registry().set_policies(Some(policies));
    let of = |groups: &[&str]| {
        let groups = Groups::new(groups.iter().copied()).unwrap();
        Principal { groups, ..granted("ada", "*") }
    };
    let lists = ["tools", "resources", "resources/templates", "prompts"];
    // One subject and client, with other groups each time.
    for (groups, is_shown) in
        [(&["keepers"][..], true), (&[], false), (&["keeper", "Keepers"], false), (&["a", "keepers"], true)]
    {
        let client = client(&gateway, of(groups), true).await;
        for list in lists {
            let answer = ask(&client, &format!("{list}/list"), json!({})).await.unwrap();
            let items = answer.as_object().unwrap().values().find_map(Value::as_array).unwrap();
            assert_eq!(!items.is_empty(), is_shown, "{list} {groups:?}: {answer}");
        }
        let call = json!({"name": "vault_open", "arguments": {"a": 1}});
        let called = ask(&client, "tools/call", call).await;
        assert_eq!(called.is_ok_and(|result| result["isError"] != true), is_shown, "{groups:?}");
    }
}

#[tokio::test]
async fn the_engine_sees_each_request_once_with_what_the_app_gets() {
    let gateway = gateway(AppOptions::default()).await;
    let engine = Engine::of(true, Decision::Permit);
    rule(&gateway, &engine);
    let client = client(&gateway, granted("ada", "*"), true).await;
    ask(&client, "tools/call", json!({"name": "vault_open", "arguments": {"a": 1}})).await.unwrap();
    assert_eq!(engine.asked(), [r#"ada vault:open {"a":1} script=false calls=0"#]);
    ask(&client, "resources/read", json!({"uri": "vault://gold"})).await.unwrap();
    assert_eq!(engine.asked(), ["ada vault://gold plain=true {} script=false calls=0"]);
    ask(&client, "resources/read", json!({"uri": "vault://box/../gold"})).await.unwrap();
    assert_eq!(engine.asked(), ["ada vault://box/../gold plain=false {} script=false calls=0"]);
    ask(&client, "prompts/get", json!({"name": "reveal", "arguments": {"b": "2"}})).await.unwrap();
    assert_eq!(engine.asked(), [r#"ada vault:reveal {"b":"2"} script=false calls=0"#]);
    for no_text in [json!(["2"]), json!({"b": "2"}), json!(2), json!(null), json!(true)] {
        let asked =
            ask(&client, "prompts/get", json!({"name": "reveal", "arguments": {"a": "1", "b": no_text}}))
                .await;
        let refused = asked.unwrap_err();
        assert!(refused.message.contains("`b` of the prompt is no text"), "{refused}");
        assert_eq!((refused.code.0, engine.asked().len()), (-32602, 0));
    }
}

#[tokio::test]
async fn lists_and_calls_follow_policies_that_change_while_the_gateway_serves() {
    let gateway = gateway(AppOptions::default()).await;
    let client = client(&gateway, granted("ada", "*"), true).await;
    let tools =
        async || ask(&client, "tools/list", json!({})).await.unwrap()["tools"].as_array().unwrap().len();
    assert_eq!(tools().await, 3);
    rule(&gateway, &Engine::forbidding());
    assert_eq!(tools().await, 0);
    gateway.registry().set_policies(None);
    assert_eq!(tools().await, 3);
}

/// A context of a request in this process.
async fn context(gateway: &Gateway) -> RequestContext<RoleServer> {
    let (client_end, server_end) = gatewright_core::memory_transport();
    let server = gateway.session_of(granted("ada", "*"));
    let serving = tokio::spawn(async move { server.serve(server_end).await.unwrap() });
    let client = ().serve(client_end).await.unwrap();
    let peer: Peer<RoleServer> = serving.await.unwrap().peer().clone();
    drop(client);
    RequestContext::new(RequestId::Number(7), peer)
}

async fn call(
    gateway: &Gateway,
    arguments: Value,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, InvokeError> {
    let caller = Caller::new(granted("ada", "*"));
    let tool = gateway.invoker().find("vault:open", &caller).await.unwrap();
    let arguments: JsonObject = serde_json::from_value(arguments).unwrap();
    let params = CallToolRequestParams::new("vault:open").with_arguments(arguments);
    gateway.invoker().call(&tool, params, context).await
}

#[tokio::test]
async fn an_approval_lets_exactly_the_approved_arguments_pass() {
    let gateway = gateway(AppOptions::default()).await;
    rule(&gateway, &Engine::of(true, asks()));
    let plain = context(&gateway).await;
    let arguments = json!({"to": "ann", "amount": 5});
    let error = call(&gateway, arguments.clone(), plain.clone()).await.unwrap_err();
    assert_eq!(error.code(), "APPROVAL_REQUIRED");
    let text = "tool `vault:open` needs an approval: It is big (policy `big`); approval apr_";
    assert!(error.to_string().starts_with(text), "{error}");
    let InvokeError::ApprovalRequired { digest, may_stand, .. } = error else { panic!("{error}") };
    assert!(may_stand);
    assert_eq!(digest, RequestDigest::of("vault:open", arguments.as_object().unwrap()));

    let mut approved = plain.clone();
    approved.extensions.insert(Approved(digest));
    call(&gateway, json!({"amount": 5, "to": "ann"}), approved.clone()).await.unwrap();
    for other in [json!({"to": "ann", "amount": 50}), json!({"to": "bob", "amount": 5}), json!({})] {
        let error = call(&gateway, other, approved.clone()).await.unwrap_err();
        assert_eq!(error.code(), "APPROVAL_REQUIRED");
    }
}

#[tokio::test]
async fn no_approval_lets_a_forbidden_call_pass() {
    let gateway = gateway(AppOptions::default()).await;
    rule(&gateway, &Engine::forbidding());
    let mut context = context(&gateway).await;
    context.extensions.insert(Approved(RequestDigest::of("vault:open", &JsonObject::new())));
    let error = call(&gateway, json!({}), context).await.unwrap_err();
    assert_eq!(error.code(), "ACCESS_DENIED");
    assert_eq!(error.policy(), Some("closed"));
}

#[tokio::test]
async fn calls_of_a_run_are_counted_for_policies() {
    let gateway = gateway(AppOptions::default()).await;
    let engine = Engine::of(true, Decision::Permit);
    rule(&gateway, &engine);
    let mut context = context(&gateway).await;
    context.extensions.insert(ScriptRun::after(3));
    for calls in [3, 4] {
        call(&gateway, json!({}), context.clone()).await.unwrap();
        assert_eq!(engine.asked(), [format!("ada vault:open {{}} script=true calls={calls}")]);
    }
}

/// The code and the policy of a call under `approvals`, of a tool without annotations whose own setting is `own`.
async fn under(approvals: Approvals, own: Option<Approval>, engine: Option<Decision>) -> (String, String) {
    let tool = ToolOverride { approval: own, ..ToolOverride::default() };
    let options = AppOptions { tools: [("open".to_owned(), tool)].into(), ..AppOptions::default() };
    let gateway = gateway(options).await;
    let engine = engine.map(|decision| Engine::of(true, decision) as Arc<dyn PolicyEngine>);
    if engine.is_some() || approvals != Approvals::default() {
        gateway.registry().set_policies(Some(Policies { engine, approvals }));
    }
    let context = context(&gateway).await;
    match call(&gateway, json!({}), context).await {
        Ok(_) => ("ok".to_owned(), String::new()),
        Err(InvokeError::ApprovalRequired { policy, may_stand, .. }) => {
            (if may_stand { "ask" } else { "always" }.to_owned(), policy.to_string())
        }
        Err(error) => (error.code().to_owned(), error.policy().unwrap_or_default().to_owned()),
    }
}

#[tokio::test]
async fn short_forms_ask_without_an_engine_and_the_strictest_rule_counts_with_one() {
    let destructive = |approval| Approvals { destructive: Some(approval), ..Approvals::default() };
    let writes = Approvals { writes: Some(Approval::Ask), ..Approvals::default() };
    let both = |destructive, writes| Approvals {
        destructive: Some(destructive),
        writes: Some(writes),
        ..Approvals::default()
    };
    let own = "apps.vault.tools.open.approval";
    let forbid = Decision::Forbid(Forbidden::Policy("closed".into()));
    for (approvals, of_tool, engine, expected, policy) in [
        (Approvals::default(), None, None, "ok", ""),
        (destructive(Approval::Ask), None, None, "ask", "approvals.destructive"),
        (destructive(Approval::Always), None, None, "always", "approvals.destructive"),
        (destructive(Approval::Never), None, None, "ok", ""),
        (writes, None, None, "ask", "approvals.writes"),
        (both(Approval::Ask, Approval::Always), None, None, "always", "approvals.writes"),
        (both(Approval::Always, Approval::Ask), None, None, "always", "approvals.destructive"),
        (both(Approval::Ask, Approval::Ask), None, None, "ask", "approvals.destructive"),
        (both(Approval::Never, Approval::Ask), None, None, "ask", "approvals.writes"),
        (Approvals::default(), Some(Approval::Ask), None, "ask", own),
        (Approvals::default(), Some(Approval::Always), None, "always", own),
        (destructive(Approval::Ask), Some(Approval::Never), None, "ok", ""),
        (destructive(Approval::Ask), None, Some(forbid.clone()), "ACCESS_DENIED", "closed"),
        (destructive(Approval::Ask), None, Some(Decision::Permit), "ask", "approvals.destructive"),
        (Approvals::default(), Some(Approval::Always), Some(asks()), "always", own),
        (Approvals::default(), Some(Approval::Never), Some(asks()), "ask", "big"),
    ] {
        let context = format!("{approvals:?} {of_tool:?} {engine:?}");
        let found = under(approvals, of_tool, engine).await;
        assert_eq!(found, (expected.to_owned(), policy.to_owned()), "{context}");
    }
}

/// Lists 3,000 resources.
#[derive(Clone)]
struct Shelf;

impl ServerHandler for Shelf {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::default();
        info.capabilities = made(json!({"resources": {}}));
        info
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let book = |n: usize| json!({"uri": format!("shelf://{n:04}"), "name": "book"});
        Ok(made(json!({"resources": (0..3_000).map(book).collect::<Vec<_>>()})))
    }
}

#[tokio::test]
async fn policies_decide_on_the_items_of_a_page_and_not_on_all_of_a_list() {
    let registry = Registry::new(ToolNames::Colon);
    registry.add("shelf", Arc::new(LocalApp::start(Shelf).await.unwrap()), AppOptions::default());
    let invoker = Arc::new(Invoker::new(registry));
    let gateway = Gateway::new(GatewayConfig::new("test", "1"), invoker, Vec::new());
    let engine = Engine::of(true, Decision::Permit);
    rule(&gateway, &engine);
    let mcp = client(&gateway, granted("ada", "*"), false).await;
    let (mut uris, mut cursor) = (Vec::new(), None);
    loop {
        engine.looked_at.store(0, Ordering::Relaxed);
        let page = ask(&mcp, "resources/list", json!({ "cursor": cursor })).await.unwrap();
        let items = page["resources"].as_array().unwrap();
        assert!(engine.looked_at.load(Ordering::Relaxed) <= items.len() + 1);
        uris.extend(items.iter().map(|item| item["uri"].as_str().unwrap().to_owned()));
        cursor = page["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(uris, (0..3_000).map(|n| format!("shelf://{n:04}")).collect::<Vec<_>>());
}
