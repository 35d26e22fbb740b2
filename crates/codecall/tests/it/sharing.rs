//! Shapes that instances share through a store.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gatewright_core::{MemoryRecords, NewRecord, RecordsFuture, SharedRecords as _};
use serde_json::{Value, json};

use super::{
    records::{Cut, Meanwhile, Through, Way},
    support::{Client, Fixture, Served, structured},
};

/// A connection that can be cut. The first write is refused, as if another instance had been quicker.
#[derive(Default)]
struct Sharing {
    was_refused: AtomicBool,
    cut: Cut,
    written: Mutex<BTreeSet<String>>,
}

impl Way for Sharing {
    fn pass<'a, T: Send + 'a>(&'a self, step: RecordsFuture<'a, T>) -> RecordsFuture<'a, T> {
        self.cut.pass(step)
    }

    fn replaces(&self, key: &str, _: Option<&[u8]>, _: &[u8]) -> Meanwhile {
        if !self.was_refused.swap(true, Ordering::SeqCst) {
            return Meanwhile::Replaced;
        }
        self.written.lock().unwrap().insert(key.to_owned());
        Meanwhile::Nothing
    }
}

type Records = Through<Sharing>;

fn records() -> Arc<Records> {
    Through::to(Arc::<MemoryRecords>::default(), Sharing::default())
}

async fn instance(answer: Value, records: &Arc<Records>) -> (Served, Client) {
    let served = Served::new(json!({}), [Fixture::new("get", [structured(answer)])]).await;
    served.code_call.share_shapes(records.clone());
    let client = served.client("ada").await;
    (served, client)
}

/// The schema and count once `answers` answers are known.
async fn observed(client: &Client, answers: u64) -> Value {
    let known = async {
        loop {
            match client.observed("get").await {
                Some((schema, count)) if count == answers => return schema,
                // Time is paused: this lets the rounds of the instances run.
                _ => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), known).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_instance_knows_what_others_learned_and_no_answer_counts_twice() {
    let records = records();
    let (first, of_first) = instance(json!({"a": 1}), &records).await;
    let (_second, of_second) = instance(json!({"b": "x"}), &records).await;
    for _ in 0..3 {
        of_first.invoke("get", 0).await;
    }
    first.code_call.close().await;
    let (_third, of_third) = instance(json!({"c": 1}), &records).await;
    assert_eq!(observed(&of_third, 3).await["required"], json!(["a"]));
    of_second.invoke("get", 0).await;
    of_third.invoke("get", 0).await;
    for client in [&of_second, &of_third] {
        let schema = observed(client, 5).await;
        let names: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(names.len(), 3, "{schema}");
        assert!(schema.get("required").is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_looked_too_early_learns_of_a_tool_when_it_is_asked() {
    let records = records();
    let (_early, of_early) = instance(json!({"a": 1}), &records).await;
    // Its first rounds find nothing.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let (first, of_first) = instance(json!({"a": 1}), &records).await;
    of_first.invoke("get", 0).await;
    of_first.invoke("get", 0).await;
    first.code_call.close().await;
    assert_eq!(observed(&of_early, 2).await["required"], json!(["a"]));
}

#[tokio::test(start_paused = true)]
async fn an_instance_learns_on_while_the_store_is_away_or_its_records_are_junk() {
    let records = records();
    records.way.cut.turn(true);
    let (first, of_first) = instance(json!({"a": 1}), &records).await;
    of_first.invoke("get", 0).await;
    assert_eq!(observed(&of_first, 1).await["required"], json!(["a"]));
    records.way.cut.turn(false);
    let is_shared = async {
        while records.way.written.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), is_shared).await.unwrap();
    first.code_call.close().await;
    let keys = records.way.written.lock().unwrap().clone();
    let junk = |key| NewRecord { key, value: b"junk".to_vec(), ttl: Duration::from_secs(3_600) };
    records.put_many(&keys.into_iter().map(junk).collect::<Vec<_>>()).await.unwrap();
    let (_second, of_second) = instance(json!({"b": 1}), &records).await;
    of_second.invoke("get", 0).await;
    assert_eq!(observed(&of_second, 1).await["required"], json!(["b"]));
}
