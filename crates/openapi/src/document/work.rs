//! Work on a document, which the length of its texts limits.

use std::cell::Cell;

/// Work on a document: about so many bytes to read and write, and so many for each byte of its text. Operations may share schemas, so
/// that a short document describes much. The largest share of this that one of 2,640 documents of APIs needs is 52 %: that of Microsoft
/// Graph, with 11,348 operations.
const WORK: usize = 8 << 20;
const WORK_FACTOR: usize = 8;

/// Work that is left for a document, about in bytes that are read or written.
#[derive(Debug, Default)]
pub(super) struct Work {
    left: Cell<usize>,
}

impl Work {
    /// The work for texts that have `bytes` together.
    pub(super) fn of(bytes: usize) -> Self {
        Self { left: Cell::new(WORK.saturating_add(bytes.saturating_mul(WORK_FACTOR))) }
    }

    /// Counts work. Returns `false` once no more is to be done.
    pub(super) fn spend(&self, work: usize) -> bool {
        self.left.set(self.left.get().saturating_sub(work));
        !self.is_spent()
    }

    /// Returns `true` once no more work is to be done.
    pub(super) fn is_spent(&self) -> bool {
        self.left.get() == 0
    }
}
