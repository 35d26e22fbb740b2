//! One call at a server, with everything that passes between its caller and the server meanwhile.

use std::sync::Arc;

use futures::{StreamExt as _, stream::FuturesUnordered};
use gatewright_core::{CallContext, Era, ProgressSink, SessionLogLevel};
use rmcp::{
    ErrorData, RoleClient, RoleServer,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientCapabilities, ClientRequest,
        GetExtensions as _, LoggingLevel, LoggingMessageNotificationParam, ProgressToken, RequestId,
        RequestMetaObject, ServerRequest, ServerResult,
    },
    service::{Peer, PeerRequestOptions, RequestContext},
};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::{
    connection::Connection,
    failure,
    handler::refused,
    open_calls::{Caller, Event, Question},
    upstream::Upstream,
};

impl Upstream {
    /// Sends `request` for the caller of `context` and waits for the answer. Dropped, it cancels the request.
    pub(crate) async fn request(
        &self,
        mut request: ClientRequest,
        context: &CallContext,
    ) -> Result<ServerResult, ErrorData> {
        let (caller, context) = (caller(context), context.request());
        self.connection()?;
        let _permit = self.permits.acquire().await;
        // While this waited, the server may have been restarted.
        let connection = self.connection()?;
        let _turn = if connection.calls.take_turns() { Some(self.turn.lock().await) } else { None };

        let (guard, events) = connection.calls.open(caller);
        request.extensions_mut().insert(guard.mark());
        let options = PeerRequestOptions::no_options().with_meta(forwarded_meta(context, &connection));
        let sent = connection.peer.send_cancellable_request(request, options).await;
        let mut handle = match sent {
            Ok(handle) => handle,
            Err(error) => return Err(self.broken(error, &connection).await),
        };
        let mut cancel = CancelOnDrop {
            request: Some((connection.peer.clone(), handle.id.clone())),
            tasks: self.tasks.clone(),
        };

        let mut relay = Relay::new(context, events);
        let mut ended = connection.ended.clone();
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => break answer.unwrap_or(Err(rmcp::ServiceError::TransportClosed)),
                () = relay.step() => {}
                _ = ended.wait_for(Option::is_some) => break Err(rmcp::ServiceError::TransportClosed),
            }
        };
        cancel.request = None;
        relay.finish().await;
        match answer {
            Ok(result) => Ok(self.redactor.result(result)),
            Err(error) => Err(self.broken(error, &connection).await),
        }
    }

    /// The error of a call, once it is known why the connection ended.
    async fn broken(&self, error: rmcp::ServiceError, connection: &Connection) -> ErrorData {
        if matches!(error, rmcp::ServiceError::TransportSend(_)) {
            self.suspect.notify_one();
        }
        if let Some(error) = failure::of_call(&self.id, error, &self.redactor) {
            return error;
        }
        let mut ended = connection.ended.clone();
        let longest = std::time::Duration::from_secs(2);
        let why = match tokio::time::timeout(longest, ended.wait_for(Option::is_some)).await {
            Ok(Ok(why)) => why.as_deref().unwrap_or_default().to_owned(),
            _ => "the connection was closed".to_owned(),
        };
        let message = format!(
            "the server behind `{}` went away during the call: {why}; it is being restarted, try again",
            self.id
        );
        failure::failed(message, "UPSTREAM_ENDED")
    }
}

/// Tells the server that nobody waits any more.
struct CancelOnDrop {
    request: Option<(Peer<RoleClient>, RequestId)>,
    tasks: TaskTracker,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some((peer, id)) = self.request.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let reason = "the caller cancelled, or its time was over".to_owned();
        let notification =
            CancelledNotification::new(CancelledNotificationParam::new(Some(id), Some(reason)));
        let telling = async move {
            let _ = peer.send_notification(notification.into()).await;
        };
        self.tasks.spawn_on(telling, &runtime);
    }
}

fn caller(context: &CallContext) -> Caller {
    // One value of the handshake belongs to one session; its address tells sessions apart.
    let session = if context.era().is_stateless() { None } else { context.request().peer.peer_info() };
    Caller { principal: context.principal().clone(), session: session.map(|info| Arc::as_ptr(&info).addr()) }
}

const PROTOCOL: &str = "io.modelcontextprotocol/";

/// The caller's `_meta` without what belongs to its own connection: progress token, version, client, capabilities.
fn forwarded_meta(context: &RequestContext<RoleServer>, connection: &Connection) -> RequestMetaObject {
    let mut meta = context.meta.clone();
    let level = meta.log_level();
    meta.retain(|key, _| key != "progressToken" && !key.starts_with(PROTOCOL));
    if connection.era.is_stateless() {
        // The server may answer with a question: only one that this caller can be asked.
        let capabilities = if Era::of(context).is_stateless() { context.client_capabilities() } else { None };
        meta.set_client_capabilities(capabilities.unwrap_or_else(ClientCapabilities::default));
        if let Some(level) =
            level.or_else(|| (!Era::of(context).is_stateless()).then_some(LoggingLevel::Debug))
        {
            meta.set_log_level(level);
        }
    }
    meta
}

/// Hands events of a call to its caller.
struct Relay<'a> {
    context: &'a RequestContext<RoleServer>,
    events: mpsc::Receiver<Event>,
    token: Option<ProgressToken>,
    questions: FuturesUnordered<futures::future::BoxFuture<'a, ()>>,
}

impl<'a> Relay<'a> {
    fn new(context: &'a RequestContext<RoleServer>, events: mpsc::Receiver<Event>) -> Self {
        Self { context, events, token: context.meta.get_progress_token(), questions: FuturesUnordered::new() }
    }

    /// Waits for one event and handles it, or for the answer to a question.
    async fn step(&mut self) {
        tokio::select! {
            Some(event) = self.events.recv() => self.handle(event).await,
            Some(()) = self.questions.next() => {}
            else => std::future::pending().await,
        }
    }

    /// Hands on what came before the answer did.
    async fn finish(mut self) {
        while let Ok(event) = self.events.try_recv() {
            if !matches!(event, Event::Ask(_)) {
                self.handle(event).await;
            }
        }
    }

    // The caller may be gone: then there is nobody to tell, and its call is cancelled by others.
    async fn handle(&mut self, event: Event) {
        match event {
            Event::Progress(mut progress) => {
                if let Some(sink) = self.context.extensions.get::<ProgressSink>() {
                    sink.receive(progress).await;
                } else if let Some(token) = &self.token {
                    progress.progress_token = token.clone();
                    let _ = self.context.peer.notify_progress(progress).await;
                }
            }
            Event::Log(log) => {
                if self.wants(&log) {
                    let _ = self.context.peer.notify_logging_message(log).await;
                }
            }
            Event::Ask(question) => self.questions.push(Box::pin(ask(self.context, *question))),
        }
    }

    fn wants(&self, log: &LoggingMessageNotificationParam) -> bool {
        if Era::of(self.context).is_stateless() {
            return self.context.meta.log_level().is_some_and(|least| severity(log.level) >= severity(least));
        }
        self.context.extensions.get::<SessionLogLevel>().is_none_or(|level| level.wants(log.level))
    }
}

fn severity(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}

/// Asks the caller what the server wants to know. Runs inside the call's own task, so that the question travels on the
/// stream of the call (SEP-2260).
async fn ask(context: &RequestContext<RoleServer>, question: Question) {
    let Question { request, cancelled, answer } = question;
    if let Some(refusal) = cannot_ask(context, &request) {
        let _ = answer.send(Err(refusal));
        return;
    }
    let asked = context.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    let mut handle = match asked {
        Ok(handle) => handle,
        Err(_) => {
            let _ = answer.send(Err(refused("the caller cannot be reached", "CALLER_GONE")));
            return;
        }
    };
    let result = tokio::select! {
        result = &mut handle.rx => result,
        () = cancelled.cancelled() => {
            let _ = handle.cancel(Some("the server does not need the answer any more".to_owned())).await;
            return;
        }
    };
    let _ = answer.send(match result {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(rmcp::ServiceError::McpError(error))) => Err(error),
        Ok(Err(_)) | Err(_) => Err(refused("the caller went away before it answered", "CALLER_GONE")),
    });
}

/// Why this caller cannot be asked.
fn cannot_ask(context: &RequestContext<RoleServer>, request: &ServerRequest) -> Option<ErrorData> {
    if Era::of(context).is_stateless() {
        // The answer would have to come in a new call, and the server waits in the old one.
        return Some(refused(
            "the caller's protocol version (2026-07-28 or later) has no requests from server to client, and this server speaks an older one",
            "CALLER_CANNOT_BE_ASKED",
        ));
    }
    let capabilities = context.client_capabilities().unwrap_or_default();
    let (has, message) = match request {
        ServerRequest::ElicitRequest(_) => {
            (capabilities.elicitation.is_some(), "the caller has no `elicitation` capability")
        }
        ServerRequest::CreateMessageRequest(_) => {
            (capabilities.sampling.is_some(), "the caller has no `sampling` capability")
        }
        ServerRequest::ListRootsRequest(_) => {
            (capabilities.roots.is_some(), "the caller has no `roots` capability")
        }
        _ => (false, "the gateway does not forward this request"),
    };
    (!has).then(|| refused(message, "CALLER_CANNOT_BE_ASKED"))
}
