//! Memory for messages of apps while they arrive: a budget for all, and half of it for each app.
//!
//! A message that is not whole cannot be read, so that nobody knows yet whose answer it is.

use std::sync::{Arc, LazyLock};

use gatewright_core::{Claimant, LineRoom, Portion, Share, Shares};

/// Bytes for all apps.
const MOST_BYTES: usize = 256 << 20;
/// Bytes of a message that are not counted.
const UNCOUNTED: usize = 64 << 10;

static ALL: LazyLock<Arc<Shares>> = LazyLock::new(|| Shares::of_memory(MOST_BYTES, Portion::AsMuchAsFree));

/// The memory of the message that arrives on one stream of an app.
#[derive(Debug)]
pub(crate) struct Arriving {
    all: Arc<Shares>,
    app: Claimant,
    share: Option<Share>,
}

impl Arriving {
    /// On a stream of the app of this id.
    pub(crate) fn of_app(id: &Arc<str>) -> Self {
        Self::among(ALL.clone(), id)
    }

    fn among(all: Arc<Shares>, id: &Arc<str>) -> Self {
        Self { all, app: Claimant::new(Some(id.clone()), None, &[]), share: None }
    }
}

impl LineRoom for Arriving {
    fn set(&mut self, bytes: usize) -> bool {
        if bytes <= UNCOUNTED {
            self.share = None;
            return true;
        }
        // As a buffer grows: by doubling.
        let bytes = bytes.next_power_of_two();
        match &mut self.share {
            None => match self.all.take(self.app.clone(), bytes) {
                Ok(share) => self.share = Some(share),
                Err(_) => return false,
            },
            Some(share) if bytes > share.amount() => return share.grow(bytes - share.amount()).is_ok(),
            Some(share) => share.shrink_to(bytes),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_one_app_that_do_not_end_leave_half_to_others() {
        let all = Shares::new(1 << 20, Portion::AsMuchAsFree);
        let stream = |id: &str| Arriving::among(all.clone(), &id.into());
        let mut streams: Vec<_> = (0..20).map(|_| stream("a")).collect();
        let counted = streams.iter_mut().filter_map(|stream| stream.set(100_000).then_some(())).count();
        assert_eq!(counted, 4, "of 128 KiB each");
        assert!(streams[19].set(UNCOUNTED) && !streams[19].set(UNCOUNTED + 1));
        let mut other = stream("b");
        assert!(other.set(200_000) && other.set(250_000));
        assert_eq!(all.taken(), (512 + 256) << 10);
        assert!(other.set(0));
        drop(streams);
        assert_eq!(all.taken(), 0);
    }
}
