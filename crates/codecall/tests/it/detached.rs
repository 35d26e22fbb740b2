//! Runs in the background: they answer at once, wait for answers, and go on when their instance is gone.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use gatewright_agentscript::PoolConfig;
use gatewright_codecall::{CodeCallConfig, Mode, SavedPlans};
use gatewright_core::{
    App, AppFuture, AppOptions, LocalApp, Principal, RateLimiter, RetryAfter, Scopes, SealKey,
    rmcp::{
        ClientHandler, RoleClient,
        model::{
            CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientConfig,
            GetTaskParams, ProtocolVersion, TASKS_EXTENSION_ID, TaskPayload, TaskStatus, UpdateTaskParams,
        },
        service::{ClientLifecycleMode, RunningService},
    },
};
use gatewright_executions::{Executions, ExecutionsConfig, Reader, State};
use gatewright_testing::ToolServer;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};

use super::{
    asking::{User, asks, made},
    observed::Told,
    support::{Client, Served},
};

/// Tools: `step` counts its calls; `hold` (an effect) and `look` (read-only) wait until they are let go; `ask` asks for a name.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) steps: Arc<AtomicUsize>,
    pub(crate) entered: Arc<Notify>,
    pub(crate) go: Arc<Semaphore>,
}

impl Default for Desk {
    fn default() -> Self {
        Self { steps: Arc::default(), entered: Arc::default(), go: Arc::new(Semaphore::new(0)) }
    }
}

impl Desk {
    pub(crate) fn server(&self) -> ToolServer {
        let tool = |name: &str| {
            json!({"name": name, "description": name, "inputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": name == "look"}})
        };
        let (tools, desk) = (["step", "hold", "look", "ask"].map(tool), self.clone());
        ToolServer::asking(json!(tools), move |call, _| {
            let desk = desk.clone();
            async move { Ok(desk.answer(call).await) }
        })
    }

    async fn answer(&self, call: CallToolRequestParams) -> CallToolResponse {
        let done = |value: Value| CallToolResponse::Complete(CallToolResult::structured(value));
        match &*call.name {
            "step" => done(json!({"n": self.steps.fetch_add(1, Ordering::SeqCst) + 1})),
            "ask" => match call.input_responses {
                Some(answers) => done(json!({"name": answers["name"]["content"]["name"]})),
                None => CallToolResponse::InputRequired(asks("Who?", "asked")),
            },
            name => {
                self.entered.notify_one();
                self.go.acquire().await.unwrap().forget();
                done(json!({"held": name}))
            }
        }
    }
}

/// A client of the era without sessions that follows tasks.
pub(crate) struct Follower;

impl ClientHandler for Follower {
    fn get_info(&self) -> ClientConfig {
        let mut info = User::named("Ada").get_info();
        let extensions = info.capabilities.extensions.get_or_insert_default();
        extensions.insert(TASKS_EXTENSION_ID.to_owned(), made(json!({})));
        info
    }
}

pub(crate) async fn follower(served: &Served, subject: &str) -> RunningService<RoleClient, Follower> {
    let principal =
        Principal { subject: subject.into(), client_id: None, scopes: Scopes::All, ..Principal::local() };
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
    served.connect_in(principal, Follower, lifecycle).await
}

/// Executions whose clock a test moves.
fn executions() -> (Executions, Arc<AtomicU64>) {
    let ahead = Arc::new(AtomicU64::new(0));
    let of_clock = ahead.clone();
    let config = ExecutionsConfig { lease: Duration::from_secs(3), ..ExecutionsConfig::default() };
    let now = move || SystemTime::now() + Duration::from_secs(of_clock.load(Ordering::SeqCst));
    (Executions::in_memory_at(config, now), ahead)
}

pub(crate) async fn detach<H: ClientHandler>(client: &Client<H>, script: &str) -> String {
    let begun = client.body("codecall:execute", json!({"script": script, "detach": true})).await;
    assert_eq!(begun["status"], "running", "{begun}");
    begun["executionId"].as_str().unwrap().to_owned()
}

async fn resume<H: ClientHandler>(client: &Client<H>, id: &str) -> Value {
    client.body("codecall:execute", json!({"resume": id})).await
}

/// The answer of an execution once it has one.
pub(crate) async fn ended<H: ClientHandler>(client: &Client<H>, id: &str) -> Value {
    loop {
        let answer = resume(client, id).await;
        if answer["status"] != "running" {
            return answer;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_run_in_the_background_answers_at_once_and_its_result_is_there_for_whoever_started_it() {
    let desk = Desk::default();
    let served = Served::over(json!({"vm": {"timeoutMs": 500}}), desk.server()).await;
    let ada = served.client("ada").await;
    let id = detach(&ada, "await callTool('app:hold', {}); return (await callTool('app:step', {})).n").await;
    desk.entered.notified().await;
    let running = resume(&ada, &id).await;
    assert_eq!((&running["status"], &running["executionId"]), (&json!("running"), &json!(id)), "{running}");
    // Its client leaves; nobody else gets its result.
    drop(ada);
    let eve = served.client("eve").await;
    assert_eq!(resume(&eve, &id).await["error"]["code"], "EXECUTION_NOT_FOUND");
    desk.go.add_permits(1);
    let ada = served.client("ada").await;
    let answer = ended(&ada, &id).await;
    assert_eq!((&answer["status"], &answer["result"]), (&json!("ok"), &json!(1)), "{answer}");
    assert_eq!(ended(&ada, &id).await, answer, "as often as it is asked for");
}

#[tokio::test]
async fn a_run_in_the_background_whose_call_takes_long_leaves_the_only_worker_to_others() {
    let desk = Desk::default();
    let served = Served::over(json!({}), desk.server()).await;
    let ada = served.client("ada").await;
    let script = "const a = (await callTool('app:step', {})).n, both = await Promise.all([callTool('app:hold', {}), callTool('app:look', {})]);
        return [a, both.map((one) => one.held), (await callTool('app:step', {})).n]";
    let id = detach(&ada, script).await;
    desk.entered.notified().await;
    // It would wait for a worker until `queueTimeout` otherwise.
    assert_eq!(ada.run("return 1 + 1").await, json!(2));
    assert_eq!(resume(&ada, &id).await["status"], "running");
    desk.go.add_permits(2);
    let answer = ended(&ada, &id).await;
    assert_eq!(answer["result"], json!([1, ["hold", "look"], 2]), "{answer}");
    assert_eq!(desk.steps.load(Ordering::SeqCst), 2, "nothing is done twice");
}

#[tokio::test]
async fn a_run_in_the_background_that_asks_waits_until_a_client_answers() {
    let desk = Desk::default();
    let served = Served::over(json!({}), desk.server()).await;
    let mute = served.client("ada").await;
    let id = detach(
        &mute,
        "const n = (await callTool('app:step', {})).n; return [n, (await callTool('app:ask', {})).name]",
    )
    .await;
    let told = ended(&mute, &id).await;
    assert_eq!(told["error"]["code"], "INPUT_REQUIRED", "{told}");
    assert!(told["error"]["message"].as_str().unwrap().contains("Who?"), "{told}");
    let ada = served.client_with("ada", User::named("Ada")).await;
    let answer = ended(&ada, &id).await;
    assert_eq!(answer["result"], json!([1, "Ada"]), "{answer}");
    assert_eq!(desk.steps.load(Ordering::SeqCst), 1, "nothing is done twice");
}

#[tokio::test]
async fn another_instance_goes_on_when_the_first_is_gone_and_repeats_only_what_may_be_repeated() {
    for (held, expected) in [("look", json!([1, "look", 2])), ("hold", json!([1, "OUTCOME_UNKNOWN", 2]))] {
        let (executions, ahead) = executions();
        let desk = Desk::default();
        let first = Served::keeping(executions.clone(), desk.server()).await;
        let script = format!(
            "const a = (await callTool('app:step', {{}})).n;
             let b; try {{ b = (await callTool('app:{held}', {{}})).held }} catch (error) {{ b = error.code }}
             return [a, b, (await callTool('app:step', {{}})).n]"
        );
        let id = detach(&first.client("ada").await, &script).await;
        desk.entered.notified().await;
        // The first instance dies in the middle of the second call.
        first.code_call.close().await;
        ahead.fetch_add(60, Ordering::SeqCst);
        desk.go.add_permits(1);
        let second = Served::keeping(executions.clone(), desk.server()).await;
        let told = Told::by(&second);
        let ada = second.client("ada").await;
        let answer = ended(&ada, &id).await;
        assert_eq!(answer["result"], expected, "{answer}");
        assert_eq!(desk.steps.load(Ordering::SeqCst), 2, "{held}");
        let (_, made) = told.of_plans(1).await.remove(0);
        let tools: Vec<_> = made.iter().map(|(tool, status)| (tool.as_str(), status.as_str())).collect();
        let before =
            [("app:step", "ok"), (if held == "look" { "app:look" } else { "app:hold" }, "OUTCOME_UNKNOWN")];
        assert!(tools.starts_with(&before) && tools.ends_with(&[("app:step", "ok")]), "{tools:?}");
        let listed = executions.list(Reader::Operator, Some(State::Ended), 9).await.unwrap();
        assert_eq!(listed.len(), 1);
    }
}

#[tokio::test]
async fn a_stop_lets_calls_under_way_finish_makes_no_new_ones_and_leaves_the_plan_to_another_instance_at_once()
 {
    let plan = "/* plan\nname: inner\ndescription: Holds.\n*/
        const held = (await callTool('app:hold', {})).held;
        return [held, (await callTool('app:step', {})).n]";
    for outer in [
        "const held = (await callTool('app:hold', {})).held; return [held, (await callTool('app:step', {})).n]",
        "return await callTool('plans:inner', {})",
    ] {
        let (executions, _) = executions();
        let (desk, folder, key) = (Desk::default(), tempfile::tempdir().unwrap(), SealKey::random());
        std::fs::write(folder.path().join("inner.js"), plan).unwrap();
        let instance = async || {
            let config = CodeCallConfig { mode: Mode::MetadataDriven, ..CodeCallConfig::default() };
            let (plans, _) = SavedPlans::open("plans", folder.path().to_owned().into(), &config).unwrap();
            let local = Arc::new(LocalApp::start(desk.server()).await.unwrap());
            let apps: Vec<(_, Arc<dyn App>, _)> =
                vec![("app", local, AppOptions::default()), ("plans", plans.clone(), AppOptions::default())];
            let served = Served::of_invoker(
                PoolConfig::default(),
                config,
                apps,
                Some(executions.clone()),
                |invoker| invoker.seal_key(&key),
            );
            served.code_call.run_plans_of(&plans);
            (served, plans)
        };
        let (first, _plans) = instance().await;
        let id = detach(&first.client("ada").await, outer).await;
        desk.entered.notified().await;
        let stopping = first.gateway.drain();
        tokio::pin!(stopping);
        let still = tokio::time::timeout(Duration::from_millis(100), &mut stopping).await;
        assert!(still.is_err(), "the call under way is waited for");
        desk.go.add_permits(1);
        stopping.await;
        assert_eq!(desk.steps.load(Ordering::SeqCst), 0, "no call was made after the stop");
        first.code_call.close().await;
        let (second, _plans) = instance().await;
        let ada = second.client("ada").await;
        // The clock of leases stands still: this one was given back.
        let answer = ended(&ada, &id).await;
        assert_eq!(answer["result"], json!(["hold", 1]), "{answer}");
    }
}

/// Counts the calls of each tool, and refuses those beyond `most`.
struct Counting {
    most: usize,
    counted: Mutex<HashMap<String, usize>>,
}

impl RateLimiter for Counting {
    fn check<'a>(
        &'a self,
        tool: &'a str,
        _: &'a Principal,
        _: Option<std::net::IpAddr>,
    ) -> AppFuture<'a, Result<(), RetryAfter>> {
        Box::pin(async move {
            let mut counted = self.counted.lock().unwrap();
            let count = counted.entry(tool.to_owned()).or_default();
            if *count == self.most {
                return Err(RetryAfter(Duration::from_secs(60)));
            }
            *count += 1;
            Ok(())
        })
    }
}

#[tokio::test]
async fn a_call_that_asks_counts_once_for_rate_limits_and_a_state_that_comes_again_as_a_new_call() {
    let limiter = Arc::new(Counting { most: 3, counted: Mutex::default() });
    let config = CodeCallConfig { mode: Mode::MetadataDriven, ..CodeCallConfig::default() };
    let local = Arc::new(LocalApp::start(Desk::default().server()).await.unwrap());
    let apps: Vec<(_, Arc<dyn App>, _)> = vec![("app", local, AppOptions::default())];
    let limits = limiter.clone();
    let served =
        Served::of_invoker(PoolConfig::default(), config, apps, None, |invoker| invoker.rate_limiter(limits));
    let counted = |tool: &str| limiter.counted.lock().unwrap().get(tool).copied();
    let ada = served.client_with("ada", User::named("Ada")).await;
    let script = "const names = [];
        for (let i = 0; i < 3; i++) names.push((await callTool('app:ask', {})).name);
        return names";
    let answer = ada.body("codecall:execute", json!({"script": script})).await;
    assert_eq!(answer["result"], json!(["Ada", "Ada", "Ada"]), "{answer}");
    assert_eq!(counted("app:ask"), Some(3));
    let fourth =
        ada.body("codecall:execute", json!({"script": "return await callTool('app:ask', {})"})).await;
    assert_eq!(fourth["error"]["code"], "RATE_LIMIT", "{fourth}");

    // Called directly, of a client that answers in another request.
    limiter.counted.lock().unwrap().clear();
    let modern = follower(&served, "bob").await;
    let ask = || CallToolRequestParams::new("app:ask");
    let CallToolResponse::InputRequired(asks) = modern.call_tool_once(ask()).await.unwrap() else {
        panic!("it asks")
    };
    assert_eq!(counted("app:ask"), Some(1));
    let mut retry = ask();
    retry.request_state = asks.request_state;
    retry.input_responses = Some(made(json!({"name": {"action": "accept", "content": {"name": "Bob"}}})));
    for expected in [1, 2, 3] {
        let answer = modern.call_tool_once(retry.clone()).await.unwrap();
        assert!(matches!(answer, CallToolResponse::Complete(_)), "{answer:?}");
        assert_eq!(counted("app:ask"), Some(expected));
    }
    let refused = modern.call_tool_once(retry).await.unwrap();
    let CallToolResponse::Complete(refused) = refused else { panic!("{refused:?}") };
    assert_eq!(refused.meta.unwrap().0["code"], "RATE_LIMIT");
}

#[tokio::test]
async fn a_client_that_follows_tasks_gets_one_answers_its_questions_and_cancels_it() {
    let desk = Desk::default();
    let served = Served::over(json!({}), desk.server()).await;
    let ada = follower(&served, "ada").await;
    let begin = async |script: &str| {
        let params = CallToolRequestParams::new("codecall:execute")
            .with_arguments(made(json!({"script": script, "detach": true})));
        match ada.call_tool_once(params).await.unwrap() {
            CallToolResponse::Task(created) => created.task.task_id,
            other => panic!("{other:?}"),
        }
    };
    let look = async |id: &str, wanted: TaskStatus| loop {
        let task = ada.peer().get_task(GetTaskParams::new(id)).await.unwrap().task;
        if task.status() == wanted {
            return task.payload;
        }
        assert!(!task.status().is_terminal(), "{task:?}");
        tokio::task::yield_now().await;
    };
    let id = begin("return [(await callTool('app:step', {})).n, (await callTool('app:ask', {})).name]").await;
    let TaskPayload::InputRequired { input_requests } = look(&id, TaskStatus::InputRequired).await else {
        panic!("it asks")
    };
    assert_eq!(input_requests.keys().collect::<Vec<_>>(), ["1.name"]);
    let answers = made(json!({"1.name": {"action": "accept", "content": {"name": "Ada"}}}));
    ada.peer().update_task(UpdateTaskParams::new(id.clone(), answers)).await.unwrap();
    let TaskPayload::Completed { result } = look(&id, TaskStatus::Completed).await else {
        panic!("it is over")
    };
    assert_eq!(result["structuredContent"]["result"], json!([1, "Ada"]));

    let held = begin("await callTool('app:hold', {}); return await callTool('app:step', {})").await;
    desk.entered.notified().await;
    let eve = follower(&served, "eve").await;
    assert!(eve.peer().get_task(GetTaskParams::new(held.clone())).await.is_err());
    assert!(eve.peer().cancel_task(CancelTaskParams::new(held.clone())).await.is_err());
    ada.peer().cancel_task(CancelTaskParams::new(held.clone())).await.unwrap();
    assert!(matches!(look(&held, TaskStatus::Cancelled).await, TaskPayload::Cancelled));
    assert_eq!(desk.steps.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_run_in_the_background_waits_for_its_calls_as_long_as_wait_ms_says() {
    let desk = Desk::default();
    let served = Served::over(json!({"vm": {"timeoutMs": 60_000, "waitMs": 1_000}}), desk.server()).await;
    let ada = served.client("ada").await;
    let id = detach(&ada, "await callTool('app:hold', {}); return await callTool('app:step', {})").await;
    desk.entered.notified().await;
    // Nobody lets the call go.
    let answer = ended(&ada, &id).await;
    assert_eq!(
        (&answer["status"], &answer["error"]["code"]),
        (&json!("timeout"), &json!("TIMEOUT")),
        "{answer}"
    );
    assert_eq!(desk.steps.load(Ordering::SeqCst), 0, "nothing was called after it");
}

#[tokio::test]
async fn a_client_with_a_session_has_wait_ms_for_its_answer_and_the_plan_waits_on() {
    let desk = Desk::default();
    let served = Served::over(json!({"vm": {"waitMs": 1_000}}), desk.server()).await;
    let slow = User { thinks: Duration::from_secs(3_600), ..User::named("Ada") };
    let ada = served.client_with("ada", slow).await;
    let script = "return (await callTool('app:ask', {})).name";
    let told = ada.body("codecall:execute", json!({"script": script})).await;
    assert_eq!(told["error"]["code"], "INPUT_REQUIRED", "{told}");
    let quick = served.client_with("ada", User::named("Ada")).await;
    assert_eq!(resume(&quick, told["executionId"].as_str().unwrap()).await["result"], "Ada");
}

#[tokio::test]
async fn a_client_without_tasks_sees_how_far_a_run_in_the_background_is_and_cancels_it() {
    let desk = Desk::default();
    let served = Served::over(json!({}), desk.server()).await;
    let ada = served.client("ada").await;
    let script = "await callTool('app:step', {}); await callTool('app:step', {});
        await callTool('app:hold', {}); return await callTool('app:step', {})";
    let id = detach(&ada, script).await;
    desk.entered.notified().await;
    let running = resume(&ada, &id).await;
    assert_eq!((&running["status"], &running["callsAnswered"]), (&json!("running"), &json!(2)), "{running}");

    let cancel = json!({"resume": id, "cancel": true});
    let eve = served.client("eve").await;
    assert_eq!(eve.body("codecall:execute", cancel.clone()).await["error"]["code"], "EXECUTION_NOT_FOUND");
    for wrong in [json!({"cancel": true}), json!({"script": "return 1", "cancel": true})] {
        let refused = ada.body("codecall:execute", wrong).await;
        assert_eq!(refused["error"]["code"], "VALIDATION_ERROR", "{refused}");
    }
    let more = ada.body("codecall:execute", json!({"resume": id, "cancel": true, "detach": true})).await;
    assert_eq!(more["error"]["code"], "VALIDATION_ERROR", "{more}");
    assert_eq!(resume(&ada, &id).await["status"], "running", "it still runs");

    for answer in [ada.body("codecall:execute", cancel.clone()).await, resume(&ada, &id).await] {
        assert_eq!(answer["error"]["code"], "EXECUTION_ABORTED", "{answer}");
    }
    desk.go.add_permits(1);
    assert_eq!(ada.run("return (await callTool('app:step', {})).n").await, json!(3), "it made no more calls");

    // One that has ended keeps its answer.
    let id = detach(&ada, "return 7").await;
    assert_eq!(ended(&ada, &id).await["result"], 7);
    let late = ada.body("codecall:execute", json!({"resume": id, "cancel": true})).await;
    assert_eq!(late["result"], 7, "{late}");
}

#[tokio::test]
async fn a_plan_that_waits_is_cancelled_and_takes_no_answer_any_more() {
    let desk = Desk::default();
    let served = Served::over(json!({}), desk.server()).await;
    let mute = served.client("ada").await;
    let told = mute.body("codecall:execute", json!({"script": "return await callTool('app:ask', {})"})).await;
    let id = told["executionId"].as_str().unwrap();
    let cancelled = mute.body("codecall:execute", json!({"resume": id, "cancel": true})).await;
    assert_eq!(cancelled["error"]["code"], "EXECUTION_ABORTED", "{cancelled}");
    let ada = served.client_with("ada", User::named("Ada")).await;
    assert_eq!(resume(&ada, id).await["error"]["code"], "EXECUTION_ABORTED");
    assert_eq!(ada.0.service().asked.load(Ordering::SeqCst), 0, "nobody is asked");
}
