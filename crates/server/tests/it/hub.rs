//! Messages between instances of one process: what Redis does, with a record of everything that passes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use bytes::Bytes;
use futures::{
    StreamExt as _,
    future::BoxFuture,
    stream::{BoxStream, unfold},
};
use gatewright_server::{Delivery, FromPeers, NotDelivered, PeerChannel};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// A channel that all instances of a test share.
#[derive(Clone, Default)]
pub(crate) struct Hub(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    listeners: HashMap<String, UnboundedSender<FromPeers>>,
    sent: Vec<(String, Bytes)>,
    fate: Option<Fate>,
}

type Fate = Box<dyn Fn(usize) -> Then + Send>;

/// The fate of a message.
pub(crate) enum Then {
    Delivered,
    Lost,
    Twice,
    Refused,
    Unclear,
}

impl Hub {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Every message so far, and for whom it was.
    pub(crate) fn sent(&self) -> Vec<(String, Bytes)> {
        self.state().sent.clone()
    }

    /// Decides by the number of a message, from now on counted from 0, what becomes of it.
    pub(crate) fn fate(&self, fate: impl Fn(usize) -> Then + Send + 'static) {
        let mut state = self.state();
        state.sent.clear();
        state.fate = Some(Box::new(fate));
    }

    /// Delivers something to an instance, as whoever may write to Redis can.
    pub(crate) fn inject(&self, to: &str, news: FromPeers) {
        if let Some(listener) = self.state().listeners.get(to) {
            let _ = listener.send(news);
        }
    }

    /// Ends the connection of an instance for good, as when it is killed.
    pub(crate) fn kill(&self, instance: &str) {
        self.state().listeners.remove(instance);
    }

    /// The instances that listen.
    pub(crate) fn instances(&self) -> Vec<String> {
        self.state().listeners.keys().cloned().collect()
    }
}

impl PeerChannel for Hub {
    fn send<'a>(&'a self, to: &'a str, message: &'a [u8]) -> BoxFuture<'a, Result<Delivery, NotDelivered>> {
        let mut state = self.state();
        let number = state.sent.len();
        let message = Bytes::copy_from_slice(message);
        state.sent.push((to.to_owned(), message.clone()));
        let then = state.fate.as_ref().map_or(Then::Delivered, |fate| fate(number));
        let copies = match then {
            Then::Delivered => 1,
            Then::Twice => 2,
            Then::Lost => 0,
            Then::Refused => {
                return Box::pin(async { Err(NotDelivered::Certainly("no connection".into())) });
            }
            Then::Unclear => return Box::pin(async { Err(NotDelivered::Perhaps("no answer".into())) }),
        };
        let delivery = match state.listeners.get(to) {
            Some(listener) => {
                for _ in 0..copies {
                    let _ = listener.send(FromPeers::Message(message.clone()));
                }
                Delivery::Sent
            }
            None => Delivery::Nobody,
        };
        Box::pin(async move { Ok(delivery) })
    }

    fn listen(&self, own: &str) -> BoxStream<'static, FromPeers> {
        let (tell, heard) = unbounded_channel();
        let _ = tell.send(FromPeers::Listening);
        self.state().listeners.insert(own.to_owned(), tell);
        let end = End(self.clone(), own.to_owned());
        unfold((heard, end), |(mut heard, end)| async move { Some((heard.recv().await?, (heard, end))) })
            .boxed()
    }
}

struct End(Hub, String);

impl Drop for End {
    fn drop(&mut self) {
        self.0.kill(&self.1);
    }
}
