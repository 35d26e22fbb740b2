//! Connections of the listener: limited in number, and those that have shown the token are kept.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::task::AbortHandle;

/// Connections at the same time: whoever reaches the listener, token or not, must not use up the descriptors that clients need.
pub(super) const MOST_CONNECTIONS: usize = 256;

/// The mark of a connection whose client has shown the token.
#[derive(Debug, Clone, Default)]
pub(super) struct Trusted(Arc<AtomicBool>);

impl Trusted {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Open connections, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Connections(Vec<(AbortHandle, Trusted)>);

impl Connections {
    /// Makes room for another connection: when there is none, the oldest one without the token is closed, so that strangers keep no operator
    /// out. Returns `false` if all have shown it.
    pub(super) fn make_room(&mut self) -> bool {
        self.0.retain(|(task, _)| !task.is_finished());
        if self.0.len() < MOST_CONNECTIONS {
            return true;
        }
        let Some(oldest) = self.0.iter().position(|(_, trusted)| !trusted.0.load(Ordering::Relaxed)) else {
            return false;
        };
        self.0.remove(oldest).0.abort();
        true
    }

    /// Adds a connection.
    pub(super) fn add(&mut self, task: AbortHandle, trusted: Trusted) {
        self.0.push((task, trusted));
    }
}
