//! Sessions of the older era: capped in number, and usable only by the principal that opened them.
//!
//! `rmcp` asks for a session without saying for whom. The caller is known to the task that handles the request, and is
//! handed over by a task-local. In a cluster the id that clients see also says where the session lives.

use std::{
    cell::Cell,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use futures::{Stream, StreamExt as _, stream};
use gatewright_core::{Claimant, NoShare, Principal, REQUEST_CANCELLED, Revision, Share, Shares};
use rmcp::{
    ErrorData,
    model::{
        ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
        ServerResult,
    },
    transport::streamable_http_server::session::{
        ServerSseMessage, SessionId, SessionManager,
        local::{LocalSessionManager, LocalSessionManagerError},
    },
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    cluster::{Cluster, own_id},
    in_flight::{InFlight, Tracked},
    kept_messages::{self, KeptMessages},
    resumption::{Events, RETRY, Resumptions, Work, answers, cancellation},
    session_room::{SessionPlace, SessionRoom},
};

/// Longest time between two looks for sessions that nobody uses.
const LONGEST_LOOK: Duration = Duration::from_secs(5);

/// To whom a session belongs: subject, client and endpoint of its principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner(Arc<str>, Option<Arc<str>>, Option<Arc<str>>);

impl Owner {
    pub(crate) fn of(principal: &Principal) -> Self {
        Self(principal.subject.clone(), principal.client_id.clone(), principal.endpoint.clone())
    }
}

/// The id by which the manager of `rmcp` knows a session.
fn own(id: &SessionId) -> SessionId {
    own_id(id).into()
}

/// The stream without a tie to the id it was asked for with.
fn freed(stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static) -> Events {
    Box::pin(stream)
}

/// The events of `stream` as a client gets them, without those that only prime it where it does not know them: before 2025-11-25 an
/// event without data is an error to clients (SEP-1699).
fn events(
    stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
    primes: bool,
) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
    stream.filter_map(move |mut event| {
        event.event_id = event.event_id.as_deref().map(following);
        std::future::ready((primes || event.message.is_some()).then_some(event))
    })
}

/// The id of the event after that of `id`. `rmcp` replays from an id on, that event included: clients get ids that are one higher, so
/// that the one they name is the first they did not get.
fn following(id: &str) -> String {
    let (index, stream) = id.split_at(id.find('/').unwrap_or(id.len()));
    index.parse().map_or_else(|_| id.to_owned(), |index: usize| format!("{}{stream}", index + 1))
}

/// Requests whose POST waits for an answer. `rmcp` ends such a stream without one when the request is cancelled.
type Waiting = Arc<Mutex<HashMap<(SessionId, RequestId), CancellationToken>>>;

/// A request in the table, taken out when its stream is gone.
struct Wait {
    table: Waiting,
    key: (SessionId, RequestId),
    cancelled: CancellationToken,
    answered: bool,
}

impl Wait {
    fn begin(table: &Waiting, session: &SessionId, request: &RequestId) -> Self {
        let (key, cancelled) = ((session.clone(), request.clone()), CancellationToken::new());
        table.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), cancelled.clone());
        Self { table: table.clone(), key, cancelled, answered: false }
    }

    /// The next message of `stream`; after a cancellation the error -32800 in place of the answer, once.
    async fn next(
        &mut self,
        stream: &mut (impl Stream<Item = ServerSseMessage> + Unpin),
    ) -> Option<ServerSseMessage> {
        let next = tokio::select! {
            biased;
            next = stream.next() => next,
            () = self.cancelled.cancelled(), if !self.answered => None,
        };
        match next {
            Some(next) => {
                self.answered |= next.message.as_deref().is_some_and(|message| answers(message, &self.key.1));
                Some(next)
            }
            None if self.cancelled.is_cancelled() && !self.answered => {
                self.answered = true;
                let error = ErrorData::new(REQUEST_CANCELLED, "the request was cancelled", None);
                let message = ServerJsonRpcMessage::error(error, Some(self.key.1.clone()));
                Some(ServerSseMessage::from_message(message))
            }
            None => None,
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

/// A request that its session does not have yet. Its client may leave before.
struct Begun(Option<(InFlight, RequestId)>);

impl Begun {
    /// The session has it: it is open until it is answered.
    fn taken(mut self) {
        self.0 = None;
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some((in_flight, id)) = &self.0 {
            in_flight.forget(id);
        }
    }
}

struct Caller {
    owner: Owner,
    opener: Claimant,
    /// The place of the request.
    permit: Arc<Share>,
    no_room: Cell<Option<NoShare>>,
}

tokio::task_local! {
    static CALLER: Caller;
}

/// Runs `work` on behalf of `owner`, whose request has the place `permit`; also returns the reason if there was no room for a session.
pub(crate) async fn on_behalf_of<T>(
    owner: Owner,
    opener: Claimant,
    permit: Arc<Share>,
    work: impl Future<Output = T>,
) -> (T, Option<NoShare>) {
    let caller = Caller { owner, opener, permit, no_room: Cell::new(None) };
    CALLER.scope(caller, async { (work.await, CALLER.with(|caller| caller.no_room.get())) }).await
}

/// The sessions of one server.
pub(crate) struct OwnedSessions {
    inner: Arc<LocalSessionManager>,
    pub(crate) room: Arc<SessionRoom>,
    cluster: Option<Arc<Cluster>>,
    known: Mutex<HashMap<SessionId, Known>>,
    waiting: Waiting,
    resumptions: Arc<Resumptions>,
    kept_messages: Arc<Shares>,
}

/// A session that is held here.
struct Known {
    owner: Owner,
    in_flight: InFlight,
    /// Agreed on in its `initialize`.
    revision: Option<Revision>,
    /// Time of its client's last message or stream.
    used: Instant,
    _place: SessionPlace,
}

impl Known {
    /// Returns `true` if the client knows events that only prime a stream.
    fn primes(&self) -> bool {
        self.revision >= Some(Revision::V2025_11_25)
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionsError {
    #[error("too many sessions are open")]
    Full,
    #[error("nobody opens or uses this session")]
    NoOwner,
    #[error(transparent)]
    Session(#[from] LocalSessionManagerError),
}

impl OwnedSessions {
    pub(crate) fn new(room: Arc<SessionRoom>, idle: Duration, cluster: Option<Arc<Cluster>>) -> Arc<Self> {
        let mut inner = LocalSessionManager::default();
        // `rmcp` counts messages, and ends a session while one of its calls goes on: see `end_idle`.
        inner.session_config.keep_alive = None;
        inner.session_config.sse_retry = Some(RETRY);
        inner.session_config.channel_capacity = kept_messages::MOST;
        let (known, waiting, resumptions) = (Mutex::default(), Waiting::default(), Resumptions::new());
        let (inner, kept_messages) = (Arc::new(inner), KeptMessages::budget());
        let sessions = Arc::new(Self { inner, room, cluster, known, waiting, resumptions, kept_messages });
        tokio::spawn(end_idle(Arc::downgrade(&sessions), idle));
        sessions
    }

    /// Notes a use of a session by its client.
    fn touch(&self, id: &SessionId) {
        if let Some(known) = self.known().get_mut(id) {
            known.used = Instant::now();
        }
    }

    /// The sessions that nobody has used for `idle`. One with an open request is in use.
    fn unused(&self, idle: Duration) -> Vec<SessionId> {
        let now = Instant::now();
        let mut known = self.known();
        known.values_mut().filter(|known| !known.in_flight.is_empty()).for_each(|known| known.used = now);
        known.iter().filter(|(_, known)| now - known.used >= idle).map(|(id, _)| id.clone()).collect()
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<(SessionId, RequestId), CancellationToken>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if `id` is a session of `owner`.
    pub(crate) fn belongs(&self, id: &str, owner: &Owner) -> bool {
        self.known().get(id).is_some_and(|known| known.owner == *owner)
    }

    /// The revision that a session's `initialize` agreed on.
    pub(crate) fn revision(&self, id: &str) -> Option<Revision> {
        self.known().get(id)?.revision
    }

    fn primes(&self, id: &SessionId) -> bool {
        self.known().get(id).is_some_and(Known::primes)
    }

    /// Number of open sessions.
    pub(crate) fn open(&self) -> usize {
        self.known().len()
    }

    /// Ends every session.
    pub(crate) async fn close_all(&self) {
        let all: Vec<SessionId> = self.known().keys().cloned().collect();
        for id in all {
            let _ = self.close_session(&id).await;
        }
    }

    /// The owner of a new session, and a place for it.
    fn place(&self) -> Result<(Owner, SessionPlace), SessionsError> {
        let place = |caller: &Caller| match self.room.take(caller.opener.clone()) {
            Ok(place) => Ok((caller.owner.clone(), place)),
            Err(why) => {
                caller.no_room.set(Some(why));
                Err(SessionsError::Full)
            }
        };
        CALLER.try_with(place).unwrap_or(Err(SessionsError::NoOwner))
    }
}

impl SessionManager for OwnedSessions {
    type Error = SessionsError;
    type Transport = Tracked<<LocalSessionManager as SessionManager>::Transport>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionsError> {
        let (owner, place) = self.place()?;
        let (own, transport) = self.inner.create_session().await?;
        let id = self.cluster.as_ref().map_or_else(|| own.clone(), |cluster| cluster.seal(&own).into());
        let in_flight = InFlight::default();
        let opener = CALLER.try_with(|caller| caller.opener.clone()).unwrap_or_default();
        let kept = KeptMessages::new(self.kept_messages.clone(), opener);
        let transport = Tracked { inner: transport, in_flight: in_flight.clone(), kept: Some(kept) };
        let known = Known { owner, in_flight, revision: None, used: Instant::now(), _place: place };
        self.known().insert(id.clone(), known);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionsError> {
        let answer = self.inner.initialize_session(&own(id), message).await?;
        if let JsonRpcMessage::Response(response) = &answer
            && let ServerResult::InitializeResult(agreed) = &response.result
            && let Some(known) = self.known().get_mut(id)
        {
            known.revision = Revision::named(agreed.protocol_version.as_str());
        }
        Ok(answer)
    }

    /// Another principal's session is unknown: every use of a session asks here first.
    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionsError> {
        let belongs = CALLER.try_with(|caller| self.belongs(id, &caller.owner)).unwrap_or(false);
        Ok(belongs && self.inner.has_session(&own(id)).await?)
    }

    /// For its owner, and for the server's own tasks, which run on nobody's behalf.
    async fn close_session(&self, id: &SessionId) -> Result<(), SessionsError> {
        if CALLER.try_with(|caller| !self.belongs(id, &caller.owner)).unwrap_or(false) {
            return Err(SessionsError::NoOwner);
        }
        let open = self.known().get(id).map(|known| known.in_flight.open()).unwrap_or_default();
        for request in open {
            // Nobody can get its answer any more.
            let _ = self.accept_message(id, cancellation(request, "its session has ended")).await;
        }
        self.known().remove(id);
        self.resumptions.forget(id);
        Ok(self.inner.close_session(&own(id)).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        self.touch(id);
        let JsonRpcMessage::Request(request) = &message else {
            return Ok(freed(self.inner.create_stream(&own(id), message).await?));
        };
        let (in_flight, primes) = match self.known().get(id) {
            Some(known) => (known.in_flight.clone(), known.primes()),
            None => Default::default(),
        };
        let permit = CALLER.try_with(|caller| caller.permit.clone()).ok();
        if let Err(refused) = in_flight.receive(&message, permit) {
            let error = ServerJsonRpcMessage::error(refused, Some(request.id.clone()));
            return Ok(freed(stream::iter([ServerSseMessage::from_message(error)])));
        }
        let begun = Begun(Some((in_flight.clone(), request.id.clone())));
        let wait = Wait::begin(&self.waiting, id, &request.id);
        let work = Work {
            sessions: Arc::downgrade(&self.inner),
            session: (id.clone(), own(id)),
            request: request.id.clone(),
            in_flight,
            caller: CALLER.try_with(|caller| caller.opener.clone()).unwrap_or_default(),
            answered: CancellationToken::new(),
        };
        let mut stream = freed(self.inner.create_stream(&own(id), message).await?);
        begun.taken();
        // It primes the stream, and is there at once.
        let first = stream.next().await;
        let stream = freed(events(stream::iter(first.clone()).chain(stream), primes));
        let stream = freed(stream::unfold((stream, wait), |(mut stream, mut wait)| async move {
            let next = wait.next(&mut stream).await?;
            Some((next, (stream, wait)))
        }));
        Ok(self.resumptions.begin(first.as_ref(), stream, work))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionsError> {
        self.touch(id);
        if let JsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(request) = &cancelled.params.request_id
            && let Some(wait) = self.waiting().get(&(id.clone(), request.clone()))
        {
            wait.cancel();
        }
        if let Some(known) = self.known().get(id) {
            let _ = known.in_flight.receive(&message, None);
        }
        Ok(self.inner.accept_message(&own(id), message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        self.touch(id);
        let primes = self.primes(id);
        let retry = self.inner.session_config.sse_retry.filter(|_| primes);
        let priming = stream::iter(retry.map(|retry| ServerSseMessage::priming("0", retry)));
        let stream = self.inner.create_standalone_stream(&own(id)).await?;
        Ok(freed(priming.chain(events(stream, primes))))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        self.touch(id);
        let primes = self.primes(id);
        match self.inner.resume(&own(id), last_event_id.clone()).await {
            Ok(stream) => Ok(self.resumptions.again(id, &last_event_id, freed(events(stream, primes)))),
            Err(error) => match self.resumptions.answer(id, &last_event_id).await {
                Some(answer) => Ok(freed(stream::iter([answer]))),
                None => Err(error.into()),
            },
        }
    }
}

/// Ends sessions that nobody uses, for as long as there is a server.
async fn end_idle(sessions: Weak<OwnedSessions>, idle: Duration) {
    loop {
        tokio::time::sleep((idle / 8).min(LONGEST_LOOK)).await;
        let Some(sessions) = sessions.upgrade() else { return };
        for id in sessions.unused(idle) {
            let _ = sessions.close_session(&id).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::following;

    #[test]
    fn the_id_a_client_names_is_the_first_that_it_did_not_get() {
        assert_eq!((following("0").as_str(), following("41/7").as_str()), ("1", "42/7"));
        assert_eq!(following("of another kind"), "of another kind");
    }
}
