//! Approvals of direct calls: in the client, in both eras, and by others.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use gatewright_core::{
    Approval, ApprovalDuration, Approvals, Approver, AuthRefusal, Authenticator, CannotDecide, MemoryRecords,
    Policies, Principal, RecordsError, SharedRecords,
    rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, InputRequiredResult},
};
use http::request::Parts;
use serde_json::{Value, json};

use crate::{
    access::granted,
    person::{Client, Person, made, yes},
    shop::{Instance, Shop},
};

/// The terms of the tests: every tool that may change something.
fn terms() -> Approvals {
    Approvals { writes: Some(Approval::Ask), ..Approvals::default() }
}

/// A gateway over `shop` under these terms.
async fn over(shop: &Shop, approvals: Approvals, records: Arc<dyn SharedRecords>) -> Instance {
    Instance::under(shop, Policies { engine: None, approvals }, records).await
}

async fn new(terms: Approvals) -> (Instance, Shop) {
    let shop = Shop::default();
    (over(&shop, terms, Arc::new(MemoryRecords::default())).await, shop)
}

fn call(tool: &str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(format!("shop:{tool}")).with_arguments(made(arguments))
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

fn code(result: &CallToolResult) -> &str {
    result.meta.as_ref().and_then(|meta| meta.0.get("code")?.as_str()).unwrap_or("none")
}

async fn once(client: &Client, params: CallToolRequestParams) -> Result<CallToolResult, InputRequiredResult> {
    match client.call_tool_once(params).await.unwrap() {
        CallToolResponse::Complete(result) => Ok(result),
        CallToolResponse::InputRequired(asks) => Err(asks),
        other => panic!("{other:?}"),
    }
}

/// The state of a first question.
async fn question(client: &Client, params: &CallToolRequestParams) -> String {
    let asks = once(client, params.clone()).await.unwrap_err();
    assert_eq!(asks.input_requests.unwrap().keys().collect::<Vec<_>>(), ["approval"]);
    asks.request_state.unwrap()
}

fn retry(params: &CallToolRequestParams, state: &str, answer: Value) -> CallToolRequestParams {
    let mut retry = params.clone();
    retry.request_state = Some(state.to_owned());
    retry.input_responses = Some(made(json!({"approval": answer})));
    retry
}

#[tokio::test]
async fn a_client_of_either_era_is_asked_and_the_call_is_made_once() {
    for modern in [true, false] {
        let (instance, shop) = new(terms()).await;
        let person = Person::saying([yes()]);
        let ada = instance.ada(&person, modern).await;
        let paid = ada.call_tool(call("pay", json!({"to": "ann\nbob", "amount": 5}))).await.unwrap();
        assert_eq!((text(&paid), shop.made()), ("pay", 1), "{paid:?}");
        assert_eq!(
            instance.counted.0.load(Ordering::SeqCst),
            1,
            "the retry is the same call for rate limits"
        );
        assert_eq!(
            person.asked(),
            [
                "Approve the call of `shop:pay`?\nthe tool may change something\nArguments:\n  to: \"ann\\nbob\"\n  amount: 5"
            ]
        );
        assert_eq!(
            instance.listener.heard(),
            ["approval.asked ada shop:pay nobody", "approval.approved ada shop:pay ada"]
        );
        assert!(instance.waiting("ada").await.is_empty());
    }
}

#[tokio::test]
async fn what_is_approved_after_the_configuration_changed_is_not_made() {
    for modern in [true, false] {
        let (instance, shop) = new(terms()).await;
        let registry = instance.gateway.registry().clone();
        let terms = Policies { engine: None, approvals: terms() };
        let person = Person::saying([yes(), yes()]).after(move || {
            registry.set_policies(Some(terms.clone()));
        });
        let ada = instance.ada(&person, modern).await;
        let answer = ada.call_tool(call("pay", json!({}))).await;
        if modern {
            assert_eq!((text(&answer.unwrap()), shop.made()), ("pay", 1), "a retry is decided on anew");
        } else {
            let answer = answer.unwrap();
            assert!(answer.is_error == Some(true) && text(&answer).contains("was changed"), "{answer:?}");
            assert_eq!((code(&answer), shop.made()), ("ACCESS_DENIED", 0));
        }
    }
}

#[tokio::test]
async fn a_no_in_any_form_is_a_denial_and_nothing_is_called() {
    for modern in [true, false] {
        for no in [
            json!({"action": "decline"}),
            json!({"action": "cancel"}),
            json!({"action": "accept", "content": {"approve": false}}),
        ] {
            let (instance, shop) = new(terms()).await;
            let ada = instance.ada(&Person::saying([no]), modern).await;
            let denied = ada.call_tool(call("pay", json!({}))).await.unwrap();
            assert_eq!((denied.is_error, code(&denied), shop.made()), (Some(true), "APPROVAL_DENIED", 0));
            assert_eq!(instance.listener.heard()[1], "approval.denied ada shop:pay ada");
        }
    }
}

#[tokio::test]
async fn an_app_that_asks_after_the_approval_does_not_have_it_asked_again() {
    for modern in [true, false] {
        let (instance, shop) = new(terms()).await;
        let name = json!({"action": "accept", "content": {"name": "Ada"}});
        let person = Person::saying([yes(), name]);
        let ada = instance.ada(&person, modern).await;
        let answered = ada.call_tool(call("ask", json!({}))).await.unwrap();
        assert_eq!((text(&answered), shop.made()), ("\"Ada\"", 1), "{answered:?}");
        let asked = person.asked();
        assert!(asked.len() == 2 && asked[1] == "Who are you?", "{asked:?}");
    }
}

#[tokio::test]
async fn a_state_of_somebody_else_of_another_tool_or_other_arguments_approves_nothing() {
    let (instance, shop) = new(terms()).await;
    let ada = instance.ada(&Person::default(), true).await;
    let eve = instance.client(granted("eve", "*"), &Person::default(), true).await;
    let pay = call("pay", json!({"amount": 5}));
    let state = question(&ada, &pay).await;
    let other = if state.starts_with('A') { 'B' } else { 'A' };
    for (client, params) in [
        (&eve, retry(&pay, &state, yes())),
        (&ada, retry(&call("ask", json!({"amount": 5})), &state, yes())),
        (&ada, retry(&pay, &format!("{other}{}", &state[1..]), yes())),
        (&ada, retry(&pay, "", yes())),
    ] {
        assert!(client.call_tool_once(params).await.is_err());
    }
    // What an app asks is no approval, whatever it is called.
    let asked = instance.ada(&Person::default(), true).await;
    let ask = call("ask", json!({}));
    let approval = question(&asked, &ask).await;
    let of_app = once(&asked, retry(&ask, &approval, yes())).await.unwrap_err().request_state.unwrap();
    assert!(ada.call_tool_once(retry(&pay, &of_app, yes())).await.is_err());

    let dearer = call("pay", json!({"amount": 500}));
    assert!(once(&ada, retry(&dearer, &state, yes())).await.is_err(), "it is asked for itself");
    assert!(once(&ada, call("pay", json!({"amount": 5}))).await.is_err());
    assert_eq!(shop.made(), 0);
    assert_eq!(text(&once(&ada, retry(&pay, &state, yes())).await.unwrap()), "pay");
    assert_eq!(shop.made(), 1);
}

#[tokio::test]
async fn of_two_retries_at_two_instances_one_is_made_and_a_third_asks_again() {
    let (shop, records) = (Shop::default(), Arc::new(MemoryRecords::default()));
    let one = over(&shop, terms(), records.clone()).await;
    let other = over(&shop, terms(), records).await;
    let (here, there) = (one.ada(&Person::default(), true).await, other.ada(&Person::default(), true).await);
    let pay = call("pay", json!({"amount": 5}));
    let state = question(&here, &pay).await;
    let (first, second) =
        tokio::join!(once(&here, retry(&pay, &state, yes())), once(&there, retry(&pay, &state, yes())));
    assert_eq!((first.is_ok(), shop.made()), (second.is_err(), 1));
    assert!(once(&there, retry(&pay, &state, yes())).await.is_err());
    // A no counts, too: the same state does not become a yes.
    let state = question(&there, &pay).await;
    let no = once(&there, retry(&pay, &state, json!({"action": "decline"}))).await.unwrap();
    assert_eq!(code(&no), "APPROVAL_DENIED");
    assert!(once(&here, retry(&pay, &state, yes())).await.is_err());
    assert_eq!(shop.made(), 1);

    // The state of an approved call whose app asks is good once as well.
    let ask = call("ask", json!({}));
    let state = question(&here, &ask).await;
    let asks = once(&here, retry(&ask, &state, yes())).await.unwrap_err().request_state.unwrap();
    let name = json!({"action": "accept", "content": {"name": "Ada"}});
    let (first, second) = tokio::join!(
        once(&here, retry(&ask, &asks, name.clone())),
        once(&there, retry(&ask, &asks, name.clone()))
    );
    let mut codes = [first.unwrap(), second.unwrap()].map(|result| code(&result).to_owned());
    codes.sort();
    assert_eq!((codes, shop.made()), (["INPUT_EXPIRED".to_owned(), "none".to_owned()], 2));
}

#[tokio::test]
async fn a_late_answer_is_no_approval() {
    let (instance, shop) = new(Approvals { expires_in: Duration::ZERO, ..terms() }).await;
    let ada = instance.ada(&Person::default(), true).await;
    let pay = call("pay", json!({}));
    let state = question(&ada, &pay).await;
    assert!(once(&ada, retry(&pay, &state, yes())).await.is_err());
    assert_eq!(shop.made(), 0);
    assert!(instance.listener.heard().contains(&"approval.expired ada shop:pay nobody".to_owned()));
}

#[tokio::test]
async fn an_approval_for_an_hour_is_for_one_tool_and_none_that_asks_each_time() {
    let (instance, shop) = new(terms()).await;
    let hour = json!({"action": "accept", "content": {"approve": true, "for": "this tool for an hour"}});
    let person = Person::saying([hour.clone(), hour.clone(), hour, yes()]);
    let ada = instance.ada(&person, false).await;
    for amount in 0..3 {
        ada.call_tool(call("pay", json!({"amount": amount}))).await.unwrap();
    }
    assert_eq!((person.asked().len(), shop.made()), (1, 3));
    for _ in 0..2 {
        ada.call_tool(call("send", json!({}))).await.unwrap();
    }
    assert_eq!((person.asked().len(), shop.made()), (2, 5));
    let person = Person::saying([json!({"action": "decline"})]);
    let eve = instance.client(granted("eve", "*"), &person, false).await;
    assert_eq!(code(&eve.call_tool(call("pay", json!({}))).await.unwrap()), "APPROVAL_DENIED");
}

/// Knows callers by keys, of which another may get the name of an earlier one.
struct Keys(AtomicUsize);

impl Authenticator for Keys {
    fn authenticate<'a>(&'a self, _: &'a Parts) -> BoxFuture<'a, Result<Principal, AuthRefusal>> {
        unreachable!("callers are named by the test")
    }

    fn credential<'a>(&'a self, _: &'a Principal) -> BoxFuture<'a, Result<Option<String>, RecordsError>> {
        Box::pin(async { Ok(Some(self.0.load(Ordering::SeqCst).to_string())) })
    }

    fn insufficient_scope(&self, _: &Principal, _: &[String]) -> AuthRefusal {
        unreachable!("callers have all scopes")
    }
}

#[tokio::test]
async fn an_approval_for_an_hour_does_not_stand_for_another_key_of_the_same_name() {
    let (instance, shop) = new(terms()).await;
    let keys = Arc::new(Keys(AtomicUsize::new(1)));
    let authenticator: Arc<dyn Authenticator> = keys.clone();
    instance.store.callers_of(&authenticator);
    let hour = json!({"action": "accept", "content": {"approve": true, "for": "this tool for an hour"}});
    let person = Person::saying([hour.clone(), hour]);
    let nightly = instance.client(granted("key:nightly", "*"), &person, false).await;
    for (key, asked) in [(1, 1), (1, 0), (2, 1), (2, 0), (1, 0)] {
        keys.0.store(key, Ordering::SeqCst);
        nightly.call_tool(call("pay", json!({"amount": 1}))).await.unwrap();
        assert_eq!(person.asked().len(), asked, "key {key}");
    }
    assert_eq!(shop.made(), 5);
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_learns_where_and_its_call_passes_once_when_it_is_approved() {
    for modern in [true, false] {
        let (instance, shop) = new(terms()).await;
        instance.store.decided_at("https://mcp.example/oauth/account/approvals");
        let ada = instance.ada(&Person::mute(), modern).await;
        let pay = || call("pay", json!({"amount": 5}));
        let told = ada.call_tool(pay()).await.unwrap();
        assert_eq!(code(&told), "APPROVAL_REQUIRED");
        let approval = told.meta.as_ref().unwrap().0["approval"].clone();
        assert_eq!(approval["url"], "https://mcp.example/oauth/account/approvals");
        assert!(text(&told).contains(approval["id"].as_str().unwrap()), "{}", text(&told));
        ada.call_tool(pay()).await.unwrap();
        let waiting = instance.waiting("ada").await;
        assert_eq!(waiting.len(), 1, "the same call waits once");
        assert_eq!(
            (&*waiting[0].id, waiting[0].arguments.as_slice()),
            (approval["id"].as_str().unwrap(), &["amount: 5".to_owned()][..])
        );

        // Nobody else decides.
        let eve = Approver::User { subject: "eve", holds: &|_| true };
        let id = &waiting[0].id;
        assert_eq!(
            instance.store.decide(id, Some(ApprovalDuration::Once), eve).await,
            Err(CannotDecide::NotFound)
        );
        let own = Approver::User { subject: "ada", holds: &|_| false };
        instance.store.decide(id, Some(ApprovalDuration::Once), own).await.unwrap();
        assert_eq!(instance.store.decide(id, None, own).await, Err(CannotDecide::NotFound));
        assert_eq!(
            code(&ada.call_tool(call("pay", json!({"amount": 6}))).await.unwrap()),
            "APPROVAL_REQUIRED"
        );
        assert_eq!(shop.made(), 0);
        assert_eq!(text(&ada.call_tool(pay()).await.unwrap()), "pay");
        assert_eq!(code(&ada.call_tool(pay()).await.unwrap()), "APPROVAL_REQUIRED", "it passes once");
        assert_eq!(shop.made(), 1);
        instance.store.decide(id, None, Approver::Operator("ops")).await.unwrap();
        assert_eq!(code(&ada.call_tool(pay()).await.unwrap()), "APPROVAL_DENIED");
        assert_eq!(code(&ada.call_tool(pay()).await.unwrap()), "APPROVAL_REQUIRED");
        let heard = instance.listener.heard();
        assert!(heard.contains(&"approval.denied ada shop:pay ops".to_owned()), "{heard:?}");
    }
}

#[tokio::test]
async fn a_form_that_was_left_open_does_not_decide_on_the_same_request_of_later() {
    let (instance, shop) = new(terms()).await;
    let ada = instance.ada(&Person::mute(), true).await;
    let pay = || call("pay", json!({}));
    let (ops, yes) = (Approver::Operator("ops"), Some(ApprovalDuration::Once));
    let mut left_open: Option<String> = None;
    for decision in [yes, None, yes] {
        assert_eq!(code(&ada.call_tool(pay()).await.unwrap()), "APPROVAL_REQUIRED");
        let shown = instance.waiting("ada").await.remove(0).decision_id();
        if let Some(earlier) = left_open {
            assert_eq!(instance.store.decide(&earlier, yes, ops).await, Err(CannotDecide::NotFound));
        }
        instance.store.decide(&shown, decision, ops).await.unwrap();
        assert_eq!(instance.store.decide(&shown, yes, ops).await, Err(CannotDecide::NotFound));
        ada.call_tool(pay()).await.unwrap();
        left_open = Some(shown);
    }
    assert_eq!(shop.made(), 2);
}

#[tokio::test]
async fn of_two_instances_one_uses_an_approval_that_was_given_elsewhere() {
    let (shop, records) = (Shop::default(), Arc::new(MemoryRecords::default()));
    let one = over(&shop, terms(), records.clone()).await;
    let other = over(&shop, terms(), records).await;
    let (here, there) = (one.ada(&Person::mute(), true).await, other.ada(&Person::mute(), true).await);
    let pay = || call("pay", json!({}));
    here.call_tool(pay()).await.unwrap();
    let id = other.waiting("ada").await.remove(0).id;
    other.store.decide(&id, Some(ApprovalDuration::Once), Approver::Operator("ops")).await.unwrap();
    let (first, second) = tokio::join!(here.call_tool(pay()), there.call_tool(pay()));
    let mut codes = [first, second].map(|result| code(&result.unwrap()).to_owned());
    codes.sort();
    assert_eq!((codes, shop.made()), (["APPROVAL_REQUIRED".to_owned(), "none".to_owned()], 1));
}

#[tokio::test]
async fn with_approvers_nobody_approves_an_own_call_nor_one_without_the_scope() {
    let terms = Approvals { approvers: Some("shop:approve".to_owned()), ..terms() };
    let (instance, shop) = new(terms).await;
    // It could be asked, and is not.
    let ada = instance.ada(&Person::default(), true).await;
    let pay = || call("pay", json!({}));
    let told = once(&ada, pay()).await.unwrap();
    assert_eq!(code(&told), "APPROVAL_REQUIRED");
    assert!(text(&told).contains("somebody else with the scope `shop:approve`"), "{}", text(&told));
    let all = Approver::Operator("ops");
    let id = instance.store.list(all).await.unwrap().remove(0).id;
    assert!(instance.waiting("ada").await.is_empty(), "an own one is not shown");
    let holds = |scope: &str| scope == "shop:approve";
    for (subject, has, may) in [("ada", true, false), ("bob", false, false), ("bob", true, true)] {
        let approver = Approver::User { subject, holds: &|scope| has && holds(scope) };
        let decided = instance.store.decide(&id, Some(ApprovalDuration::Once), approver).await;
        assert_eq!(decided.is_ok(), may, "{subject} {has}");
    }
    assert_eq!(text(&once(&ada, pay()).await.unwrap()), "pay");
    assert_eq!(shop.made(), 1);
    // What a caller approved before others had to does not count.
    assert_eq!(code(&once(&ada, pay()).await.unwrap()), "APPROVAL_REQUIRED");
}

#[tokio::test]
async fn approvals_that_wait_are_bounded_for_each_caller() {
    let (instance, shop) = new(Approvals { max_per_principal: 2, ..terms() }).await;
    let ada = instance.ada(&Person::mute(), true).await;
    let eve = instance.client(granted("eve", "*"), &Person::mute(), true).await;
    for amount in 0..3 {
        let told = ada.call_tool(call("pay", json!({"amount": amount}))).await.unwrap();
        assert_eq!((code(&told), text(&told).contains("too many")), ("APPROVAL_REQUIRED", amount == 2));
    }
    let told = eve.call_tool(call("pay", json!({}))).await.unwrap();
    assert!(!text(&told).contains("too many"), "{}", text(&told));
    assert_eq!((instance.waiting("ada").await.len(), shop.made()), (2, 0));
}
