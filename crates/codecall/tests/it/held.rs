//! Calls of older servers that a plan waits with: they are held open at one instance, which the state of the plan names.
#![expect(deprecated, reason = "apps have log levels, which SEP-2577 marks as deprecated")]

use std::sync::Arc;

use gatewright_codecall::{CodeCallConfig, Mode, SavedPlans};
use gatewright_core::{
    App, AppEvent, AppFuture, AppHealth, AppOptions, CallContext, Catalog, LocalApp, NetworkTransport,
    Permit, StateHome, ask,
    rmcp::{
        ErrorData,
        model::{
            CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientResult,
            CompleteRequestParams, CompleteResult, ContentBlock, GetPromptRequestParams, GetPromptResponse,
            GetTaskParams, GetTaskResult, LoggingLevel, ReadResourceRequestParams, ReadResourceResponse,
            ServerRequest, UpdateTaskParams,
        },
    },
};
use serde_json::json;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::{
    support::Served,
    waiting::{Asking, User, body, execute, made, modern},
};

/// A server of the older era elsewhere: every call asks for a name while it works.
struct Older(Arc<LocalApp<Asking>>);

macro_rules! of_the_local_app {
    ($($method:ident($params:ty) -> $answer:ty;)*) => {
        $(fn $method(&self, params: $params, context: CallContext) -> AppFuture<'_, Result<$answer, ErrorData>> {
            self.0.$method(params, context)
        })*
    };
}

impl App for Older {
    fn catalog(&self) -> Arc<Catalog> {
        self.0.catalog()
    }

    fn health(&self) -> AppHealth {
        self.0.health()
    }

    fn transport(&self) -> Option<NetworkTransport> {
        Some(NetworkTransport::Tcp)
    }

    fn events(&self) -> broadcast::Receiver<AppEvent> {
        self.0.events()
    }

    fn call_tool(
        &self,
        _: CallToolRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<CallToolResponse, ErrorData>> {
        Box::pin(async move {
            let question = ServerRequest::ElicitRequest(made(
                json!({"method": "elicitation/create", "params":
                {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}}),
            ));
            let answer = ask(context.request(), question, &CancellationToken::new())
                .await
                .map_err(|why| why.into_error())?;
            let ClientResult::ElicitResult(answer) = answer else { panic!("{answer:?}") };
            let name = answer.content.unwrap()["name"].clone();
            Ok(CallToolResult::success(vec![ContentBlock::text(name.as_str().unwrap())]).into())
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
        self.0.subscribe(uri, permit)
    }

    fn unsubscribe<'a>(&'a self, uri: String, permit: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>> {
        self.0.unsubscribe(uri, permit)
    }

    fn set_level<'a>(
        &'a self,
        level: LoggingLevel,
        permit: &'a Permit,
    ) -> AppFuture<'a, Result<(), ErrorData>> {
        self.0.set_level(level, permit)
    }

    fn shutdown(&self) -> AppFuture<'_, ()> {
        self.0.shutdown()
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
    let older = Arc::new(Older(Arc::new(LocalApp::start(Asking::default()).await.unwrap())));
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
