//! The part of the workers that one caller may have, and runs of each kind.

use std::sync::Arc;

/// Levels of runs that wait for each other ([`RunRequest::level`](super::RunRequest::level)) with workers in reserve.
pub const MOST_LEVELS: usize = 3;

/// The fewest workers that runs in the background may have: one of a caller then leaves one to others.
const LEAST_BACKGROUND: usize = 2;
/// Workers that one caller may have for each that stays free, for its runs of all kinds: one alone gets three quarters of them, and two together six
/// sevenths.
const SHARE_OF_FREE: usize = 3;
/// Workers from which on callers have shares: of fewer, one might have only one.
const LEAST_SHARED: usize = 4;

/// The fewest workers in reserve for each level: one that is in use leaves one to other callers.
const LEAST_IN_RESERVE: usize = 2;

/// A party that a run counts for: a principal or a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Party {
    pub(super) name: Arc<str>,
    /// The number of callers that it may take as much as.
    pub(super) times: usize,
}

/// A run that needs a worker.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    /// The caller.
    pub(super) caller: Arc<str>,
    /// Those that it counts for, the caller first. Without any the caller stands for many, and has no share.
    pub(super) parties: Arc<[Party]>,
    pub(super) level: usize,
    pub(super) background: bool,
}

impl Claim {
    /// A run that counts for `parties`, the caller first.
    pub(super) fn new(parties: impl Iterator<Item = Party>, level: usize, background: bool) -> Self {
        let parties: Arc<[Party]> = parties.collect();
        let caller = parties.first().map(|party| party.name.clone()).unwrap_or_default();
        Self { caller, parties, level, background }
    }

    /// Names of the caller and of the networks around it.
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        std::iter::once(&self.caller).chain(self.parties.iter().skip(1).map(|party| &party.name))
    }
}

/// Runs under way, of one party or of all.
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
    workers: usize,
    background: usize,
    /// Runs in the background together with those that they wait for.
    background_nested: usize,
    in_reserve: usize,
}

/// Workers of a pool of at most `workers`: where half of them are too few for runs in the background, those have some beside them.
pub(super) fn places(workers: usize) -> usize {
    if workers / 2 < LEAST_BACKGROUND { workers + LEAST_BACKGROUND } else { workers }
}

impl WorkerShares {
    /// Shares of at most `workers` workers, and of those beside them ([`places`]).
    pub(super) fn new(workers: usize) -> Self {
        Self {
            workers,
            background: (workers / 2).max(LEAST_BACKGROUND),
            background_nested: (workers * 3 / 4).max(LEAST_BACKGROUND + 1),
            in_reserve: (workers / 4).max(LEAST_IN_RESERVE),
        }
    }

    /// Returns `true` if the run of `claim` may have a free worker, where all have `all` runs under way and each party those that `of` tells.
    pub(super) fn allow(&self, claim: &Claim, all: Counts, of: impl Fn(&Party) -> Counts) -> bool {
        let parties = || claim.parties.iter().map(|party| (of(party), party.times));
        let half = |own: fn(Counts) -> usize, most: usize| {
            parties().all(|(counts, times)| own(counts) < ((most / 2).max(1) * times).min(most - 1))
        };
        let free = self.workers.saturating_sub(all.all() + 1);
        // Whoever has none needs a worker only. Runs that others wait for have places of their own beside.
        let has_room = |own: usize, times: usize| own == 0 || own < SHARE_OF_FREE * free * times;
        if self.workers >= LEAST_SHARED && !parties().all(|(counts, times)| has_room(counts.all(), times)) {
            return false;
        }
        match (claim.background, claim.level) {
            (false, _) => all.foreground < self.workers,
            (true, 0) => half(|own| own.background, self.background) && all.background < self.background,
            (true, _) => {
                half(|own| own.nested, self.background_nested)
                    && all.background + all.nested < self.background_nested
            }
        }
    }
}

/// Workers beside those of the pool for runs that others wait for: some for each level, of which a caller has one at a time. A run of the deepest level
/// waits for no other run, so it ends, and so do those that wait for it.
#[derive(Default)]
pub(super) struct Reserve {
    taken: [Vec<Arc<str>>; MOST_LEVELS],
}

impl Reserve {
    fn level(&mut self, claim: &Claim) -> Option<&mut Vec<Arc<str>>> {
        self.taken.get_mut(claim.level.checked_sub(1)?)
    }

    /// Takes a worker for the run of `claim`, if it may have one.
    pub(super) fn take(&mut self, shares: &WorkerShares, claim: &Claim) -> bool {
        let Some(taken) = self.level(claim) else { return false };
        let may_have = taken.len() < shares.in_reserve && !taken.contains(&claim.caller);
        if may_have {
            taken.push(claim.caller.clone());
        }
        may_have
    }

    /// Gives the worker of `claim` back.
    pub(super) fn put(&mut self, claim: &Claim) {
        let Some(taken) = self.level(claim) else { return };
        if let Some(at) = taken.iter().position(|one| *one == claim.caller) {
            taken.swap_remove(at);
        }
    }
}
