//! The part of the workers that one principal may have, and runs of each kind.

use std::sync::Arc;

/// The fewest workers that runs in the background may have: one of a principal then leaves one to others.
const LEAST_BACKGROUND: usize = 2;
/// Workers that one principal may have for each that stays free: one alone gets three quarters of them, and two together six sevenths.
const SHARE_OF_FREE: usize = 3;
/// Workers from which on principals have shares: of fewer, one might have only one.
const LEAST_SHARED: usize = 4;

/// A run that needs a worker.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    /// None stands for many: it has no share.
    pub(super) principal: Option<Arc<str>>,
    pub(super) level: usize,
    pub(super) background: bool,
}

/// Runs under way, of one principal or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// With waiting clients, and those that they wait for.
    pub(super) foreground: usize,
    /// In the background, and no other one waits for it.
    pub(super) background: usize,
    /// In the background, and another one waits for it.
    pub(super) nested: usize,
}

impl Counts {
    /// The number of runs of the kind of `claim`.
    pub(super) fn of(&mut self, claim: &Claim) -> &mut usize {
        match (claim.background, claim.level) {
            (false, _) => &mut self.foreground,
            (true, 0) => &mut self.background,
            (true, _) => &mut self.nested,
        }
    }

    pub(super) fn all(&self) -> usize {
        self.foreground + self.background + self.nested
    }
}

/// Workers that runs of each kind may have.
pub(super) struct WorkerShares {
    foreground: usize,
    background: usize,
    /// Runs in the background together with those that they wait for.
    background_nested: usize,
}

/// Workers of a pool of at most `workers`: where half of them are too few for runs in the background, those have some beside them.
pub(super) fn places(workers: usize) -> usize {
    if workers / 2 < LEAST_BACKGROUND { workers + LEAST_BACKGROUND } else { workers }
}

impl WorkerShares {
    /// Shares of at most `workers` workers, and of those beside them ([`places`]).
    pub(super) fn new(workers: usize) -> Self {
        Self {
            foreground: workers,
            background: (workers / 2).max(LEAST_BACKGROUND),
            background_nested: (workers * 3 / 4).max(LEAST_BACKGROUND + 1),
        }
    }

    /// Returns `true` if the run of `claim` may have a free worker, where its principal has `own` runs under way and all have `all`.
    pub(super) fn allow(&self, claim: &Claim, own: Counts, all: Counts) -> bool {
        let half = |own: usize, most: usize| claim.principal.is_none() || own < (most / 2).max(1);
        match (claim.background, claim.level) {
            (false, _) => {
                let Some(free) = self.foreground.checked_sub(all.foreground + 1) else { return false };
                let has_share = self.foreground >= LEAST_SHARED && claim.principal.is_some();
                // Whoever has none needs a worker only. Runs that others wait for have places of their own beside.
                own.foreground == 0 || !has_share || own.foreground < SHARE_OF_FREE * free
            }
            (true, 0) => half(own.background, self.background) && all.background < self.background,
            (true, _) => {
                half(own.nested, self.background_nested)
                    && all.background + all.nested < self.background_nested
            }
        }
    }
}
