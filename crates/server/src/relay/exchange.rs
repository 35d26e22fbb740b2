//! One request and its answer, as one of the two instances sees it: parts in both directions, a window for each.
//!
//! At most [`WINDOW`] parts are on their way and not dealt with in each direction, so that a slow reader slows its writer down and
//! holds a bounded number of bytes. An exchange that is dropped before its end cancels the other side.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    Relay,
    channel::{Delivery, NotDelivered},
    message::{CHUNK, ExchangeId, Message, Part, Reason},
};
use crate::cluster::BootId;

/// Parts in one direction that are sent and not dealt with, at most.
pub(super) const WINDOW: usize = 8;

/// The end of an exchange before its time, seen by everybody who works on it.
#[derive(Clone, Default)]
pub(super) struct Ended {
    token: CancellationToken,
    reason: Arc<OnceLock<Reason>>,
}

impl Ended {
    pub(super) fn end(&self, reason: Reason) {
        let _ = self.reason.set(reason);
        self.token.cancel();
    }

    pub(super) async fn ended(&self) -> Reason {
        self.token.cancelled().await;
        self.reason().unwrap_or(Reason::Broken)
    }

    pub(super) fn reason(&self) -> Option<Reason> {
        self.reason.get().copied()
    }
}

/// An exchange as those who receive messages see it.
pub(super) struct Entry {
    pub(super) peer: BootId,
    inbox: mpsc::Sender<Part>,
    /// Number of the next part.
    next: u32,
    window: Arc<Semaphore>,
    /// Parts that the other side has dealt with.
    credited: u32,
    pub(super) ended: Ended,
    /// The sender's epoch in the first message of this exchange.
    pub(super) epoch: Option<u32>,
}

impl Entry {
    /// Takes in the next part. One that came before is ignored; one that is missing ends the exchange.
    pub(super) fn part(&mut self, part: Part) {
        if part.number < self.next {
            return;
        }
        let is_next = part.number == self.next;
        self.next = self.next.wrapping_add(1);
        if !is_next || self.inbox.try_send(part).is_err() {
            self.ended.end(Reason::Broken);
        }
    }

    /// Takes in how many parts the other side has dealt with.
    pub(super) fn credit(&mut self, count: u32) {
        let more = usize::try_from(count.saturating_sub(self.credited)).unwrap_or(usize::MAX);
        if more <= WINDOW - self.window.available_permits().min(WINDOW) {
            self.window.add_permits(more);
            self.credited = self.credited.max(count);
        }
    }
}

/// An exchange as the task that works on it sees it.
pub(super) struct Exchange {
    relay: Arc<Relay>,
    pub(super) id: ExchangeId,
    peer: BootId,
    inbox: mpsc::Receiver<Part>,
    window: Arc<Semaphore>,
    pub(super) ended: Ended,
    sent: u32,
    taken: u32,
    credited: u32,
    /// Nothing has to be told to the other side when this is dropped.
    is_over: bool,
}

impl Exchange {
    /// An exchange with `peer`, and what belongs into the table of exchanges.
    pub(super) fn new(relay: Arc<Relay>, id: ExchangeId, peer: BootId) -> (Self, Entry) {
        // One more than the window: a peer that keeps to it never finds the inbox full.
        let (sender, inbox) = mpsc::channel(WINDOW + 1);
        let (window, ended) = (Arc::new(Semaphore::new(WINDOW)), Ended::default());
        let entry = Entry {
            peer,
            inbox: sender,
            next: 0,
            window: window.clone(),
            credited: 0,
            ended: ended.clone(),
            epoch: None,
        };
        let exchange =
            Self { relay, id, peer, inbox, window, ended, sent: 0, taken: 0, credited: 0, is_over: false };
        (exchange, entry)
    }

    /// Sends a part, once there is room for it.
    pub(super) async fn send(
        &mut self,
        meta: Option<Bytes>,
        data: Bytes,
        end: bool,
    ) -> Result<Delivery, NotDelivered> {
        let broken = || NotDelivered::Perhaps("the exchange is over".into());
        tokio::select! {
            biased;
            _ = self.ended.ended() => return Err(broken()),
            room = self.window.acquire() => room.map_err(|_| broken())?.forget(),
        }
        let part = Part { number: self.sent, meta, data, end };
        self.sent += 1;
        self.relay.send(self.peer, self.id, &Message::Part(part)).await
    }

    /// Sends a body of any length, `meta` with its first part. Gives the fate of the first part that did not go through.
    pub(super) async fn send_all(
        &mut self,
        mut meta: Option<Bytes>,
        mut data: Bytes,
        end: bool,
    ) -> Result<Delivery, NotDelivered> {
        loop {
            let piece = data.split_to(data.len().min(CHUNK));
            let is_last = data.is_empty();
            let delivery = self.send(meta.take(), piece, end && is_last).await?;
            if is_last || delivery == Delivery::Nobody {
                return Ok(delivery);
            }
        }
    }

    /// The next part.
    pub(super) async fn receive(&mut self) -> Result<Part, Reason> {
        let part = tokio::select! {
            biased;
            part = self.inbox.recv() => part.ok_or(Reason::Broken)?,
            reason = self.ended.ended() => return Err(reason),
        };
        self.taken += 1;
        let half = u32::try_from(WINDOW / 2).unwrap_or(1);
        if !part.end && self.taken - self.credited >= half {
            self.credited = self.taken;
            // A credit that is lost is made up by the next, or the connection is gone.
            let _ = self.relay.send(self.peer, self.id, &Message::Credit(self.taken)).await;
        }
        Ok(part)
    }

    /// Notes that the exchange ended as it should, or that the other side knows of its end.
    pub(super) fn over(&mut self) {
        self.is_over = true;
    }

    /// Tells the other side why the exchange ends early.
    pub(super) async fn cancel(&mut self, reason: Reason) {
        self.is_over = true;
        let _ = self.relay.send(self.peer, self.id, &Message::Cancel(reason)).await;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.relay.forget(self.id);
        if self.is_over {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (relay, peer, id) = (self.relay.clone(), self.peer, self.id);
            runtime.spawn(async move {
                let _ = relay.send(peer, id, &Message::Cancel(Reason::Left)).await;
            });
        }
    }
}
