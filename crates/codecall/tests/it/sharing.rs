//! Shapes that instances share through a store.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gatewright_core::{NewRecord, RecordsError, RecordsFuture, SharedRecords};
use serde_json::{Value, json};

use super::support::{Client, Fixture, Served, structured};

/// Records in memory. Each write is refused once, as if another instance had been quicker.
#[derive(Default)]
struct Records {
    all: Mutex<HashMap<String, Vec<u8>>>,
    was_refused: AtomicBool,
    is_down: AtomicBool,
}

impl SharedRecords for Records {
    fn get_many<'a>(&'a self, keys: &'a [String]) -> RecordsFuture<'a, Vec<Option<Vec<u8>>>> {
        Box::pin(async move {
            if self.is_down.load(Ordering::SeqCst) {
                return Err(RecordsError::Unavailable);
            }
            let all = self.all.lock().unwrap();
            Ok(keys.iter().map(|key| all.get(key).cloned()).collect())
        })
    }

    fn put_many<'a>(&'a self, _: &'a [NewRecord]) -> RecordsFuture<'a, ()> {
        unreachable!("shapes of several instances are always compared and replaced")
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        before: Option<&'a [u8]>,
        after: &'a [u8],
        _: Duration,
    ) -> RecordsFuture<'a, bool> {
        Box::pin(async move {
            let mut all = self.all.lock().unwrap();
            if !self.was_refused.swap(true, Ordering::SeqCst) || all.get(key).map(Vec::as_slice) != before {
                return Ok(false);
            }
            all.insert(key.to_owned(), after.to_vec());
            Ok(true)
        })
    }

    fn remove_many<'a>(&'a self, _: &'a [String]) -> RecordsFuture<'a, ()> {
        unreachable!("shapes expire")
    }
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
    let records = Arc::new(Records::default());
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
    let records = Arc::new(Records::default());
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
    let records = Arc::new(Records::default());
    records.is_down.store(true, Ordering::SeqCst);
    let (first, of_first) = instance(json!({"a": 1}), &records).await;
    of_first.invoke("get", 0).await;
    assert_eq!(observed(&of_first, 1).await["required"], json!(["a"]));
    records.is_down.store(false, Ordering::SeqCst);
    let is_shared = async {
        while records.all.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), is_shared).await.unwrap();
    first.code_call.close().await;
    records.all.lock().unwrap().values_mut().for_each(|record| *record = b"junk".to_vec());
    let (_second, of_second) = instance(json!({"b": 1}), &records).await;
    of_second.invoke("get", 0).await;
    assert_eq!(observed(&of_second, 1).await["required"], json!(["b"]));
}
