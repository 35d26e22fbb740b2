//! One run: compile, call, answer host calls until the script's promise settles or the run must end.

use std::{rc::Rc, time::Instant};

use rquickjs::{Ctx, Function, Object, Value};
use serde::{Deserialize, Serialize};

use super::{
    Compiler, Realm,
    compile::Uncompilable,
    names,
    realm::{self, NAME},
    state::{Doom, State},
};
use crate::{
    excerpt,
    limits::Limits,
    outcome::{IllegalKind, Location},
    protocol::{self, Kind},
    script::Script,
    worker::harden::{self, Bytecode},
};

/// What the pool says about a run, beside its text and its context.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) limits: Limits,
    pub(crate) policy: crate::ScriptPolicy,
    /// Where `Math.random` starts.
    pub(crate) seed: u64,
    /// Milliseconds since the Unix epoch at the start of the run.
    pub(crate) now_ms: f64,
    /// Bytes of the script at the start of the body; the rest is the context.
    pub(crate) script_len: usize,
}

/// How the engine says a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum Ending {
    /// The result is the frame's body.
    Ok,
    Syntax {
        message: String,
        location: Location,
    },
    Illegal {
        kind: IllegalKind,
        message: String,
        location: Option<Location>,
    },
    Runtime {
        name: String,
        message: String,
        location: Option<Location>,
        /// The `return` whose value was at fault, by its number. Inside the worker only, until its place is known.
        #[serde(skip)]
        returned: Option<u32>,
    },
    Tool {
        tool_name: String,
        message: String,
        code: String,
    },
    Timeout,
    Memory(u64),
    PendingCalls(u32),
    MessageTooLarge(u64),
}

impl Ending {
    fn runtime(name: &str, message: impl Into<String>) -> Self {
        Self::Runtime { name: name.to_owned(), message: message.into(), location: None, returned: None }
    }

    /// The same ending with every text cut to what the pool takes.
    pub(crate) fn cut(mut self) -> Self {
        match &mut self {
            Self::Syntax { message, .. } | Self::Illegal { message, .. } => excerpt::cut_message(message),
            Self::Runtime { name, message, .. } => {
                excerpt::cut_name(name);
                excerpt::cut_message(message);
            }
            Self::Tool { tool_name, message, code } => {
                excerpt::cut_name(tool_name);
                excerpt::cut_message(message);
                excerpt::cut_name(code);
            }
            Self::Ok | Self::Timeout | Self::Memory(_) | Self::PendingCalls(_) | Self::MessageTooLarge(_) => {
            }
        }
        self
    }

    /// The value that the script returned cannot leave.
    fn bad_result(name: &str, message: String, returned: u32) -> Self {
        Self::Runtime { name: name.to_owned(), message, location: None, returned: Some(returned) }
    }
}

/// A failed host call as the pool sends it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failure {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) ends_run: bool,
}

/// Text before the script on its first line.
const OPEN: &str = "(async function(){";

/// The function that the engine compiles for the text of a script.
pub(crate) fn wrapped(code: &str) -> String {
    format!("{OPEN}{code}\n}})")
}

impl Realm {
    /// Runs `script` with `context` (JSON text) as `codecallContext`. Returns the ending, its place in the caller's text, and the result as
    /// JSON text.
    pub(crate) fn run(
        &mut self,
        run: u32,
        script: &Script,
        context: &str,
        settings: &Settings,
        compiler: &Compiler,
    ) -> (Ending, String) {
        let limits = &settings.limits;
        // The time that it takes to compile is the run's.
        let deadline = Instant::now().checked_add(limits.timeout);
        let code = match compiler.script(&wrapped(script.text()), NAME, limits.memory_bytes, deadline) {
            Ok(code) => code,
            Err(reason) => {
                let ending = match reason {
                    Uncompilable::Syntax(message, place) => {
                        let location = faulty_expression(script, limits, deadline, compiler)
                            .or_else(|| place.map(|place| script.map_location(place)))
                            .unwrap_or(Location { line: 1, column: 1 });
                        Ending::Syntax { message, location }
                    }
                    Uncompilable::OutOfMemory => Ending::of(Doom::Memory, limits),
                    Uncompilable::OutOfTime => Ending::of(Doom::Timeout, limits),
                };
                return (ending, String::new());
            }
        };
        self.runtime.set_max_stack_size(
            usize::try_from(limits.stack_bytes).unwrap_or(MAX_STACK).clamp(MIN_STACK, MAX_STACK),
        );
        // Cycles are looked for well before they could use up the heap.
        self.runtime.set_gc_threshold(
            usize::try_from(limits.memory_bytes / 8).unwrap_or(usize::MAX).min(GC_THRESHOLD),
        );
        self.state.begin(run, limits, settings.seed, settings.now_ms);
        self.state.deadline.set(deadline);
        let failure = self.context.with(|ctx| {
            let exports = self.exports.clone().restore(&ctx).ok()?;
            drive(&ctx, &exports, &self.state, &code, context, settings).err()
        });
        // A doom outranks whatever the script made of it, an ordinary return included.
        let ending = if self.state.must_end() {
            self.doom_ending(limits)
        } else if let Some(failure) = failure {
            Some((failure, String::new()))
        } else {
            self.state.settled.borrow_mut().take()
        };
        let ending = ending.unwrap_or_else(|| {
            let message = "the script waits for something that never happens";
            (Ending::runtime(names::DEADLOCK, message), String::new())
        });
        let (ending, result) = check_result(ending, limits, self.state.returned.get());
        (ending.in_source(script), result)
    }

    fn doom_ending(&self, limits: &Limits) -> Option<(Ending, String)> {
        let doom = self.state.doom.borrow_mut().take()?;
        Some((Ending::of(doom, limits), String::new()))
    }
}

impl Ending {
    fn of(doom: Doom, limits: &Limits) -> Self {
        match doom {
            Doom::Timeout | Doom::Gone => Ending::Timeout,
            Doom::Iterations => Ending::runtime(
                names::ITERATIONS,
                format!(
                    "iteration limit reached: the script's loops may turn {} times",
                    limits.max_iterations
                ),
            ),
            Doom::ToolCalls => Ending::runtime(
                names::TOOL_CALLS,
                format!("tool call limit reached: the script may make {} tool calls", limits.max_tool_calls),
            ),
            Doom::Memory => Ending::Memory(limits.memory_bytes),
            Doom::PendingCalls => Ending::PendingCalls(limits.max_pending_calls),
            Doom::MessageTooLarge => Ending::MessageTooLarge(limits.message_bytes),
            Doom::LogLines => Ending::runtime(
                names::LOG,
                format!("log limit reached: the script may write {} console lines", limits.log_lines),
            ),
            Doom::LogBytes => Ending::runtime(
                names::LOG,
                format!("log limit reached: the script may write {} bytes to the console", limits.log_bytes),
            ),
            Doom::Illegal(name) => Ending::Illegal {
                kind: IllegalKind::IllegalPrototypeAccess,
                message: format!("access to '{name}' is not allowed; for data with such a key use a Map"),
                location: None,
            },
            Doom::SelfReference(message) => {
                Ending::Illegal { kind: IllegalKind::SelfReferenceBlocked, message, location: None }
            }
        }
    }
}

/// Returns the place of the first regular expression that does not compile: the engine tells only that there is one.
fn faulty_expression(
    script: &Script,
    limits: &Limits,
    deadline: Option<Instant>,
    compiler: &Compiler,
) -> Option<Location> {
    let fails = |literal: &str| {
        let compiled = compiler.script(literal, NAME, limits.memory_bytes, deadline);
        matches!(compiled, Err(Uncompilable::Syntax(..)))
    };
    script.regular_expressions().into_iter().find(|(_, literal)| fails(literal)).map(|(place, _)| place)
}

/// Heap growth after which the engine looks for cycles, in bytes.
const GC_THRESHOLD: usize = 2 * 1024 * 1024;

/// Bounds of the engine's stack: below, nothing runs; above 16 MiB the engine would stop checking.
const MIN_STACK: usize = 64 * 1024;
const MAX_STACK: usize = 8 * 1024 * 1024;

fn check_result((ending, result): (Ending, String), limits: &Limits, returned: u32) -> (Ending, String) {
    if ending != Ending::Ok {
        return (ending, String::new());
    }
    if result.len() as u64 > limits.result_bytes {
        let message = format!(
            "the result is {} bytes of JSON; at most {} are allowed",
            result.len(),
            limits.result_bytes
        );
        return (Ending::bad_result(names::RESULT_SIZE, message, returned), String::new());
    }
    if protocol::too_deep(&result) {
        let message = format!("the result is nested deeper than {} levels", protocol::MAX_DEPTH);
        return (Ending::bad_result(names::RESULT_DEPTH, message, returned), String::new());
    }
    (ending, result)
}

/// Runs until the script's promise settles, nothing can settle it any more, or the run is doomed.
fn drive<'js>(
    ctx: &Ctx<'js>,
    exports: &Object<'js>,
    state: &Rc<State>,
    code: &Bytecode,
    context: &str,
    settings: &Settings,
) -> Result<(), Ending> {
    let fail = |error: rquickjs::Error| engine_failure(ctx, state, &error);
    state.set_heap_limit(settings.limits.memory_bytes);
    // Before the global object is frozen: this makes the function and runs nothing of it.
    let main = harden::evaluate(ctx, code).map_err(fail)?;
    let context: Value<'js> = ctx.json_parse(context).map_err(fail)?;
    let seal: Function<'js> = exports.get("seal").map_err(fail)?;
    let policy = &settings.policy;
    seal.call::<_, ()>((context, policy.console_allowed(), policy.regexp_allowed())).map_err(fail)?;
    let start: Function<'js> = exports.get("start").map_err(fail)?;
    let deliver: Function<'js> = exports.get("deliver").map_err(fail)?;
    start.call::<_, ()>((main,)).map_err(fail)?;
    loop {
        while !state.must_stop() && state.is_open() && ctx.execute_pending_job() {}
        if state.must_stop() || !state.is_open() || state.open.get() == 0 {
            return Ok(());
        }
        if let Some(answer) = receive(ctx, state).map_err(fail)? {
            deliver.call::<_, ()>((answer.id, answer.ok, answer.value)).map_err(fail)?;
        }
    }
}

/// The host's answer to a call.
pub(super) struct Answer<'js> {
    pub(super) id: u32,
    pub(super) ok: bool,
    /// The result, or code and message of the failure.
    pub(super) value: Value<'js>,
}

/// Waits for one frame of the pool; `None` when it was no answer, or one that ends the run.
pub(super) fn receive<'js>(ctx: &Ctx<'js>, state: &State) -> rquickjs::Result<Option<Answer<'js>>> {
    let mut link = state.link.borrow_mut();
    let Ok(Some(frame)) = link.next_answer() else {
        state.end(Doom::Gone);
        return Ok(None);
    };
    if frame.run != state.run.get() {
        return Ok(None);
    }
    let (ok, value) = match frame.kind {
        Kind::Answer => {
            state.advance_clock(frame.head);
            (true, ctx.json_parse(frame.body)?)
        }
        Kind::Failure => {
            state.advance_clock(frame.body);
            let Ok(failure) = serde_json::from_str::<Failure>(frame.head) else {
                state.end(Doom::Gone);
                return Ok(None);
            };
            if failure.ends_run {
                state.end(Doom::SelfReference(failure.message));
                return Ok(None);
            }
            let value = Object::new(ctx.clone())?;
            value.set("code", failure.code)?;
            value.set("message", failure.message)?;
            (false, value.into_value())
        }
        _ => {
            state.end(Doom::Timeout);
            return Ok(None);
        }
    };
    state.open.set(state.open.get().saturating_sub(1));
    Ok(Some(Answer { id: frame.id, ok, value }))
}

/// An exception that reached the engine's own code.
fn engine_failure<'js>(ctx: &Ctx<'js>, state: &State, error: &rquickjs::Error) -> Ending {
    let Some(value) = realm::thrown(ctx, state, error) else {
        return Ending::runtime("InternalError", "the engine could not carry out the script");
    };
    let part = |name: &str| value.as_object().and_then(|object| object.get::<_, String>(name).ok());
    let name = part("name").unwrap_or_else(|| "Error".to_owned());
    let message = part("message").unwrap_or_else(|| "the script failed".to_owned());
    Ending::Runtime { name, message, location: None, returned: None }
}

/// The first place of the script in a stack text such as `    at f (script:3:7)`.
pub(super) fn location(stack: &str) -> Option<Location> {
    let at = stack.find("script:")?;
    let mut numbers = stack[at + "script:".len()..].split(|c: char| !c.is_ascii_digit());
    let line: u32 = numbers.next()?.parse().ok()?;
    let column: u32 = numbers.next()?.parse().ok()?;
    let before = if line == 1 { u32::try_from(OPEN.len()).ok()? } else { 0 };
    Some(Location { line, column: column.saturating_sub(before).max(1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_place_of_the_script_in_a_stack() {
        let stack = "    at f (native)\n    at g (script:3:7)\n    at <anonymous> (script:1:20)\n";
        assert_eq!(location(stack), Some(Location { line: 3, column: 7 }));
        assert_eq!(location("    at <anonymous> (script:1:20)"), Some(Location { line: 1, column: 2 }));
        assert_eq!(location(""), None);
    }

    #[test]
    fn no_script_can_give_an_error_a_name_that_the_engine_or_the_pool_gives() {
        let own = |ending: Ending| match ending {
            Ending::Runtime { name, .. } => assert!(names::is_own(&name), "{name}"),
            Ending::Ok
            | Ending::Syntax { .. }
            | Ending::Illegal { .. }
            | Ending::Tool { .. }
            | Ending::Timeout
            | Ending::Memory(_)
            | Ending::PendingCalls(_)
            | Ending::MessageTooLarge(_) => {}
        };
        let limits = Limits { result_bytes: 10_000, ..Limits::default() };
        for doom in [
            Doom::Timeout,
            Doom::Iterations,
            Doom::ToolCalls,
            Doom::Memory,
            Doom::PendingCalls,
            Doom::MessageTooLarge,
            Doom::SelfReference(String::new()),
            Doom::Illegal(String::new()),
            Doom::LogLines,
            Doom::LogBytes,
            Doom::Gone,
        ] {
            own(Ending::of(doom, &limits));
        }
        for result in ["1".repeat(10_001), "[".repeat(200) + &"]".repeat(200)] {
            let (ending, _) = check_result((Ending::Ok, result), &limits, 0);
            assert_ne!(ending, Ending::Ok);
            own(ending);
        }
        assert!(names::is_own(names::DEADLOCK) && names::is_own(names::HOST));
        assert!(!names::is_own("RateLimitError") && !names::is_own("TypeError"));
    }
}
