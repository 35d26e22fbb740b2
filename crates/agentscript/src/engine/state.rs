//! The state of a run: what it has spent so far, and the reason for which it must end.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    rc::Rc,
    time::Instant,
};

use gatewright_json::weight;

use super::{limit_errors, surrogates::without_halves, texts::Text};
use crate::{
    limits::Limits,
    messages::RunSettings,
    outcome::{PROGRESS_BYTES, RunError},
    policy::ScriptPolicy,
    protocol::MessageKind,
    worker::{Link, heap::Heap},
};

/// The state of a run, shared by the native functions of its realm.
pub(crate) struct RunState {
    pub(crate) link: Rc<RefCell<Link>>,
    heap: Rc<Heap>,
    start_ms: Cell<f64>,
    pub(crate) run: Cell<u32>,
    pub(crate) limits: RefCell<Limits>,
    policy: RefCell<ScriptPolicy>,
    pub(crate) deadline: Cell<Option<Instant>>,
    /// The deadline begins anew with each answer that the run waited for.
    pub(super) deadline_pauses: Cell<bool>,
    /// The reason for which the run must end, whatever the script does. The first one stays.
    termination: RefCell<Option<RunError>>,
    terminated: Cell<bool>,
    /// The result of the script's promise, as JSON text.
    pub(super) settled: RefCell<Option<Result<String, RunError>>>,
    /// The value that the script returned cannot leave.
    pub(super) result_is_faulty: Cell<bool>,
    /// The `return` outside all functions that was last carried out, by its number; counted only where there are several.
    pub(super) returned: Cell<u32>,
    iterations: Cell<u64>,
    max_iterations: Cell<u64>,
    memory_bytes: Cell<u64>,
    calls: Cell<u32>,
    next_id: Cell<u32>,
    pub(crate) open: Cell<u32>,
    log_bytes: Cell<u64>,
    log_lines: Cell<u32>,
    /// Console lines that were left out or shortened.
    logs_omitted: Cell<u32>,
    /// Milliseconds since the Unix epoch as the script sees them.
    pub(crate) now_ms: Cell<f64>,
    /// State of the generator behind `Math.random`.
    pub(crate) random: Cell<u64>,
}

/// The error of native functions in a run that must end. The script cannot go on, even if it catches it.
pub(crate) struct Terminated;

impl RunState {
    pub(crate) fn new(link: Rc<RefCell<Link>>, heap: Rc<Heap>) -> Self {
        Self {
            link,
            heap,
            start_ms: Cell::new(0.0),
            run: Cell::new(0),
            limits: RefCell::new(Limits::default()),
            policy: RefCell::default(),
            deadline: Cell::new(None),
            deadline_pauses: Cell::new(false),
            termination: RefCell::new(None),
            terminated: Cell::new(false),
            settled: RefCell::new(None),
            result_is_faulty: Cell::new(false),
            returned: Cell::new(0),
            iterations: Cell::new(0),
            max_iterations: Cell::new(u64::MAX),
            memory_bytes: Cell::new(u64::MAX),
            calls: Cell::new(0),
            next_id: Cell::new(0),
            open: Cell::new(0),
            log_bytes: Cell::new(0),
            log_lines: Cell::new(0),
            logs_omitted: Cell::new(0),
            now_ms: Cell::new(0.0),
            random: Cell::new(1),
        }
    }

    /// Resets everything for a run.
    pub(crate) fn begin(&self, run: u32, settings: &RunSettings) {
        let (limits, seed, now_ms) = (&settings.limits, settings.seed, settings.now_ms);
        self.run.set(run);
        self.termination.replace(None);
        self.terminated.set(false);
        self.settled.replace(None);
        self.result_is_faulty.set(false);
        self.returned.set(0);
        self.iterations.set(0);
        self.calls.set(0);
        self.next_id.set(0);
        self.open.set(0);
        self.log_bytes.set(0);
        self.log_lines.set(0);
        self.logs_omitted.set(0);
        self.max_iterations.set(limits.max_iterations);
        self.memory_bytes.set(limits.memory_bytes);
        self.deadline.set(Instant::now().checked_add(limits.timeout));
        self.deadline_pauses.set(limits.wait.is_some());
        self.start_ms.set(now_ms);
        self.now_ms.set(now_ms);
        self.random.set(seed | 1);
        *self.limits.borrow_mut() = limits.clone();
        self.policy.borrow_mut().clone_from(&settings.policy);
    }

    /// Ends the run. The first reason stays.
    pub(crate) fn end(&self, reason: impl FnOnce(&Limits) -> RunError) {
        if !self.terminated.replace(true) {
            self.termination.replace(Some(reason(&self.limits.borrow())));
        }
    }

    /// Takes the reason for which the run must end.
    pub(super) fn take_termination(&self) -> Option<RunError> {
        self.termination.take()
    }

    /// Keeps the value of the script's promise, JSON text.
    pub(super) fn fulfil(&self, json: &Text<'_>) {
        let most = self.limits.borrow().result_bytes;
        // Halves of surrogate pairs are written in two times the bytes of what replaces them.
        let kept = json.within(most.saturating_mul(2)).map(|json| without_halves(json).into_owned());
        self.settle(kept.ok_or_else(|| {
            self.result_is_faulty.set(true);
            limit_errors::result_size(json.len(), most)
        }));
    }

    /// Keeps the result of the script's promise. The first one counts.
    pub(super) fn settle(&self, result: Result<String, RunError>) {
        self.settled.borrow_mut().get_or_insert(result);
    }

    /// Returns true until the script's promise settles.
    pub(super) fn is_open(&self) -> bool {
        self.settled.borrow().is_none()
    }

    pub(crate) fn is_terminated(&self) -> bool {
        self.terminated.get()
    }

    /// Allows the engine `bytes` of heap from here on.
    pub(crate) fn set_heap_limit(&self, bytes: u64) {
        self.heap.set_limit(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    /// Moves the script's clock to `elapsed` milliseconds after the start of the run. It never goes back, and moves only with a
    /// host's answer: a run is a function of its script, its context and those answers.
    pub(crate) fn advance_clock(&self, elapsed: &str) {
        if let Ok(elapsed) = elapsed.parse::<f64>()
            && elapsed.is_finite()
        {
            self.now_ms.set(self.now_ms.get().max(self.start_ms.get() + elapsed));
        }
    }

    /// Returns true when a limit ends the run; checked once more when the script is done.
    pub(crate) fn must_end(&self) -> bool {
        if self.heap.exhausted() {
            self.end(limit_errors::memory);
        }
        self.terminated.get()
    }

    /// Returns true when the engine must stop now: called by its interrupt poll and between jobs.
    pub(crate) fn must_stop(&self) -> bool {
        if !self.terminated.get() && self.deadline.get().is_some_and(|at| Instant::now() >= at) {
            self.end(limit_errors::timeout);
        }
        self.must_end()
    }

    /// Counts one turn of a loop. A script that caught the exception of a full heap ends here.
    pub(crate) fn tick(&self) -> Result<(), Terminated> {
        let turns = self.iterations.get() + 1;
        self.iterations.set(turns);
        if turns > self.max_iterations.get() {
            self.end(limit_errors::iterations);
        }
        self.refuse()
    }

    /// Fails when the run must end.
    pub(crate) fn refuse(&self) -> Result<(), Terminated> {
        if self.must_end() { Err(Terminated) } else { Ok(()) }
    }

    /// Sends a host call, or queues it when `later`. Returns its id.
    pub(crate) fn ask(
        &self,
        kind: MessageKind,
        name: &Text<'_>,
        body: Option<&Text<'_>>,
        later: bool,
    ) -> Result<u32, Terminated> {
        if self.must_stop() {
            return Err(Terminated);
        }
        // The host refuses it as well; here nothing more of the script runs.
        if matches!(kind, MessageKind::Call | MessageKind::CallPages | MessageKind::GetTool)
            && self.policy.borrow().is_reserved(&name.name())
        {
            self.end(|_| limit_errors::self_reference(&name.name()));
            return Err(Terminated);
        }
        let limits = self.limits.borrow();
        if matches!(kind, MessageKind::Call | MessageKind::CallPages | MessageKind::Content) {
            self.calls.set(self.calls.get() + 1);
            if self.calls.get() > limits.max_tool_calls {
                self.end(limit_errors::tool_calls);
                return Err(Terminated);
            }
        }
        if self.open.get() >= limits.max_pending_calls {
            self.end(limit_errors::pending_calls);
            return Err(Terminated);
        }
        let room = limits.message_bytes.checked_sub(name.len() as u64);
        let body = room.and_then(|room| body.map_or(Some(Cow::Borrowed("")), |body| body.within(room)));
        let Some(body) = body.map(without_halves) else {
            self.end(limit_errors::message_too_large);
            return Err(Terminated);
        };
        // The other end takes no longer ones; a name that was cut is none of a tool.
        let name = &name.name();
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        self.open.set(self.open.get() + 1);
        let mut link = self.link.borrow_mut();
        let sent = if later {
            link.queue(kind, self.run.get(), id, name, &[&body])
        } else {
            link.send(kind, self.run.get(), id, name, &[&body])
        };
        drop(link);
        self.sent(&sent)?;
        Ok(id)
    }

    /// Ends a run that reached for `name`, which leads out of the language subset, at the place that `stack` names.
    pub(crate) fn illegal(&self, name: &Text<'_>, stack: &Text<'_>) -> Terminated {
        self.end(|_| limit_errors::illegal_access(&name.name(), stack.location()));
        Terminated
    }

    /// Sends a console line. One that goes beyond the limits is shortened or left out, and counted.
    pub(crate) fn log(&self, line: &Text<'_>) -> Result<(), Terminated> {
        self.refuse()?;
        let (most_lines, most_bytes) = {
            let limits = self.limits.borrow();
            (limits.log_lines, limits.log_bytes)
        };
        let room = usize::try_from(most_bytes.saturating_sub(self.log_bytes.get())).unwrap_or(usize::MAX);
        let fits = line.len() <= room;
        if !fits || self.log_lines.get() >= most_lines {
            self.logs_omitted.set(self.logs_omitted.get().saturating_add(1));
        }
        let line = line.beginning(room);
        if self.log_lines.get() >= most_lines || (line.is_empty() && !fits) {
            return Ok(());
        }
        // Behind a line that was shortened there is no room.
        self.log_bytes.set(if fits { self.log_bytes.get() + line.len() as u64 } else { most_bytes });
        self.log_lines.set(self.log_lines.get() + 1);
        let sent = self.link.borrow_mut().send(MessageKind::Log, self.run.get(), 0, "", &[&line]);
        self.sent(&sent)
    }

    /// Tells the pool how many console lines were left out, if any: it goes out with the end of the run.
    pub(super) fn report_omitted_logs(&self) {
        let omitted = self.logs_omitted.get();
        if omitted > 0 {
            // A link that fails here fails with the end of the run.
            let _ = self.link.borrow_mut().queue(MessageKind::Log, self.run.get(), omitted, "", &[]);
        }
    }

    /// Sends a value that the script gave to `progress`. One that is too long is not sent: the answer is how long it is. One that the host could not
    /// read is not sent either: the answer is 1.
    pub(crate) fn progress(&self, json: &Text<'_>) -> Result<u32, Terminated> {
        self.refuse()?;
        let Some(short) = json.within(PROGRESS_BYTES as u64).map(without_halves) else {
            return Ok(u32::try_from(json.len()).unwrap_or(u32::MAX));
        };
        if weight(&short).is_err() {
            return Ok(1);
        }
        let sent = self.link.borrow_mut().send(MessageKind::Progress, self.run.get(), 0, "", &[&short]);
        self.sent(&sent).map(|()| 0)
    }

    /// Writes queued calls while the script goes on computing.
    pub(crate) fn flush(&self) {
        // Held by whoever waits for an answer: then nothing is queued.
        if let Ok(mut link) = self.link.try_borrow_mut() {
            let flushed = link.flush();
            let _ = self.sent(&flushed);
        }
    }

    fn sent(&self, result: &std::io::Result<()>) -> Result<(), Terminated> {
        if result.is_err() {
            self.end(limit_errors::timeout);
            return Err(Terminated);
        }
        Ok(())
    }

    /// Ends the run when a text of `len` characters could not be read in its memory, its parts and the whole. The engine keeps a
    /// concatenation as two halves: a text can be very long before it takes memory.
    pub(crate) fn charge_text(&self, len: u64) {
        if len > self.memory_bytes.get() / 2 {
            self.end(limit_errors::memory);
        }
    }

    /// The next number of `Math.random`: xorshift64*, seeded by the run.
    pub(crate) fn next_random(&self) -> f64 {
        let mut x = self.random.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.random.set(x);
        (x.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
