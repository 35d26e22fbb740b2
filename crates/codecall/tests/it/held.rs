//! Calls of older servers that a plan waits with: they are held open at one instance, which the state of the plan names.
#![expect(deprecated, reason = "apps have log levels, which SEP-2577 marks as deprecated")]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use gatewright_codecall::{CodeCallConfig, Mode, SavedPlans};
use gatewright_core::{
    App, AppEvent, AppFuture, AppHealth, AppOptions, CallContext, Catalog, LocalApp, NetworkTransport,
    Permit, StateHome, ask,
    rmcp::{
        ErrorData,
        model::{
            CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientResult,
            CompleteRequestParams, CompleteResult, ContentBlock, GetPromptRequestParams, GetPromptResponse,
            GetTaskParams, GetTaskResult, InputRequiredResult, LoggingLevel, ReadResourceRequestParams,
            ReadResourceResponse, ServerRequest, UpdateTaskParams,
        },
    },
};
use serde_json::json;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

use super::{
    support::Served,
    waiting::{Asking, User, body, execute, made, modern},
};

/// A server of the older era elsewhere, with the tools of [`Asking`]. `ask` asks while it works: for a name, or what the `questions` among its
/// arguments say, one after the other (`form`, `sampling`, `roots`).
pub(crate) struct Older {
    local: Arc<LocalApp<Asking>>,
    /// Calls of `ask`.
    pub(crate) begun: AtomicUsize,
    /// A call of `ask` is over.
    pub(crate) ended: Arc<Notify>,
}

impl Older {
    pub(crate) async fn of(asking: Asking) -> Arc<Self> {
        let local = Arc::new(LocalApp::start(asking).await.unwrap());
        Arc::new(Self { local, begun: AtomicUsize::new(0), ended: Arc::default() })
    }
}

/// Says that a call is over when dropped.
struct Over(Arc<Notify>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

fn question(kind: &str) -> ServerRequest {
    let name = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    match kind {
        "form" => ServerRequest::ElicitRequest(made(json!({"method": "elicitation/create",
            "params": {"mode": "form", "message": "Who?", "requestedSchema": name}}))),
        "sampling" => ServerRequest::CreateMessageRequest(made(json!({"method": "sampling/createMessage",
            "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 9}}))),
        "roots" => ServerRequest::ListRootsRequest(made(json!({"method": "roots/list"}))),
        other => panic!("{other}"),
    }
}

/// The text of an answer.
fn answer(answer: ClientResult) -> String {
    let answer = match answer {
        ClientResult::ElicitResult(form) => form.content.unwrap()["name"].clone(),
        ClientResult::CreateMessageResult(message) => json!(message)["content"]["text"].take(),
        ClientResult::ListRootsResult(roots) => json!(roots)["roots"][0]["uri"].take(),
        other => panic!("{other:?}"),
    };
    answer.as_str().unwrap().to_owned()
}

macro_rules! of_the_local_app {
    ($($method:ident($params:ty) -> $answer:ty;)*) => {
        $(fn $method(&self, params: $params, context: CallContext) -> AppFuture<'_, Result<$answer, ErrorData>> {
            self.local.$method(params, context)
        })*
    };
}

impl App for Older {
    fn catalog(&self) -> Arc<Catalog> {
        self.local.catalog()
    }

    fn health(&self) -> AppHealth {
        self.local.health()
    }

    fn transport(&self) -> Option<NetworkTransport> {
        Some(NetworkTransport::Tcp)
    }

    fn events(&self) -> broadcast::Receiver<AppEvent> {
        self.local.events()
    }

    fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<CallToolResponse, ErrorData>> {
        if params.name != "ask" {
            return self.local.call_tool(params, context);
        }
        self.begun.fetch_add(1, Ordering::SeqCst);
        let over = Over(self.ended.clone());
        Box::pin(async move {
            let _over = over;
            let asked = params.arguments.and_then(|arguments| arguments.get("questions").cloned());
            let questions: Vec<String> = asked.map_or(vec!["form".to_owned()], made);
            let mut answers = Vec::new();
            for kind in &questions {
                let asked = ask(context.request(), question(kind), &CancellationToken::new()).await;
                answers.push(answer(asked.map_err(|why| why.into_error())?));
            }
            Ok(CallToolResult::success(vec![ContentBlock::text(answers.join(" "))]).into())
        })
    }

    of_the_local_app! {
        read_resource(ReadResourceRequestParams) -> ReadResourceResponse;
        get_prompt(GetPromptRequestParams) -> GetPromptResponse;
        complete(CompleteRequestParams) -> CompleteResult;
        get_task(GetTaskParams) -> GetTaskResult;
        update_task(UpdateTaskParams) -> ();
        cancel_task(CancelTaskParams) -> ();
    }

    fn subscribe<'a>(&'a self, uri: String, permit: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>> {
        self.local.subscribe(uri, permit)
    }

    fn unsubscribe<'a>(&'a self, uri: String, permit: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>> {
        self.local.unsubscribe(uri, permit)
    }

    fn set_level<'a>(
        &'a self,
        level: LoggingLevel,
        permit: &'a Permit,
    ) -> AppFuture<'a, Result<(), ErrorData>> {
        self.local.set_level(level, permit)
    }

    fn shutdown(&self) -> AppFuture<'_, ()> {
        self.local.shutdown()
    }
}

/// The instance `one` of a cluster.
struct One;

impl StateHome for One {
    fn mark(&self, state: &str) -> String {
        format!("{state}.one")
    }

    fn mark_as(&self, from: &str, to: &str) -> Option<String> {
        from.split_once('.').map(|(_, home)| format!("{to}.{home}"))
    }
}

#[tokio::test]
async fn the_state_of_a_plan_that_waits_with_a_held_call_names_the_instance_that_holds_it() {
    let folder = tempfile::tempdir().unwrap();
    let plan = "/* plan\nname: greet\ndescription: Asks who it is.\n*/\nreturn await callTool('app:ask', {})";
    std::fs::write(folder.path().join("greet.js"), plan).unwrap();
    let config = CodeCallConfig { mode: Mode::MetadataDriven, ..CodeCallConfig::default() };
    let (plans, findings) = SavedPlans::open("plans", folder.path().to_owned().into(), &config).unwrap();
    assert!(findings.is_empty(), "{findings:#?}");
    let older = Older::of(Asking::default()).await;
    let apps: Vec<(&str, Arc<dyn App>, AppOptions)> =
        vec![("app", older, AppOptions::default()), ("plans", plans.clone(), AppOptions::default())];
    let served = Served::of_apps(config, apps, None);
    served.code_call.run_plans_of(&plans);
    served.invoker.at_home(Arc::new(One));
    let ada = modern(&served, "ada", User::named("Ada")).await;
    for params in [
        execute("return await callTool('app:ask', {})"),
        execute("return [await callTool('plans:greet')][0]"),
        CallToolRequestParams::new("plans:greet"),
    ] {
        let name = params.name.clone();
        let CallToolResponse::InputRequired(asks) = ada.call_tool_once(params.clone()).await.unwrap() else {
            panic!("it asks")
        };
        let state = asks.request_state.unwrap();
        assert!(state.ends_with(".one"), "{name}: {state}");
        if name == "codecall:execute" {
            // Another look is at the same call.
            let id = &asks.meta.as_ref().unwrap().0["gatewright/execution"];
            let look =
                CallToolRequestParams::new("codecall:execute").with_arguments(made(json!({"resume": id})));
            let CallToolResponse::InputRequired(again) = ada.call_tool_once(look).await.unwrap() else {
                panic!("it asks")
            };
            assert!(again.request_state.unwrap().ends_with(".one"));
        }
        let mut retry = params;
        retry.request_state = Some(state);
        let answers = asks.input_requests.unwrap().into_keys();
        let answer = json!({"action": "accept", "content": {"name": "Ada"}});
        retry.input_responses = Some(answers.map(|key| (key, answer.clone())).collect());
        let CallToolResponse::Complete(over) = ada.call_tool_once(retry).await.unwrap() else {
            panic!("it ends")
        };
        let text = over.content[0].as_text().unwrap().text.clone();
        assert!(text.contains("Ada"), "{name}: {text}");
        if name == "codecall:execute" {
            assert_eq!(body(over)["result"], "Ada");
        }
    }
}

/// The instance with an older server, which is the first to be asked.
async fn with_older() -> (Served, Arc<Older>) {
    let config = CodeCallConfig { mode: Mode::MetadataDriven, ..CodeCallConfig::default() };
    let older = Older::of(Asking::default()).await;
    let apps: Vec<(&str, Arc<dyn App>, AppOptions)> = vec![("app", older.clone(), AppOptions::default())];
    (Served::of_apps(config, apps, None), older)
}

#[tokio::test]
async fn a_call_that_asks_is_cancelled_when_its_script_ends_or_its_plan_is_cancelled() {
    let (served, older) = with_older().await;
    let ada = modern(&served, "ada", User::named("Ada")).await;
    let meanwhile = "for (let i = 0; i < 50; i++) await callTool('app:effect', {});";
    for end in ["return 1", "throw new Error('no')", "null.x"] {
        let script = format!("callTool('app:ask', {{}}); {meanwhile} {end}");
        let answer = ada.call_tool_once(execute(&script)).await.unwrap();
        assert!(matches!(answer, CallToolResponse::Complete(_)), "{end}: it ends");
        older.ended.notified().await;
    }
    let asking = execute("return await callTool('app:ask', {})");
    let asks = async || match ada.call_tool_once(asking.clone()).await.unwrap() {
        CallToolResponse::InputRequired(asks) => asks,
        other => panic!("it asks: {other:?}"),
    };
    // An answer of the wrong type ends the plan.
    let mut retry = asking.clone();
    let InputRequiredResult { input_requests, request_state, .. } = asks().await;
    retry.request_state = request_state;
    retry.input_responses =
        Some(input_requests.unwrap().into_keys().map(|key| (key, json!("Ada"))).collect());
    let answer = ada.call_tool_once(retry).await.unwrap();
    assert!(matches!(answer, CallToolResponse::Complete(_)), "it ends");
    older.ended.notified().await;
    let asks = asks().await;
    let id = &asks.meta.as_ref().unwrap().0["gatewright/execution"];
    let cancel = CallToolRequestParams::new("codecall:execute")
        .with_arguments(made(json!({"resume": id, "cancel": true})));
    ada.call_tool_once(cancel).await.unwrap();
    older.ended.notified().await;
    assert_eq!(older.begun.load(Ordering::SeqCst), 5);
}
