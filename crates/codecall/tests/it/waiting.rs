//! Plans whose calls ask: the question reaches the client, the plan waits without a worker and goes on with the answer, and nothing is done twice.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use gatewright_codecall::{CodeCallConfig, SavedPlans};
use gatewright_core::{
    App, AppOptions, LocalApp, Principal, Scopes,
    rmcp::{
        ErrorData, RoleClient, RoleServer, ServerHandler,
        model::{
            CallToolRequestParams, CallToolResponse, CallToolResult, GetPromptRequestParams,
            GetPromptResponse, InputRequiredResult, ListPromptsResult, ListResourcesResult, ListToolsResult,
            PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
            ServerCapabilities, ServerConfig,
        },
        service::{ClientLifecycleMode, RequestContext, RunningService},
    },
};
use gatewright_executions::{Executions, ExecutionsConfig, NewExecution, Reader};
use serde_json::{Value, json};
use tokio::sync::Notify;

pub(crate) use super::asking::{User, asks, made};
use super::support::Served;

/// Tools: `effect` counts its calls, `ask` asks for a name and greets, `again` asks without end, `picture` is an image, `wait` asks for nothing but to be
/// called again, `hold` waits until it is let go, `essay` asks at length, and `novel` has a long state. The resource `book://page` asks, too; `book://cover` and the prompt `greet` do not.
#[derive(Clone, Default)]
pub(crate) struct Asking {
    pub(crate) effects: Arc<AtomicUsize>,
    /// A call of `hold` has begun, and may end.
    pub(crate) held: Arc<Notify>,
    pub(crate) go: Arc<Notify>,
}

fn text(text: &str) -> CallToolResponse {
    CallToolResponse::Complete(made(json!({"content": [{"type": "text", "text": text}]})))
}

impl ServerHandler for Asking {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build(),
        )
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |name: &str| json!({"name": name, "description": name, "inputSchema": {"type": "object"}});
        let names = ["effect", "ask", "again", "picture", "wait", "hold", "essay", "novel"];
        Ok(made(json!({"tools": names.map(tool)})))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let state = request.request_state.as_deref();
        Ok(match (&*request.name, state) {
            ("effect", _) => {
                let count = self.effects.fetch_add(1, Ordering::SeqCst) + 1;
                CallToolResponse::Complete(CallToolResult::structured(json!({"count": count})))
            }
            ("ask", Some("asked")) => {
                let answer = request.input_responses.unwrap_or_default().remove("name").unwrap_or_default();
                text(&format!(
                    "{} {}",
                    answer["action"].as_str().unwrap_or("?"),
                    answer["content"]["name"].as_str().unwrap_or("")
                ))
            }
            ("hold", _) => {
                self.held.notify_one();
                self.go.notified().await;
                text("held")
            }
            ("essay", _) => CallToolResponse::InputRequired(asks(&"Who? ".repeat(14_000), "asked")),
            ("novel", _) => CallToolResponse::InputRequired(asks("Who?", &"x".repeat(70_000))),
            ("wait", Some("second")) => text("done"),
            ("wait", _) => CallToolResponse::InputRequired(made(
                json!({"resultType": "input_required", "requestState": "second"}),
            )),
            ("picture", _) => CallToolResponse::Complete(made(
                json!({"content": [{"type": "text", "text": "a cat"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]}),
            )),
            (_, state) => CallToolResponse::InputRequired(asks(
                "Who are you?",
                if state.is_none() { "asked" } else { "more" },
            )),
        })
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cover = json!({"uri": "book://cover", "name": "cover"});
        Ok(made(json!({"resources": [{"uri": "book://page", "name": "page"}, cover]})))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(match request.input_responses {
            None if request.uri == "book://cover" => ReadResourceResponse::Complete(made(
                json!({"contents": [{"uri": request.uri, "text": "a book"}]}),
            )),
            None => ReadResourceResponse::InputRequired(asks("Which page?", "open")),
            Some(answers) => ReadResourceResponse::Complete(made(json!({"contents": [
                {"uri": request.uri, "text": answers["name"]["content"]["name"]}]}))),
        })
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(made(json!({"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]})))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let who = json!(request.arguments)["who"].take();
        Ok(GetPromptResponse::Complete(made(
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": who}}]}),
        )))
    }
}

/// A gateway with one worker.
pub(crate) async fn served() -> (Served, Asking) {
    let app = Asking::default();
    (Served::over(json!({}), app.clone()).await, app)
}

pub(crate) fn principal(subject: &str) -> Principal {
    Principal { subject: subject.into(), client_id: None, scopes: Scopes::All, ..Principal::local() }
}

/// A client of the era without sessions.
pub(crate) async fn modern(served: &Served, subject: &str, user: User) -> RunningService<RoleClient, User> {
    let preferred_versions = vec![ProtocolVersion::LATEST];
    served.connect_in(principal(subject), user, ClientLifecycleMode::Discover { preferred_versions }).await
}

pub(crate) fn execute(script: &str) -> CallToolRequestParams {
    CallToolRequestParams::new("codecall:execute").with_arguments(made(json!({"script": script})))
}

pub(crate) fn body(result: CallToolResult) -> Value {
    result.structured_content.unwrap()
}

pub(crate) async fn first_question(
    client: &RunningService<RoleClient, User>,
    script: &str,
) -> InputRequiredResult {
    match client.call_tool_once(execute(script)).await.unwrap() {
        CallToolResponse::InputRequired(asks) => asks,
        other => panic!("{other:?}"),
    }
}

pub(crate) const PLAN: &str = "
    const before = await callTool('app:effect', {});
    const said = await callTool('app:ask', {});
    const after = await callTool('app:effect', {});
    return [before.count, said, after.count];
";

#[tokio::test]
async fn a_client_of_either_era_is_asked_and_the_plan_goes_on_with_the_answer() {
    let (served, app) = served().await;
    let ada = modern(&served, "ada", User::named("Ada")).await;
    let ended = body(ada.call_tool(execute(PLAN)).await.unwrap());
    assert_eq!((&ended["status"], &ended["result"]), (&json!("ok"), &json!([1, "accept Ada", 2])), "{ended}");
    assert_eq!(app.effects.load(Ordering::SeqCst), 2, "nothing is done twice");
    assert_eq!(ada.service().asked.load(Ordering::SeqCst), 1);

    let bob = served.client_with("bob", User::named("Bob")).await;
    let ended = bob.body("codecall:execute", json!({"script": PLAN})).await;
    assert_eq!(ended["result"], json!([3, "accept Bob", 4]), "{ended}");
    assert_eq!(app.effects.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn questions_of_calls_at_the_same_time_come_together_and_a_waiting_plan_holds_no_worker() {
    let (served, app) = served().await;
    let ada = modern(&served, "ada", User::named("Ada")).await;
    let script = "
        const [a, n, b] = await Promise.all([callTool('app:ask', {}), callTool('app:effect', {}), callTool('app:ask', {})]);
        return {a, n: n.count, b};
    ";
    let asked = first_question(&ada, script).await;
    let mut requests = asked.input_requests.unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["0.name", "2.name"]);
    // The one worker serves others meanwhile.
    assert_eq!(body(ada.call_tool(execute("return 1")).await.unwrap())["result"], 1);

    // One answer after the other.
    let answer = |name: &str| json!({"action": "accept", "content": {"name": name}});
    let mut retry = execute(script);
    retry.request_state = asked.request_state;
    retry.input_responses = Some(made(json!({"2.name": answer("B")})));
    let CallToolResponse::InputRequired(asked) = ada.call_tool_once(retry.clone()).await.unwrap() else {
        panic!("one question is open")
    };
    requests.remove("2.name");
    assert_eq!(asked.input_requests, Some(requests));
    retry.request_state = asked.request_state;
    retry.input_responses = Some(made(json!({"0.name": answer("A")})));
    let CallToolResponse::Complete(ended) = ada.call_tool_once(retry).await.unwrap() else {
        panic!("it ends")
    };
    assert_eq!(body(ended)["result"], json!({"a": "accept A", "n": 1, "b": "accept B"}));
    assert_eq!(app.effects.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_state_of_another_principal_another_script_or_an_earlier_turn_resumes_nothing() {
    let (served, app) = served().await;
    let ada = modern(&served, "ada", User::named("Ada")).await;
    let eve = modern(&served, "eve", User::named("Eve")).await;
    let asked = first_question(&ada, PLAN).await;
    let retry = |script: &str, state: &str| {
        let mut retry = execute(script);
        retry.request_state = Some(state.to_owned());
        retry.input_responses = Some(made(json!({"1.name": {"action": "accept", "content": {"name": "x"}}})));
        retry
    };
    let state = asked.request_state.unwrap();
    let refused = async |client: &RunningService<RoleClient, User>, params| {
        let CallToolResponse::Complete(refused) = client.call_tool_once(params).await.unwrap() else {
            panic!("it is refused")
        };
        let refused = body(refused);
        assert_eq!(refused["error"]["code"], "VALIDATION_ERROR", "{refused}");
    };
    refused(&eve, retry(PLAN, &state)).await;
    refused(&ada, retry("return await callTool('app:effect', {})", &state)).await;
    let first = if state.starts_with('A') { 'B' } else { 'A' };
    refused(&ada, retry(PLAN, &format!("{first}{}", &state[1..]))).await;
    refused(&ada, retry(PLAN, "")).await;
    assert_eq!(app.effects.load(Ordering::SeqCst), 1);

    // Two at once: one goes on.
    let (one, other) =
        tokio::join!(ada.call_tool_once(retry(PLAN, &state)), ada.call_tool_once(retry(PLAN, &state)));
    let bodies = [one, other].map(|answer| match answer.unwrap() {
        CallToolResponse::Complete(result) => body(result),
        other => panic!("{other:?}"),
    });
    let ended = bodies.iter().filter(|body| body["status"] == "ok").count();
    assert_eq!(ended, 1, "{bodies:?}");
    assert_eq!(app.effects.load(Ordering::SeqCst), 2, "the second effect happened once");
    let again = ada.call_tool_once(retry(PLAN, &state)).await.unwrap();
    let CallToolResponse::Complete(again) = again else { panic!("it is refused") };
    assert_ne!(body(again)["status"], "ok");
    assert_eq!(app.effects.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_learns_what_is_asked_and_the_plan_is_resumed_by_its_id() {
    let (served, app) = served().await;
    let mute = served.client_with("ada", User::mute()).await;
    let told = mute.body("codecall:execute", json!({"script": PLAN})).await;
    assert_eq!(
        (&told["status"], &told["error"]["code"]),
        (&json!("tool_error"), &json!("INPUT_REQUIRED")),
        "{told}"
    );
    assert_eq!(told["error"]["toolName"], "app:ask");
    let id = told["executionId"].as_str().unwrap();
    let message = told["error"]["message"].as_str().unwrap();
    assert!(message.contains("Who are you?") && message.contains(id), "{message}");

    // Nobody else resumes it.
    let eve = served.client_with("eve", User::named("Eve")).await;
    let refused = eve.body("codecall:execute", json!({"resume": id})).await;
    assert_eq!(refused["error"]["code"], "EXECUTION_NOT_FOUND", "{refused}");
    let ada = served.client_with("ada", User::named("Ada")).await;
    let ended = ada.body("codecall:execute", json!({"resume": id})).await;
    assert_eq!(ended["result"], json!([1, "accept Ada", 2]), "{ended}");
    assert_eq!(app.effects.load(Ordering::SeqCst), 2);
    let over = ada.body("codecall:execute", json!({"resume": id})).await;
    assert_eq!(over["result"], ended["result"], "whoever began it gets the result as well: {over}");
    assert_eq!(app.effects.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn resources_ask_too_images_survive_the_wait_and_a_tool_that_asks_without_end_fails() {
    let (served, _) = served().await;
    let ada = modern(&served, "ada", User::named("Ada")).await;
    let script = "
        const picture = await callTool('app:picture', {});
        const page = await readResource('book://page');
        return {picture: picture[1], page: page.contents[0].text, last: await callTool('app:wait', {})};
    ";
    let ended = ada.call_tool(execute(script)).await.unwrap();
    let images = ended.content.iter().filter(|block| block.as_image().is_some()).count();
    let ended = body(ended);
    assert_eq!(ended["result"]["page"], "Ada", "{ended}");
    assert_eq!(ended["result"]["last"], "done");
    assert_eq!(images, 1, "{ended}");

    let bob = served.client_with("bob", User::named("Bob")).await;
    let script = "try { await callTool('app:again', {}) } catch (error) { return error.code }";
    assert_eq!(bob.run(script).await, "INPUT_REQUIRED");
    assert_eq!(bob.0.service().asked.load(Ordering::SeqCst), 10);
}

/// The plans of a gateway, and their folder.
pub(crate) struct Planned {
    pub(crate) plans: Arc<SavedPlans>,
    pub(crate) folder: tempfile::TempDir,
}

/// A gateway with the plan `plans:refund`, whose script is [`PLAN`].
pub(crate) async fn planned(config: Value) -> (Served, Asking, Planned) {
    planned_of(config, &[("refund", PLAN)]).await
}

/// The app `plans` with these plans, each with its script, and its folder.
pub(crate) fn saved(plans: &[(&str, &str)], config: &CodeCallConfig) -> (Arc<SavedPlans>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    for (name, script) in plans {
        let plan = format!("/* plan\nname: {name}\ndescription: Asks who it is.\n*/\n{script}");
        std::fs::write(folder.path().join(name).with_extension("js"), plan).unwrap();
    }
    let (plans, findings) = SavedPlans::open("plans", folder.path().to_owned().into(), config).unwrap();
    assert!(findings.is_empty(), "{findings:#?}");
    (plans, folder)
}

/// The same with these plans, each with its script.
pub(crate) async fn planned_of(config: Value, plans: &[(&str, &str)]) -> (Served, Asking, Planned) {
    let mut config = config;
    config["mode"] = "metadata_driven".into();
    let config: CodeCallConfig = made(config);
    let (plans, folder) = saved(plans, &config);
    let app = Asking::default();
    let apps: Vec<(&str, Arc<dyn App>, AppOptions)> = vec![
        ("app", Arc::new(LocalApp::start(app.clone()).await.unwrap()), AppOptions::default()),
        ("plans", plans.clone(), AppOptions::default()),
    ];
    let served = Served::of_apps(config, apps, None);
    served.code_call.run_plans_of(&plans);
    (served, app, Planned { plans, folder })
}

#[tokio::test]
async fn a_saved_plan_asks_and_goes_on_with_the_answer_alone_and_in_a_script() {
    let (served, app, _planned) = planned(json!({})).await;
    let ada = modern(&served, "ada", User::named("Ada")).await;
    let bob = served.client_with("bob", User::named("Bob")).await;

    let direct = ada.call_tool(CallToolRequestParams::new("plans:refund")).await.unwrap();
    assert_eq!(direct.content[0].as_text().unwrap().text, r#"[1,"accept Ada",2]"#);
    let nested = "return [await callTool('plans:refund'), (await callTool('app:effect', {})).count]";
    let ended = body(ada.call_tool(execute(nested)).await.unwrap());
    assert_eq!(ended["result"], json!([[3, "accept Ada", 4], 5]), "{ended}");
    let ended = bob.body("codecall:execute", json!({"script": nested})).await;
    assert_eq!(ended["result"], json!([[6, "accept Bob", 7], 8]), "{ended}");
    assert_eq!(app.effects.load(Ordering::SeqCst), 8, "nothing is done twice");
}

#[tokio::test]
async fn a_state_for_another_client_of_the_same_user_or_of_an_expired_plan_resumes_nothing() {
    let (ahead, app) = (Arc::new(AtomicU64::new(0)), Asking::default());
    let of_clock = ahead.clone();
    let now = move || SystemTime::now() + Duration::from_secs(of_clock.load(Ordering::SeqCst));
    let config = ExecutionsConfig { retention: Duration::from_secs(600), ..ExecutionsConfig::default() };
    let served = Served::keeping(Executions::in_memory_at(config, now), app.clone()).await;
    let client = async |client: &str| {
        let principal = Principal { client_id: Some(client.into()), ..principal("ada") };
        let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
        served.connect_in(principal, User::named("Ada"), lifecycle).await
    };
    let (own, other) = (client("desk").await, client("phone").await);
    let mut retry = execute(PLAN);
    retry.request_state = first_question(&own, PLAN).await.request_state;
    retry.input_responses = Some(made(json!({"1.name": {"action": "accept", "content": {"name": "x"}}})));
    let refused = async |client: &RunningService<RoleClient, User>, code: &str| {
        let CallToolResponse::Complete(refused) = client.call_tool_once(retry.clone()).await.unwrap() else {
            panic!("it is refused")
        };
        let refused = body(refused);
        assert_eq!(refused["error"]["code"], code, "{refused}");
        assert_eq!(app.effects.load(Ordering::SeqCst), 1, "nothing was run");
    };
    refused(&other, "VALIDATION_ERROR").await;
    ahead.store(601, Ordering::SeqCst);
    refused(&own, "EXECUTION_NOT_FOUND").await;
}

#[tokio::test]
async fn a_run_that_does_not_do_what_its_journal_says_ends_before_any_new_call() {
    let (executions, app) = (Executions::in_memory(ExecutionsConfig::default()), Asking::default());
    let served = Served::keeping(executions.clone(), app.clone()).await;
    let mute = served.client_with("ada", User::mute()).await;
    let told = mute.body("codecall:execute", json!({"script": PLAN})).await;
    let execution = executions.open(told["executionId"].as_str().unwrap(), Reader::Operator).await.unwrap();

    // The same journal, of a script whose first call is another one.
    let mut start: Value = serde_json::from_slice(&execution.chunks[0]).unwrap();
    let script = start["start"]["script"].as_str().unwrap().to_owned();
    start["start"]["script"] = script.replacen("app:effect", "app:picture", 1).into();
    let about = NewExecution::default();
    let lease = executions.create(&execution.head.owner, about, start.to_string().as_bytes()).await.unwrap();
    for chunk in &execution.chunks[1..] {
        lease.append(chunk).await.unwrap();
    }
    let id = lease.id().to_string();
    lease.wait(&execution.head.waiting_for, execution.head.calls).await.unwrap();

    let ada = served.client_with("ada", User::named("Ada")).await;
    let ended = ada.body("codecall:execute", json!({"resume": id})).await;
    assert_eq!(
        (&ended["status"], &ended["error"]["code"]),
        (&json!("runtime_error"), &json!("REPLAY_DIVERGED")),
        "{ended}"
    );
    let message = ended["error"]["message"].as_str().unwrap();
    assert!(message.contains("nothing was done a second time"), "{message}");
    assert_eq!(app.effects.load(Ordering::SeqCst), 1, "neither again nor anew");
    let again = ada.body("codecall:execute", json!({"resume": id})).await;
    assert_eq!(again["error"]["code"], "REPLAY_DIVERGED", "it is over: {again}");
}
