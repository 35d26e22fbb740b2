//! Runs in the background whose lease runs out while their instance lives, as on a machine that stands still for a while.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gatewright_core::{
    NewRecord, RecordsFuture, SealKey, SharedRecords,
    rmcp::model::{CallToolResponse, CallToolResult},
};
use gatewright_executions::{Executions, ExecutionsConfig};
use gatewright_testing::ToolServer;
use serde_json::json;
use tokio::sync::Notify;

use super::support::Served;

/// Records in memory. The next renewal of a lease comes too late: its record is gone.
#[derive(Default)]
struct Records {
    all: Mutex<HashMap<String, Vec<u8>>>,
    expires: AtomicBool,
}

impl SharedRecords for Records {
    fn get_many<'a>(&'a self, keys: &'a [String]) -> RecordsFuture<'a, Vec<Option<Vec<u8>>>> {
        let all = self.all.lock().unwrap();
        let found: Vec<_> = keys.iter().map(|key| all.get(key).cloned()).collect();
        Box::pin(async move { Ok(found) })
    }

    fn put_many<'a>(&'a self, records: &'a [NewRecord]) -> RecordsFuture<'a, ()> {
        let new = records.iter().map(|record| (record.key.clone(), record.value.clone()));
        self.all.lock().unwrap().extend(new);
        Box::pin(async { Ok(()) })
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        before: Option<&'a [u8]>,
        after: &'a [u8],
        _: Duration,
    ) -> RecordsFuture<'a, bool> {
        let mut all = self.all.lock().unwrap();
        // Only a renewal leaves a record as it is.
        if before == Some(after) && self.expires.swap(false, Ordering::SeqCst) {
            all.remove(key);
        }
        let is_same = all.get(key).map(Vec::as_slice) == before;
        if is_same {
            all.insert(key.to_owned(), after.to_vec());
        }
        Box::pin(async move { Ok(is_same) })
    }

    fn remove_many<'a>(&'a self, keys: &'a [String]) -> RecordsFuture<'a, ()> {
        self.all.lock().unwrap().retain(|key, _| !keys.contains(key));
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn a_run_whose_lease_ran_out_is_not_ended_but_goes_on() {
    let records = Arc::new(Records::default());
    let config = ExecutionsConfig { lease: Duration::from_secs(3), ..ExecutionsConfig::default() };
    let key = SealKey::derived(b"a secret of thirty-two characters");
    let executions = Executions::shared(config, records.clone(), &key, "test");
    let (entered, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tools, tool) =
        (json!([{"name": "look", "inputSchema": {"type": "object"}}]), (entered.clone(), go.clone()));
    let server = ToolServer::asking(tools, move |_, _| {
        let (entered, go) = tool.clone();
        async move {
            entered.notify_one();
            go.notified().await;
            Ok(CallToolResponse::Complete(CallToolResult::structured(json!({"n": 1}))))
        }
    });
    let served = Served::keeping(executions, server).await;
    let ada = served.client("ada").await;
    let script = "try { return (await callTool('app:look', {})).n } catch (error) { return error.code }";
    let begun = ada.body("codecall:execute", json!({"script": script, "detach": true})).await;
    entered.notified().await;
    records.expires.store(true, Ordering::SeqCst);
    while records.expires.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
    go.notify_one();
    let answer = loop {
        let answer = ada.body("codecall:execute", json!({"resume": begun["executionId"]})).await;
        if answer["status"] != "running" && answer["error"]["code"] != "EXECUTION_BUSY" {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((&answer["status"], &answer["result"]), (&json!("ok"), &json!(1)), "{answer}");
}
