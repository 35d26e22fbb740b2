//! The examples of docs/PLANS.md, as they are written there.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use gatewright_codecall::{CodeCallConfig, Mode};
use gatewright_core::{
    App, AppOptions, Approval, Approvals, LocalApp, Policies,
    rmcp::{
        ClientHandler,
        model::{CallToolRequestParams, CallToolResponse, CallToolResult},
    },
};
use gatewright_executions::{Executions, ExecutionsConfig};
use gatewright_testing::ToolServer;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};

use super::{
    asking::{User, asks},
    support::Served,
};

const PAGE: &str = include_str!("../../../../docs/PLANS.md");

/// The first block of `language` below the heading `title`.
fn example(title: &str, language: &str) -> String {
    let section = PAGE.split_once(&format!("\n## {title}\n")).expect("the page has the section").1;
    let section = section.split("\n## ").next().unwrap();
    let block = section.split_once(&format!("```{language}\n")).expect("the section has the block").1;
    block.split_once("```").unwrap().0.to_owned()
}

fn done(value: Value) -> CallToolResponse {
    CallToolResponse::Complete(CallToolResult::structured(value))
}

/// Apps by name, with the calls that each was sent.
#[derive(Default)]
struct Apps {
    apps: Vec<(&'static str, Arc<dyn App>)>,
    called: Arc<Mutex<Vec<String>>>,
}

impl Apps {
    /// Adds an app whose tools answer as `answer` says.
    async fn add<F>(
        &mut self,
        name: &'static str,
        tools: Value,
        answer: impl Fn(CallToolRequestParams) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = CallToolResponse> + Send + 'static,
    {
        let called = self.called.clone();
        let server = ToolServer::asking(tools, move |call, _| {
            let arguments = Value::Object(call.arguments.clone().unwrap_or_default());
            called.lock().unwrap().push(format!("{name}:{} {arguments}", call.name));
            let answer = answer(call);
            async move { Ok(answer.await) }
        });
        self.apps.push((name, Arc::new(LocalApp::start(server).await.unwrap())));
    }

    fn served(&self, executions: Option<Executions>) -> Served {
        let config = CodeCallConfig { mode: Mode::MetadataDriven, ..CodeCallConfig::default() };
        let apps = self.apps.iter().map(|(name, app)| (*name, app.clone(), AppOptions::default()));
        Served::of_apps(config, apps.collect(), executions)
    }

    /// Calls of the tool `name`.
    fn called(&self, name: &str) -> Vec<String> {
        let called = self.called.lock().unwrap();
        called.iter().filter(|call| call.split(' ').next() == Some(name)).cloned().collect()
    }
}

fn tool(name: &str, annotations: Value) -> Value {
    json!({"name": name, "description": name, "inputSchema": {"type": "object"}, "annotations": annotations})
}

/// A shop whose tool `refund` asks, and mail.
async fn shop() -> Apps {
    let mut apps = Apps::default();
    let order = json!({"id": "ord_17", "cents": 12_000, "email": "ada@example.com"});
    let tools = json!([tool("orders_get", json!({"readOnlyHint": true})), tool("refund", json!({}))]);
    apps.add("shop", tools, move |call| {
        let answer = match (&*call.name, call.input_responses) {
            ("orders_get", _) => done(order.clone()),
            (_, None) => CallToolResponse::InputRequired(asks("Refund 120.00 to Ada?", "asked")),
            (_, Some(_)) => done(json!({"reference": "ref_9"})),
        };
        async move { answer }
    })
    .await;
    apps.add("mail", json!([tool("send", json!({}))]), async |_| done(json!({"sent": true}))).await;
    apps
}

/// Runs the plan of the page for a client with `user`, who says yes, and checks what came of it.
async fn refunded_by<H: ClientHandler>(user: H) {
    let apps = shop().await;
    let served = apps.served(None);
    let ada = served.client_with("ada", user).await;
    let answer = ada.body("codecall:execute", json!({"script": example("Ask, wait, go on", "js")})).await;
    assert_eq!((&answer["status"], &answer["result"]), (&json!("ok"), &json!("ref_9")), "{answer}");
    let mail = apps.called("mail:send");
    assert_eq!(mail, [r#"mail:send {"to":"ada@example.com","text":"Refunded: ref_9"}"#]);
    // It was asked, and called again with the answer.
    assert_eq!(apps.called("shop:refund").len(), 2);
}

#[tokio::test]
async fn the_refund_waits_for_the_answer_and_is_made_once() {
    refunded_by(User::named("Ada")).await;
}

/// Invoices, of which the second is charged when its gateway dies.
async fn billing(entered: Arc<Notify>, never: Arc<Semaphore>) -> Apps {
    let mut apps = Apps::default();
    let read = json!({"readOnlyHint": true});
    let tools = json!([tool("due", read.clone()), tool("charge", json!({})), tool("get", read)]);
    apps.add("billing", tools, move |call| {
        let (entered, never) = (entered.clone(), never.clone());
        async move {
            let id = call.arguments.and_then(|arguments| arguments.get("id")?.as_u64());
            match (&*call.name, id) {
                ("due", _) => done(json!({"result": [{"id": 1}, {"id": 2}, {"id": 3}]})),
                ("get", _) => done(json!({"state": "paid"})),
                (_, Some(2)) => {
                    entered.notify_one();
                    let _ = never.acquire().await;
                    done(json!({}))
                }
                _ => done(json!({"charged": true})),
            }
        }
    })
    .await;
    apps
}

#[tokio::test]
async fn the_charges_survive_a_crash_and_each_is_made_once() {
    let (entered, never) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let apps = billing(entered.clone(), never).await;
    let ahead = Arc::new(AtomicU64::new(0));
    let of_clock = ahead.clone();
    let config = ExecutionsConfig { lease: Duration::from_secs(3), ..ExecutionsConfig::default() };
    let now = move || SystemTime::now() + Duration::from_secs(of_clock.load(Ordering::SeqCst));
    let executions = Executions::in_memory_at(config, now);
    let first = apps.served(Some(executions.clone()));
    let script = example("Run in the background, and survive a crash", "js");
    let begun =
        first.client("ada").await.body("codecall:execute", json!({"script": script, "detach": true})).await;
    assert_eq!(begun["status"], "running", "{begun}");
    entered.notified().await;
    first.code_call.close().await;
    ahead.fetch_add(60, Ordering::SeqCst);
    let second = apps.served(Some(executions));
    let ada = second.client("ada").await;
    let answer = loop {
        let answer = ada.body("codecall:execute", json!({"resume": begun["executionId"]})).await;
        if answer["status"] != "running" {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(answer["result"], json!([1, 2, 3]), "{answer}");
    let charges = [1, 2, 3].map(|id| format!("billing:charge {{\"id\":{id}}}"));
    assert_eq!(apps.called("billing:charge"), charges);
    assert_eq!(apps.called("billing:get"), [r#"billing:get {"id":2}"#]);
}

#[tokio::test]
async fn the_rehearsal_of_the_clean_up_says_what_the_page_says_and_deletes_nobody() {
    let mut apps = Apps::default();
    let deleted =
        json!({"type": "object", "properties": {"deleted": {"type": "boolean"}}, "required": ["deleted"]});
    let mut delete = tool("users_delete", json!({"destructiveHint": true}));
    delete["outputSchema"] = deleted;
    apps.add("crm", json!([tool("users_list", json!({"readOnlyHint": true})), delete]), async |_| {
        let user = |id: &str, active: bool| json!({"id": id, "active": active});
        let items = [("usr_0015", true), ("usr_0016", false), ("usr_0017", false), ("usr_0018", false)];
        done(json!({"items": items.map(|(id, active)| user(id, active))}))
    })
    .await;
    let served = apps.served(None);
    let approvals = Approvals { destructive: Some(Approval::Ask), ..Approvals::default() };
    served.gateway.registry().set_policies(Some(Policies { engine: None, approvals }));
    let ada = served.client("ada").await;
    let input = json!({"script": example("Rehearse", "js"), "dryRun": true});
    let answer = ada.body("codecall:execute", input).await;
    let expected: Value = serde_json::from_str(&example("Rehearse", "json")).unwrap();
    for name in ["status", "result"] {
        assert_eq!(answer[name], expected[name], "{answer}");
    }
    for name in ["certain", "assumed", "calls"] {
        assert_eq!(answer["dryRun"][name], expected["dryRun"][name], "{answer}");
    }
    assert!(apps.called("crm:users_delete").is_empty());
}
