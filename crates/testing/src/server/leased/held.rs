//! A server's share in this process.

use super::{lease::Lease, tail::Tail};

/// A lease on a shared server, and the task that reads its log. The lease ends with it.
pub(in crate::server) struct Held {
    _lease: Lease,
    _log: Tail,
}

impl Held {
    pub(super) fn new(lease: Lease, log: Tail) -> Self {
        Self { _lease: lease, _log: log }
    }
}
