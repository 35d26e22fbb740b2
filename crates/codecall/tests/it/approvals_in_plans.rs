//! Approvals of calls that saved plans make, for a script that calls the plan: the whole execution waits.

use std::sync::atomic::Ordering;

use gatewright_core::{
    AppOptions, Approval, ApprovalDuration, ApprovalRecord, Approvals, Approver, Policies, ToolOverride,
};
use serde_json::{Value, json};

use super::{
    approvals::{body, client, execute, run},
    person::{Client, Person, yes},
    support::Served,
    waiting::{Asking, Planned, planned_of},
};

/// A plan whose call needs an approval, and a plan around it.
pub(crate) const PLANS: [(&str, &str); 2] = [("pay", PAY), ("around", AROUND)];
const PAY: &str = "
    const asked = await callTool('app:effect', { n: 1 });
    return { count: asked.count };
";
const AROUND: &str = "return { inner: await callTool('plans:pay', {}) };";

/// Options with which the plans themselves need no approval.
pub(crate) fn free() -> AppOptions {
    let never = || ToolOverride { approval: Some(Approval::Never), ..ToolOverride::default() };
    AppOptions { tools: PLANS.map(|(name, _)| (name.to_owned(), never())).into(), ..AppOptions::default() }
}

async fn plans(terms: Approvals) -> (Served, Asking, Planned) {
    let (served, app, planned) = planned_of(json!({}), &PLANS).await;
    served.gateway.registry().add("plans", planned.plans.clone(), free());
    let policies = Policies { engine: None, approvals: Approvals { writes: Some(Approval::Ask), ..terms } };
    served.gateway.registry().set_policies(Some(policies));
    (served, app, planned)
}

async fn waiting(served: &Served) -> Vec<ApprovalRecord> {
    served.gateway.invoker().approvals().list(Approver::Operator("ops")).await.unwrap()
}

async fn decide(served: &Served, approval: &str, approved: bool) {
    let approved = approved.then_some(ApprovalDuration::Once);
    let store = served.gateway.invoker().approvals();
    store.decide(approval, approved, Approver::Operator("ops")).await.unwrap();
}

async fn resume(client: &Client, told: &Value) -> Value {
    body(client, execute(json!({"resume": told["executionId"]}))).await
}

#[tokio::test]
async fn a_script_waits_for_an_approval_within_a_plan_whose_client_cannot_be_asked() {
    for (approvers, plan, modern, approved) in [
        (None, "pay", true, true),
        (None, "pay", false, false),
        (Some("boss"), "pay", true, true),
        (None, "around", false, true),
        (Some("boss"), "around", true, false),
    ] {
        let terms = Approvals { approvers: approvers.map(str::to_owned), ..Approvals::default() };
        let (served, app, _planned) = plans(terms).await;
        let mute = client(&served, &Person::mute(), modern).await;
        let script = format!(
            "let got; try {{ got = await callTool('plans:{plan}', {{}}) }} catch (error) {{ got = error.code }}
             return [got, 'and on'];"
        );
        let told = run(&mute, &script).await;
        assert_eq!(told["error"]["code"], "APPROVAL_REQUIRED", "{plan} {told}");
        assert_eq!(told["approvals"][0]["tool"], "app:effect", "{told}");
        for _ in 0..12 {
            let again = resume(&mute, &told).await;
            assert_eq!(again["error"]["code"], "APPROVAL_REQUIRED", "it still waits, however often: {again}");
        }
        let records = waiting(&served).await;
        assert_eq!((records.len(), &json!(records[0].id)), (1, &told["approvals"][0]["id"]));
        assert_eq!(json!(records[0].run), told["executionId"], "the whole execution waits");
        decide(&served, &records[0].id, approved).await;
        let ended = resume(&mute, &told).await;
        let counted = json!({"count": 1});
        let expected = match (approved, plan) {
            (false, _) => json!("APPROVAL_DENIED"),
            (true, "pay") => counted,
            (true, _) => json!({"inner": counted}),
        };
        assert_eq!(ended["result"], json!([expected, "and on"]), "{ended}");
        assert_eq!(app.effects.load(Ordering::SeqCst), usize::from(approved));
    }
}

#[tokio::test]
async fn a_client_that_can_be_asked_gives_the_approval_within_the_plan_of_another() {
    let (served, app, _planned) = plans(Approvals::default()).await;
    let mute = client(&served, &Person::mute(), true).await;
    let told = run(&mute, "return await callTool('plans:around', {})").await;
    assert_eq!(told["error"]["code"], "APPROVAL_REQUIRED", "{told}");
    let person = Person::saying([yes()]);
    let ended = resume(&client(&served, &person, false).await, &told).await;
    assert_eq!(ended["result"], json!({"inner": {"count": 1}}), "{ended}");
    assert_eq!((person.asked().len(), app.effects.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn two_plans_that_wait_at_the_same_time_are_approved_one_by_one() {
    let (served, app, _planned) = plans(Approvals::default()).await;
    let mute = client(&served, &Person::mute(), false).await;
    let script = "
        const pay = (tool) => callTool(tool, {}).then(() => 'made', error => error.code);
        return await Promise.all([pay('plans:pay'), callTool('app:effect', { n: 2 }).then(() => 'made')]);
    ";
    let told = run(&mute, script).await;
    let listed = told["approvals"].as_array().unwrap_or_else(|| panic!("{told}"));
    assert_eq!(listed.len(), 2, "{told}");
    let one = listed[0]["id"].as_str().unwrap();
    decide(&served, one, true).await;
    let told = resume(&mute, &told).await;
    assert_eq!((told["approvals"].as_array().unwrap().len(), app.effects.load(Ordering::SeqCst)), (1, 1));
    decide(&served, told["approvals"][0]["id"].as_str().unwrap(), true).await;
    let ended = resume(&mute, &told).await;
    assert_eq!(ended["result"], json!(["made", "made"]), "{ended}");
    assert_eq!(app.effects.load(Ordering::SeqCst), 2);
}
