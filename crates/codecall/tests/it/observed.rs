//! Observers are told of the calls of plans in the background, and of saved plans.

use std::sync::{Arc, Mutex, atomic::Ordering};

use gatewright_codecall::{CodeCallConfig, SavedPlans};
use gatewright_core::{App, AppOptions, Execution, LocalApp, Observer};
use serde_json::json;

use super::{
    asking::User,
    detached::{Desk, detach, ended},
    support::Served,
};

/// Calls and their status.
type Calls = Vec<(String, String)>;

/// Executions that observers were told of: the plan, its status, and its calls.
#[derive(Default)]
pub(crate) struct Told(Mutex<Vec<(Option<String>, String, Calls)>>);

impl Observer for Told {
    fn finished(&self, execution: &Execution) {
        let calls = execution.calls.iter();
        let calls = calls.map(|call| (call.tool.to_string(), call.ending.status().to_owned())).collect();
        let plan = execution.plan.as_deref().map(str::to_owned);
        self.0.lock().unwrap().push((plan, execution.ending.status().to_owned(), calls));
    }
}

impl Told {
    pub(crate) fn by(served: &Served) -> Arc<Self> {
        let told = Arc::new(Self::default());
        let _ = served.gateway.session().observed_by(vec![told.clone()]);
        told
    }

    pub(crate) async fn of_plans(&self, count: usize) -> Vec<(String, Calls)> {
        loop {
            let all = self.0.lock().unwrap().clone();
            let of_plans = all.into_iter().filter(|(plan, ..)| plan.is_some());
            let of_plans: Vec<_> = of_plans.map(|(_, status, calls)| (status, calls)).collect();
            if of_plans.len() >= count {
                return of_plans;
            }
            tokio::task::yield_now().await;
        }
    }
}

fn calls(all: &[(&str, &str)]) -> Calls {
    all.iter().map(|(tool, status)| ((*tool).to_owned(), (*status).to_owned())).collect()
}

#[tokio::test]
async fn observers_are_told_of_the_calls_of_each_part_of_a_run_in_the_background() {
    let desk = Desk::default();
    let served = Served::over(json!({}), desk.server()).await;
    let told = Told::by(&served);
    let ada = served.client_with("ada", User::named("Ada")).await;
    let script = "await callTool('app:step', {}); const { name } = await callTool('app:ask', {}); await callTool('app:step', {}); return name";
    let id = detach(&ada, script).await;
    let asked = told.of_plans(1).await;
    assert_eq!(asked[0].1, calls(&[("app:step", "ok"), ("app:ask", "input_required")]));
    assert_eq!(ended(&ada, &id).await["result"], "Ada");
    let all = told.of_plans(2).await;
    assert_eq!(all[1], ("ok".to_owned(), calls(&[("app:ask", "ok"), ("app:step", "ok")])));
    let begun = told.0.lock().unwrap()[0].clone();
    assert_eq!((begun.0, begun.2), (None, Vec::new()), "the request that began it made no call");
}

#[tokio::test]
async fn observers_are_told_of_calls_that_a_run_in_the_background_leaves_open() {
    let desk = Desk::default();
    let served = Served::over(json!({}), desk.server()).await;
    let told = Told::by(&served);
    let ada = served.client("ada").await;
    let id = detach(&ada, "await callTool('app:step', {}); return await callTool('app:hold', {})").await;
    desk.entered.notified().await;
    let cancelled = ada.body("codecall:execute", json!({"resume": id, "cancel": true})).await;
    assert!(cancelled.get("error").is_none() || cancelled["status"] != "running", "{cancelled}");
    let all = told.of_plans(1).await;
    assert_eq!(all[0].1, calls(&[("app:step", "ok"), ("app:hold", "EXECUTION_ABORTED")]));
}

#[tokio::test]
async fn observers_are_told_of_calls_that_a_saved_plan_leaves_open_when_its_script_ends() {
    let (desk, folder) = (Desk::default(), tempfile::tempdir().unwrap());
    let plan = "/* plan\nname: inner\ndescription: Holds.\n*/
        await callTool('app:hold', {}); return await callTool('app:step', {})";
    std::fs::write(folder.path().join("inner.js"), plan).unwrap();
    let config: CodeCallConfig =
        serde_json::from_value(json!({"mode": "metadata_driven", "vm": {"timeoutMs": 500}})).unwrap();
    let (plans, _) = SavedPlans::open("plans", folder.path().to_owned().into(), &config).unwrap();
    let local = Arc::new(LocalApp::start(desk.server()).await.unwrap());
    let apps: Vec<(_, Arc<dyn App>, _)> =
        vec![("app", local, AppOptions::default()), ("plans", plans.clone(), AppOptions::default())];
    let served = Served::of_apps(config, apps, None);
    served.code_call.run_plans_of(&plans);
    let told = Told::by(&served);
    let ada = served.client("ada").await;
    for _ in 0..5 {
        let ended =
            ada.body("codecall:execute", json!({"script": "return await callTool('plans:inner', {})"})).await;
        assert_eq!(ended["status"], "timeout", "{ended}");
        let (_, _, made) = told.0.lock().unwrap().pop().unwrap();
        let expected = calls(&[("plans:inner", "EXECUTION_ABORTED"), ("app:hold", "EXECUTION_ABORTED")]);
        assert_eq!(made, expected);
    }
    desk.go.add_permits(5);
    assert_eq!(ada.run("return 1").await, json!(1));
    assert_eq!(desk.steps.load(Ordering::SeqCst), 0, "nothing was made of which nobody was told");
}

#[tokio::test]
async fn observers_are_told_of_calls_that_are_refused_before_an_app_is_asked() {
    let desk = Desk::default();
    let served = Served::over(json!({}), desk.server()).await;
    let told = Told::by(&served);
    let ada = served.client("ada").await;
    let script = "for (const name of ['app:none', 'app:write'])
          try { await callTool(name, {}) } catch (error) {}
        return 1";
    let input = json!({"script": script, "allowedTools": ["app:none"]});
    assert_eq!(ada.body("codecall:execute", input).await["status"], "ok");
    ada.body("codecall:invoke", json!({"tool": "app:none", "input": {}})).await;
    let all: Vec<Calls> = told.0.lock().unwrap().iter().map(|(.., calls)| calls.clone()).collect();
    let of_script = [("app:none", "TOOL_NOT_FOUND"), ("app:write", "ACCESS_DENIED")];
    assert_eq!(all, [calls(&of_script), calls(&[("app:none", "TOOL_NOT_FOUND")])]);
}
