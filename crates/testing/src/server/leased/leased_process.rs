//! A server's share in this process.

use super::{lease::Lease, tail::Tail, turn::Turn};
use crate::client::Connector;

/// A lease on a shared server, the task that reads its log, and the turn at its standard input and output. They end with it.
pub(in crate::server) struct LeasedProcess {
    /// Ends before the lease.
    turn: Option<Turn>,
    _lease: Lease,
    _log: Tail,
}

impl LeasedProcess {
    pub(super) fn new(lease: Lease, log: Tail) -> Self {
        Self { turn: None, _lease: lease, _log: log }
    }

    pub(super) fn has_turn(&mut self, turn: Turn) {
        self.turn = Some(turn);
    }

    /// Connects clients to a server over standard input and output.
    pub(in crate::server) fn connector(&self) -> Option<Connector> {
        self.turn.as_ref().map(Turn::connector)
    }
}
