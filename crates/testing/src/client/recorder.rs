//! Everything the server sent on its own, in memory, and the handlers that answer its requests. Cassettes are recorded in
//! `transport/recording.rs`.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use super::{
    handlers::Handlers, kept::Kept, logs::Logs, notifications::Notifications, server_requests::ServerRequests,
};
use crate::{
    base::{lock, text::shorten},
    protocol::{Notification, RpcRequest},
    shapes::Checker,
};

/// Log prefix of a response to no open request: a second one, or one with a different id.
pub(super) const UNEXPECTED_RESPONSE: &str = "an answer nobody waits for";

#[derive(Default)]
pub(super) struct Recorder {
    pub(super) logs: Logs,
    pub(super) notifications: Notifications,
    /// Requests of the server.
    pub(super) requests: ServerRequests,
    /// Incoming text that was not JSON.
    pub(super) not_json: Mutex<Kept<String>>,
    pub(super) handlers: Mutex<Handlers>,
    pub(super) shapes: Checker,
    /// The server has sent more than is kept, which is in the log once.
    pub(super) is_full: AtomicBool,
}

/// A moment in the record: what came before is not of a later call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    notifications: usize,
    requests: usize,
}

impl Recorder {
    pub(super) fn mark(&self) -> Mark {
        Mark { notifications: self.notifications.len(), requests: self.requests.len() }
    }

    /// Notifications and requests of the server since a moment.
    pub(super) fn since(&self, mark: Mark) -> (Vec<Notification>, Vec<RpcRequest>) {
        (self.notifications.since(mark.notifications), self.requests.since(mark.requests))
    }

    /// Notes that the server has sent more than is kept.
    pub(super) fn note_full(&self) {
        if !self.is_full.swap(true, Ordering::Relaxed) {
            self.logs
                .add_last("the server sent more than 32 MiB on its own; what came later is not recorded");
        }
    }

    /// A likely reason for a missing response; empty, or text to append to an error.
    pub(super) fn hint(&self) -> String {
        match lock(&self.not_json).last() {
            Some(text) => format!(
                "; the server wrote text that is no JSON where only messages belong (log to standard error instead): {}",
                shorten(text, 200)
            ),
            None => match self.logs.search(UNEXPECTED_RESPONSE).pop() {
                Some(entry) => format!("; the server sent {}", entry.message),
                None => String::new(),
            },
        }
    }
}
