//! One call at a server, with everything that passes between its caller and the server meanwhile.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, stream::FuturesUnordered};
use gatewright_core::{CallContext, Era, ProgressSink, SessionLogLevel};
use rmcp::{
    ErrorData, RoleClient, RoleServer, ServiceError,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientRequest, GetExtensions as _, LoggingLevel,
        LoggingMessageNotificationParam, ProgressToken, RequestId, RequestMetaObject, ServerRequest,
        ServerResult,
    },
    service::{Peer, PeerRequestOptions, RequestContext, RequestHandle},
};
use tokio::sync::{MutexGuard, mpsc};
use tokio_util::task::TaskTracker;

use crate::{
    connection::{Connection, with_tasks},
    failure,
    handler::refused,
    open_calls::{Caller, Event, OpenGuard, Question},
    places::Place,
    upstream::Upstream,
};

impl Upstream {
    /// Sends `request` for the caller of `context` and waits for the answer. Dropped, it cancels the request.
    pub(crate) async fn request(
        &self,
        request: ClientRequest,
        context: &CallContext,
    ) -> Result<ServerResult, ErrorData> {
        let mut exchange = self.begin(context).await?;
        let answer = exchange.send(request).await;
        exchange.finish().await;
        answer
    }

    /// Waits for a place among the calls of the server.
    pub(crate) async fn begin<'a>(&'a self, context: &'a CallContext) -> Result<Exchange<'a>, ErrorData> {
        self.connection()?;
        let place = self.places.take(context.principal()).await;
        // While this waited, the server may have been restarted.
        let connection = self.connection()?;
        let turn = if connection.calls.take_turns() { Some(self.turn.lock().await) } else { None };
        let (guard, events) = connection.calls.open(caller(context));
        let relay = Relay::new(context.request(), events);
        Ok(Exchange { upstream: self, connection, guard, relay, _place: place, _turn: turn })
    }

    /// The error of a call, once it is known why the connection ended.
    async fn broken(&self, error: ServiceError, connection: &Connection) -> ErrorData {
        if matches!(error, ServiceError::TransportSend(_)) {
            self.suspect.notify_one();
        }
        if let Some(error) = failure::of_call(&self.id, error, &self.redactor) {
            return error;
        }
        let mut ended = connection.ended.clone();
        let longest = Duration::from_secs(2);
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

/// A call under way: its requests to the server, and what passes between the server and the caller meanwhile.
pub(crate) struct Exchange<'a> {
    pub(crate) upstream: &'a Upstream,
    pub(crate) connection: Arc<Connection>,
    pub(crate) guard: OpenGuard,
    relay: Relay<'a>,
    _place: Place<'a>,
    _turn: Option<MutexGuard<'a, ()>>,
}

impl Exchange<'_> {
    /// Sends `request` and waits for the answer. Dropped, it cancels the request.
    pub(crate) async fn send(&mut self, request: ClientRequest) -> Result<ServerResult, ErrorData> {
        let mut handle = self.start(request).await?;
        let mut cancel = CancelOnDrop {
            request: Some((self.connection.peer.clone(), handle.id.clone())),
            tasks: self.upstream.tasks.clone(),
        };
        let answer = self.answer(&mut handle).await;
        cancel.request = None;
        answer
    }

    /// Sends `request` with the caller's metadata. Progress, and questions on its response stream, are for the caller.
    pub(crate) async fn start(
        &mut self,
        mut request: ClientRequest,
    ) -> Result<RequestHandle<RoleClient>, ErrorData> {
        request.extensions_mut().insert(self.guard.mark());
        let meta = forwarded_meta(self.relay.context, &self.connection);
        self.start_with(request, PeerRequestOptions::no_options().with_meta(meta)).await
    }

    /// Sends a request of the gateway's own about a task.
    pub(crate) async fn start_own(
        &mut self,
        request: ClientRequest,
    ) -> Result<RequestHandle<RoleClient>, ErrorData> {
        self.start_with(request, self.connection.task_options()).await
    }

    async fn start_with(
        &mut self,
        request: ClientRequest,
        options: PeerRequestOptions,
    ) -> Result<RequestHandle<RoleClient>, ErrorData> {
        match self.connection.peer.send_cancellable_request(request, options).await {
            Ok(handle) => Ok(handle),
            Err(error) => Err(self.upstream.broken(error, &self.connection).await),
        }
    }

    /// Waits for the answer to a request.
    pub(crate) async fn answer(
        &mut self,
        handle: &mut RequestHandle<RoleClient>,
    ) -> Result<ServerResult, ErrorData> {
        let mut ended = self.connection.ended.clone();
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => break answer.unwrap_or(Err(ServiceError::TransportClosed)),
                () = self.relay.step() => {}
                _ = ended.wait_for(Option::is_some) => break Err(ServiceError::TransportClosed),
            }
        };
        match answer {
            Ok(result) => Ok(self.upstream.redactor.result(result)),
            Err(error) => Err(self.upstream.broken(error, &self.connection).await),
        }
    }

    /// Lets messages pass for `time`, or until the server announces a new status of the task of this call.
    pub(crate) async fn pause(&mut self, time: Duration, until_status: bool) -> Result<(), ErrorData> {
        let mut ended = self.connection.ended.clone();
        let over = tokio::time::sleep(time);
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return Ok(()),
                () = self.guard.status_announced(), if until_status => return Ok(()),
                () = self.relay.step() => {}
                _ = ended.wait_for(Option::is_some) => break,
            }
        }
        Err(self.upstream.broken(ServiceError::TransportClosed, &self.connection).await)
    }

    /// Hands on what came before the last answer did.
    pub(crate) async fn finish(self) {
        self.relay.finish().await;
    }

    /// Returns `true` if the caller gets a task of the server as the answer, and follows it itself.
    pub(crate) fn caller_follows_tasks(&self) -> bool {
        let context = self.relay.context;
        Era::of(context).is_stateless() && context.client_capabilities().is_some_and(|c| c.supports_tasks())
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
        // A task that the caller cannot follow is awaited here.
        meta.set_client_capabilities(with_tasks(capabilities.unwrap_or_default()));
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
            return self
                .context
                .meta
                .log_level()
                .is_some_and(|least| SessionLogLevel::from_level(least).wants(log.level));
        }
        self.context.extensions.get::<SessionLogLevel>().is_none_or(|level| level.wants(log.level))
    }
}

/// Asks the caller what the server wants to know. Runs inside the call's own task, so that the question travels on the
/// stream of the call (SEP-2260).
async fn ask(context: &RequestContext<RoleServer>, question: Question) {
    let Question { request, cancelled, answer, .. } = question;
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
        Ok(Err(ServiceError::McpError(error))) => Err(error),
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
