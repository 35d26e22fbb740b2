//! Runs in the background whose lease runs out while their instance lives, as on a machine that stands still for a while.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use gatewright_codecall::{CodeCallConfig, Mode, SavedPlans};
use gatewright_core::{
    App, AppOptions, LocalApp, MemoryRecords, RecordsError, RecordsFuture, SealKey, SharedRecords,
    rmcp::model::{CallToolResponse, CallToolResult},
};
use gatewright_executions::{Executions, ExecutionsConfig};
use gatewright_testing::ToolServer;
use serde_json::json;
use tokio::sync::Notify;

use super::{
    records::{Meanwhile, Through, Way},
    support::Served,
};

/// The next renewal of a lease comes too late: its record is gone.
#[derive(Default)]
struct Late(AtomicBool);

impl Way for Late {
    fn replaces(&self, _: &str, before: Option<&[u8]>, after: &[u8]) -> Meanwhile {
        // Only a renewal leaves a record as it is.
        let is_late = before == Some(after) && self.0.swap(false, Ordering::SeqCst);
        if is_late { Meanwhile::Expired } else { Meanwhile::Nothing }
    }
}

#[tokio::test]
async fn a_run_whose_lease_ran_out_is_not_ended_but_goes_on() {
    let records = Through::to(Arc::<MemoryRecords>::default(), Late::default());
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
    records.way.0.store(true, Ordering::SeqCst);
    while records.way.0.load(Ordering::SeqCst) {
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

/// Notifies when it is dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn a_plan_that_is_cancelled_ends_what_saved_plans_within_it_do_although_its_lease_lasts() {
    let (entered, left) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tools, tool) =
        (json!([{"name": "look", "inputSchema": {"type": "object"}}]), (entered.clone(), left.clone()));
    let server = ToolServer::asking(tools, move |_, _| {
        let (entered, left) = tool.clone();
        async move {
            let _left = Dropped(left);
            entered.notify_one();
            std::future::pending().await
        }
    });
    let plan = "return await callTool('app:look', {})";
    let (served, _folder) = with_plan(plan, server, Arc::<MemoryRecords>::default()).await;
    let ada = served.client("ada").await;
    let script = "return await callTool('plans:inner', {})";
    let begun = ada.body("codecall:execute", json!({"script": script, "detach": true})).await;
    entered.notified().await;
    let id = &begun["executionId"];
    let cancelled = ada.body("codecall:execute", json!({"resume": id, "cancel": true})).await;
    assert_eq!(cancelled["error"]["code"], "EXECUTION_ABORTED", "{cancelled}");
    left.notified().await;
}

/// A store that does not answer while it is away; counts the records that were to be replaced meanwhile.
#[derive(Default)]
struct Away {
    is_away: AtomicBool,
    asked: AtomicUsize,
}

impl Way for Away {
    fn pass<'a, T: Send + 'a>(&'a self, step: RecordsFuture<'a, T>) -> RecordsFuture<'a, T> {
        match self.is_away.load(Ordering::SeqCst) {
            true => Box::pin(std::future::ready(Err(RecordsError::Unavailable))),
            false => step,
        }
    }

    fn replaces(&self, _: &str, _: Option<&[u8]>, _: &[u8]) -> Meanwhile {
        self.asked.fetch_add(usize::from(self.is_away.load(Ordering::SeqCst)), Ordering::SeqCst);
        Meanwhile::Nothing
    }
}

#[tokio::test]
async fn while_the_store_does_not_answer_saved_plans_within_a_plan_make_no_call_either() {
    let records = Through::to(Arc::<MemoryRecords>::default(), Away::default());
    let (calls, counted) = (Arc::new(AtomicUsize::new(0)), records.clone());
    let tools = json!([{"name": "look", "inputSchema": {"type": "object"}}]);
    let count = calls.clone();
    let server = ToolServer::asking(tools, move |_, _| {
        // It goes away while the first call is under way.
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            counted.way.is_away.store(true, Ordering::SeqCst);
        }
        std::future::ready(Ok(CallToolResponse::Complete(CallToolResult::structured(json!({"n": 1})))))
    });
    let plan = "for (let i = 0; i < 3; i++) await callTool('app:look', {});\nreturn 1";
    let (served, _folder) = with_plan(plan, server, records.clone()).await;
    let ada = served.client("ada").await;
    let script = "return await callTool('plans:inner', {})";
    let begun = ada.body("codecall:execute", json!({"script": script, "detach": true})).await;
    // The renewal of the lease, which lasts, is not among them.
    while records.way.asked.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    records.way.is_away.store(false, Ordering::SeqCst);
    let answer = loop {
        let answer = ada.body("codecall:execute", json!({"resume": begun["executionId"]})).await;
        if answer["status"] != "running" {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((&answer["status"], calls.load(Ordering::SeqCst)), (&json!("ok"), 3), "{answer}");
}

/// A server with the plan `plans:inner` of this code beside `server`, whose executions are in `records`.
async fn with_plan<R: SharedRecords + 'static>(
    code: &str,
    server: ToolServer,
    records: Arc<R>,
) -> (Served, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let plan = format!("/* plan\nname: inner\ndescription: Looks.\n*/\n{code}");
    std::fs::write(folder.path().join("inner.js"), plan).unwrap();
    let settings = CodeCallConfig { mode: Mode::MetadataDriven, ..CodeCallConfig::default() };
    let (plans, _) = SavedPlans::open("plans", folder.path().to_owned().into(), &settings).unwrap();
    let config = ExecutionsConfig { lease: Duration::from_secs(600), ..ExecutionsConfig::default() };
    let key = SealKey::derived(b"a secret of thirty-two characters");
    let executions = Executions::shared(config, records, &key, "test");
    let apps: Vec<(_, Arc<dyn App>, _)> = vec![
        ("app", Arc::new(LocalApp::start(server).await.unwrap()), AppOptions::default()),
        ("plans", plans.clone(), AppOptions::default()),
    ];
    let served = Served::of_apps(settings, apps, Some(executions));
    served.code_call.run_plans_of(&plans);
    (served, folder)
}
