//! Questions of older servers in plans whose client cannot be asked now: the call is held open, the plan waits, and whoever can answer takes
//! both on.
#![expect(deprecated, reason = "sampling and roots, which SEP-2577 marks as deprecated")]

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use gatewright_codecall::{CodeCallConfig, Mode};
use gatewright_core::{
    App, AppOptions,
    rmcp::{
        ClientHandler, ErrorData, RoleClient,
        model::{
            CallToolRequestParams, CallToolResponse, ClientConfig, CreateMessageRequestParams,
            CreateMessageResult, ElicitRequestParams, ElicitResult, GetTaskParams, ListRootsResult,
            TaskPayload, TaskStatus, UpdateTaskParams,
        },
        service::RequestContext,
    },
};
use serde_json::{Value, json};

use super::{
    asking::{User, made},
    detached::{detach, ended, follower},
    held::Older,
    support::Served,
    waiting::{Asking, PLAN, body, execute, modern},
};

/// A client that answers every kind of question.
struct Able(User);

impl Able {
    fn new() -> Self {
        Self(User::named("Ada"))
    }
}

impl ClientHandler for Able {
    fn get_info(&self) -> ClientConfig {
        let mut info = self.0.get_info();
        info.capabilities = made(json!({"elicitation": {}, "sampling": {}, "roots": {}}));
        info
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.0.create_elicitation(params, context).await
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Ok(made(json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "a sample"}})))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(made(json!({"roots": [{"uri": "file:///w"}]})))
    }
}

/// A gateway over an older server as the app `app`.
async fn served_with(options: AppOptions) -> (Served, Asking, Arc<Older>) {
    let asking = Asking::default();
    let older = Older::of(asking.clone()).await;
    let config = CodeCallConfig { mode: Mode::MetadataDriven, ..CodeCallConfig::default() };
    let apps: Vec<(&str, Arc<dyn App>, AppOptions)> = vec![("app", older.clone(), options)];
    (Served::of_apps(config, apps, None), asking, older)
}

async fn served() -> (Served, Asking, Arc<Older>) {
    served_with(AppOptions::default()).await
}

/// A script that asks these questions in one call, between two effects.
fn asks(questions: &[&str]) -> String {
    let input = json!({"questions": questions});
    format!(
        "const a = (await callTool('app:effect', {{}})).count; const said = await callTool('app:ask', {input});
         return [a, said, (await callTool('app:effect', {{}})).count]"
    )
}

/// The id of an execution that waits because its client cannot be asked.
fn waits(told: &Value) -> Value {
    assert_eq!(
        (&told["status"], &told["error"]["code"]),
        (&json!("tool_error"), &json!("INPUT_REQUIRED")),
        "{told}"
    );
    let id = told["executionId"].clone();
    assert!(told["error"]["message"].as_str().unwrap().contains(id.as_str().unwrap()), "{told}");
    id
}

#[tokio::test]
async fn a_run_in_the_background_waits_with_the_call_of_an_older_server_that_asks_and_goes_on_with_it() {
    let (served, asking, older) = served().await;
    let mute = served.client("ada").await;
    for done in [0, 2] {
        let id = detach(&mute, PLAN).await;
        let told = ended(&mute, &id).await;
        waits(&told);
        assert!(told["error"]["message"].as_str().unwrap().contains("Who?"), "{told}");
        let answer = match done {
            0 => ended(&served.client_with("ada", User::named("Ada")).await, &id).await,
            _ => {
                let ada = modern(&served, "ada", User::named("Ada")).await;
                let resume = CallToolRequestParams::new("codecall:execute")
                    .with_arguments(made(json!({"resume": id})));
                ada.call_tool(resume).await.unwrap();
                ended(&mute, &id).await
            }
        };
        assert_eq!(answer["result"], json!([done + 1, "Ada", done + 2]), "{answer}");
    }
    assert_eq!((older.begun.load(Ordering::SeqCst), asking.effects.load(Ordering::SeqCst)), (2, 4));
}

#[tokio::test]
async fn the_task_of_a_run_that_waits_with_a_held_call_asks_and_its_update_answers() {
    let (served, _, older) = served().await;
    let ada = follower(&served, "ada").await;
    let params = CallToolRequestParams::new("codecall:execute")
        .with_arguments(made(json!({"script": PLAN, "detach": true})));
    let CallToolResponse::Task(created) = ada.call_tool_once(params).await.unwrap() else {
        panic!("it is a task")
    };
    let id = created.task.task_id;
    let look = async |wanted: TaskStatus| loop {
        let task = ada.peer().get_task(GetTaskParams::new(id.clone())).await.unwrap().task;
        if task.status() == wanted {
            return task.payload;
        }
        assert!(!task.status().is_terminal(), "{task:?}");
        tokio::task::yield_now().await;
    };
    let TaskPayload::InputRequired { input_requests } = look(TaskStatus::InputRequired).await else {
        panic!("it asks")
    };
    let key = input_requests.keys().next().unwrap();
    let answers = made(json!({key: {"action": "accept", "content": {"name": "Ada"}}}));
    ada.peer().update_task(UpdateTaskParams::new(id.clone(), answers)).await.unwrap();
    let TaskPayload::Completed { result } = look(TaskStatus::Completed).await else { panic!("it is over") };
    assert_eq!(result["structuredContent"]["result"], json!([1, "Ada", 2]));
    assert_eq!(older.begun.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_plan_of_a_client_without_the_capability_waits_with_the_call_until_another_client_answers() {
    let (served, asking, older) = served().await;
    let mute = served.client_with("ada", User::mute()).await;
    let modern_mute = modern(&served, "ada", User::mute()).await;
    let able = served.client_with("ada", Able::new()).await;
    let mut done = 0;
    for (kind, said) in [("form", "Ada"), ("sampling", "a sample"), ("roots", "file:///w")] {
        let script = asks(&[kind]);
        let told = [
            mute.body("codecall:execute", json!({"script": script})).await,
            body(modern_mute.call_tool(execute(&script)).await.unwrap()),
        ];
        for (at, told) in told.iter().enumerate() {
            let ended = able.body("codecall:execute", json!({"resume": waits(told)})).await;
            assert_eq!(ended["result"], json!([done + at + 1, said, done + at + 3]), "{ended}");
        }
        done += 4;
    }
    assert_eq!((older.begun.load(Ordering::SeqCst), asking.effects.load(Ordering::SeqCst)), (6, 12));
}

#[tokio::test]
async fn a_client_with_sessions_is_asked_on_its_stream_what_it_can_answer_and_the_plan_waits_for_the_rest() {
    let (served, asking, older) = served().await;
    let ada = served.client_with("ada", User::named("Ada")).await;
    let told =
        ada.body("codecall:execute", json!({"script": asks(&["form", "sampling", "form", "roots"])})).await;
    let id = waits(&told);
    assert_eq!(ada.0.service().asked.load(Ordering::SeqCst), 1);
    let able = served.client_with("ada", Able::new()).await;
    let ended = able.body("codecall:execute", json!({"resume": id})).await;
    assert_eq!(ended["result"], json!([1, "Ada a sample Ada file:///w", 2]), "{ended}");
    assert_eq!(ada.0.service().asked.load(Ordering::SeqCst), 1);
    assert_eq!((older.begun.load(Ordering::SeqCst), asking.effects.load(Ordering::SeqCst)), (1, 2));
}

#[tokio::test]
async fn a_plan_whose_held_call_ended_without_an_answer_gets_an_error_that_it_can_catch_and_repeats_nothing()
{
    let options = AppOptions { question_timeout: Duration::from_millis(1), ..AppOptions::default() };
    let (served, asking, older) = served_with(options).await;
    let mute = served.client("ada").await;
    let script = "const before = (await callTool('app:effect', {})).count;
        try { await callTool('app:ask', {}) } catch (error) { return [before, error.code] }";
    let id = detach(&mute, script).await;
    waits(&ended(&mute, &id).await);
    older.ended.notified().await;
    let answer = ended(&served.client_with("ada", User::named("Ada")).await, &id).await;
    assert_eq!(answer["result"], json!([1, "INPUT_EXPIRED"]), "{answer}");
    assert_eq!((older.begun.load(Ordering::SeqCst), asking.effects.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn questions_and_states_that_are_too_long_to_wait_with_are_errors_that_a_plan_can_catch() {
    let (served, _, _) = served().await;
    let ada = served.client("ada").await;
    for tool in ["essay", "novel"] {
        let script = format!(
            "try {{ return await callTool('app:{tool}', {{}}) }} catch (error) {{ return [error.code, error.message] }}"
        );
        let said = ada.run(&script).await;
        assert_eq!(said[0], "INPUT_REQUIRED", "{said}");
        assert!(said[1].as_str().unwrap().contains("more than 65536 bytes"), "{said}");
    }
}
