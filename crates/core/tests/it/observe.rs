//! Records that observers receive.

use std::sync::{Arc, Mutex};

use gatewright_core::{
    AppOptions, Caller, Execution, Gateway, GatewayConfig, Invoker, LocalApp, Observer, Operation, Principal,
    Registry, Scopes, Subject, ToolNames, memory_transport,
    rmcp::{
        RoleClient, ServiceExt as _,
        model::{CallToolRequestParams, CallToolResponse, ReadResourceRequestParams},
        service::RunningService,
    },
};
use serde_json::{Value, json};

use crate::support::Handler;

#[derive(Default)]
struct Heard {
    all: Mutex<Vec<Execution>>,
    operations: Mutex<Vec<Operation>>,
    everything: bool,
}

impl Observer for Heard {
    fn finished(&self, execution: &Execution) {
        self.all.lock().unwrap().push(execution.clone());
    }

    fn operated(&self, operation: &Operation) {
        self.operations.lock().unwrap().push(operation.clone());
    }

    fn wants_arguments(&self) -> bool {
        self.everything
    }

    fn wants_traces(&self) -> bool {
        self.everything
    }
}

async fn client(observer: Arc<Heard>) -> RunningService<RoleClient, ()> {
    let registry = Registry::new(ToolNames::default());
    let app = LocalApp::start(Handler::with(&["hello"])).await.unwrap();
    registry.add("app", Arc::new(app), AppOptions::default());
    let invoker = Arc::new(Invoker::new(registry));
    let gateway = Gateway::new(GatewayConfig::new("test", "1"), invoker, Vec::new());
    let gateway = gateway.observed_by(vec![observer]);
    let (client_end, server_end) = memory_transport();
    tokio::spawn(async move {
        gateway.session_of(Principal::local()).serve(server_end).await.unwrap().waiting().await
    });
    ().serve(client_end).await.unwrap()
}

async fn call(client: &RunningService<RoleClient, ()>, tool: &'static str, arguments: Value) -> bool {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    matches!(
        client.peer().call_tool(params).await.map(CallToolResponse::from),
        Ok(CallToolResponse::Complete(_))
    )
}

#[tokio::test]
async fn a_direct_call_is_one_execution_with_one_call() {
    let heard = Arc::new(Heard::default());
    let client = client(heard.clone()).await;
    assert!(call(&client, "app:hello", json!({})).await);
    let all = heard.all.lock().unwrap();
    let [one] = &all[..] else { panic!("{all:?}") };
    assert_eq!(
        (&*one.tool, one.is_known, one.is_meta, one.ending.status()),
        ("app:hello", true, false, "ok")
    );
    assert_eq!((one.calls.len(), &*one.calls[0].app, one.calls[0].ending.is_ok()), (1, "app", true));
    assert!(one.duration >= one.calls[0].duration);
    assert_eq!((one.arguments.is_none(), one.trace.is_none()), (true, true), "nobody asked for them");
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_told_as_such() {
    let heard = Arc::new(Heard::default());
    let client = client(heard.clone()).await;
    assert!(!call(&client, "app:nothing", json!({})).await);
    let all = heard.all.lock().unwrap();
    assert_eq!((all[0].is_known, all[0].ending.status(), all[0].calls.len()), (false, "TOOL_NOT_FOUND", 0));
}

#[tokio::test]
async fn who_asks_for_them_is_given_arguments_and_spans() {
    let heard = Arc::new(Heard { everything: true, ..Heard::default() });
    let client = client(heard.clone()).await;
    call(&client, "app:hello", json!({"secret": "s3cret"})).await;
    let all = heard.all.lock().unwrap();
    assert_eq!(all[0].arguments.as_ref().unwrap()["secret"], "s3cret");
    assert_ne!(all[0].calls[0].span_id.unwrap(), all[0].trace.as_ref().unwrap().span_id);
}

#[tokio::test]
async fn requests_of_other_methods_are_told_with_what_they_are_about() {
    let heard = Arc::new(Heard { everything: true, ..Heard::default() });
    let client = client(heard.clone()).await;
    client.peer().list_all_tools().await.unwrap();
    let missing = ReadResourceRequestParams::new("crm://nothing");
    client.peer().read_resource(missing).await.unwrap_err();
    let all = heard.operations.lock().unwrap();
    let told: Vec<_> = all.iter().map(|one| (one.method, one.ending.is_ok())).collect();
    assert_eq!(told, [("initialize", true), ("tools/list", true), ("resources/read", false)]);
    assert_eq!(all[1].subject, None);
    assert_eq!(all[2].subject, Some(Subject::Resource("crm://nothing".into())));
    assert!(all.iter().all(|one| one.trace.is_some()));
    assert!(heard.all.lock().unwrap().is_empty(), "none of them is an execution");
}

#[tokio::test]
async fn a_call_that_lacks_scopes_and_is_refused_before_it_is_dispatched_is_told() {
    let registry = Registry::new(ToolNames::default());
    let app = LocalApp::start(Handler::with(&["hello"])).await.unwrap();
    let options = AppOptions { scopes: vec!["a".to_owned()], ..AppOptions::default() };
    registry.add("app", Arc::new(app), options);
    let gateway = Gateway::new(GatewayConfig::new("test", "1"), Arc::new(Invoker::new(registry)), Vec::new());
    let heard = Arc::new(Heard::default());
    let gateway = gateway.observed_by(vec![heard.clone()]);
    let (address, call) = (
        "192.0.2.1".parse().unwrap(),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "app:hello"}}),
    );
    for (scopes, told) in [("b", 1), ("a", 1)] {
        let caller = Caller::new(Principal { scopes: Scopes::parse(scopes), ..Principal::local() });
        gateway.missing_scopes(caller, Some(address), call.to_string()).await;
        let all = heard.all.lock().unwrap();
        assert_eq!(all.len(), told, "{scopes}");
        let first = &all[0];
        assert_eq!(
            (&*first.tool, first.ending.status(), first.address),
            ("app:hello", "ACCESS_DENIED", Some(address))
        );
    }
}
