//! Questions that are looked at more than once, answered twice, with other arguments, in plans within plans, and while every worker is taken.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use gatewright_agentscript::PoolConfig;
use gatewright_codecall::{CodeCallConfig, Mode};
use gatewright_core::{
    AppOptions, LocalApp,
    rmcp::{
        ClientHandler, RoleClient,
        model::{CallToolRequestParams, CallToolResponse, InputRequiredResult},
        service::RunningService,
    },
};
use gatewright_executions::{Reader, State};
use serde_json::{Value, json};

use super::{
    support::{Client, Served},
    waiting::{PLAN, User, body, execute, first_question, made, modern, planned, served},
};

type Modern = RunningService<RoleClient, User>;

/// `codecall:execute` with these arguments.
fn request(arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new("codecall:execute").with_arguments(made(arguments))
}

/// The retry of `request` that says Ada to question `key`.
fn retry(request: CallToolRequestParams, asked: &InputRequiredResult, key: &str) -> CallToolRequestParams {
    let mut retry = request;
    retry.request_state.clone_from(&asked.request_state);
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    retry.input_responses = Some(made(json!({key: answer})));
    retry
}

async fn asked(client: &Modern, request: CallToolRequestParams) -> InputRequiredResult {
    match client.call_tool_once(request).await.unwrap() {
        CallToolResponse::InputRequired(asks) => asks,
        other => panic!("{other:?}"),
    }
}

async fn told(client: &Modern, request: CallToolRequestParams) -> Value {
    match client.call_tool_once(request).await.unwrap() {
        CallToolResponse::Complete(result) => body(result),
        other => panic!("{other:?}"),
    }
}

/// The answer of an execution in the background once it is over, whose questions the SDK answers.
async fn ended(client: &Modern, id: &str) -> Value {
    loop {
        let answer = body(client.call_tool(request(json!({"resume": id}))).await.unwrap());
        if answer["status"] != "running" {
            return answer;
        }
        tokio::task::yield_now().await;
    }
}

async fn detached<H: ClientHandler>(client: &Client<H>, script: &str) -> String {
    let begun = client.body("codecall:execute", json!({"script": script, "detach": true})).await;
    begun["executionId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned()
}

#[tokio::test]
async fn the_answer_to_a_question_that_a_look_brought_takes_the_plan_on() {
    let (served, app) = served().await;
    let mute = served.client_with("ada", User::mute()).await;
    let ada = modern(&served, "ada", User::named("Ada")).await;
    let waits = mute.body("codecall:execute", json!({"script": PLAN})).await;
    let over = ended(&ada, waits["executionId"].as_str().unwrap()).await;
    assert_eq!(over["result"], json!([1, "accept Ada", 2]), "{over}");
    let over = ended(&ada, &detached(&mute, PLAN).await).await;
    assert_eq!(over["result"], json!([3, "accept Ada", 4]), "{over}");
    assert_eq!(app.effects.load(Ordering::SeqCst), 4, "nothing is done twice");
}

#[tokio::test]
async fn looks_leave_a_state_as_it_is_and_each_question_is_answered_once() {
    let (served, app) = served().await;
    let ada = modern(&served, "ada", User::named("Ada")).await;
    let first = first_question(&ada, PLAN).await;
    let id = first.meta.as_ref().unwrap().0["gatewright/execution"].as_str().unwrap().to_owned();
    let look = || request(json!({"resume": id}));
    let looks = [asked(&ada, look()).await, asked(&ada, look()).await];
    // Asked for the answer, and without one, it asks again.
    let mut without = retry(execute(PLAN), &first, "1.name");
    without.input_responses = None;
    asked(&ada, without).await;
    let over = told(&ada, retry(execute(PLAN), &first, "1.name")).await;
    assert_eq!(over["result"], json!([1, "accept Ada", 2]), "{over}");
    for (params, asked) in [(look(), &looks[0]), (look(), &looks[1]), (execute(PLAN), &first)] {
        let used = told(&ada, retry(params, asked, "1.name")).await;
        let message = used["error"]["message"].as_str().unwrap();
        assert!(used["error"]["code"] == "VALIDATION_ERROR" && message.contains(&id), "{used}");
        assert!(!message.contains("again"), "it does not say to do things twice: {message}");
    }
    assert_eq!(app.effects.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn other_arguments_on_a_retry_or_beside_resume_are_refused_and_nothing_is_run() {
    let (served, app) = served().await;
    let ada = modern(&served, "ada", User::named("Ada")).await;
    let first = first_question(&ada, PLAN).await;
    let id = first.meta.as_ref().unwrap().0["gatewright/execution"].as_str().unwrap().to_owned();
    for other in [
        json!({"script": PLAN, "dryRun": true}),
        json!({"script": PLAN, "allowedTools": ["app:ask"]}),
        json!({"script": PLAN, "context": {"a": 1}}),
        json!({"script": PLAN, "detach": true}),
        json!({"resume": id}),
        json!({"resume": id, "dryRun": true}),
    ] {
        let refused = told(&ada, retry(request(other.clone()), &first, "1.name")).await;
        assert_eq!(refused["error"]["code"], "VALIDATION_ERROR", "{other} {refused}");
    }
    for more in [json!({"dryRun": true}), json!({"allowedTools": []}), json!({"script": PLAN})] {
        let mut both = json!({"resume": id});
        both.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        let refused = told(&ada, request(both)).await;
        assert_eq!(refused["error"]["code"], "VALIDATION_ERROR", "{refused}");
    }
    assert_eq!(app.effects.load(Ordering::SeqCst), 1);
    let over = told(&ada, retry(execute(PLAN), &first, "1.name")).await;
    assert_eq!(over["result"], json!([1, "accept Ada", 2]), "{over}");
}

const AROUND: &str = "
    const before = await callTool('app:effect', {});
    const inner = await callTool('plans:refund');
    return [before.count, inner, (await callTool('app:effect', {})).count];
";

#[tokio::test]
async fn a_question_of_a_plan_within_a_plan_is_one_of_the_whole_and_asked_in_the_background_too() {
    let (served, app, _planned) = planned(json!({})).await;
    let mute = served.client_with("ada", User::mute()).await;
    let ada = modern(&served, "ada", User::named("Ada")).await;
    let over = ended(&ada, &detached(&mute, AROUND).await).await;
    assert_eq!(over["result"], json!([1, [2, "accept Ada", 3], 4]), "{over}");
    // In the foreground of a client that cannot be asked.
    let waits = mute.body("codecall:execute", json!({"script": AROUND})).await;
    let id = waits["executionId"].as_str().unwrap_or_else(|| panic!("{waits}"));
    let open = served.code_call.executions().list(Reader::Operator, Some(State::Waiting), 9).await.unwrap();
    assert_eq!(open.iter().map(|one| one.head.id.to_string()).collect::<Vec<_>>(), [id], "one execution");
    let over = ended(&ada, id).await;
    assert_eq!(over["result"], json!([5, [6, "accept Ada", 7], 8]), "{over}");
    assert_eq!(app.effects.load(Ordering::SeqCst), 8, "nothing is done twice");
}

#[tokio::test]
async fn the_time_that_a_user_thinks_is_none_of_a_plan_whether_called_alone_or_within_another() {
    let (served, _, _planned) = planned(json!({"vm": {"timeoutMs": 1_000}})).await;
    let bob = User { thinks: Duration::from_millis(1_500), ..User::named("Bob") };
    let bob = served.client_with("bob", bob).await;
    let over = bob.body("codecall:execute", json!({"script": AROUND})).await;
    assert_eq!(over["result"], json!([1, [2, "accept Bob", 3], 4]), "{over}");
    let direct = bob.call("plans:refund", json!({})).await;
    assert_eq!(direct.content[0].as_text().unwrap().text, r#"[5,"accept Bob",6]"#);
    assert_eq!(bob.0.service().asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_answer_that_comes_while_every_worker_is_taken_can_be_given_again() {
    let app = super::waiting::Asking::default();
    let config = CodeCallConfig { mode: Mode::MetadataDriven, ..CodeCallConfig::default() };
    let local = Arc::new(LocalApp::start(app.clone()).await.unwrap());
    let pool = PoolConfig::default().queue(0);
    let served = Served::of_pool(pool, config, vec![("app", local, AppOptions::default())], None);
    let ada = modern(&served, "ada", User::named("Ada")).await;
    let first = first_question(&ada, PLAN).await;
    let eve = served.client("eve").await;
    let busy = tokio::spawn(async move { eve.run("await callTool('app:hold', {}); return 1").await });
    app.held.notified().await;
    let full = told(&ada, retry(execute(PLAN), &first, "1.name")).await;
    assert_eq!(full["error"]["code"], "QUEUE_FULL", "{full}");
    // In the background, it waits for a worker.
    let mute = served.client_with("ada", User::mute()).await;
    let id = detached(&mute, "return (await callTool('app:effect', {})).count").await;
    app.go.notify_one();
    assert_eq!(busy.await.unwrap(), 1);
    let over = ended(&ada, &id).await;
    assert_eq!(over["status"], "ok", "{over}");
    let over = told(&ada, retry(execute(PLAN), &first, "1.name")).await;
    assert_eq!(over["result"], json!([1, "accept Ada", 3]), "{over}");
}

#[tokio::test]
async fn a_rehearsal_asks_nobody_for_a_resource_either() {
    let (served, _) = served().await;
    let ada = modern(&served, "ada", User::named("Ada")).await;
    let script = "return (await readResource('book://page')).contents.length";
    let tried = told(&ada, request(json!({"script": script, "dryRun": true}))).await;
    assert_eq!((&tried["status"], &tried["result"]), (&json!("ok"), &json!(0)), "{tried}");
    assert_eq!(tried["dryRun"]["certain"], false, "{tried}");
    let listed = &tried["dryRun"]["calls"][0];
    assert!(listed["asks"].as_str().unwrap().contains("Which page?"), "{tried}");
}

#[tokio::test]
async fn a_plan_that_waits_goes_on_with_the_version_that_it_began_with() {
    let (served, app, planned) = planned(json!({})).await;
    let ada = modern(&served, "ada", User::named("Ada")).await;
    let direct = CallToolRequestParams::new("plans:refund");
    let nested = execute("return await callTool('plans:refund')");
    let waits = [asked(&ada, direct.clone()).await, asked(&ada, nested.clone()).await];
    let other = "/* plan\nname: refund\ndescription: Another one.\n*/\nreturn 'another'";
    std::fs::write(planned.folder.path().join("refund.js"), other).unwrap();
    let changes = planned.plans.reload(&CodeCallConfig::default()).unwrap();
    assert_eq!(changes.changed, ["refund"]);
    for (params, asked) in [direct, nested].into_iter().zip(waits) {
        let key = asked.input_requests.as_ref().unwrap().keys().next().unwrap().clone();
        let CallToolResponse::Complete(over) = ada.call_tool_once(retry(params, &asked, &key)).await.unwrap()
        else {
            panic!("it ends")
        };
        assert!(over.content[0].as_text().unwrap().text.contains("accept Ada"), "{over:?}");
    }
    assert_eq!(app.effects.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn a_client_that_looks_at_a_plan_and_leaves_does_not_end_it() {
    let (served, _) = served().await;
    let mute = served.client_with("ada", User::mute()).await;
    let waits = mute.body("codecall:execute", json!({"script": PLAN})).await;
    let id = waits["executionId"].as_str().unwrap().to_owned();
    let slow = User { thinks: Duration::from_secs(3_600), ..User::named("Ada") };
    let asked = slow.asked.clone();
    let slow = served.client_with("ada", slow).await;
    let looking = tokio::spawn({
        let id = id.clone();
        async move { slow.body("codecall:execute", json!({"resume": id})).await }
    });
    while asked.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    looking.abort();
    assert!(looking.await.is_err());
    let ada = modern(&served, "ada", User::named("Ada")).await;
    let over = ended(&ada, &id).await;
    assert_eq!(over["result"], json!([1, "accept Ada", 2]), "{over}");
}
