//! Calls of scripts and of `codecall:invoke` that need an approval.

use std::sync::{Arc, atomic::Ordering};

use gatewright_codecall::CodeCallConfig;
use gatewright_core::{
    App, AppOptions, Approval, ApprovalDuration, Approvals, Approver, LocalApp, Policies, Principal, Scopes,
    ToolOverride,
    rmcp::model::{CallToolRequestParams, CallToolResponse, InputRequiredResult},
};
use serde_json::{Value, json};

use super::{
    person::{Client, Person, lifecycle, made, no, yes},
    support::{Fixture, Served, server, structured},
    waiting::Asking,
};

/// A gateway whose tools need an approval each, under `terms`.
async fn served_under(terms: Approvals) -> (Served, Asking) {
    let app = Asking::default();
    let served = Served::over(json!({}), app.clone()).await;
    let policies = Policies { engine: None, approvals: Approvals { writes: Some(Approval::Ask), ..terms } };
    served.gateway.registry().set_policies(Some(policies));
    (served, app)
}

async fn served() -> (Served, Asking) {
    served_under(Approvals::default()).await
}

pub(crate) async fn client(served: &Served, person: &Person, modern: bool) -> Client {
    let principal =
        Principal { subject: "ada".into(), client_id: None, scopes: Scopes::All, ..Principal::local() };
    served.connect_in(principal, person.clone(), lifecycle(modern)).await
}

pub(crate) fn execute(input: Value) -> CallToolRequestParams {
    CallToolRequestParams::new("codecall:execute").with_arguments(made(input))
}

pub(crate) async fn body(client: &Client, params: CallToolRequestParams) -> Value {
    client.call_tool(params).await.unwrap().structured_content.unwrap()
}

pub(crate) async fn run(client: &Client, script: &str) -> Value {
    body(client, execute(json!({"script": script}))).await
}

async fn question(client: &Client, params: CallToolRequestParams) -> InputRequiredResult {
    match client.call_tool_once(params).await.unwrap() {
        CallToolResponse::InputRequired(asks) => asks,
        other => panic!("{other:?}"),
    }
}

const TWO: &str = "
    const pay = (n) => callTool('app:effect', { n }).then(made => made.count, error => error.code);
    return await Promise.all([pay(1), pay(2)]);
";

#[tokio::test]
async fn calls_at_the_same_time_are_approved_one_by_one_in_both_eras() {
    for modern in [true, false] {
        let (served, app) = served().await;
        let person = Person::saying([yes(), yes()]);
        let ada = client(&served, &person, modern).await;
        let ended = run(&ada, TWO).await;
        let mut counts: Vec<u64> = ended["result"]
            .as_array()
            .unwrap_or_else(|| panic!("{ended}"))
            .iter()
            .map(|n| n.as_u64().unwrap())
            .collect();
        counts.sort_unstable();
        assert_eq!(counts, [1, 2], "{ended}");
        let mut asked = person.asked();
        asked.sort();
        assert_eq!(asked.len(), 2);
        for (n, message) in [1, 2].into_iter().zip(&asked) {
            assert!(message.contains(&format!("It is call {n} of the script exe_")), "{message}");
            assert!(message.ends_with(&format!("Arguments:\n  n: {n}")), "{message}");
        }

        let person = Person::saying([no(), no()]);
        let ada = client(&served, &person, modern).await;
        assert_eq!(run(&ada, TWO).await["result"], json!(["APPROVAL_DENIED", "APPROVAL_DENIED"]));
        assert_eq!(
            app.effects.load(Ordering::SeqCst),
            2,
            "what is denied is not made, and nothing is made twice"
        );
    }
}

#[tokio::test]
async fn one_of_two_calls_may_be_denied() {
    let (served, app) = served().await;
    let ada = client(&served, &Person::default(), true).await;
    let params = execute(json!({"script": TWO}));
    let asks = question(&ada, params.clone()).await;
    assert_eq!(asks.input_requests.unwrap().keys().collect::<Vec<_>>(), ["0.approval", "1.approval"]);
    let mut retry = params;
    retry.request_state = asks.request_state;
    retry.input_responses = Some(made(json!({"0.approval": yes(), "1.approval": no()})));
    assert_eq!(body(&ada, retry).await["result"], json!([1, "APPROVAL_DENIED"]));
    assert_eq!(app.effects.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_approval_for_the_script_is_not_asked_for_twice_in_it_and_again_in_another() {
    let (served, app) = served().await;
    let for_script =
        json!({"action": "accept", "content": {"approve": true, "for": "this tool in this script"}});
    let script = "for (const n of [1, 2, 3]) await callTool('app:effect', { n }); return 'done'";
    for modern in [true, false] {
        let person = Person::saying([for_script.clone(), for_script.clone()]);
        let ada = client(&served, &person, modern).await;
        for _ in 0..2 {
            assert_eq!(run(&ada, script).await["result"], "done");
        }
        assert_eq!(person.asked().len(), 2);
    }
    assert_eq!(app.effects.load(Ordering::SeqCst), 12);
}

#[tokio::test]
async fn an_approval_that_was_given_does_not_answer_what_the_app_asks_next() {
    let (served, _) = served().await;
    let ada = client(&served, &Person::default(), true).await;
    let params = execute(json!({"script": "return await callTool('app:ask', {})"}));
    let asks = question(&ada, params.clone()).await;
    let mut retry = params;
    retry.request_state = asks.request_state;
    retry.input_responses = Some(made(json!({"0.approval": yes()})));
    let asks = question(&ada, retry).await;
    assert_eq!(asks.input_requests.unwrap().keys().collect::<Vec<_>>(), ["0.name"]);

    // Resumed without an answer, the app's question is still open.
    let id = served.code_call.executions();
    let id = id.list(gatewright_executions::Reader::Operator, None, 10).await.unwrap()[0].head.id.to_string();
    let person = Person::saying([json!({"action": "accept", "content": {"name": "Ada"}})]);
    let older = client(&served, &person, false).await;
    let ended = body(&older, execute(json!({"resume": id}))).await;
    assert_eq!(ended["result"], "accept Ada", "{ended}");
    assert_eq!(person.asked(), ["Who are you?"]);
}

#[tokio::test]
async fn a_plan_of_a_client_that_cannot_be_asked_waits_and_goes_on_when_it_is_resumed() {
    for approved in [true, false] {
        let (served, app) = served().await;
        let mute = client(&served, &Person::mute(), approved).await;
        let script = "
            try { await callTool('app:effect', { n: 1 }) } catch (error) { return error.code }
            return 'made';
        ";
        let told = run(&mute, script).await;
        assert_eq!(
            (&told["status"], &told["error"]["code"]),
            (&json!("tool_error"), &json!("APPROVAL_REQUIRED")),
            "{told}"
        );
        let (id, approval) =
            (told["executionId"].as_str().unwrap(), told["approvals"][0]["id"].as_str().unwrap());
        assert!(told["error"]["message"].as_str().unwrap().contains(approval), "{told}");
        let resume = || execute(json!({"resume": id}));
        assert_eq!(body(&mute, resume()).await["error"]["code"], "APPROVAL_REQUIRED", "it still waits");

        let store = served.gateway.invoker().approvals();
        let own = Approver::User { subject: "ada", holds: &|_| false };
        let waiting = store.list(own).await.unwrap();
        assert_eq!((waiting.len(), waiting[0].step, waiting[0].run.as_deref()), (1, Some(1), Some(id)));
        store.decide(approval, approved.then_some(ApprovalDuration::Once), own).await.unwrap();
        let ended = body(&mute, resume()).await;
        assert_eq!(ended["result"], if approved { "made" } else { "APPROVAL_DENIED" }, "{ended}");
        assert_eq!(app.effects.load(Ordering::SeqCst), usize::from(approved));
    }
}

#[tokio::test]
async fn a_client_that_can_be_asked_gives_the_approval_of_a_plan_that_waits() {
    let (served, app) = served().await;
    let mute = client(&served, &Person::mute(), true).await;
    let told = run(&mute, "return (await callTool('app:effect', { n: 1 })).count").await;
    let person = Person::saying([yes()]);
    let ada = client(&served, &person, false).await;
    let ended = body(&ada, execute(json!({"resume": told["executionId"]}))).await;
    assert_eq!((&ended["result"], app.effects.load(Ordering::SeqCst)), (&json!(1), 1), "{ended}");
    let own = Approver::User { subject: "ada", holds: &|_| false };
    let store = served.gateway.invoker().approvals();
    assert!(store.list(own).await.unwrap().is_empty(), "it does not wait any more");
}

#[tokio::test]
async fn with_approvers_a_plan_waits_for_somebody_else() {
    let (served, app) =
        served_under(Approvals { approvers: Some("boss".to_owned()), ..Approvals::default() }).await;
    let ada = client(&served, &Person::default(), true).await;
    let told = run(&ada, "return (await callTool('app:effect', { n: 1 })).count").await;
    assert_eq!(told["error"]["code"], "APPROVAL_REQUIRED", "{told}");
    let approval = told["approvals"][0]["id"].as_str().unwrap();
    let boss = Approver::User { subject: "bob", holds: &|scope| scope == "boss" };
    served.gateway.invoker().approvals().decide(approval, Some(ApprovalDuration::Once), boss).await.unwrap();
    let ended = body(&ada, execute(json!({"resume": told["executionId"]}))).await;
    assert_eq!((&ended["result"], app.effects.load(Ordering::SeqCst)), (&json!(1), 1), "{ended}");
}

#[tokio::test]
async fn invoke_asks_in_both_eras() {
    let (served, app) = served().await;
    for modern in [true, false] {
        let person = Person::saying([yes(), no()]);
        let ada = client(&served, &person, modern).await;
        let invoke = || {
            CallToolRequestParams::new("codecall:invoke")
                .with_arguments(made(json!({"tool": "app:effect", "input": {"n": 1}})))
        };
        let invoked = body(&ada, invoke()).await;
        assert_eq!(invoked["status"], "ok", "{invoked}");
        assert_eq!(body(&ada, invoke()).await["error"]["code"], "APPROVAL_DENIED");
        assert_eq!(person.asked().len(), 2);
    }
    assert_eq!(app.effects.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_rehearsal_asks_nobody_and_lets_nothing_wait() {
    let (served, app) = served().await;
    for person in [Person::default(), Person::mute()] {
        let ada = client(&served, &person, true).await;
        let script = "return await callTool('app:effect', { n: 1 })";
        let rehearsed = body(&ada, execute(json!({"script": script, "dryRun": true}))).await;
        assert_eq!(rehearsed["status"], "ok", "{rehearsed}");
    }
    assert_eq!(app.effects.load(Ordering::SeqCst), 0);
    let all = served.gateway.invoker().approvals().list(Approver::Operator("ops")).await.unwrap();
    assert!(all.is_empty());
}

#[tokio::test]
async fn the_documented_refund_is_approved_or_caught() {
    let docs = include_str!("../../../../docs/PLANS.md");
    let block = |kind: &str, from: &str| {
        let rest = from.split_once(kind).unwrap().1;
        rest.split_once("```").unwrap().0.to_owned()
    };
    let script = block("```js refund\n", docs);
    let expected = block("```text\n", docs.split_once("```js refund\n").unwrap().1);
    let app =
        |fixtures: Vec<Fixture>| async move { Arc::new(LocalApp::start(server(fixtures)).await.unwrap()) };
    let order = json!({"id": "ord_17", "cents": 12_000, "email": "ada@example.com"});
    let shop = app(vec![
        Fixture::new("orders_get", [structured(order)]),
        Fixture::new("refund", [structured(json!({"reference": "r1"}))]),
    ]);
    let mail = app(vec![Fixture::new("send", [structured(json!({}))])]);
    let always = ToolOverride { approval: Some(Approval::Always), ..ToolOverride::default() };
    let options = AppOptions { tools: [("refund".to_owned(), always)].into(), ..AppOptions::default() };
    let apps: Vec<(&str, Arc<dyn App>, AppOptions)> =
        vec![("shop", shop.await, options), ("mail", mail.await, AppOptions::default())];
    let config: CodeCallConfig = made(json!({"mode": "metadata_driven"}));
    let served = Served::of_apps(config, apps, None);
    for modern in [true, false] {
        let person = Person::saying([yes(), no()]);
        let ada = client(&served, &person, modern).await;
        let input = json!({"script": script, "context": {"order": "ord_17"}});
        assert_eq!(body(&ada, execute(input.clone())).await["result"], "refunded");
        let caught = body(&ada, execute(input)).await;
        assert_eq!(caught["result"], "not refunded: the call of `shop:refund` was not approved", "{caught}");
        let without_id = |text: &str| {
            text.lines().map(|line| line.split(" exe_").next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        for message in person.asked() {
            assert_eq!(without_id(&message), without_id(expected.trim_end()));
        }
    }
}

#[tokio::test]
async fn a_plan_in_the_background_goes_on_when_its_approval_was_given_on_the_page() {
    for approvers in [None, Some("boss".to_owned())] {
        let (served, app) = served_under(Approvals { approvers, ..Approvals::default() }).await;
        let ada = client(&served, &Person::mute(), false).await;
        let script = "return (await callTool('app:effect', { n: 1 })).count";
        let begun = body(&ada, execute(json!({"script": script, "detach": true}))).await;
        let resume = async || body(&ada, execute(json!({"resume": begun["executionId"]}))).await;
        let store = served.gateway.invoker().approvals();
        let ops = Approver::Operator("ops");
        let id = loop {
            if let Some(waiting) = store.list(ops).await.unwrap().pop() {
                break waiting.id;
            }
            tokio::task::yield_now().await;
        };
        // The run is parked in a moment.
        let told = loop {
            let told = resume().await;
            if told["status"] != "running" {
                break told;
            }
        };
        assert_eq!(told["error"]["code"], "APPROVAL_REQUIRED", "{told}");
        store.decide(&id, Some(ApprovalDuration::Once), ops).await.unwrap();
        let ended = loop {
            let told = resume().await;
            if told["status"] != "running" {
                break told;
            }
        };
        assert_eq!((&ended["result"], app.effects.load(Ordering::SeqCst)), (&json!(1), 1), "{ended}");
    }
}

#[tokio::test]
async fn a_script_cannot_give_the_approval_that_its_call_needs() {
    let (served, app) = served().await;
    let person = Person::default();
    let ada = client(&served, &person, true).await;
    let state =
        question(&ada, execute(json!({"script": "return await callTool('app:effect', { n: 1 })"}))).await;
    let state = state.request_state.unwrap();
    let yes = yes().to_string();
    let tries = [
        format!("{{ n: 1, inputResponses: {{ approval: {yes} }}, requestState: '{state}' }}"),
        format!(
            "{{ n: 1, _meta: {{ inputResponses: {{ approval: {yes}, '0.approval': {yes} }}, requestState: '{state}' }} }}"
        ),
        format!("{{ n: 1 }}, {{ inputResponses: {{ approval: {yes} }}, requestState: '{state}' }}"),
        format!("{{ n: 1 }}, {{ approval: {yes}, approved: true, _meta: {{ requestState: '{state}' }} }}"),
    ];
    for call in tries {
        let script = format!("return await callTool('app:effect', {call}).catch(error => error.code)");
        let answer = ada.call_tool_once(execute(json!({"script": script}))).await.unwrap();
        match answer {
            CallToolResponse::InputRequired(asks) => {
                assert!(asks.input_requests.unwrap().contains_key("0.approval"), "its user is asked: {call}");
            }
            CallToolResponse::Complete(refused) => {
                let refused = refused.structured_content.unwrap();
                assert_ne!(refused["result"], json!({"count": 1}), "{call}: {refused}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(app.effects.load(Ordering::SeqCst), 0, "{call}");
    }
    assert!(person.asked().is_empty(), "no answer of its user was taken");
}
