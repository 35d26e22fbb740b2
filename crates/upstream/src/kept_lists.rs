//! Memory for the lists of servers that are kept: a budget for all shared apps, and one for all connections of single callers, of which an app has half at
//! most.

use std::sync::{Arc, LazyLock};

use gatewright_core::{Catalog, Claimant, NoShare, Portion, Share, Shares};

/// Bytes of memory that the lists of the connections of single callers may take.
const MOST_BYTES: usize = 768 << 20;
/// Times that the values of a list are in memory: as they came, as they are offered, and in an index.
const COPIES: u64 = 3;

/// The memory for lists of connections of single callers.
static OF_CALLERS: LazyLock<Arc<Shares>> =
    LazyLock::new(|| Shares::of_memory(MOST_BYTES, Portion::AsMuchAsFree));
/// The memory for lists of shared apps, of which an operator knows how many there are.
static SHARED: LazyLock<Arc<Shares>> = LazyLock::new(|| Shares::of_memory(usize::MAX, Portion::AsMuchAsFree));

/// The memory of the lists of one connection, which is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct KeptLists {
    all: &'static Arc<Shares>,
    /// An app has a share of its own.
    has_shares: bool,
    taken: Option<Share>,
}

impl KeptLists {
    /// Of a connection of one caller.
    pub(crate) fn of_caller() -> Self {
        Self { all: &OF_CALLERS, has_shares: true, taken: None }
    }

    /// Of an app that all callers share. It has no share of its own: while it is replaced, there are two of it.
    pub(crate) fn shared() -> Self {
        Self { all: &SHARED, has_shares: false, taken: None }
    }

    /// Counts `catalog`, in place of the one before, as part of those of the app `id`.
    ///
    /// # Errors
    /// There is no room, or the app has its share. What was counted before stays.
    pub(crate) fn count(&mut self, id: &Arc<str>, catalog: &Catalog) -> Result<(), NoShare> {
        let bytes = usize::try_from(catalog.bytes.saturating_mul(COPIES)).unwrap_or(usize::MAX);
        match &mut self.taken {
            Some(taken) if bytes > taken.amount() => taken.grow_whole(bytes - taken.amount())?,
            Some(taken) => taken.shrink_to(bytes),
            none => {
                let app = self.has_shares.then(|| id.clone());
                *none = Some(self.all.take(Claimant::new(app, None, &[]), bytes)?);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_grow_beyond_the_room_of_an_app_are_refused_and_the_last_ones_count() {
        let all: &'static Arc<Shares> = Box::leak(Box::new(Shares::new(1_000, Portion::AsMuchAsFree)));
        let mut lists = KeptLists { all, has_shares: true, taken: None };
        let id: Arc<str> = "a".into();
        let of = |bytes| Catalog { bytes, ..Catalog::default() };
        lists.count(&id, &of(100)).unwrap();
        lists.count(&id, &of(50)).unwrap();
        lists.count(&id, &of(200)).unwrap();
        assert!(lists.count(&id, &of(400)).is_err());
        assert_eq!(all.taken(), 600);
        let mut others = KeptLists { all, has_shares: true, taken: None };
        assert!(others.count(&"b".into(), &of(150)).is_err());
        drop(lists);
        others.count(&"b".into(), &of(150)).unwrap();
    }
}
