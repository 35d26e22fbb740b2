//! One call at a server, with everything that passes between its caller and the server meanwhile.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use gatewright_core::{
    AnswerRoom, AnsweredLater, Audience, CallContext, CannotAsk, Era, Presence, ProgressSink,
    SessionLogLevel, ask, caller_peer, declare_questions, question_capabilities,
};
use rmcp::{
    ErrorData, RoleClient, RoleServer, ServiceError,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientCapabilities, ClientRequest,
        GetExtensions as _, LoggingLevel, LoggingMessageNotificationParam, ProgressToken, RequestId,
        RequestMetaObject, ServerResult,
    },
    service::{PeerRequestOptions, RequestContext, RequestHandle},
};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    connection::{Connection, with_tasks},
    failure,
    open_calls::{Caller, Event, OpenGuard, Question, Room},
    places::Place,
    turns::Turn,
    upstream::Upstream,
};

/// Longest time to tell the caller, after the answer, which questions need none any more.
const TAKE_BACK_WITHIN: Duration = Duration::from_secs(1);

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
        let place = self.places.take(context.caller()).await;
        // While this waited, the server may have been restarted.
        let connection = self.connection()?;
        let turn = connection.calls.turn(&context.caller().claimant()).await;
        let answers = AnswerRoom::of(context.request());
        let (guard, events) = connection.calls.open(caller(context), answers);
        let relay = Relay::new(context.request(), events);
        let seat = Seat {
            place: Arc::new(Mutex::new(Some((place, turn)))),
            regained: None,
            presence: Presence::of(context.request()),
        };
        Ok(Exchange { upstream: self, context, connection, guard, relay, seat })
    }

    /// The error of a call, once it is known why the connection ended.
    async fn broken(&self, error: ServiceError, connection: &Connection) -> ErrorData {
        if matches!(error, ServiceError::TransportSend(_)) {
            self.suspect.notify_one();
        }
        if let Some(error) = failure::of_call(&self.id, error, &self.redactor).await {
            return error;
        }
        let mut ended = connection.ended.clone();
        let longest = Duration::from_secs(2);
        let why = match tokio::time::timeout(longest, ended.wait_for(Option::is_some)).await {
            Ok(Ok(why)) => why.as_ref().map(ToString::to_string).unwrap_or_default(),
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
    context: &'a CallContext,
    relay: Relay<'a>,
    seat: Seat<'a>,
}

/// The place and the turn of a call.
type Taken = (Place, Option<Turn>);

/// Room for a call at its server, given to others while the caller is away for an answer.
struct Seat<'a> {
    place: Arc<Mutex<Option<Taken>>>,
    /// Waits for room again.
    regained: Option<BoxFuture<'a, Taken>>,
    presence: Presence,
}

impl<'a> Seat<'a> {
    /// Hands on one event of the call. The room of the call is given away while its caller is away, and taken again afterwards.
    async fn step(
        &mut self,
        relay: &mut Relay<'a>,
        upstream: &'a Upstream,
        context: &'a CallContext,
        connection: &Arc<Connection>,
    ) {
        let Self { place, regained, presence } = self;
        let set = |room| *place.lock().unwrap_or_else(PoisonError::into_inner) = room;
        let regaining = async {
            match regained {
                Some(room) => room.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            is_present = presence.changed() => match is_present {
                true => {
                    let connection = connection.clone();
                    *regained = Some(Box::pin(async move {
                        let place = upstream.places.take(context.caller()).await;
                        (place, connection.calls.turn(&context.caller().claimant()).await)
                    }));
                }
                false => {
                    set(None);
                    *regained = None;
                }
            },
            room = regaining => {
                set(Some(room));
                *regained = None;
            }
            () = relay.step() => {}
        }
    }
}

impl Exchange<'_> {
    /// Sends `request` and waits for the answer. Dropped, it cancels the request.
    pub(crate) async fn send(&mut self, request: ClientRequest) -> Result<ServerResult, ErrorData> {
        let mut handle = self.start(request).await?;
        let mut cancel = CancelOnDrop { request: Some((self.abandoned(), handle.id.clone())) };
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
                () = self.seat.step(&mut self.relay, self.upstream, self.context, &self.connection) => {}
                _ = ended.wait_for(Option::is_some) => break Err(ServiceError::TransportClosed),
            }
        };
        match answer {
            Ok(result) => Ok(self.upstream.redactor.result(result).await),
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
                () = self.seat.step(&mut self.relay, self.upstream, self.context, &self.connection) => {}
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

/// Longest time for which a request that was cancelled counts for its caller, unless its server answers it before: servers may go on with it. It is at most half of
/// the time that a call has, so that one that waits for the place gets it.
const WORKED_ON: Duration = Duration::from_secs(5);

/// A call that nobody waits for any more.
pub(crate) struct Abandoned {
    pub(crate) connection: Arc<Connection>,
    place: Arc<Mutex<Option<Taken>>>,
    pub(crate) tasks: TaskTracker,
    stop: CancellationToken,
    /// Time for which it keeps its place.
    longest: Duration,
}

impl Exchange<'_> {
    /// This call, for the case that nobody waits for it any more.
    pub(crate) fn abandoned(&self) -> Abandoned {
        Abandoned {
            connection: self.connection.clone(),
            place: self.seat.place.clone(),
            tasks: self.upstream.tasks.clone(),
            stop: self.upstream.stop.clone(),
            longest: WORKED_ON.min(self.upstream.config.timeout / 2),
        }
    }
}

impl Abandoned {
    /// Gives up its turn. It keeps its place, which is free when the value is dropped.
    pub(crate) fn place(&self) -> Option<Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).take().map(|(place, _)| place)
    }

    /// Cancels its request `id`, for which the caller's part of `place` is kept for a while. A server that ends what is cancelled has room for others at once.
    pub(crate) async fn cancel(self, id: RequestId, place: Option<Place>) {
        let Self { connection, stop, longest, .. } = self;
        let keeps = place.map(|place| connection.calls.keep(id.clone(), place.of_caller_alone())).is_some();
        let reason = "the caller cancelled, or its time was over".to_owned();
        let notification =
            CancelledNotification::new(CancelledNotificationParam::new(Some(id.clone()), Some(reason)));
        let _ = connection.peer.send_notification(notification.into()).await;
        if keeps {
            stop.run_until_cancelled(tokio::time::sleep(longest)).await;
            connection.calls.free(&id);
        }
    }
}

/// Tells the server that nobody waits any more.
struct CancelOnDrop {
    request: Option<(Abandoned, RequestId)>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some((call, id)) = self.request.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (place, tasks) = (call.place(), call.tasks.clone());
        tasks.spawn_on(call.cancel(id, place), &runtime);
    }
}

fn caller(context: &CallContext) -> Caller {
    let session = match Audience::session(context.caller()) {
        Audience::Session(id) => Some(id),
        _ => None,
    };
    Caller { principal: context.principal().clone(), session }
}

const PROTOCOL: &str = "io.modelcontextprotocol/";

/// The caller's `_meta` without what belongs to its own connection: progress token, version, client, capabilities.
fn forwarded_meta(context: &RequestContext<RoleServer>, connection: &Connection) -> RequestMetaObject {
    let mut meta = context.meta.clone();
    let level = meta.log_level();
    meta.retain(|key, _| key != "progressToken" && !key.starts_with(PROTOCOL));
    if connection.era.is_stateless() {
        let (own, waits) =
            (context.client_capabilities(), context.extensions.get::<AnsweredLater>().is_some());
        meta.set_client_capabilities(declared(own.unwrap_or_default(), Era::of(context), waits));
        if let Some(level) =
            level.or_else(|| (!Era::of(context).is_stateless()).then_some(LoggingLevel::Debug))
        {
            meta.set_log_level(level);
        }
    }
    meta
}

/// The capabilities that a server of the era without sessions is told of a caller with these `own` ones. It may answer with a question: only with one
/// that this caller can be asked, or with any if it is a run that `waits` for whoever can answer.
fn declared(own: ClientCapabilities, era: Era, waits: bool) -> ClientCapabilities {
    // A client of the older era is asked by the gateway.
    let mut declared = if era.is_stateless() { own } else { question_capabilities(own) };
    if waits {
        declare_questions(&mut declared);
    }
    // A task that the caller cannot follow is awaited here.
    with_tasks(declared)
}

/// Hands events of a call to its caller.
struct Relay<'a> {
    context: &'a RequestContext<RoleServer>,
    events: mpsc::Receiver<(Event, Room)>,
    token: Option<ProgressToken>,
    questions: FuturesUnordered<BoxFuture<'a, ()>>,
    /// Takes back open questions.
    over: CancellationToken,
}

impl<'a> Relay<'a> {
    fn new(context: &'a RequestContext<RoleServer>, events: mpsc::Receiver<(Event, Room)>) -> Self {
        let token = context.meta.get_progress_token();
        Self { context, events, token, questions: FuturesUnordered::new(), over: CancellationToken::new() }
    }

    /// Waits for one event and handles it, or for the answer to a question.
    async fn step(&mut self) {
        tokio::select! {
            Some(event) = self.events.recv() => self.handle(event).await,
            Some(()) = self.questions.next() => {}
            else => std::future::pending().await,
        }
    }

    /// Hands on what came before the answer did, and takes back what is not answered.
    async fn finish(mut self) {
        self.over.cancel();
        let taking_back = async { while self.questions.next().await.is_some() {} };
        let _ = tokio::time::timeout(TAKE_BACK_WITHIN, taking_back).await;
        while let Ok(event) = self.events.try_recv() {
            if !matches!(event, (Event::Ask(_), _)) {
                self.handle(event).await;
            }
        }
    }

    // The caller may be gone: then there is nobody to tell, and its call is cancelled by others.
    async fn handle(&mut self, (event, room): (Event, Room)) {
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
                if self.wants(&log)
                    && let Some(peer) = caller_peer(self.context)
                {
                    let _ = peer.notify_logging_message(Arc::unwrap_or_clone(log)).await;
                }
            }
            Event::Ask(question) => {
                let (context, over) = (self.context, self.over.child_token());
                self.questions.push(Box::pin(async move {
                    answer_question(context, *question, over).await;
                    drop(room);
                }));
            }
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
async fn answer_question(context: &RequestContext<RoleServer>, question: Question, over: CancellationToken) {
    let Question { request, cancelled, answer, .. } = question;
    let unwanted = async {
        cancelled.cancelled().await;
        over.cancel();
        std::future::pending().await
    };
    tokio::select! {
        answered = ask(context, request, &over) => {
            let _ = answer.send(answered.map_err(CannotAsk::into_error));
        }
        () = unwanted => {}
    }
}

#[cfg(test)]
mod tests {
    use gatewright_core::can_answer;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_that_waits_can_be_asked_everything_whatever_its_client_can() {
        let question = |kind: &str| match kind {
            "form" => json!({"method": "elicitation/create", "params": {"mode": "form", "message": "?",
                "requestedSchema": {"type": "object", "properties": {}}}}),
            "url" => {
                json!({"method": "elicitation/create", "params": {"mode": "url", "message": "?", "url": "https://a.example"}})
            }
            "sampling" => {
                json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 9}})
            }
            _ => json!({"method": "roots/list", "params": {}}),
        };
        let era = |version: &str| Era::of_version(version);
        for own in [json!({}), json!({"elicitation": {}}), json!({"experimental": {"x": {}}})] {
            let own: ClientCapabilities = serde_json::from_value(own).unwrap();
            for era in [era("2026-07-28"), era("2025-11-25")] {
                for kind in ["form", "url", "sampling", "roots"] {
                    let asks = serde_json::from_value(json!({"a": question(kind)})).unwrap();
                    let can = |waits: bool| can_answer(&asks, &declared(own.clone(), era, waits)).is_ok();
                    assert!(can(true), "{kind} {own:?}");
                    assert_eq!(can(false), kind == "form" && own.elicitation.is_some(), "{kind} {own:?}");
                }
            }
        }
    }
}
