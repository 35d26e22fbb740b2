//! Memory for the lists of servers while they are read: a budget for all, and half of it for each app.
//!
//! A list takes its part when a page of it is parsed, and gives it back when all pages are read: what is kept of it counts elsewhere.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use gatewright_core::{Claimant, Portion, Share, Shares};

/// Bytes for all apps.
const MOST_BYTES: usize = 512 << 20;
/// Times that the values of a page are in memory until the lists are read.
const COPIES: u64 = 3;

static ALL: LazyLock<Arc<Shares>> = LazyLock::new(|| Shares::of_memory(MOST_BYTES, Portion::AsMuchAsFree));

/// The room of one connection. `None` while no list is read.
#[derive(Debug, Default)]
pub(crate) struct ListRoom(Mutex<Option<Vec<Share>>>);

/// Lists are read until this is dropped.
#[derive(Debug)]
pub(crate) struct ReadsLists<'r>(&'r ListRoom);

impl ListRoom {
    /// Pages count from now on.
    pub(crate) fn begin(&self) -> ReadsLists<'_> {
        *self.pages() = Some(Vec::new());
        ReadsLists(self)
    }

    /// Takes room for a page whose values take `bytes`, of the app of this id, if lists are read. Returns `false` if there is none.
    pub(crate) fn take(&self, id: &Arc<str>, bytes: u64) -> bool {
        let mut pages = self.pages();
        let Some(pages) = &mut *pages else { return true };
        let bytes = usize::try_from(bytes.saturating_mul(COPIES)).unwrap_or(usize::MAX);
        let share = ALL.take(Claimant::new(Some(id.clone()), None, &[]), bytes);
        share.map(|share| pages.push(share)).is_ok()
    }

    fn pages(&self) -> MutexGuard<'_, Option<Vec<Share>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ReadsLists<'_> {
    fn drop(&mut self) {
        *self.0.pages() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_all_connections_of_an_app_take_half_while_lists_are_read() {
        let id: Arc<str> = "list-room-test".into();
        let page = (ALL.most() / 8) as u64 / COPIES;
        let connections: Vec<_> = (0..6).map(|_| ListRoom::default()).collect();
        assert!(connections[0].take(&id, u64::MAX), "no list is read");
        let reading: Vec<_> = connections.iter().map(ListRoom::begin).collect();
        let taken = connections.iter().filter(|connection| connection.take(&id, page)).count();
        assert_eq!(taken, 4);
        drop(reading);
        let again = connections[0].begin();
        assert!(connections[0].take(&id, 4 * page));
        drop(again);
    }
}
