//! Requests of sessions and of calls that another instance holds, carried to it and their answers back.
//!
//! The instance that a client reaches (the *entry*) checks the request: its token, and a DPoP proof once. The principal, the method,
//! some headers, the caller's address and the body travel sealed to the instance that holds the session (the *home*), over
//! a [`PeerChannel`]; no credential does. A request is sent once: what may have run is not run again. `docs/adr/0010` says why.

mod channel;
mod entry;
mod exchange;
mod home;
mod message;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::body::Body;
use futures::{StreamExt as _, future::BoxFuture};
use gatewright_core::Share;
use http::{Response, request::Parts};
use tokio::{
    sync::Notify,
    time::{Instant, MissedTickBehavior},
};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

pub use self::channel::{Delivery, FromPeers, NotDelivered, PeerChannel};
pub(crate) use self::entry::{Gone, is_sent_on};
use self::{
    exchange::{Entry, Exchange},
    message::{ExchangeId, FRESH, Head, Message, Reason, Refused, Seal},
};
use crate::{
    cluster::{BootId, ClusterKey},
    gate::RequestGate,
    request_memory::Message as Request,
};

/// Time between two signs of life to an instance with which exchanges are open.
const BEAT: Duration = Duration::from_secs(2);
/// Silence after which such an instance counts as gone.
const SILENCE: Duration = Duration::from_secs(10);
/// Longest wait for one message to be taken by the channel.
const SEND: Duration = Duration::from_secs(5);
/// Longest wait for the channel at the start.
const FIRST: Duration = Duration::from_secs(5);
/// Ids of requests that are remembered, at most.
const MOST_REMEMBERED: usize = 1_000_000;

/// The endpoint of this instance, for requests that another instance admitted.
pub(crate) trait SessionHome: Send + Sync {
    /// Limits on such requests.
    fn gate(&self) -> &RequestGate;

    /// Serves a request of a session or a call that is held here. Its principal is among the extensions.
    fn serve(&self, parts: Parts, message: Request, permit: Share) -> BoxFuture<'_, Response<Body>>;
}

/// Carries requests to other instances and serves theirs.
pub(crate) struct Relay {
    own: BootId,
    seal: Seal,
    channel: Arc<dyn PeerChannel>,
    table: Mutex<Table>,
    /// Subscriptions made so far.
    epoch: AtomicU32,
    is_listening: AtomicBool,
    first: Notify,
    /// Requests of other instances that are served here.
    pub(crate) served: TaskTracker,
    warned_at: AtomicU64,
}

#[derive(Default)]
struct Table {
    exchanges: HashMap<ExchangeId, Entry>,
    peers: HashMap<BootId, Peer>,
    remembered: HashSet<ExchangeId>,
    /// The same by age.
    by_age: VecDeque<(Instant, ExchangeId)>,
}

/// An instance with which exchanges are open.
struct Peer {
    heard: Instant,
    epoch: u32,
}

/// The tasks of a relay; they end when this is dropped.
pub(crate) struct Running {
    _listening: AbortOnDropHandle<()>,
    _watching: AbortOnDropHandle<()>,
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Relay {
    pub(crate) fn new(key: &ClusterKey, own: BootId, channel: Arc<dyn PeerChannel>) -> Arc<Self> {
        Arc::new(Self {
            own,
            seal: Seal::new(key, own),
            channel,
            table: Mutex::default(),
            epoch: AtomicU32::new(0),
            is_listening: AtomicBool::new(false),
            first: Notify::new(),
            served: TaskTracker::new(),
            warned_at: AtomicU64::new(0),
        })
    }

    /// Listens for other instances on behalf of `endpoint`, and waits a little until it does.
    pub(crate) async fn start(self: &Arc<Self>, endpoint: Weak<dyn SessionHome>) -> Running {
        let listening = tokio::spawn(self.clone().listen(endpoint));
        let watching = tokio::spawn(watch(Arc::downgrade(self)));
        if tokio::time::timeout(FIRST, self.first.notified()).await.is_err() {
            tracing::warn!("not listening for other instances yet: requests of their sessions get 503");
        }
        Running { _listening: AbortOnDropHandle::new(listening), _watching: AbortOnDropHandle::new(watching) }
    }

    async fn listen(self: Arc<Self>, endpoint: Weak<dyn SessionHome>) {
        let mut news = self.channel.listen(&self.own.to_string());
        while let Some(news) = news.next().await {
            match news {
                FromPeers::Listening => {
                    self.epoch.fetch_add(1, Ordering::AcqRel);
                    // What was sent meanwhile is lost, an end for example.
                    self.break_all(|_| true);
                    self.is_listening.store(true, Ordering::Release);
                    self.first.notify_one();
                }
                FromPeers::Lost => self.is_listening.store(false, Ordering::Release),
                FromPeers::Message(bytes) => match self.seal.open(&bytes, now()) {
                    Ok((head, message)) => self.receive(head, message, &endpoint),
                    Err(refused) => self.note(refused),
                },
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, refused: Refused) {
        if refused == Refused::Stale {
            self.warn("a message of another instance was refused for its age: the clocks of the machines differ by more than 30 s, or it was replayed");
        } else {
            self.warn("a message was refused that no instance with this `http.cluster.key` and version sealed for this one");
        }
    }

    /// Warns at most once a minute.
    fn warn(&self, what: &'static str) {
        let (now, before) = (now(), self.warned_at.load(Ordering::Acquire));
        if now.abs_diff(before) > 60_000 && self.warned_at.swap(now, Ordering::AcqRel) == before {
            tracing::warn!("{what}");
        }
    }

    fn receive(self: &Arc<Self>, head: Head, message: Message, endpoint: &Weak<dyn SessionHome>) {
        let mut table = self.table();
        table.heard(&head);
        if let Some(entry) = table.exchanges.get_mut(&head.exchange) {
            match message {
                _ if entry.peer != head.from => {}
                Message::Part(part) => entry.part(part),
                Message::Credit(count) => entry.credit(count),
                Message::Cancel(reason) => entry.ended.end(reason),
                Message::Beat => {}
            }
            return;
        }
        // Anything else is of an exchange that is over.
        let Message::Part(part) = message else { return };
        if part.number == 0 && part.meta.is_some() && table.is_new(head.exchange) {
            let (exchange, mut entry) = Exchange::new(self.clone(), head.exchange, head.from);
            entry.part(part);
            entry.epoch = Some(head.epoch);
            table.open(head.exchange, entry, Some(head.epoch));
            drop(table);
            self.served.spawn(home::serve(exchange, endpoint.clone()));
        }
    }

    /// Sends a message once.
    async fn send(
        &self,
        to: BootId,
        exchange: ExchangeId,
        message: &Message,
    ) -> Result<Delivery, NotDelivered> {
        let head = Head { from: self.own, exchange, at: now(), epoch: self.epoch.load(Ordering::Acquire) };
        let sealed = self.seal.seal(to, head, message);
        let to = to.to_string();
        let sent = tokio::time::timeout(SEND, self.channel.send(&to, &sealed)).await;
        sent.unwrap_or_else(|_| Err(NotDelivered::Perhaps("not sent in time".into())))
    }

    fn forget(&self, exchange: ExchangeId) {
        self.table().exchanges.remove(&exchange);
    }

    fn break_all(&self, of: impl Fn(&Entry) -> bool) {
        let table = self.table();
        for entry in table.exchanges.values().filter(|entry| of(entry)) {
            entry.ended.end(Reason::Broken);
        }
    }

    /// Ends exchanges with instances that are gone, and tells the others that this one lives.
    async fn beat(&self) {
        let peers = self.table().peers_to_tell();
        let beats = peers.into_iter().map(async |(peer, is_silent)| {
            let is_gone = is_silent
                || matches!(self.send(peer, ExchangeId::NONE, &Message::Beat).await, Ok(Delivery::Nobody));
            if is_gone {
                tracing::warn!(instance = %peer, "an instance that worked on requests is gone");
                self.break_all(|entry| entry.peer == peer);
            }
        });
        futures::future::join_all(beats).await;
    }
}

async fn watch(relay: Weak<Relay>) {
    let mut ticks = tokio::time::interval(BEAT);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(relay) = relay.upgrade() else { return };
        relay.beat().await;
    }
}

impl Table {
    /// Notes that an instance lives. One that subscribed anew has lost what was sent to it before.
    fn heard(&mut self, head: &Head) {
        if let Some(entry) = self.exchanges.get_mut(&head.exchange) {
            entry.epoch.get_or_insert(head.epoch);
        }
        let Some(peer) = self.peers.get_mut(&head.from) else { return };
        peer.heard = Instant::now();
        if head.epoch > peer.epoch {
            peer.epoch = head.epoch;
            for entry in self.exchanges.values() {
                if entry.peer == head.from && entry.epoch.is_some_and(|epoch| epoch < head.epoch) {
                    entry.ended.end(Reason::Broken);
                }
            }
        }
    }

    fn open(&mut self, id: ExchangeId, entry: Entry, epoch: Option<u32>) {
        let fresh = Peer { heard: Instant::now(), epoch: epoch.unwrap_or_default() };
        self.peers.entry(entry.peer).or_insert(fresh).heard = Instant::now();
        self.exchanges.insert(id, entry);
    }

    /// Remembers a request for as long as a copy of it could still be accepted; false when it was seen before.
    fn is_new(&mut self, id: ExchangeId) -> bool {
        // A message may be as much ahead of the clock as it may be behind.
        let lifetime = Duration::from_millis(2 * FRESH + 5_000);
        while self.by_age.front().is_some_and(|(at, _)| at.elapsed() > lifetime) {
            if let Some((_, id)) = self.by_age.pop_front() {
                self.remembered.remove(&id);
            }
        }
        if self.remembered.len() >= MOST_REMEMBERED || !self.remembered.insert(id) {
            return false;
        }
        self.by_age.push_back((Instant::now(), id));
        true
    }

    /// The instances with which exchanges are open, and whether they have been silent for too long. Forgets the others.
    fn peers_to_tell(&mut self) -> Vec<(BootId, bool)> {
        let busy: HashSet<BootId> = self.exchanges.values().map(|entry| entry.peer).collect();
        self.peers.retain(|peer, _| busy.contains(peer));
        self.peers.iter().map(|(peer, state)| (*peer, state.heard.elapsed() > SILENCE)).collect()
    }
}
