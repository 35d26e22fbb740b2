//! Approvals of resources and prompts: as those of tools, in both eras and by others.

use std::sync::Arc;

use gatewright_core::{
    AppOptions, ApprovalDuration, Approvals, Approver, Decision, LocalApp, MemoryRecords, Policies,
    PolicyEngine, PolicyObject, PolicyRequest, Principal, RequestDigest, RequestObject,
    rmcp::model::JsonObject,
};
use serde_json::{Value, json};

use crate::{
    access::{ask, granted},
    person::{Client, Person, no, yes},
    shop::{Instance, Shop},
};

/// Asks about everything.
#[derive(Debug)]
struct AskAll;

impl PolicyEngine for AskAll {
    fn decide(&self, _: &PolicyRequest<'_>) -> Decision {
        Decision::Ask { policy: "all".into(), reason: "It is big".into(), may_stand: true, approvers: None }
    }

    fn may_permit(&self, _: &Principal, _: &PolicyObject<'_>) -> bool {
        true
    }
}

async fn instances(approvals: Approvals) -> (Instance, Instance, Shop) {
    instances_of(Shop::default(), approvals).await
}

async fn instances_of(shop: Shop, approvals: Approvals) -> (Instance, Instance, Shop) {
    let records = Arc::new(MemoryRecords::default());
    let policies = || Policies { engine: Some(Arc::new(AskAll)), approvals: approvals.clone() };
    let one = Instance::under(&shop, policies(), records.clone()).await;
    (one, Instance::under(&shop, policies(), records).await, shop)
}

/// Requests for something of each kind: the method, its parameters, the question and the object.
fn kinds(name: &str) -> [(&'static str, Value, String, String); 3] {
    let why = "\nIt is big";
    [
        (
            "tools/call",
            json!({"name": format!("shop:{name}"), "arguments": {"to": "ann"}}),
            format!("Approve the call of `shop:{name}`?{why}\nArguments:\n  to: \"ann\""),
            format!("shop:{name}"),
        ),
        (
            "resources/read",
            json!({"uri": format!("shop:{name}")}),
            format!("Approve reading the resource `shop:shop:{name}`?{why}"),
            format!("resource shop:shop:{name}"),
        ),
        (
            "prompts/get",
            json!({"name": name, "arguments": {"to": "ann"}}),
            format!("Approve getting the prompt `shop:{name}`?{why}\nArguments:\n  to: \"ann\""),
            format!("prompt shop:{name}"),
        ),
    ]
}

/// The text of an answer, `asks` for a question, or the code of an error.
async fn told(client: &Client, method: &str, params: &Value) -> String {
    let result = match ask(client, method, params.clone()).await {
        Ok(result) => result,
        Err(error) => return error.data.unwrap_or_default()["code"].as_str().unwrap_or("none").to_owned(),
    };
    if result["resultType"] == "input_required" {
        return "asks".to_owned();
    }
    if result["isError"] == true {
        return result["_meta"]["code"].as_str().unwrap_or_default().to_owned();
    }
    let texts = [&result["content"][0], &result["contents"][0], &result["messages"][0]["content"]];
    texts.iter().find_map(|text| text["text"].as_str()).unwrap_or_else(|| panic!("{result}")).to_owned()
}

/// The retry of `params` that answers the question of `client`.
async fn answered(client: &Client, method: &str, params: &Value, answer: Value) -> Value {
    let asks = ask(client, method, params.clone()).await.unwrap();
    assert_eq!(asks["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["approval"], "{asks}");
    let mut retry = params.clone();
    retry["requestState"] = asks["requestState"].clone();
    retry["inputResponses"] = json!({"approval": answer});
    retry
}

#[tokio::test]
async fn each_kind_is_asked_about_in_both_eras_and_passes_once() {
    for (method, params, question, object) in kinds("pay") {
        let (instance, there, shop) = instances(Approvals::default()).await;
        let person = Person::saying([yes(), no()]);
        let older = instance.ada(&person, false).await;
        assert_eq!(told(&older, method, &params).await, "pay", "{method}");
        assert_eq!(person.asked(), [question], "{method}");
        assert_eq!(
            instance.listener.heard(),
            [format!("approval.asked ada {object} nobody"), format!("approval.approved ada {object} ada")]
        );
        assert_eq!(told(&older, method, &params).await, "APPROVAL_DENIED", "{method}");
        assert_eq!(shop.made(), 1);

        let modern = instance.ada(&Person::default(), true).await;
        let retry = answered(&modern, method, &params, yes()).await;
        let elsewhere = there.ada(&Person::default(), true).await;
        let (first, second) = tokio::join!(told(&modern, method, &retry), told(&elsewhere, method, &retry));
        let mut both = [first, second];
        both.sort();
        assert_eq!(both, ["asks", "pay"], "{method}: a state is good once");
        let retry = answered(&modern, method, &params, no()).await;
        assert_eq!(told(&modern, method, &retry).await, "APPROVAL_DENIED", "{method}");
        assert_eq!(shop.made(), 2);
    }
}

#[tokio::test]
async fn a_state_approves_nothing_of_another_kind_object_or_caller() {
    let (instance, _, shop) = instances(Approvals::default()).await;
    let ada = instance.ada(&Person::default(), true).await;
    let eve = instance.client(granted("eve", "*"), &Person::default(), true).await;
    for (at, (method, params, ..)) in kinds("pay").into_iter().enumerate() {
        let good = answered(&ada, method, &params, yes()).await;
        let with_state = |mut other: Value| {
            other["requestState"] = good["requestState"].clone();
            other["inputResponses"] = good["inputResponses"].clone();
            other
        };
        for (other_at, (other, params, ..)) in kinds("pay").into_iter().enumerate() {
            if other_at != at {
                assert!(ask(&ada, other, with_state(params)).await.is_err(), "{method} for {other}");
            }
        }
        let (other, params, ..) = kinds("ask")[at].clone();
        assert!(ask(&ada, other, with_state(params)).await.is_err(), "another object by {method}");
        assert!(ask(&eve, method, good.clone()).await.is_err(), "another caller by {method}");
        if let Some(arguments) = good.get("arguments") {
            assert_eq!(arguments["to"], "ann");
            let mut other = good.clone();
            other["arguments"]["to"] = "bob".into();
            assert_eq!(told(&ada, method, &other).await, "asks", "other arguments by {method}");
        }
        assert_eq!(shop.made(), at);
        assert_eq!(told(&ada, method, &good).await, "pay");
    }
}

#[tokio::test]
async fn what_an_app_asks_after_the_approval_is_answered_without_another() {
    for (method, params, ..) in kinds("ask") {
        let (instance, _, shop) = instances(Approvals::default()).await;
        let name = json!({"action": "accept", "content": {"name": "Ada"}});
        let person = Person::saying([yes(), name.clone()]);
        let older = instance.ada(&person, false).await;
        assert_eq!(told(&older, method, &params).await, "\"Ada\"", "{method}");
        assert_eq!(person.asked().len(), 2);

        let modern = instance.ada(&Person::default(), true).await;
        let approved = answered(&modern, method, &params, yes()).await;
        let of_app = answered(&modern, method, &approved, name).await;
        assert_eq!(told(&modern, method, &of_app).await, "\"Ada\"", "{method}");
        assert_ne!(told(&modern, method, &of_app).await, "\"Ada\"", "{method}: it is good once");
        assert_eq!(shop.made(), 2);
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_learns_where_and_the_same_request_passes_once() {
    for (method, params, _, object) in kinds("pay") {
        let (instance, _, shop) = instances(Approvals::default()).await;
        instance.store.decided_at("https://mcp.example/approvals");
        let mute = instance.ada(&Person::mute(), true).await;
        assert_eq!(told(&mute, method, &params).await, "APPROVAL_REQUIRED");
        if let Err(error) = ask(&mute, method, params.clone()).await {
            let data = error.data.unwrap();
            assert_eq!(data["approval"]["url"], "https://mcp.example/approvals", "{data}");
            assert!(error.message.contains(data["approval"]["id"].as_str().unwrap()), "{}", error.message);
        }
        let waiting = instance.waiting("ada").await;
        assert_eq!((waiting.len(), waiting[0].object.to_string()), (1, object));
        let own = Approver::User { subject: "ada", holds: &|_| false };
        instance.store.decide(&waiting[0].id, Some(ApprovalDuration::Once), own).await.unwrap();
        let (_, other, ..) = kinds("ask").into_iter().find(|kind| kind.0 == method).unwrap();
        assert_eq!(told(&mute, method, &other).await, "APPROVAL_REQUIRED", "another one");
        assert_eq!(told(&mute, method, &params).await, "pay");
        assert_eq!(told(&mute, method, &params).await, "APPROVAL_REQUIRED", "it passes once");
        instance.store.decide(&waiting[0].id, None, own).await.unwrap();
        assert_eq!(told(&mute, method, &params).await, "APPROVAL_DENIED");
        assert_eq!(shop.made(), 1);
    }
}

#[tokio::test]
async fn with_approvers_nobody_approves_an_own_request_of_any_kind() {
    for (method, params, ..) in kinds("pay") {
        let approvers = Some("boss".to_owned());
        let (instance, _, shop) = instances(Approvals { approvers, ..Approvals::default() }).await;
        let ada = instance.ada(&Person::default(), true).await;
        assert_eq!(told(&ada, method, &params).await, "APPROVAL_REQUIRED", "it could be asked, and is not");
        let id = instance.store.list(Approver::Operator("ops")).await.unwrap().remove(0).id;
        for (subject, holds, may) in [("ada", true, false), ("bob", false, false), ("bob", true, true)] {
            let approver = Approver::User { subject, holds: &|_| holds };
            let decided = instance.store.decide(&id, Some(ApprovalDuration::Once), approver).await;
            assert_eq!(decided.is_ok(), may, "{subject} {holds}");
        }
        assert_eq!((told(&ada, method, &params).await, shop.made()), ("pay".to_owned(), 1));
    }
}

#[tokio::test]
async fn an_approval_for_an_hour_is_for_one_object_of_one_kind() {
    for (at, word) in ["this tool for an hour", "this resource for an hour", "this prompt for an hour"]
        .into_iter()
        .enumerate()
    {
        let (instance, _, shop) = instances(Approvals::default()).await;
        let hour = json!({"action": "accept", "content": {"approve": true, "for": word}});
        let person = Person::saying([hour]);
        let ada = instance.ada(&person, false).await;
        let (method, mut params, ..) = kinds("pay")[at].clone();
        for to in ["ann", "bob"] {
            if method != "resources/read" {
                params["arguments"]["to"] = to.into();
            }
            assert_eq!(told(&ada, method, &params).await, "pay");
        }
        assert_eq!((person.asked().len(), shop.made()), (1, 2));
        let mute = instance.ada(&Person::mute(), false).await;
        for (other_at, (other, params, ..)) in kinds("pay").into_iter().enumerate() {
            let expected = if other_at == at { "pay" } else { "APPROVAL_REQUIRED" };
            assert_eq!(told(&mute, other, &params).await, expected, "{method} for {other}");
        }
    }
}

#[tokio::test]
async fn a_uri_that_two_apps_may_have_is_approved_for_each_in_turn() {
    // The first of the configuration is asked first, and has no such resource.
    let (instance, ..) = instances_of(Shop::default(), Approvals::default()).await;
    let annex = Shop { has_hidden: true, ..Shop::default() };
    let app = Arc::new(LocalApp::start(annex).await.unwrap());
    instance.gateway.registry().add("annex", app, AppOptions::default());
    let read = json!({"uri": "shop:hidden"});
    let person = Person::saying([yes(), yes()]);
    let older = instance.ada(&person, false).await;
    assert_eq!(told(&older, "resources/read", &read).await, "hidden");
    let asked = person.asked();
    assert!(asked[0].contains("`shop:shop:hidden`") && asked[1].contains("`annex:shop:hidden`"), "{asked:?}");

    let modern = instance.ada(&Person::default(), true).await;
    let first = answered(&modern, "resources/read", &read, yes()).await;
    let second = answered(&modern, "resources/read", &first, yes()).await;
    assert_eq!(told(&modern, "resources/read", &second).await, "hidden");
}

#[test]
fn equal_uris_of_two_apps_have_different_digests() {
    let digest =
        |object: RequestObject| RequestDigest::of(&object.to_string(), &JsonObject::new()).to_string();
    let resource = |name: &str| RequestObject::Resource(name.to_owned());
    let prompt = RequestObject::Prompt("one:a://b".to_owned());
    assert_ne!(digest(resource("one:a://b")), digest(resource("two:a://b")));
    assert_ne!(digest(resource("one:a://b")), digest(prompt));
}
