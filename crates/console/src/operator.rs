//! Calls tools and runs scripts for the operator, through the gateway and as a principal of their own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use gatewright_core::{
    Caller, Gateway, Principal, Scopes, View, memory_transport,
    rmcp::{
        RoleClient, RoleServer, ServerHandler, ServiceExt,
        model::{
            CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject, NumberOrString,
            ReadResourceRequestParams, ReadResourceResponse, ResourceContents,
        },
        service::{RequestContext, RunningService},
    },
};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_util::sync::DropGuard;

/// Subject of all calls from the console, in telemetry and in the audit log.
pub const OPERATOR: &str = "console-operator";
/// Client of all calls from the console.
pub const CLIENT: &str = "gatewright-console";

/// A finished call.
#[derive(Debug)]
pub(crate) struct CallAnswer {
    pub(crate) outcome: Result<CallToolResult, CallError>,
    pub(crate) duration: Duration,
}

/// The error of a call that no tool answered.
#[derive(Debug)]
pub(crate) struct CallError {
    pub(crate) code: String,
    pub(crate) message: String,
}

/// The operator's client of the gateway.
pub(crate) struct OperatorClient {
    gateway: Arc<Gateway>,
    connection: OnceCell<Connection>,
    next_id: AtomicI64,
}

/// A session with a client that declines what tools ask their caller (elicitation, sampling).
struct Connection {
    server: RunningService<RoleServer, Gateway>,
    _client: RunningService<RoleClient, ()>,
}

impl OperatorClient {
    pub(crate) fn new(gateway: Arc<Gateway>) -> Self {
        Self { gateway, connection: OnceCell::new(), next_id: AtomicI64::new(1) }
    }

    pub(crate) fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// The tools that the operator may use. Of an app with a connection for each caller, they are those of the operator's own.
    pub(crate) async fn view(&self) -> View {
        self.gateway.registry().ready_view(&self.caller()).await
    }

    /// The operator.
    pub(crate) fn caller(&self) -> Caller {
        Caller::new(operator())
    }

    /// Calls a tool of an app.
    pub(crate) async fn call(&self, name: &str, arguments: JsonObject) -> CallAnswer {
        let started = Instant::now();
        let outcome = self.invoke(name, arguments).await;
        CallAnswer { outcome, duration: started.elapsed() }
    }

    async fn invoke(&self, name: &str, arguments: JsonObject) -> Result<CallToolResult, CallError> {
        let refused = |error: gatewright_core::InvokeError| CallError {
            code: error.code().to_owned(),
            message: error.to_string(),
        };
        let (context, _cancel) = self.context().await?;
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        complete(self.gateway.call_as_operator(params, &self.caller(), context).await.map_err(refused)?)
    }

    /// Runs a script with `codecall:execute`. Returns the body with its `status`.
    /// `dry_run` is the input of that name.
    pub(crate) async fn execute(
        &self,
        script: &str,
        data: Option<JsonObject>,
        dry_run: Option<Value>,
    ) -> Result<Value, CallError> {
        let (mut context, _cancel) = self.context().await?;
        // Every call is drawn.
        context.meta.0.insert("gatewright/callLog".to_owned(), "full".into());
        let mut arguments = JsonObject::from_iter([("script".to_owned(), script.into())]);
        if let Some(data) = data {
            arguments.insert("context".to_owned(), Value::Object(data));
        }
        if let Some(dry_run) = dry_run {
            arguments.insert("dryRun".to_owned(), dry_run);
        }
        let params = CallToolRequestParams::new("codecall:execute").with_arguments(arguments);
        let answer = self.gateway.call_tool(params, context).await;
        let answer = answer
            .map_err(|error| CallError { code: error.code.0.to_string(), message: error.message.into() })?;
        let result = complete(answer)?;
        Ok(result.structured_content.unwrap_or_default())
    }

    /// Reads a resource.
    pub(crate) async fn read(&self, uri: &str) -> Result<Vec<ResourceContents>, CallError> {
        let (context, _cancel) = self.context().await?;
        let answer = self.gateway.read_resource(ReadResourceRequestParams::new(uri), context).await;
        let answer = answer
            .map_err(|error| CallError { code: error.code.0.to_string(), message: error.message.into() })?;
        match answer {
            ReadResourceResponse::Complete(result) => Ok(result.contents),
            _ => Err(CallError {
                code: "INPUT_REQUIRED".to_owned(),
                message: "the app asks its caller a question, which the console cannot answer".to_owned(),
            }),
        }
    }

    /// The context of one request. Dropping the guard cancels it: after the answer, or when the browser disconnects.
    async fn context(&self) -> Result<(RequestContext<RoleServer>, DropGuard), CallError> {
        let connection = self.connection.get_or_try_init(|| connect(&self.gateway)).await?;
        let id = NumberOrString::Number(self.next_id.fetch_add(1, Ordering::Relaxed));
        let mut context = RequestContext::new(id, connection.server.peer().clone());
        context.extensions.insert(operator());
        let cancel = context.ct.clone().drop_guard();
        Ok((context, cancel))
    }
}

fn operator() -> Principal {
    Principal {
        subject: OPERATOR.into(),
        client_id: Some(CLIENT.into()),
        scopes: Scopes::All,
        ..Principal::local()
    }
}

async fn connect(gateway: &Gateway) -> Result<Connection, CallError> {
    let (client_end, server_end) = memory_transport();
    let (server, client) =
        tokio::join!(gateway.session_of(operator()).serve(server_end), ().serve(client_end));
    let broken = |why: String| CallError {
        code: "INTERNAL".to_owned(),
        message: format!("the gateway does not answer: {why}"),
    };
    Ok(Connection {
        server: server.map_err(|error| broken(error.to_string()))?,
        _client: client.map_err(|error| broken(error.to_string()))?,
    })
}

fn complete(response: CallToolResponse) -> Result<CallToolResult, CallError> {
    match response {
        CallToolResponse::Complete(result) => Ok(result),
        CallToolResponse::InputRequired(_) => Err(CallError {
            code: "INPUT_REQUIRED".to_owned(),
            message: "the tool asks its caller a question, which the console cannot answer".to_owned(),
        }),
        CallToolResponse::Task(_) => Err(CallError {
            code: "TASK".to_owned(),
            message: "the tool continues in the background as a task; follow it from a client".to_owned(),
        }),
        _ => Err(CallError {
            code: "UNKNOWN".to_owned(),
            message: "the console does not support this kind of answer".to_owned(),
        }),
    }
}
