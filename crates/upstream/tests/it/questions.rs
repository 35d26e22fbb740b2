//! Questions of servers during calls, and clients of both eras that answer them.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use gatewright_core::Principal;
use gatewright_testing::{ElicitResult, Mcp, McpBuilder, RpcRequest};
use gatewright_upstream::{Sessions, UpstreamConfig};
use serde_json::{Value, json};

use crate::support::{Bench, LONG, sent_requests, server, text};

fn newer(client: McpBuilder) -> McpBuilder {
    client.protocol_version("2026-07-28")
}

fn principal(subject: &str, client: &str) -> Principal {
    Principal { subject: subject.into(), client_id: Some(client.into()), ..Principal::local() }
}

/// A client of the newer era of `subject`.
async fn newer_of(bench: &Bench, subject: &str) -> Mcp {
    bench.connect_as(principal(subject, "desk"), newer).await
}

fn form(message: &str) -> Value {
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message,
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}})
}

/// One request, without the client's own answers.
async fn once(client: &Mcp, mut params: Value) -> Value {
    let meta = client.raw().meta();
    let own = params["_meta"].take();
    params["_meta"] = meta;
    for (key, value) in own.as_object().into_iter().flatten() {
        params["_meta"][key] = value.clone();
    }
    static LAST: AtomicU64 = AtomicU64::new(1_000_000);
    let mut request = RpcRequest::new("tools/call", params);
    request.id = LAST.fetch_add(1, Ordering::Relaxed).into();
    client.raw().request(request).await.unwrap().raw
}

/// The questions and the state of an answer that asks.
fn asked(answer: &Value) -> (Value, Value) {
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    (result["inputRequests"].clone(), result["requestState"].clone())
}

/// The retry of `call` with Ada as the answer to every question.
fn retry(call: &Value, answer: &Value) -> Value {
    let (requests, state) = asked(answer);
    let ada = json!({"action": "accept", "content": {"name": "Ada"}});
    let answers: serde_json::Map<String, Value> =
        requests.as_object().unwrap().keys().map(|key| (key.clone(), ada.clone())).collect();
    let mut retry = call.clone();
    retry["inputResponses"] = Value::Object(answers);
    retry["requestState"] = state;
    retry
}

fn code(answer: &Value) -> &str {
    let result = &answer["result"]["_meta"]["code"];
    result.as_str().or(answer["error"]["data"]["code"].as_str()).unwrap_or_default()
}

/// Calls until the text of the answer is this.
async fn becomes(client: &Mcp, tool: &str, wanted: &str) {
    let waiting = async {
        while text(client, tool).await != wanted {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.unwrap_or_else(|_| panic!("`{tool}` never answers {wanted}"));
}

fn survey(arguments: Value) -> Value {
    json!({"name": "a:survey", "arguments": arguments})
}

#[tokio::test]
async fn a_newer_caller_answers_every_kind_of_question_of_an_older_server() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = newer_of(&bench, "ada").await;
    client.set_roots(vec![json!({"uri": "file:///w/ada"})]);
    assert!(text(&client, "a:elicit").await.contains("Ada"));
    assert!(text(&client, "a:sample").await.contains("a sample"));
    assert!(text(&client, "a:roots").await.contains("file:///w/ada"));
    assert!(sent_requests(&client).is_empty(), "nothing is asked with a request");
}

#[tokio::test]
async fn several_rounds_of_several_questions_are_one_call_with_progress_for_each_request() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = newer_of(&bench, "ada").await;
    let call = survey(json!({"rounds": 2, "atOnce": 3}));
    let mut params = call.clone();
    params["_meta"] = json!({"progressToken": "first"});
    let mut answer = once(&client, params).await;
    let mut answered = 0;
    while answer["result"]["resultType"] == "input_required" {
        answered += asked(&answer).0.as_object().unwrap().len();
        let mut params = retry(&call, &answer);
        params["_meta"] = json!({"progressToken": format!("after {answered}")});
        answer = once(&client, params).await;
    }
    assert_eq!(answered, 6, "{answer}");
    let answers = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(answers.matches("Ada").count(), 6, "{answers}");
    let tokens: Vec<Value> =
        client.notifications().all().into_iter().map(|one| one.params["progressToken"].clone()).collect();
    assert_eq!(tokens, ["first", "after 3"]);
}

#[tokio::test]
async fn a_state_is_used_once_and_the_server_gets_one_answer() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = newer_of(&bench, "ada").await;
    let call = survey(json!({}));
    let retry = retry(&call, &once(&client, call.clone()).await);
    let (one, two) = futures::future::join(once(&client, retry.clone()), once(&client, retry.clone())).await;
    let answered = |answer: &Value| answer["result"]["content"][0]["text"].as_str().unwrap().contains("Ada");
    assert_eq!(
        [answered(&one), answered(&two)].iter().filter(|answered| **answered).count(),
        1,
        "{one} {two}"
    );
    let again = once(&client, retry).await;
    assert_eq!(code(&again), "INPUT_EXPIRED", "{again}");
    assert!(again["result"]["content"][0]["text"].as_str().unwrap().contains("without `requestState`"));
    assert_eq!(text(&client, "a:strays").await, "0");
}

#[tokio::test]
async fn nobody_else_answers_for_a_caller_and_nothing_but_the_same_request_does() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    bench.add("b", server(&[])).await;
    let ada = newer_of(&bench, "ada").await;
    let call = survey(json!({"rounds": 1, "note": {"a": 1, "b": 2}}));
    let held = once(&ada, call.clone()).await;
    let good = retry(&call, &held);
    for other in [principal("bob", "desk"), principal("ada", "phone")] {
        let other = bench.connect_as(other, newer).await;
        let refused = once(&other, good.clone()).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let with = |change: &dyn Fn(&mut Value)| {
        let mut changed = good.clone();
        change(&mut changed);
        changed
    };
    for bad in [
        with(&|params| params["arguments"]["note"]["a"] = 2.into()),
        with(&|params| params["arguments"] = json!({})),
        with(&|params| params["name"] = "b:survey".into()),
        with(&|params| params["name"] = "a:elicit".into()),
        with(&|params| params["inputResponses"]["question_1"] = 7.into()),
        with(&|params| params["requestState"] = "AAAA".into()),
    ] {
        let refused = once(&ada, bad.clone()).await;
        assert_eq!(refused["error"]["code"], -32602, "{bad} {refused}");
    }
    let sorted_otherwise = with(&|params| {
        params["arguments"] = json!({"note": {"b": 2, "a": 1}, "rounds": 1});
    });
    let answer = once(&ada, sorted_otherwise).await;
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("Ada"), "{answer}");
}

#[tokio::test]
async fn a_retry_without_answers_asks_again() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = newer_of(&bench, "ada").await;
    let call = survey(json!({}));
    let held = once(&client, call.clone()).await;
    let mut empty = retry(&call, &held);
    empty["inputResponses"] = json!({"question_7": {"action": "accept"}});
    let again = once(&client, empty).await;
    assert_eq!(asked(&again).0, asked(&held).0);
    assert_ne!(asked(&again).1, asked(&held).1);
    assert!(once(&client, retry(&call, &again)).await.to_string().contains("Ada"));
}

#[tokio::test]
async fn an_unanswered_call_is_cancelled_at_the_server_and_its_answer_is_refused() {
    let bench = Bench::new();
    let mut config = server(&[]);
    config.question_timeout = Duration::from_secs(1);
    bench.add("a", config).await;
    let client = newer_of(&bench, "ada").await;
    let call = survey(json!({}));
    let held = once(&client, call.clone()).await;
    becomes(&client, "a:cancelled", "1").await;
    let late = once(&client, retry(&call, &held)).await;
    assert_eq!(code(&late), "INPUT_EXPIRED", "{late}");
}

#[tokio::test]
async fn a_call_whose_server_ends_while_it_waits_says_so_to_its_caller() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = newer_of(&bench, "ada").await;
    let call = survey(json!({}));
    let held = once(&client, call.clone()).await;
    let _ = client.tools().call("a:die", json!({})).await;
    let restarted = async {
        loop {
            let answer = once(&client, retry(&call, &held)).await;
            if !matches!(code(&answer), "UPSTREAM_DOWN" | "UPSTREAM_STARTING") {
                return answer;
            }
        }
    };
    let ended = tokio::time::timeout(LONG, restarted).await.expect("the server is started again");
    assert_eq!(code(&ended), "UPSTREAM_ENDED", "{ended}");
}

#[tokio::test]
async fn a_caller_without_the_capability_hears_what_the_tool_that_failed_had_asked() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let failing = json!({"fails": true});
    for client in [
        bench.connect(|client| newer(client).capabilities(json!({}))).await,
        bench.connect(|client| client.capabilities(json!({}))).await,
    ] {
        let failed = client.tools().call("a:survey", failing.clone()).await.unwrap();
        assert_eq!(failed.raw["_meta"]["code"], "INPUT_REQUIRED", "{}", failed.raw);
        let said = failed.raw["content"].to_string();
        assert!(
            said.contains("1/0?") && said.contains("`elicitation`") && said.contains("call it from"),
            "{said}"
        );
        assert!(said.contains("no `elicitation` capability"), "the server's own words stay: {said}");
        let went_on = client.tools().call("a:survey", json!({})).await.unwrap();
        assert!(
            went_on.is_success,
            "a tool that goes on without an answer did what it does: {}",
            went_on.raw
        );
    }
}

#[tokio::test]
async fn a_server_that_asks_without_end_is_ended_and_one_that_asks_afterwards_reaches_nobody() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = newer_of(&bench, "ada").await;
    let call = survey(json!({"rounds": 1_000}));
    let mut answer = once(&client, call.clone()).await;
    let mut rounds = 0;
    while answer["result"]["resultType"] == "input_required" {
        rounds += 1;
        answer = once(&client, retry(&call, &answer)).await;
    }
    assert_eq!((rounds, code(&answer)), (10, "INPUT_REQUIRED"), "{answer}");
    becomes(&client, "a:cancelled", "1").await;
    let crowd = survey(json!({"atOnce": 1_000}));
    let asks = once(&client, crowd).await;
    assert!(asked(&asks).0.as_object().unwrap().len() <= 16);
    assert_eq!(text(&client, "a:late").await, "done");
    becomes(&client, "a:strays", "1").await;
}

#[tokio::test]
async fn one_caller_has_so_many_open_calls_and_others_find_room_at_a_server_that_is_not_taken() {
    let bench = Bench::new();
    let mut config = server(&[]);
    config.max_concurrency = 1;
    bench.add("a", config).await;
    bench.add("b", server(&[])).await;
    let (ada, bob) = (newer_of(&bench, "ada").await, newer_of(&bench, "bob").await);
    for _ in 0..100 {
        asked(&once(&ada, survey(json!({}))).await);
    }
    let refused = once(&ada, survey(json!({"fails": true}))).await;
    assert_eq!(code(&refused), "INPUT_REQUIRED", "{refused}");
    assert!(refused.to_string().contains("too many"), "{refused}");
    assert!(text(&bob, "b:elicit").await.contains("Ada"));
    assert!(text(&bob, "a:echo").await.contains("echo"), "open calls keep no place");
}

#[tokio::test]
async fn a_server_with_a_connection_for_each_caller_asks_each_of_them() {
    let bench = Bench::new();
    let config = UpstreamConfig { sessions: Some(Sessions::PerPrincipal), ..server(&[]) };
    bench.add_per_caller("a", config);
    let (ada, bob) = (newer_of(&bench, "ada").await, newer_of(&bench, "bob").await);
    let call = json!({"name": "a:elicit", "arguments": {}});
    let held = once(&ada, call.clone()).await;
    assert!(text(&bob, "a:elicit").await.contains("Ada"));
    assert!(once(&ada, retry(&call, &held)).await.to_string().contains("Ada"));
}

fn round(asks: Value) -> Value {
    json!({"asks": asks})
}

#[tokio::test]
async fn an_older_caller_is_asked_with_requests_what_a_newer_server_asks_with_its_answer() {
    let bench = Bench::new();
    bench.add("a", server(&["--discover"])).await;
    let capabilities = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}});
    let client = bench.connect(|client| client.capabilities(capabilities)).await;
    client.set_roots(vec![json!({"uri": "file:///w/ada"})]);
    let url = json!({"method": "elicitation/create",
        "params": {"mode": "url", "message": "Sign in", "url": "https://a.example/in"}});
    let messages = json!([{"role": "user", "content": {"type": "text", "text": "hi"}}]);
    let sampling =
        json!({"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 9}});
    let asks = json!({"who": form("Who?"), "where": {"method": "roots/list"}, "open": url, "say": sampling});
    let result = client.tools().call("a:round", round(asks)).await.unwrap();
    let body: Value = serde_json::from_str(&result.text()).unwrap();
    assert_eq!(body["state"], "theirs", "{body}");
    assert_eq!(body["answers"]["who"], json!({"action": "accept", "content": {"name": "Ada"}}));
    assert_eq!(body["answers"]["where"]["roots"][0]["uri"], "file:///w/ada");
    assert_eq!(body["answers"]["say"]["content"]["text"], "a sample");
    assert_eq!(body["answers"]["open"]["action"], "accept");
    let requests = client.server_requests();
    let opened = requests.iter().find(|request| request.params["mode"] == "url").unwrap();
    assert!(opened.params["elicitationId"].as_str().is_some_and(|id| !id.is_empty()), "{opened:?}");
}

#[tokio::test]
async fn an_older_caller_is_asked_nothing_unless_it_can_answer_all() {
    let bench = Bench::new();
    bench.add("a", server(&["--discover"])).await;
    let client = bench.connect(|client| client.capabilities(json!({"elicitation": {}}))).await;
    let asks = json!({"who": form("Who are you?"), "where": {"method": "roots/list"}});
    let result = client.tools().call("a:round", round(asks)).await.unwrap();
    assert_eq!(result.raw["_meta"]["code"], "INPUT_REQUIRED", "{}", result.raw);
    assert!(result.text().contains("Who are you?") && result.text().contains("`roots`"), "{}", result.text());
    assert!(client.server_requests().is_empty());
    for era in [|client: McpBuilder| client, newer] {
        let without = bench.connect(|client| era(client).capabilities(json!({}))).await;
        let result = without.tools().call("a:round", round(json!({"who": form("Who?")}))).await.unwrap();
        assert_eq!(result.raw["_meta"]["code"], "INPUT_REQUIRED", "{}", result.raw);
        assert!(
            result.text().contains("Who?") && result.text().contains("`elicitation`"),
            "{}",
            result.text()
        );
    }
}

#[tokio::test]
async fn a_newer_server_that_always_asks_an_older_caller_is_ended_after_ten_rounds() {
    let bench = Bench::new();
    bench.add("a", server(&["--discover"])).await;
    let client = bench.client().await;
    let result = client.tools().call("a:always", round(json!({"who": form("Who?")}))).await.unwrap();
    assert_eq!(result.raw["_meta"]["code"], "INPUT_REQUIRED", "{}", result.raw);
    assert!(result.text().contains("10 times"), "{}", result.text());
    assert_eq!(client.server_requests().len(), 10);
}

#[tokio::test]
async fn a_server_has_its_time_although_a_person_takes_longer_to_answer() {
    let bench = Bench::new();
    for (id, flags) in [("old", &[] as &[&str]), ("new", &["--discover"])] {
        let mut config = server(flags);
        config.timeout = Duration::from_millis(400);
        bench.add(id, config).await;
    }
    let client = bench.client().await;
    client.on_elicitation(|_| async {
        // Longer than the timeout of either server.
        tokio::time::sleep(Duration::from_millis(900)).await;
        ElicitResult::Accept(json!({"name": "Ada"}))
    });
    assert!(text(&client, "old:elicit").await.contains("Ada"));
    let answered = client.tools().call("new:round", round(json!({"who": form("Who?")}))).await.unwrap();
    assert!(answered.text().contains("Ada"), "{}", answered.raw);
    let mut hasty = server(&[]);
    hasty.question_timeout = Duration::from_secs(1);
    bench.add("hasty", hasty).await;
    client.on_elicitation(|_| std::future::pending::<ElicitResult>());
    let unanswered = client.tools().call("hasty:survey", json!({"fails": true})).await.unwrap();
    assert_eq!(unanswered.raw["_meta"]["code"], "INPUT_REQUIRED", "{}", unanswered.raw);
}

#[tokio::test]
async fn a_caller_that_leaves_takes_the_question_back() {
    let bench = Bench::new();
    bench.add("a", server(&["--discover"])).await;
    let client = bench.client().await;
    client.on_elicitation(|_| std::future::pending::<ElicitResult>());
    let open = client.tools().call("a:round", round(json!({"who": form("Who?")}))).begin().await.unwrap();
    let asked = async {
        while client.server_requests().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, asked).await.expect("the client is asked");
    open.cancel().await;
    client.notifications().wait_for("notifications/cancelled", 1, LONG).await.unwrap();
}

#[tokio::test]
async fn a_call_asks_64_questions_at_most_whatever_the_eras() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let arguments = json!({"rounds": 6, "atOnce": 15});
    let older = bench.client().await;
    let answers = older.tools().call("a:survey", arguments.clone()).await.unwrap().text();
    assert_eq!(
        (answers.matches("Ada").count(), answers.matches("CALLER_BUSY").count()),
        (64, 26),
        "{answers}"
    );
    assert_eq!(older.server_requests().len(), 64);
    let newer = newer_of(&bench, "ada").await;
    let answers = newer.tools().call("a:survey", arguments).await.unwrap().text();
    assert_eq!(
        (answers.matches("Ada").count(), answers.matches("CALLER_BUSY").count()),
        (64, 26),
        "{answers}"
    );
}

#[tokio::test]
async fn sixteen_questions_are_open_at_once_and_taken_back_when_the_call_ends() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = bench.client().await;
    client.on_elicitation(|_| std::future::pending());
    let arguments = json!({"atOnce": 500, "enough": 484});
    let answers = client.tools().call("a:survey", arguments).await.unwrap().text();
    assert_eq!(answers.matches("CALLER_BUSY").count(), 484, "{answers}");
    client.notifications().wait_for("notifications/cancelled", 16, LONG).await.unwrap();
    assert_eq!(client.server_requests().len(), 16);
}
