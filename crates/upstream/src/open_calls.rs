//! Open calls, and the messages of a server that belong to each.
//!
//! [`Tap`](crate::tap::Tap) shows them each request as it leaves, with its id and progress token, before the server can
//! answer, and each message before the answer behind it arrives. So nothing is lost, and order is kept.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use gatewright_core::{AnswerRoom, Claimant, Principal, Reserved, count_values};
use rmcp::{
    ErrorData,
    model::{
        ClientJsonRpcMessage, ClientResult, GetExtensions as _, GetMeta as _, JsonRpcMessage,
        JsonRpcResponse, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
        RequestId, ServerJsonRpcMessage, ServerNotification, ServerRequest, ServerResult,
    },
};
use serde::Serialize;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    list_room::{ListRoom, ReadsLists},
    places::Place,
    rare_line::RareLine,
    result_kinds::Asked,
    short_messages::{short_log, short_progress},
    turns::{Turn, Turns},
};

/// Messages of a server kept for one call whose client does not take them. More progress and log messages are dropped.
const KEPT: usize = 256;
/// Bytes of the same, with [`VALUE_BYTES`] for each key and value. A question that is longer needs all of them.
const KEPT_BYTES: usize = 256 << 10;
/// Bytes that a key or value counts for besides its own.
const VALUE_BYTES: usize = 64;
/// Time for which calls of different callers take turns after a question that could not be attributed, or could not have been without
/// turns.
const TURNS_FOR: Duration = Duration::from_secs(300);

/// Key of `_meta` that names the task a message belongs to (MCP 2025-11-25).
pub(crate) const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Longest id of a task, in bytes.
pub(crate) const LONGEST_TASK_ID: usize = 1024;

const TASK_STATUS: &str = "notifications/tasks/status";

/// A message of a server during a call.
#[derive(Debug)]
pub(crate) enum Event {
    /// Progress of the call.
    Progress(ProgressNotificationParam),
    /// A log message.
    Log(Arc<LoggingMessageNotificationParam>),
    /// A question for the caller: elicitation, sampling or roots.
    Ask(Box<Question>),
}

/// Room for a message until it was handed on.
pub(crate) type Room = OwnedSemaphorePermit;

/// A request of the server, and where its answer goes.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) request: ServerRequest,
    /// The task that it names.
    pub(crate) task: Option<String>,
    /// Cancelled when the server does not want the answer any more.
    pub(crate) cancelled: CancellationToken,
    pub(crate) answer: oneshot::Sender<Result<ClientResult, ErrorData>>,
}

/// The caller of an open call.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) principal: Arc<Principal>,
    /// Equal for calls of one session; `None` outside of sessions.
    pub(crate) session: Option<u64>,
}

impl Caller {
    /// Returns `true` if what one is asked the other may be asked as well: in one session, or as one principal outside of sessions.
    /// Anonymous callers are many.
    fn is_same(&self, other: &Self) -> bool {
        match (self.session, other.session) {
            (None, None) => {
                self.principal == other.principal && self.principal.subject != Principal::local().subject
            }
            (own, others) => own == others,
        }
    }
}

/// One call a server works on.
pub(crate) struct OpenCall {
    caller: Caller,
    events: mpsc::Sender<(Event, Room)>,
    room: Arc<Semaphore>,
    over: AtomicBool,
    /// Questions that it was handed.
    questions: AtomicUsize,
    /// An answer to its last request made a task of it.
    is_task: AtomicBool,
    status: Notify,
    /// Room for its answer, and the part of it that the answer takes.
    answers: Option<AnswerRoom>,
    reserved: Mutex<Option<Reserved>>,
}

impl fmt::Debug for OpenCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenCall").field("caller", &self.caller).finish_non_exhaustive()
    }
}

impl OpenCall {
    /// Hands on a message that counts for `bytes`, if there is room for it.
    fn hand_on(&self, event: Event, bytes: usize) -> Result<(), Unasked> {
        let bytes = u32::try_from(bytes).map_err(|_| Unasked::Full)?;
        let room = self.room.clone().try_acquire_many_owned(bytes).map_err(|_| Unasked::Full)?;
        self.events.try_send((event, room)).map_err(|_| Unasked::Full)
    }
}

/// Bytes that a message counts for.
pub(crate) fn weight(message: &impl Serialize) -> usize {
    let json = serde_json::to_vec(message).unwrap_or_default();
    json.len() + VALUE_BYTES * count_values(&json, usize::MAX).unwrap_or_default()
}

/// Marks an outgoing request as part of a call. It never goes over the wire.
#[derive(Debug, Clone)]
pub(crate) struct CallMark(pub(crate) Arc<OpenCall>);

/// Why a question of a server reaches nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unasked {
    /// No call is open.
    NoCall,
    /// Calls of several callers are open, and nothing says whose it is.
    Ambiguous,
    /// The call has too many messages waiting.
    Full,
}

#[derive(Debug, Default)]
struct Table {
    all: Vec<Arc<OpenCall>>,
    by_id: HashMap<RequestId, Arc<OpenCall>>,
    by_token: HashMap<ProgressToken, Arc<OpenCall>>,
    by_task: HashMap<String, Arc<OpenCall>>,
    asked: Asked,
    /// Places of requests that were cancelled, on which the server may still be at work.
    cancelled: HashMap<RequestId, Place>,
    /// Calls of different callers take turns until then.
    turns_until: Option<Instant>,
}

impl Table {
    fn takes_turns(&self) -> bool {
        self.turns_until.is_some_and(|until| Instant::now() < until)
    }

    fn begin_turns(&mut self) {
        self.turns_until = Some(Instant::now() + TURNS_FOR);
    }
}

/// The calls open at one server.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls {
    table: Mutex<Table>,
    /// About messages that are skipped.
    pub(crate) skipped: RareLine,
    /// For answers to the gateway's own requests for lists.
    lists: ListRoom,
    turns: Arc<Turns>,
}

impl OpenCalls {
    /// A new call. It is over when the guard is dropped.
    pub(crate) fn open(
        self: &Arc<Self>,
        caller: Caller,
        answers: Option<AnswerRoom>,
    ) -> (OpenGuard, mpsc::Receiver<(Event, Room)>) {
        let (events, receiver) = mpsc::channel(KEPT);
        let room = Arc::new(Semaphore::new(KEPT_BYTES));
        let call = Arc::new(OpenCall {
            caller,
            events,
            room,
            over: AtomicBool::default(),
            questions: AtomicUsize::default(),
            is_task: AtomicBool::default(),
            status: Notify::new(),
            answers,
            reserved: Mutex::default(),
        });
        self.lock().all.push(call.clone());
        (OpenGuard { calls: self.clone(), call }, receiver)
    }

    /// Waits for the turn of a call of `caller`, while calls take turns: for some time after a question could not be attributed.
    pub(crate) async fn turn(&self, caller: &Claimant) -> Option<Turn> {
        if !self.lock().takes_turns() {
            return None;
        }
        Some(self.turns.take(caller.lines().next().unwrap_or_default()).await)
    }

    /// Hands a question to the call it belongs to: the one that `origin` or the question itself names, or one of the only caller there is. Of
    /// several it is the one that was asked least, the last of these: where each call asks, each has its question.
    pub(crate) fn ask(&self, origin: Option<&RequestId>, question: Question) -> Result<(), Unasked> {
        let call = {
            let mut table = self.lock();
            let of_task = || table.by_task.get(question.task.as_ref()?);
            match origin.and_then(|id| table.by_id.get(id)).or_else(of_task) {
                Some(call) => call.clone(),
                None => {
                    let Some(last) = table.all.last() else { return Err(Unasked::NoCall) };
                    let same =
                        |call: &Arc<OpenCall>| Arc::ptr_eq(call, last) || call.caller.is_same(&last.caller);
                    if !table.all.iter().all(same) {
                        table.begin_turns();
                        return Err(Unasked::Ambiguous);
                    }
                    let asked = |call: &&Arc<OpenCall>| call.questions.load(Ordering::Relaxed);
                    let least = table.all.iter().rev().min_by_key(asked).unwrap_or(last).clone();
                    if table.takes_turns() && self.turns.is_waited_for() {
                        table.begin_turns();
                    }
                    least
                }
            }
        };
        call.questions.fetch_add(1, Ordering::Relaxed);
        let bytes = weight(&question.request).min(KEPT_BYTES);
        call.hand_on(Event::Ask(Box::new(question)), bytes)
    }

    /// Takes room for lists that are read until the guard is dropped.
    pub(crate) fn read_lists(&self) -> ReadsLists<'_> {
        self.lists.begin()
    }

    /// Takes room for an answer of the app `id` to a request of the gateway's own. Returns `false` if there is none.
    pub(crate) fn reserve_list(&self, id: &Arc<str>, bytes: u64) -> bool {
        self.lists.take(id, bytes)
    }

    /// Takes room for the answer to request `id`, of `bytes` once it is parsed, until its call is over: an error if the call has no room for
    /// it. `None` if no call asked that has room of its own.
    pub(crate) fn reserve(&self, id: &RequestId, bytes: u64) -> Option<Result<(), String>> {
        let call = self.lock().by_id.get(id).cloned()?;
        let reserved = call.answers.as_ref()?.reserve(bytes);
        Some(reserved.map(|reserved| {
            *call.reserved.lock().unwrap_or_else(PoisonError::into_inner) = Some(reserved);
        }))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the id and the token of a request that leaves.
    pub(crate) fn sent(&self, message: &mut ClientJsonRpcMessage) {
        self.lock().asked.sent(message);
        let JsonRpcMessage::Request(request) = message else { return };
        let Some(CallMark(call)) = request.request.extensions_mut().remove::<CallMark>() else { return };
        let mut table = self.lock();
        if call.over.load(Ordering::Relaxed) {
            return;
        }
        call.is_task.store(false, Ordering::Relaxed);
        if let Some(token) = request.request.get_meta().get_progress_token() {
            table.by_token.insert(token, call.clone());
        }
        table.by_id.insert(request.id.clone(), call);
    }

    /// Gives the result of an answer the kind that its request asked for, and frees the place of one that was cancelled.
    pub(crate) fn settle(&self, message: &mut ServerJsonRpcMessage) {
        let mut table = self.lock();
        match message {
            JsonRpcMessage::Response(response) => drop(table.cancelled.remove(&response.id)),
            JsonRpcMessage::Error(error) => drop(error.id.as_ref().map(|id| table.cancelled.remove(id))),
            _ => {}
        }
        table.asked.settle(message);
    }

    /// Keeps the place of request `id`, which is cancelled, until the server answers it nevertheless, or [`OpenCalls::free`] is called.
    pub(crate) fn keep(&self, id: RequestId, place: Place) {
        self.lock().cancelled.insert(id, place);
    }

    /// Frees the place of a request that was cancelled.
    pub(crate) fn free(&self, id: &RequestId) {
        self.lock().cancelled.remove(id);
    }

    /// Takes what belongs to calls. `true` when that was all there is to do with the message.
    pub(crate) fn received(&self, message: &ServerJsonRpcMessage) -> bool {
        let notification = match message {
            JsonRpcMessage::Notification(notification) => notification,
            JsonRpcMessage::Response(response) => {
                self.created(response);
                return false;
            }
            _ => return false,
        };
        match &notification.notification {
            ServerNotification::ProgressNotification(progress) => {
                let call = self.lock().by_token.get(&progress.params.progress_token).cloned();
                if let Some(call) = call {
                    let params = short_progress(&progress.params);
                    let bytes = weight(&params);
                    let _ = call.hand_on(Event::Progress(params), bytes);
                }
                true
            }
            ServerNotification::LoggingMessageNotification(log) => {
                self.log(&log.params);
                true
            }
            ServerNotification::CustomNotification(custom) if custom.method == TASK_STATUS => {
                let task = custom.params.as_ref().and_then(|params| params["taskId"].as_str());
                if let Some(call) = task.and_then(|task| self.lock().by_task.get(task).cloned()) {
                    call.status.notify_one();
                }
                true
            }
            _ => false,
        }
    }

    /// Notes the task that a server made of a call, before it announces a status: one for each request, whatever else it answers.
    fn created(&self, response: &JsonRpcResponse<ServerResult>) {
        let ServerResult::CustomResult(custom) = &response.result else { return };
        let Some(task) = custom.0["task"]["taskId"].as_str() else { return };
        let call = self.lock().by_id.get(&response.id).cloned();
        if let Some(call) = call.filter(|_| task.len() <= LONGEST_TASK_ID)
            && !call.is_task.swap(true, Ordering::Relaxed)
        {
            self.lock().by_task.entry(task.to_owned()).or_insert(call);
        }
    }

    /// Log messages name no call. One caller gets them; with several, they could tell one about another: nobody does.
    fn log(&self, params: &LoggingMessageNotificationParam) {
        if self.lock().all.is_empty() {
            return;
        }
        // Measured and copied once, and while others may use the table.
        let params = Arc::new(short_log(params));
        let bytes = weight(&*params);
        let table = self.lock();
        let Some(first) = table.all.first() else { return };
        if table.all.iter().any(|call| call.caller.principal != first.caller.principal) {
            return;
        }
        let mut notified = HashSet::new();
        for call in &table.all {
            if call.caller.session.is_some_and(|session| !notified.insert(session)) {
                continue;
            }
            let _ = call.hand_on(Event::Log(params.clone()), bytes);
        }
    }
}

/// Ends the call when dropped.
#[derive(Debug)]
pub(crate) struct OpenGuard {
    calls: Arc<OpenCalls>,
    call: Arc<OpenCall>,
}

impl OpenGuard {
    pub(crate) fn mark(&self) -> CallMark {
        CallMark(self.call.clone())
    }

    /// Notes that the server runs the call as this task. `false` if that is the task of another open call.
    pub(crate) fn runs_as(&self, task: &str) -> bool {
        match self.calls.lock().by_task.entry(task.to_owned()) {
            Entry::Occupied(known) => Arc::ptr_eq(known.get(), &self.call),
            Entry::Vacant(place) => {
                place.insert(self.call.clone());
                true
            }
        }
    }

    /// Waits until the server announces a status of the task of this call.
    pub(crate) async fn status_announced(&self) {
        self.call.status.notified().await;
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        let mut table = self.calls.lock();
        self.call.over.store(true, Ordering::Relaxed);
        let other = |call: &Arc<OpenCall>| !Arc::ptr_eq(call, &self.call);
        table.all.retain(other);
        table.by_id.retain(|_, call| other(call));
        table.by_token.retain(|_, call| other(call));
        table.by_task.retain(|_, call| other(call));
    }
}

#[cfg(test)]
mod tests;
