//! Resources and prompts of scripts under policies that ask: waiting, and rehearsed.

use std::sync::{Arc, atomic::Ordering};

use gatewright_core::{
    Approval, ApprovalDuration, Approvals, Approver, Decision, Forbidden, Policies, PolicyEngine,
    PolicyObject, PolicyRequest, Principal,
};
use serde_json::{Value, json};

use super::{
    approvals::{body, client, execute, run},
    person::{Person, no, yes},
    support::Served,
    waiting::Asking,
};

/// Asks about resources and prompts, and about `app:ask`; forbids `app:hold`.
#[derive(Debug)]
struct Careful;

impl PolicyEngine for Careful {
    fn decide(&self, request: &PolicyRequest<'_>) -> Decision {
        let ask = |approvers: Option<&str>| Decision::Ask {
            policy: "careful".into(),
            reason: "It is private".into(),
            may_stand: true,
            approvers: approvers.map(Into::into),
        };
        match request.object {
            PolicyObject::Tool(tool) if tool.name == "app:hold" => {
                Decision::Forbid(Forbidden::Policy("closed".into()))
            }
            PolicyObject::Tool(tool) if tool.name == "app:ask" => ask(Some("boss")),
            PolicyObject::Tool(_) => Decision::Permit,
            _ => ask(None),
        }
    }

    fn may_permit(&self, _: &Principal, _: &PolicyObject<'_>) -> bool {
        true
    }
}

async fn served() -> (Served, Asking) {
    let app = Asking::default();
    let served = Served::over(json!({}), app.clone()).await;
    let policies = Policies { engine: Some(Arc::new(Careful)), approvals: Approvals::default() };
    served.gateway.registry().set_policies(Some(policies));
    (served, app)
}

const READ: &str = "
    const read = await readResource('book://cover').then(r => r.contents[0].text, error => error.code);
    const got = await getPrompt('greet', { who: 'ann' }).then(p => p.messages[0].content.text, error => error.code);
    return [read, got];
";

#[tokio::test]
async fn a_script_waits_for_approvals_of_resources_and_prompts_in_both_eras() {
    for modern in [true, false] {
        let (served, _) = served().await;
        let person = Person::saying([yes(), yes(), yes(), no()]);
        let ada = client(&served, &person, modern).await;
        assert_eq!(run(&ada, READ).await["result"], json!(["a book", "ann"]));
        let asked = person.asked();
        assert!(
            asked[0].starts_with(
                "Approve reading the resource `app:book://cover`?\nIt is private\nIt is call 1 of"
            ),
            "{asked:?}"
        );
        assert!(
            asked[1].starts_with("Approve getting the prompt `app:greet`?")
                && asked[1].ends_with("who: \"ann\""),
            "{asked:?}"
        );
        assert_eq!(run(&ada, READ).await["result"], json!(["a book", "APPROVAL_DENIED"]));
    }
}

#[tokio::test]
async fn a_script_whose_client_cannot_be_asked_goes_on_once_its_content_is_approved() {
    let (served, _) = served().await;
    let mute = client(&served, &Person::mute(), false).await;
    let mut told = run(&mute, READ).await;
    let store = served.gateway.invoker().approvals();
    for (object, approved) in [("resource app:book://cover", true), ("prompt app:greet", false)] {
        assert_eq!(told["error"]["code"], "APPROVAL_REQUIRED", "{told}");
        let own = Approver::User { subject: "ada", holds: &|_| false };
        let waiting = store.list(own).await.unwrap();
        assert_eq!((waiting.len(), waiting[0].object.to_string()), (1, object.to_owned()));
        store.decide(&waiting[0].id, approved.then_some(ApprovalDuration::Once), own).await.unwrap();
        told = body(&mute, execute(json!({"resume": told["executionId"]}))).await;
    }
    assert_eq!(told["result"], json!(["a book", "APPROVAL_DENIED"]), "{told}");
}

async fn rehearsed(served: &Served, script: &str, kind: Value) -> Value {
    let ada = client(served, &Person::mute(), true).await;
    body(&ada, execute(json!({"script": script, "dryRun": kind}))).await
}

#[tokio::test]
async fn a_rehearsal_lists_the_decision_of_the_policies_and_fails_where_they_forbid() {
    let (served, app) = served().await;
    let script = "
        await callTool('app:effect', { n: 1 });
        await callTool('app:ask', {});
        await getPrompt('greet', { who: 'ann' });
        try { await callTool('app:hold', { n: 2 }) } catch (error) { return error.code }
    ";
    for kind in [json!(true), json!("offline")] {
        let tried = rehearsed(&served, script, kind).await;
        assert_eq!(tried["result"], "ACCESS_DENIED", "{tried}");
        let listed = &tried["dryRun"]["calls"];
        let calls: Vec<_> = listed.as_array().unwrap().iter().collect();
        assert_eq!(calls.len(), 4, "{tried}");
        assert_eq!(calls[0]["policy"], json!({"decision": "permit"}));
        assert_eq!(
            calls[1]["policy"],
            json!({"decision": "ask", "id": "careful", "reason": "It is private",
                "approver": "somebody else with the scope `boss`"})
        );
        assert_eq!(
            (&calls[2]["name"], &calls[2]["arguments"], &calls[2]["policy"]["approver"]),
            (&json!("getPrompt greet"), &json!({"who": "ann"}), &json!("the caller")),
            "{tried}"
        );
        assert_eq!(
            calls[3],
            &json!({"name": "app:hold", "made": false, "arguments": {"n": 2},
                "policy": {"decision": "forbid", "id": "closed", "reason": "the policy `closed` forbids it"}})
        );
        assert_eq!((&tried["dryRun"]["assumed"], &tried["dryRun"]["certain"]), (&json!(3), &json!(false)));
    }
    assert_eq!(app.effects.load(Ordering::SeqCst), 0);
    let waiting = served.gateway.invoker().approvals().list(Approver::Operator("ops")).await.unwrap();
    assert!(waiting.is_empty(), "nobody is asked");
}

#[tokio::test]
async fn a_rehearsal_reads_what_an_approval_that_stands_covers_and_uses_no_other_up() {
    let (served, _) = served().await;
    let script = "return (await readResource('book://cover')).contents.length";
    let tried = rehearsed(&served, script, json!(true)).await;
    assert_eq!(
        (&tried["result"], &tried["dryRun"]["calls"][0]["made"]),
        (&json!(0), &json!(false)),
        "{tried}"
    );

    let mute = client(&served, &Person::mute(), false).await;
    let told = run(&mute, script).await;
    let store = served.gateway.invoker().approvals();
    let id = told["approvals"][0]["id"].as_str().unwrap_or_else(|| panic!("{told}"));
    store.decide(id, Some(ApprovalDuration::Hour), Approver::Operator("ops")).await.unwrap();
    let tried = rehearsed(&served, script, json!(true)).await;
    assert_eq!(
        tried["dryRun"]["calls"][0]["made"], false,
        "an approval that waits for its call is no one's: {tried}"
    );
    let ended = body(&mute, execute(json!({"resume": told["executionId"]}))).await;
    assert_eq!(ended["result"], 1, "{ended}");

    let tried = rehearsed(&served, script, json!(true)).await;
    let listed = &tried["dryRun"]["calls"][0];
    assert_eq!((&tried["result"], &listed["made"]), (&json!(1), &json!(true)), "{tried}");
    assert_eq!((&listed["policy"]["decision"], &listed["policy"]["approved"]), (&json!("ask"), &json!(true)));
    let tried = rehearsed(&served, script, json!("offline")).await;
    let listed = &tried["dryRun"]["calls"][0];
    assert_eq!((&listed["made"], &listed["policy"]["approved"]), (&json!(false), &json!(true)), "{tried}");
}

#[tokio::test]
async fn a_rehearsal_lists_the_short_forms_by_the_place_in_the_configuration() {
    let (served, _) = served().await;
    let approvals = Approvals { destructive: Some(Approval::Ask), ..Approvals::default() };
    served.gateway.registry().set_policies(Some(Policies { engine: None, approvals }));
    let tried = rehearsed(&served, "return await callTool('app:effect', { n: 1 })", json!(true)).await;
    assert_eq!(
        tried["dryRun"]["calls"][0]["policy"],
        json!({"decision": "ask", "id": "approvals.destructive", "reason": "the tool may destroy data",
            "approver": "the caller"}),
        "{tried}"
    );
}
