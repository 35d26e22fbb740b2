//! Runs that wait for each other: a script, the saved plans that it calls, and the plans that those call. They share the limits of the
//! first one on tool calls and on memory of the gateway; its time limit holds for all, because a run ends with the one that waits for it.

use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use gatewright_agentscript::{Limits, MOST_LEVELS, ToolFailure};
use gatewright_core::{Claimant, ToolEntry, codes, rmcp::model::Extensions};

use crate::{
    results::Room,
    runs::{Rehearsal, RunJournal},
    unwrap::Failure,
};

/// Plans of which each waits for the next, at most. A script around them makes one run more.
pub(crate) const MOST_NESTED: usize = MOST_LEVELS;

/// Code of a call that would nest plans deeper.
const TOO_DEEP: &str = "PLAN_TOO_DEEP";
/// Code of a call beyond the limit that the runs share.
const TOOL_CALL_LIMIT: &str = "TOOL_CALL_LIMIT";

/// A saved plan, by its app and the app's own name for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanName {
    pub(crate) app: Arc<str>,
    pub(crate) tool: Arc<str>,
}

/// The place of a run among those that wait for each other. An extension of the context of each call that it makes.
#[derive(Debug, Clone)]
pub(crate) struct Nesting {
    shared: Arc<SharedLimits>,
    /// The plans that run here, from the outermost in.
    plans: Arc<[PlanName]>,
    /// Runs that wait for this one.
    level: usize,
    /// The first one is only tried, and so are those within it.
    rehearsal: Option<Rehearsal>,
    /// No client waits for the first one.
    background: bool,
    /// The journal of the first one, which has those of the others only when these wait.
    journal: Option<Arc<RunJournal>>,
}

/// Limits that the runs share.
#[derive(Debug)]
struct SharedLimits {
    most_calls: u32,
    calls_left: AtomicU32,
    room: Arc<Room>,
}

impl Nesting {
    /// Of a script of `claimant` that nothing waits for.
    pub(crate) fn root(limits: &Limits, rehearsal: Option<Rehearsal>, claimant: Claimant) -> Self {
        let shared = SharedLimits {
            most_calls: limits.max_tool_calls,
            calls_left: AtomicU32::new(limits.max_tool_calls),
            room: Room::new(limits.host_bytes, claimant),
        };
        let shared = Arc::new(shared);
        Self { shared, plans: Arc::default(), level: 0, rehearsal, background: false, journal: None }
    }

    /// Of the run of `plan` that a call with `extensions` asks for: within the run that makes the call, or on its own.
    ///
    /// # Errors
    /// The plan runs already, or there are too many around it.
    pub(crate) fn of_plan(
        extensions: &Extensions,
        plan: PlanName,
        limits: &Limits,
        claimant: Claimant,
    ) -> Result<Self, Failure> {
        let mut nesting = match extensions.get::<Self>() {
            Some(around) => Self { level: around.level + 1, ..around.clone() },
            None => Self::root(limits, None, claimant),
        };
        if nesting.plans.contains(&plan) {
            return Err(Failure::new(codes::SELF_REFERENCE_BLOCKED, calls_itself(&plan.tool)));
        }
        if nesting.plans.len() == MOST_NESTED {
            let message = format!(
                "`{}` is a plan in a plan in a plan in a plan; at most {MOST_NESTED} may wait for each other. Call the tools of apps instead",
                plan.tool
            );
            return Err(Failure::new(TOO_DEEP, message));
        }
        nesting.rehearsal =
            nesting.rehearsal.map(|rehearsal| rehearsal.within(format!("{}:{}", plan.app, plan.tool)));
        nesting.plans = nesting.plans.iter().cloned().chain([plan]).collect();
        Ok(nesting)
    }

    /// The same, of a run that no client waits for if `background`.
    #[must_use]
    pub(crate) fn in_background(self, background: bool) -> Self {
        Self { background, ..self }
    }

    /// The same, of a run with `journal`, if it is the first one.
    #[must_use]
    pub(crate) fn kept_in(self, journal: &Arc<RunJournal>) -> Self {
        let journal = if self.level == 0 { Some(journal.clone()) } else { self.journal };
        Self { journal, ..self }
    }

    /// Returns `true` if no client waits for the first one.
    pub(crate) fn is_in_background(&self) -> bool {
        self.background
    }

    /// Returns `true` if a run waits for the one that a request with `extensions` asks for.
    pub(crate) fn is_within(extensions: &Extensions) -> bool {
        extensions.get::<Self>().is_some_and(|nesting| nesting.level > 0)
    }

    /// Returns `true` if the run is that of a saved plan.
    pub(crate) fn is_in_plan(&self) -> bool {
        !self.plans.is_empty()
    }

    /// Runs that wait for this one.
    pub(crate) fn level(&self) -> usize {
        self.level
    }

    /// The list of calls, if the run is only tried.
    pub(crate) fn rehearsal(&self) -> Option<&Rehearsal> {
        self.rehearsal.as_ref()
    }

    /// Tool calls that the runs have left.
    pub(crate) fn calls_left(&self) -> u32 {
        self.shared.calls_left.load(Ordering::Relaxed)
    }

    /// The room for answers.
    pub(crate) fn room(&self) -> &Arc<Room> {
        &self.shared.room
    }

    /// Counts a call, and makes sure that no other instance has the first run: that one writes each of its calls to its journal before, and those within it
    /// do not. While the store does not answer, it waits.
    ///
    /// # Errors
    /// No call is left, or another instance may have the run. Both end the run.
    pub(crate) async fn begin_call(&self) -> Result<(), ToolFailure> {
        let less = |left: u32| left.checked_sub(1);
        let counted = self.shared.calls_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        let ends = |code: &str, message| ToolFailure {
            code: code.to_owned(),
            message,
            ends_run: true,
            ..ToolFailure::default()
        };
        counted.map_err(|_| {
            let most = self.shared.most_calls;
            let message = format!(
                "tool call limit reached: a script and the plans that it calls may make {most} tool calls together"
            );
            ends(TOOL_CALL_LIMIT, message)
        })?;
        match &self.journal {
            Some(journal) if self.level > 0 => {
                journal.confirm().await.map_err(|why| ends(why.code(), why.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a call of a plan that runs already, which ends the run.
    pub(crate) fn check(&self, tool: &ToolEntry) -> Result<(), ToolFailure> {
        let runs = |plan: &PlanName| plan.app == tool.app_id && plan.tool == tool.upstream_name;
        if !self.plans.iter().any(runs) {
            return Ok(());
        }
        Err(ToolFailure {
            code: codes::SELF_REFERENCE_BLOCKED.to_owned(),
            message: calls_itself(&tool.name),
            ends_run: true,
            ..ToolFailure::default()
        })
    }

    /// An account of the memory of one of the runs.
    pub(crate) fn memory(&self) -> RunMemory {
        RunMemory { shared: self.shared.clone(), own: AtomicU64::new(0) }
    }
}

fn calls_itself(plan: &str) -> String {
    format!("plan `{plan}` is running and cannot be called from within itself; use a loop")
}

/// The memory of one run, beside that of answers, until this is dropped.
#[derive(Debug)]
pub(crate) struct RunMemory {
    shared: Arc<SharedLimits>,
    own: AtomicU64,
}

impl RunMemory {
    /// Takes the run's `own` memory down. Returns that of the other runs and of all answers; `u64::MAX` if the gateway has not as much left.
    pub(crate) fn beside(&self, own: u64) -> u64 {
        let before = self.own.swap(own, Ordering::Relaxed);
        let all = &self.shared.room.beside;
        let others = match own.checked_sub(before) {
            Some(more) => all.fetch_add(more, Ordering::Relaxed) - before,
            None => all.fetch_sub(before - own, Ordering::Relaxed) - before,
        };
        let beside = others.saturating_add(self.shared.room.taken());
        self.shared.room.count().map_or(u64::MAX, |()| beside)
    }
}

impl Drop for RunMemory {
    fn drop(&mut self) {
        self.shared.room.beside.fetch_sub(*self.own.get_mut(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(tool: &str) -> PlanName {
        PlanName { app: "plans".into(), tool: tool.into() }
    }

    fn call_of(around: &Nesting) -> Extensions {
        let mut extensions = Extensions::new();
        extensions.insert(around.clone());
        extensions
    }

    #[test]
    fn plans_are_nested_to_a_depth_and_none_within_itself() {
        let limits = Limits::default();
        let mut around = Nesting::root(&limits, None, Claimant::default());
        for (tool, level) in [("a", 1), ("b", 2), ("c", 3)] {
            around = Nesting::of_plan(&call_of(&around), name(tool), &limits, Claimant::default()).unwrap();
            assert_eq!(around.level(), level);
            let again = Nesting::of_plan(&call_of(&around), name("a"), &limits, Claimant::default());
            assert_eq!(again.unwrap_err().code, "SELF_REFERENCE_BLOCKED");
        }
        let fourth =
            Nesting::of_plan(&call_of(&around), name("d"), &limits, Claimant::default()).unwrap_err();
        assert_eq!(fourth.code, "PLAN_TOO_DEEP");
        assert_eq!(
            Nesting::of_plan(&Extensions::new(), name("a"), &limits, Claimant::default()).unwrap().level(),
            0
        );
    }

    #[tokio::test]
    async fn runs_share_their_calls_and_their_memory() {
        let limits = Limits { max_tool_calls: 3, ..Limits::default() };
        let outer = Nesting::root(&limits, None, Claimant::default());
        let inner = Nesting::of_plan(&call_of(&outer), name("a"), &limits, Claimant::default()).unwrap();
        for run in [&outer, &inner, &outer] {
            assert!(run.begin_call().await.is_ok());
        }
        assert!(inner.calls_left() == 0 && inner.begin_call().await.is_err_and(|failure| failure.ends_run));

        let (first, second) = (outer.memory(), inner.memory());
        assert_eq!((first.beside(100), second.beside(30)), (0, 100));
        let taken = inner.room().take(7);
        assert_eq!((first.beside(40), second.beside(50)), (37, 47));
        drop((second, taken));
        assert_eq!(first.beside(0), 0);
    }
}
