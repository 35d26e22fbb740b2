//! Runs in the background: they answer at once, wait for answers, and go on when their instance is gone.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use gatewright_core::{
    Principal, Scopes,
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
    support::{Client, Served},
};

/// Tools: `step` counts its calls; `hold` (an effect) and `look` (read-only) wait until they are let go; `ask` asks for a name.
#[derive(Clone)]
struct Desk {
    steps: Arc<AtomicUsize>,
    entered: Arc<Notify>,
    go: Arc<Semaphore>,
}

impl Default for Desk {
    fn default() -> Self {
        Self { steps: Arc::default(), entered: Arc::default(), go: Arc::new(Semaphore::new(0)) }
    }
}

impl Desk {
    fn server(&self) -> ToolServer {
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
struct Follower;

impl ClientHandler for Follower {
    fn get_info(&self) -> ClientConfig {
        let mut info = User::named("Ada").get_info();
        let extensions = info.capabilities.extensions.get_or_insert_default();
        extensions.insert(TASKS_EXTENSION_ID.to_owned(), made(json!({})));
        info
    }
}

async fn follower(served: &Served, subject: &str) -> RunningService<RoleClient, Follower> {
    let principal = Principal { subject: subject.into(), client_id: None, scopes: Scopes::All };
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

async fn detach<H: ClientHandler>(client: &Client<H>, script: &str) -> String {
    let begun = client.body("codecall:execute", json!({"script": script, "detach": true})).await;
    assert_eq!(begun["status"], "running", "{begun}");
    begun["executionId"].as_str().unwrap().to_owned()
}

async fn resume<H: ClientHandler>(client: &Client<H>, id: &str) -> Value {
    client.body("codecall:execute", json!({"resume": id})).await
}

/// The answer of an execution once it has one.
async fn ended<H: ClientHandler>(client: &Client<H>, id: &str) -> Value {
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
        let ada = second.client("ada").await;
        let answer = ended(&ada, &id).await;
        assert_eq!(answer["result"], expected, "{answer}");
        assert_eq!(desk.steps.load(Ordering::SeqCst), 2, "{held}");
        let listed = executions.list(Reader::Operator, Some(State::Ended), 9).await.unwrap();
        assert_eq!(listed.len(), 1);
    }
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
