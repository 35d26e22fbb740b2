//! Our side of a connection: what a server asks or announces outside an answer.

use std::sync::Arc;

use gatewright_core::Revision;
use rmcp::{
    ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ClientResult, ElicitationCapability, ErrorCode,
        FormElicitationCapability, Implementation, ListRootsResult, RootsCapabilities, SamplingCapability,
        ServerNotification, ServerRequest, UrlElicitationCapability,
    },
    service::{InboundStreamOrigin, NotificationContext, RequestContext, Service},
};
use serde_json::json;
use tokio::sync::{Notify, oneshot};

use crate::{
    followed::FollowedResources,
    open_calls::{OpenCalls, Question, RELATED_TASK, Unasked},
    rare_line::RareLine,
};

/// Answers a server's requests by asking the caller of the call they belong to.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) id: Arc<str>,
    pub(crate) calls: Arc<OpenCalls>,
    pub(crate) followed: Arc<FollowedResources>,
    pub(crate) stale: Arc<Notify>,
    /// About a question that could be of several callers.
    pub(crate) ambiguous: RareLine,
}

/// Bytes of the name of an unknown method that its answer repeats.
const LONGEST_METHOD: usize = 100;

/// The capabilities that the gateway declares to every server. It can forward these; whether the caller of a call has them is known only
/// when the server asks.
pub(crate) fn client_config() -> ClientConfig {
    let mut capabilities = ClientCapabilities::default();
    capabilities.roots = Some(RootsCapabilities::default());
    capabilities.sampling = Some(SamplingCapability::default());
    capabilities.elicitation = Some(
        ElicitationCapability::new()
            .with_form(FormElicitationCapability::default())
            .with_url(UrlElicitationCapability::default()),
    );
    let us = Implementation::new("gatewright", env!("CARGO_PKG_VERSION"));
    let mut config = ClientConfig::new(capabilities, us);
    config.protocol_version = Revision::LATEST_WITH_SESSIONS.into();
    config
}

impl Service<RoleClient> for Handler {
    async fn handle_request(
        &self,
        mut request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        // Nothing else of it stays while somebody thinks about the answer.
        let RequestContext { meta, ct: cancelled, extensions, .. } = context;
        let for_caller = match &mut request {
            ServerRequest::PingRequest(_) => return Ok(ClientResult::empty(())),
            ServerRequest::CustomRequest(custom) => {
                let method = &custom.method[..custom.method.floor_char_boundary(LONGEST_METHOD)];
                let message = format!("the gateway does not know the method `{method}`");
                return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None));
            }
            ServerRequest::CreateMessageRequest(_)
            | ServerRequest::ListRootsRequest(_)
            | ServerRequest::ElicitRequest(_) => request,
            _ => {
                return Err(ErrorData::new(
                    ErrorCode::METHOD_NOT_FOUND,
                    "the gateway does not know this method",
                    None,
                ));
            }
        };
        let roots = matches!(for_caller, ServerRequest::ListRootsRequest(_));
        let origin = match extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id.clone()),
            _ => None,
        };
        let (answer, answered) = oneshot::channel();
        let task = meta.0.get(RELATED_TASK).and_then(|task| task["taskId"].as_str());
        let task = task.map(str::to_owned);
        drop((meta, extensions));
        let question = Question { request: for_caller, task, cancelled, answer };
        match self.calls.ask(origin.as_ref(), question) {
            Ok(()) => {}
            // Servers ask for roots as soon as they are connected. The gateway itself has none.
            Err(_) if roots => return Ok(ClientResult::ListRootsResult(ListRootsResult::default())),
            Err(why) => return Err(self.refusal(why)),
        }
        let gone = || refused("the call this belongs to is over", "CALL_OVER");
        match answered.await {
            Err(_) | Ok(Err(_)) if roots => Ok(ClientResult::ListRootsResult(ListRootsResult::default())),
            answer => answer.map_err(|_| gone())?,
        }
    }

    async fn handle_notification(
        &self,
        notification: ServerNotification,
        _context: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        match notification {
            ServerNotification::ToolListChangedNotification(_)
            | ServerNotification::ResourceListChangedNotification(_)
            | ServerNotification::PromptListChangedNotification(_) => self.stale.notify_one(),
            ServerNotification::ResourceUpdatedNotification(updated) => {
                self.followed.announce(&updated.params.uri);
            }
            // Progress and log messages never come here: the tap took them.
            _ => {}
        }
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        client_config()
    }
}

impl Handler {
    fn refusal(&self, why: Unasked) -> ErrorData {
        match why {
            Unasked::NoCall => refused("no call is open, so there is nobody to ask", "NO_OPEN_CALL"),
            Unasked::Ambiguous => {
                if self.ambiguous.is_due() {
                    tracing::warn!(app.id = %self.id,
                        "an app asked something while calls of several callers were open; for five minutes they take turns");
                }
                refused(
                    "calls of several callers are open and nothing says which of them this belongs to; calls take turns for some time, try again",
                    "AMBIGUOUS_CALLER",
                )
            }
            Unasked::Full => refused("too many messages wait for the caller already", "CALLER_BUSY"),
        }
    }
}

/// Our answer to a request of a server that reaches nobody.
pub(crate) fn refused(message: &'static str, code: &str) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_REQUEST, message, Some(json!({"code": code})))
}
