//! Calls that follow searches, and what later searches find.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gatewright_codecall::{CodeCallConfig, Mode};
use gatewright_core::{AppOptions, MemoryRecords, Principal, Scopes, ToolOverride};
use serde_json::json;

use super::{
    records::{Meanwhile, Through, Way},
    support::{Client, Fixture, Served, server, structured},
};

/// By words alone, nobody finds `app:disputes` by these.
const WORDS: &str = "kundenkonto sperren";

/// A gateway over three tools, the last of which needs the scope `secret`. Their second answer is an error.
async fn served(usage: &str) -> Served {
    let answers = || [structured(json!({"a": 1})), json!({"isError": true, "content": []})];
    let tools = ["disputes", "refunds", "secret"].map(|name| Fixture::new(name, answers()));
    let guarded = ToolOverride { scopes: vec!["secret".to_owned()], ..ToolOverride::default() };
    let options =
        AppOptions { tools: BTreeMap::from([("secret".to_owned(), guarded)]), ..AppOptions::default() };
    let config = json!({"search": {"usage": usage, "meaning": "off"}});
    let config = CodeCallConfig { mode: Mode::MetadataDriven, ..serde_json::from_value(config).unwrap() };
    Served::start(config, "app", server(tools), options).await
}

async fn client(served: &Served, subject: &str, scopes: &str) -> Client {
    let scopes = Scopes::parse(scopes);
    let principal = Principal { subject: subject.into(), client_id: None, scopes, ..Principal::local() };
    Client(served.connect(principal, ()).await)
}

/// The names of the tools that a search finds.
async fn found(client: &Client, query: &str) -> Vec<String> {
    let body = client.body("codecall:search", json!({"query": query})).await;
    let names = body["tools"].as_array().unwrap().iter();
    names.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_tool_that_was_called_after_a_search_is_found_by_its_words_by_others_too() {
    for call in ["invoke", "script"] {
        let served = served("on").await;
        let (ada, bob) = (client(&served, "ada", "").await, client(&served, "bob", "").await);
        assert!(found(&ada, WORDS).await.is_empty());
        match call {
            "invoke" => assert_eq!(ada.invoke("disputes", 0).await["status"], "ok"),
            _ => drop(ada.run("return await callTool('app:disputes', {n: 0})").await),
        }
        assert_eq!(found(&bob, "kundenkonto").await, ["app:disputes"], "{call}");
        assert!(found(&bob, "something else").await.is_empty());
    }
}

#[tokio::test]
async fn a_search_that_found_nothing_counts_with_the_one_in_other_words_that_found_the_tool() {
    let served = served("on").await;
    let client = client(&served, "ada", "").await;
    assert!(found(&client, WORDS).await.is_empty());
    assert_eq!(found(&client, "disputes").await, ["app:disputes"]);
    client.invoke("disputes", 0).await;
    assert_eq!(found(&client, "refunds").await, ["app:refunds"]);
    client.invoke("refunds", 0).await;
    assert_eq!(found(&client, WORDS).await, ["app:disputes"]);
}

#[tokio::test]
async fn calls_that_fail_are_refused_or_only_tried_do_not_count() {
    let served = served("on").await;
    let client = client(&served, "ada", "").await;
    assert!(found(&client, WORDS).await.is_empty());
    assert_eq!(client.invoke("disputes", 1).await["status"], "error");
    assert_eq!(client.invoke("disputes", 7).await["status"], "error");
    assert_eq!(client.invoke("secret", 0).await["error"]["code"], "ACCESS_DENIED");
    let script = "try { await callTool('app:disputes', {n: 1}) } catch {}
                  try { await callTool('app:secret', {n: 0}) } catch {}
                  return 1";
    client.run(script).await;
    let tried = json!({"script": "return await callTool('app:disputes', {n: 0})", "dryRun": true});
    client.body("codecall:execute", tried).await;
    assert!(found(&client, WORDS).await.is_empty());
}

#[tokio::test]
async fn a_tool_that_others_may_not_see_is_not_shown_to_them() {
    let served = served("on").await;
    let (ada, bob) = (client(&served, "ada", "secret").await, client(&served, "bob", "").await);
    found(&ada, WORDS).await;
    assert_eq!(ada.invoke("secret", 0).await["status"], "ok");
    assert_eq!(found(&ada, WORDS).await, ["app:secret"]);
    assert!(found(&bob, WORDS).await.is_empty());
}

#[tokio::test]
async fn a_call_does_not_count_for_the_searches_of_other_sessions() {
    let served = served("on").await;
    let (one, other) = (client(&served, "ada", "").await, client(&served, "ada", "").await);
    found(&one, WORDS).await;
    other.invoke("disputes", 0).await;
    assert!(found(&one, WORDS).await.is_empty());
}

#[tokio::test]
async fn nothing_is_counted_by_default() {
    assert!(!Served::new(json!({}), []).await.code_call.counts_usage());
    let served = served("off").await;
    let client = client(&served, "ada", "").await;
    found(&client, WORDS).await;
    client.invoke("disputes", 0).await;
    assert!(found(&client, WORDS).await.is_empty());
}

/// A connection on which another instance is quicker, the first time.
#[derive(Default)]
struct Slower(AtomicBool);

impl Way for Slower {
    fn replaces(&self, _: &str, _: Option<&[u8]>, _: &[u8]) -> Meanwhile {
        if self.0.swap(true, Ordering::SeqCst) { Meanwhile::Nothing } else { Meanwhile::Replaced }
    }
}

/// Waits until a search by `words` finds `tool` first.
async fn until_found(client: &Client, words: &str, tool: &str) {
    let known = async {
        while found(client, words).await.first().is_none_or(|first| first != tool) {
            // Time is paused: this lets the rounds of the instances run.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(300), known).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn instances_add_their_counts_up_in_a_store() {
    let records = Through::to(Arc::<MemoryRecords>::default(), Slower::default());
    let (one, two) = (served("on").await, served("on").await);
    for served in [&one, &two] {
        served.code_call.share_usage(records.clone());
    }
    let (of_one, of_two) = (client(&one, "ada", "").await, client(&two, "bob", "").await);
    found(&of_one, WORDS).await;
    of_one.invoke("disputes", 0).await;
    until_found(&of_two, WORDS, "app:disputes").await;
    found(&of_two, "ganz andere worte").await;
    of_two.invoke("refunds", 0).await;
    until_found(&of_one, "worte", "app:refunds").await;
    assert!(found(&of_one, WORDS).await.contains(&"app:disputes".to_owned()), "nothing was lost");
    two.code_call.close().await;
    one.code_call.close().await;
    let later = served("on").await;
    later.code_call.share_usage(records.clone());
    until_found(&client(&later, "eve", "").await, WORDS, "app:disputes").await;
}

#[tokio::test(start_paused = true)]
async fn what_was_counted_since_the_last_round_is_shared_when_the_gateway_stops() {
    let records: Arc<MemoryRecords> = Arc::default();
    let first = served("on").await;
    first.code_call.share_usage(records.clone());
    let client_of_first = client(&first, "ada", "").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    found(&client_of_first, WORDS).await;
    client_of_first.invoke("disputes", 0).await;
    first.code_call.close().await;
    let second = served("on").await;
    second.code_call.share_usage(records);
    until_found(&client(&second, "bob", "").await, WORDS, "app:disputes").await;
}
