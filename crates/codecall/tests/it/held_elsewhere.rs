//! Plans that wait in the call of an older server which another instance holds: what takes them on is brought there.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use gatewright_agentscript::PoolConfig;
use gatewright_codecall::{CodeCallConfig, Mode};
use gatewright_core::{
    App, AppFuture, AppOptions, Caller, PassedOn, SealKey, StateHome,
    rmcp::{
        ClientHandler, ErrorData, ServiceError,
        model::{
            CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, GetTaskParams,
            ProtocolVersion, TaskPayload, TaskStatus, UpdateTaskParams,
        },
        service::ClientLifecycleMode,
    },
};
use gatewright_executions::{Executions, ExecutionsConfig};
use serde_json::{Value, json};

use super::{
    asking::{User, made},
    detached::{detach, ended, follower},
    held::Older,
    support::Served,
    waiting::{Asking, PLAN},
};

/// Instances by their names.
type Instances = Arc<Mutex<HashMap<&'static str, Weak<Served>>>>;

/// An instance of a cluster, which reaches the others in this process.
struct Instance {
    name: &'static str,
    all: Instances,
    /// Requests that it passed on.
    passed: Arc<AtomicUsize>,
}

/// A client with these capabilities, which is asked nothing on its stream.
struct Passing(ClientCapabilities);

impl ClientHandler for Passing {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.capabilities = self.0.clone();
        info
    }
}

async fn answer(served: &Served, caller: &Caller, request: PassedOn) -> Result<Value, ServiceError> {
    let preferred_versions = vec![ProtocolVersion::LATEST];
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions };
    let client = Passing(request.capabilities);
    let client = served.connect_in((**caller.principal()).clone(), client, lifecycle).await;
    let params = Value::Object(request.params);
    match request.method {
        "tasks/update" => client.peer().update_task(made(params)).await.map(|_| json!({})),
        "tools/call" => match client.call_tool_once(made::<CallToolRequestParams>(params)).await? {
            CallToolResponse::Complete(result) => Ok(json!(result)),
            CallToolResponse::InputRequired(asks) => Ok(json!(asks)),
            other => panic!("{other:?}"),
        },
        other => panic!("{other}"),
    }
}

impl StateHome for Instance {
    fn mark(&self, state: &str) -> String {
        format!("{state}.{}", self.name)
    }

    fn mark_as(&self, from: &str, to: &str) -> Option<String> {
        from.split_once('.').map(|(_, home)| format!("{to}.{home}"))
    }

    fn pass_on<'a>(
        &'a self,
        state: &'a str,
        caller: &'a Caller,
        request: PassedOn,
    ) -> AppFuture<'a, Option<Result<Value, ErrorData>>> {
        Box::pin(async move {
            let home = state.split_once('.')?.1;
            let served = self.all.lock().unwrap().get(home).filter(|_| home != self.name)?.upgrade()?;
            self.passed.fetch_add(1, Ordering::SeqCst);
            Some(answer(&served, caller, request).await.map_err(|error| match error {
                ServiceError::McpError(error) => error,
                other => panic!("{other}"),
            }))
        })
    }
}

/// Two instances, each over an older server of its own as the app `app`.
pub(crate) struct Two {
    pub(crate) a: Arc<Served>,
    pub(crate) b: Arc<Served>,
    asking: Asking,
    older: [Arc<Older>; 2],
    passed: Arc<AtomicUsize>,
}

impl Two {
    pub(crate) async fn new() -> Self {
        let (key, executions) = (SealKey::random(), Executions::in_memory(ExecutionsConfig::default()));
        let (all, passed, asking) = (Instances::default(), Arc::default(), Asking::default());
        let older = [Older::of(asking.clone()).await, Older::of(asking.clone()).await];
        let instance = |name: &'static str, older: &Arc<Older>| {
            let config = CodeCallConfig { mode: Mode::MetadataDriven, ..CodeCallConfig::default() };
            let apps: Vec<(&str, Arc<dyn App>, AppOptions)> =
                vec![("app", older.clone(), AppOptions::default())];
            let served = Served::of_invoker(
                PoolConfig::default(),
                config,
                apps,
                Some(executions.clone()),
                |invoker| invoker.seal_key(&key),
            );
            let (all, passed) = (Instances::clone(&all), Arc::clone(&passed));
            served.invoker.at_home(Arc::new(Instance { name, all: all.clone(), passed }));
            let served = Arc::new(served);
            all.lock().unwrap().insert(name, Arc::downgrade(&served));
            served
        };
        let (a, b) = (instance("a", &older[0]), instance("b", &older[1]));
        Self { a, b, asking, older, passed }
    }

    /// Calls of `ask` that began at each of them, and requests that were passed on.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let begun = |at: usize| self.older[at].begun.load(Ordering::SeqCst);
        (begun(0), begun(1), self.passed.load(Ordering::SeqCst))
    }

    pub(crate) fn effects(&self) -> usize {
        self.asking.effects.load(Ordering::SeqCst)
    }
}

/// The id of an execution that waits because its client cannot be asked.
fn waits(told: &Value) -> Value {
    assert_eq!(told["error"]["code"], "INPUT_REQUIRED", "{told}");
    told["executionId"].clone()
}

#[tokio::test]
async fn the_update_of_a_task_reaches_the_instance_that_holds_its_call() {
    let two = Two::new().await;
    let mute = two.a.client("ada").await;
    let id = detach(&mute, PLAN).await;
    waits(&ended(&mute, &id).await);
    let ada = follower(&two.b, "ada").await;
    let task = ada.peer().get_task(GetTaskParams::new(id.clone())).await.unwrap().task;
    let TaskPayload::InputRequired { input_requests } = task.payload else { panic!("it asks") };
    let key = input_requests.keys().next().unwrap();
    let answers = made(json!({key: {"action": "accept", "content": {"name": "Ada"}}}));
    ada.peer().update_task(UpdateTaskParams::new(id.clone(), answers)).await.unwrap();
    let result = loop {
        let task = ada.peer().get_task(GetTaskParams::new(id.clone())).await.unwrap().task;
        match task.payload {
            TaskPayload::Completed { result } => break result,
            _ => assert!(task.status() != TaskStatus::Failed, "{task:?}"),
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(result["structuredContent"]["result"], json!([1, "Ada", 2]), "{result:?}");
    assert_eq!((two.counts(), two.effects()), ((1, 0, 1), 2));
}

#[tokio::test]
async fn a_client_with_sessions_takes_a_plan_on_whose_call_another_instance_holds() {
    let two = Two::new().await;
    let twice = "
        const first = await callTool('app:ask', {});
        const { count } = await callTool('app:effect', {});
        return [first, count, await callTool('app:ask', {})];
    ";
    let told = two.a.client("ada").await.body("codecall:execute", json!({"script": twice})).await;
    let ada = two.b.client_with("ada", User::named("Ada")).await;
    let over = ada.body("codecall:execute", json!({"resume": waits(&told)})).await;
    assert_eq!((&over["status"], &over["result"]), (&json!("ok"), &json!(["Ada", 1, "Ada"])), "{over}");
    // It asked again, and was answered in the same way.
    assert_eq!((two.counts(), two.effects()), ((2, 0, 2), 1));
    assert_eq!(ada.0.service().asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_plan_in_the_background_is_taken_on_by_a_client_with_sessions_at_another_instance() {
    let two = Two::new().await;
    let mute = two.a.client("ada").await;
    let id = detach(&mute, PLAN).await;
    waits(&ended(&mute, &id).await);
    let ada = two.b.client_with("ada", User::named("Ada")).await;
    let over = ended(&ada, &id).await;
    assert_eq!(over["result"], json!([1, "Ada", 2]), "{over}");
    assert_eq!((two.counts(), two.effects()), ((1, 0, 1), 2));
}

#[tokio::test]
async fn the_call_of_an_instance_that_is_gone_has_expired_and_nothing_is_repeated() {
    let two = Two::new().await;
    let caught = "
        const { count } = await callTool('app:effect', {});
        return [count, await callTool('app:ask', {}).catch(error => error.code)];
    ";
    let told = two.a.client("ada").await.body("codecall:execute", json!({"script": caught})).await;
    let id = waits(&told);
    let Two { a, b, asking, older, passed } = two;
    a.code_call.close().await;
    drop(a);
    let ada = b.client_with("ada", User::named("Ada")).await;
    let over = ada.body("codecall:execute", json!({"resume": id})).await;
    assert_eq!(over["result"], json!([1, "INPUT_EXPIRED"]), "{over}");
    assert_eq!(passed.load(Ordering::SeqCst), 0);
    assert_eq!(older[1].begun.load(Ordering::SeqCst), 0);
    assert_eq!(asking.effects.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn nobody_else_takes_a_plan_on_by_way_of_another_instance() {
    let two = Two::new().await;
    let mute = two.a.client("ada").await;
    let id = detach(&mute, PLAN).await;
    waits(&ended(&mute, &id).await);
    let answers = made(json!({"1.name": {"action": "accept", "content": {"name": "Eve"}}}));
    let eve = follower(&two.b, "eve").await;
    assert!(eve.peer().update_task(UpdateTaskParams::new(id.clone(), answers)).await.is_err());
    let eve = two.b.client_with("eve", User::named("Eve")).await;
    let refused = eve.body("codecall:execute", json!({"resume": id})).await;
    assert_eq!(refused["error"]["code"], "EXECUTION_NOT_FOUND", "{refused}");
    assert_eq!((two.counts(), two.effects()), ((1, 0, 0), 1));
}
