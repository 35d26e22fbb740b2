//! What the operator does: calls a tool, runs a script. Both take the gateway's one path, as a principal of their own.

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
        model::{CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject, NumberOrString},
        service::{RequestContext, RunningService},
    },
};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_util::sync::DropGuard;

/// Subject of everything done from the console, in telemetry and in the audit log.
pub const OPERATOR: &str = "console-operator";
/// Client of everything done from the console.
pub const CLIENT: &str = "gatewright-console";

/// A call that came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) outcome: Result<CallToolResult, Refused>,
    pub(crate) duration: Duration,
}

/// A call that no tool answered.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) code: String,
    pub(crate) message: String,
}

/// The operator's own connection to the gateway.
pub(crate) struct Desk {
    gateway: Arc<Gateway>,
    link: OnceCell<Link>,
    next: AtomicI64,
}

/// Tools may ask their caller something: this connection is where such questions are declined.
struct Link {
    server: RunningService<RoleServer, Gateway>,
    _client: RunningService<RoleClient, ()>,
}

impl Desk {
    pub(crate) fn new(gateway: Arc<Gateway>) -> Self {
        Self { gateway, link: OnceCell::new(), next: AtomicI64::new(1) }
    }

    pub(crate) fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// What the operator may use, which of an app with connections for each caller is the operator's own.
    pub(crate) async fn view(&self) -> View {
        self.gateway.registry().ready_view(&self.caller()).await
    }

    /// The operator.
    pub(crate) fn caller(&self) -> Caller {
        Caller::new(operator())
    }

    /// Calls a tool of an app.
    pub(crate) async fn call(&self, name: &str, arguments: JsonObject) -> Answer {
        let started = Instant::now();
        let outcome = self.invoke(name, arguments).await;
        Answer { outcome, duration: started.elapsed() }
    }

    async fn invoke(&self, name: &str, arguments: JsonObject) -> Result<CallToolResult, Refused> {
        let refused = |error: gatewright_core::InvokeError| Refused {
            code: error.code().to_owned(),
            message: error.to_string(),
        };
        let (context, _cancel) = self.context().await?;
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        complete(self.gateway.call_as_operator(params, &self.caller(), context).await.map_err(refused)?)
    }

    /// Runs a script with `codecall:execute`; gives the body with its `status`.
    pub(crate) async fn execute(&self, script: &str, data: Option<JsonObject>) -> Result<Value, Refused> {
        let (context, _cancel) = self.context().await?;
        let mut arguments = JsonObject::from_iter([("script".to_owned(), script.into())]);
        if let Some(data) = data {
            arguments.insert("context".to_owned(), Value::Object(data));
        }
        let params = CallToolRequestParams::new("codecall:execute").with_arguments(arguments);
        let answer = self.gateway.call_tool(params, context).await;
        let answer = answer
            .map_err(|error| Refused { code: error.code.0.to_string(), message: error.message.into() })?;
        let result = complete(answer)?;
        Ok(result.structured_content.unwrap_or_default())
    }

    /// The context of one request. It is cancelled when the guard goes: when the answer is there or the browser has left.
    async fn context(&self) -> Result<(RequestContext<RoleServer>, DropGuard), Refused> {
        let link = self.link.get_or_try_init(|| connect(&self.gateway)).await?;
        let id = NumberOrString::Number(self.next.fetch_add(1, Ordering::Relaxed));
        let mut context = RequestContext::new(id, link.server.peer().clone());
        context.extensions.insert(operator());
        let cancel = context.ct.clone().drop_guard();
        Ok((context, cancel))
    }
}

fn operator() -> Principal {
    Principal { subject: OPERATOR.into(), client_id: Some(CLIENT.into()), scopes: Scopes::All }
}

async fn connect(gateway: &Gateway) -> Result<Link, Refused> {
    let (client_end, server_end) = memory_transport();
    let (server, client) =
        tokio::join!(gateway.session_of(operator()).serve(server_end), ().serve(client_end));
    let broken = |why: String| Refused {
        code: "INTERNAL".to_owned(),
        message: format!("the gateway does not answer: {why}"),
    };
    Ok(Link {
        server: server.map_err(|error| broken(error.to_string()))?,
        _client: client.map_err(|error| broken(error.to_string()))?,
    })
}

fn complete(response: CallToolResponse) -> Result<CallToolResult, Refused> {
    match response {
        CallToolResponse::Complete(result) => Ok(result),
        CallToolResponse::InputRequired(_) => Err(Refused {
            code: "INPUT_REQUIRED".to_owned(),
            message: "the tool asks its caller a question, which the console cannot answer".to_owned(),
        }),
        CallToolResponse::Task(_) => Err(Refused {
            code: "TASK".to_owned(),
            message: "the tool went on in the background; follow the task from a client".to_owned(),
        }),
        _ => Err(Refused {
            code: "UNKNOWN".to_owned(),
            message: "the tool answered in a form the console does not know".to_owned(),
        }),
    }
}
