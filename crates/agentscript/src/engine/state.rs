//! What a run has spent so far, and why it must end.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Instant,
};

use super::run::Ending;
use crate::{
    excerpt,
    limits::Limits,
    protocol::Kind,
    worker::{Link, heap::Heap},
};

/// Why a run ends whatever the script does: a script cannot catch any of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Doom {
    Timeout,
    Iterations,
    ToolCalls,
    Memory,
    PendingCalls,
    MessageTooLarge,
    SelfReference(String),
    /// Reached for this name at run time.
    Illegal(String),
    LogLines,
    LogBytes,
    /// The other end is gone.
    Gone,
}

/// Shared by the native functions of one realm.
pub(crate) struct State {
    pub(crate) link: Rc<RefCell<Link>>,
    heap: Rc<Heap>,
    start_ms: Cell<f64>,
    pub(crate) run: Cell<u32>,
    pub(crate) limits: RefCell<Limits>,
    pub(crate) deadline: Cell<Option<Instant>>,
    pub(crate) doom: RefCell<Option<Doom>>,
    doomed: Cell<bool>,
    /// How the script's promise settled, and its result.
    pub(super) settled: RefCell<Option<(Ending, String)>>,
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
    /// Milliseconds since the Unix epoch as the script sees them.
    pub(crate) now_ms: Cell<f64>,
    /// State of the generator behind `Math.random`.
    pub(crate) random: Cell<u64>,
}

/// What the script did cannot go on; the message is for the script, the doom in [`State`] for the outcome.
pub(crate) struct Refused(pub(crate) &'static str);

impl State {
    pub(crate) fn new(link: Rc<RefCell<Link>>, heap: Rc<Heap>) -> Self {
        Self {
            link,
            heap,
            start_ms: Cell::new(0.0),
            run: Cell::new(0),
            limits: RefCell::new(Limits::default()),
            deadline: Cell::new(None),
            doom: RefCell::new(None),
            doomed: Cell::new(false),
            settled: RefCell::new(None),
            returned: Cell::new(0),
            iterations: Cell::new(0),
            max_iterations: Cell::new(u64::MAX),
            memory_bytes: Cell::new(u64::MAX),
            calls: Cell::new(0),
            next_id: Cell::new(0),
            open: Cell::new(0),
            log_bytes: Cell::new(0),
            log_lines: Cell::new(0),
            now_ms: Cell::new(0.0),
            random: Cell::new(1),
        }
    }

    /// Sets everything to the start of a run.
    pub(crate) fn begin(&self, run: u32, limits: &Limits, seed: u64, now_ms: f64) {
        self.run.set(run);
        self.doom.replace(None);
        self.doomed.set(false);
        self.settled.replace(None);
        self.returned.set(0);
        self.iterations.set(0);
        self.calls.set(0);
        self.next_id.set(0);
        self.open.set(0);
        self.log_bytes.set(0);
        self.log_lines.set(0);
        self.max_iterations.set(limits.max_iterations);
        self.memory_bytes.set(limits.memory_bytes);
        self.deadline.set(Instant::now().checked_add(limits.timeout));
        self.start_ms.set(now_ms);
        self.now_ms.set(now_ms);
        self.random.set(seed | 1);
        *self.limits.borrow_mut() = limits.clone();
    }

    /// Ends the run. The first reason stays.
    pub(crate) fn end(&self, doom: Doom) {
        self.doomed.set(true);
        self.doom.borrow_mut().get_or_insert(doom);
    }

    /// The script's promise settled. The first time counts.
    pub(super) fn settle(&self, ending: Ending, result: String) {
        self.settled.borrow_mut().get_or_insert((ending, result));
    }

    /// Whether the script's promise has not settled yet.
    pub(super) fn is_open(&self) -> bool {
        self.settled.borrow().is_none()
    }

    pub(crate) fn is_doomed(&self) -> bool {
        self.doomed.get()
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

    /// Whether the run ended by a limit, checked once more when the script is done.
    pub(crate) fn must_end(&self) -> bool {
        if self.heap.exhausted() {
            self.end(Doom::Memory);
        }
        self.doomed.get()
    }

    /// Whether the engine must stop now: called by its interrupt poll and between jobs.
    pub(crate) fn must_stop(&self) -> bool {
        if !self.doomed.get() && self.deadline.get().is_some_and(|at| Instant::now() >= at) {
            self.end(Doom::Timeout);
        }
        self.must_end()
    }

    /// Counts one turn of a loop. A script that caught the exception of a heap that is full gets no further.
    pub(crate) fn tick(&self) -> Result<(), Refused> {
        let turns = self.iterations.get() + 1;
        self.iterations.set(turns);
        if turns > self.max_iterations.get() {
            self.end(Doom::Iterations);
        }
        self.refuse()
    }

    /// Refuses to go on when the run is over.
    pub(crate) fn refuse(&self) -> Result<(), Refused> {
        if self.must_end() { Err(Refused("the run is over")) } else { Ok(()) }
    }

    /// Sends a host call, or queues it when `later`, and gives its id.
    pub(crate) fn ask(&self, kind: Kind, name: &str, body: &str, later: bool) -> Result<u32, Refused> {
        if self.must_stop() {
            return Err(Refused("the run is over"));
        }
        let limits = self.limits.borrow();
        if kind == Kind::Call {
            self.calls.set(self.calls.get() + 1);
            if self.calls.get() > limits.max_tool_calls {
                self.end(Doom::ToolCalls);
                return Err(Refused("tool call limit reached"));
            }
        }
        if self.open.get() >= limits.max_pending_calls {
            self.end(Doom::PendingCalls);
            return Err(Refused("too many open calls"));
        }
        if (name.len() + body.len()) as u64 > limits.message_bytes {
            self.end(Doom::MessageTooLarge);
            return Err(Refused("message too large"));
        }
        // The other end takes no longer ones; a name that was cut is none of a tool.
        let name = &*excerpt::name(name);
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        self.open.set(self.open.get() + 1);
        let mut link = self.link.borrow_mut();
        let sent = if later {
            link.queue(kind, self.run.get(), id, name, &[body])
        } else {
            link.send(kind, self.run.get(), id, name, &[body])
        };
        drop(link);
        self.sent(&sent)?;
        Ok(id)
    }

    /// Ends a run that reached for `name`, which leads out of the language subset.
    pub(crate) fn illegal(&self, name: &str) -> Refused {
        self.end(Doom::Illegal(name.to_owned()));
        Refused("the run is over")
    }

    /// Sends a console line.
    pub(crate) fn log(&self, line: &str) -> Result<(), Refused> {
        let limits = self.limits.borrow();
        let (lines, bytes) = (self.log_lines.get() + 1, self.log_bytes.get() + line.len() as u64);
        if lines > limits.log_lines {
            self.end(Doom::LogLines);
        } else if bytes > limits.log_bytes {
            self.end(Doom::LogBytes);
        }
        if self.is_doomed() {
            return Err(Refused("the run is over"));
        }
        self.log_bytes.set(bytes);
        self.log_lines.set(lines);
        let sent = self.link.borrow_mut().send(Kind::Log, self.run.get(), 0, "", &[line]);
        self.sent(&sent)
    }

    /// Writes queued calls while the script goes on computing.
    pub(crate) fn flush(&self) {
        // Held by whoever waits for an answer: then nothing is queued.
        if let Ok(mut link) = self.link.try_borrow_mut() {
            let flushed = link.flush();
            let _ = self.sent(&flushed);
        }
    }

    fn sent(&self, result: &std::io::Result<()>) -> Result<(), Refused> {
        if result.is_err() {
            self.end(Doom::Gone);
            return Err(Refused("the run is over"));
        }
        Ok(())
    }

    /// Ends the run when a text of `len` characters could not be read in its memory, its parts and the whole. The engine keeps a
    /// concatenation as two halves: a text can be long beyond measure before it takes any room.
    pub(crate) fn charge_text(&self, len: u64) {
        if len > self.memory_bytes.get() / 2 {
            self.end(Doom::Memory);
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
