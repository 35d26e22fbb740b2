//! One run: compile, call, answer host calls until the script's promise settles or the run must end.

use std::{rc::Rc, time::Instant};

use gatewright_json::weight;
use rquickjs::{Ctx, Function, Object, Value};

use super::{
    answers::receive,
    compile::Compiler,
    limit_errors, names,
    places::{NAME, called, wrapped},
    raw::{self, Bytecode},
    realm::{self, Realm},
    state::RunState,
    texts::Text,
};
use crate::{limits::Limits, messages::RunSettings, outcome::RunError, script::Script, validate};

impl Realm {
    /// Runs `script` with `context` (JSON text) as `codecallContext`. Returns its value as JSON text.
    ///
    /// # Errors
    /// The script did not return a value that may leave; places are those of the caller's text.
    pub(crate) fn run(
        &mut self,
        run: u32,
        script: &Script,
        context: &str,
        settings: &RunSettings,
        compiler: &Compiler,
    ) -> Result<String, RunError> {
        let limits = &settings.limits;
        // The time that it takes to compile is the run's.
        let deadline = Instant::now().checked_add(limits.timeout);
        let code = compile(script, limits, deadline, compiler)?;
        self.runtime.set_max_stack_size(
            usize::try_from(limits.stack_bytes).unwrap_or(MAX_STACK).clamp(MIN_STACK, MAX_STACK),
        );
        // Cycles are looked for well before they could use up the heap.
        self.runtime.set_gc_threshold(
            usize::try_from(limits.memory_bytes / 8).unwrap_or(usize::MAX).min(GC_THRESHOLD),
        );
        self.state.begin(run, settings);
        self.state.deadline.set(deadline);
        let failure = self.context.with(|ctx| {
            let exports = self.exports.clone().restore(&ctx).ok()?;
            drive(&ctx, &exports, &self.state, &code, context, settings).err()
        });
        self.state.report_omitted_logs();
        self.take_result(failure, limits).map_err(|error| self.in_source(error, script))
    }

    /// Returns what the script's promise settled with, unless something outranks it.
    fn take_result(&self, failure: Option<RunError>, limits: &Limits) -> Result<String, RunError> {
        // A limit outranks whatever the script made of it, an ordinary return included.
        if self.state.must_end()
            && let Some(reason) = self.state.take_termination()
        {
            return Err(reason);
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        let settled = self.state.settled.borrow_mut().take().unwrap_or_else(|| {
            let message = "the script waits for something that never happens";
            Err(RunError::runtime(names::DEADLOCK, message))
        });
        settled.and_then(|result| {
            check_size(&result, limits).inspect_err(|_| self.state.result_is_faulty.set(true))?;
            Ok(result)
        })
    }

    /// Returns the same error with its place in the caller's text instead of the text that ran.
    fn in_source(&self, mut error: RunError, script: &Script) -> RunError {
        match &mut error {
            RunError::IllegalAccess { location: Some(location), .. }
            | RunError::RuntimeError { location: Some(location), .. }
            | RunError::ToolError { location: Some(location), .. } => {
                *location = script.map_location(*location);
                if let RunError::RuntimeError { name, message, location: Some(location) } = &mut error
                    && (name.as_str(), message.as_str()) == ("TypeError", "not a function")
                    && let Some(called) = called(script.source(), *location)
                {
                    *message = format!("{called} is not a function");
                }
                if let RunError::RuntimeError { name, message, .. } = &mut error
                    && name == "ReferenceError"
                    && let Some(advice) = validate::instead_of_undeclared(message)
                {
                    message.push_str(": ");
                    message.push_str(advice);
                }
            }
            // The engine found fault with the result when the script's own code had ended.
            RunError::RuntimeError { location, .. } if self.state.result_is_faulty.get() => {
                *location = script.returned(self.state.returned.get());
            }
            _ => {}
        }
        error
    }
}

/// Compiles `script`; a syntax error has its place in the caller's text.
fn compile(
    script: &Script,
    limits: &Limits,
    deadline: Option<Instant>,
    compiler: &Compiler,
) -> Result<Bytecode, RunError> {
    let compiled = compiler.script(&wrapped(script.text()), NAME, limits, deadline);
    compiled.map_err(|error| match error {
        RunError::SyntaxError { message, location } => {
            // The engine does not tell the place of a bad regular expression.
            let is_bad = |literal: &str| {
                let compiled = compiler.script(literal, NAME, limits, deadline);
                matches!(compiled, Err(RunError::SyntaxError { .. }))
            };
            let literals = validate::regular_expressions(script.source());
            let bad = literals.into_iter().find(|(_, literal)| is_bad(literal));
            let location = bad.map_or_else(|| script.map_location(location), |(location, _)| location);
            RunError::SyntaxError { message, location }
        }
        error => error,
    })
}

/// Heap growth after which the engine looks for cycles, in bytes.
const GC_THRESHOLD: usize = 2 * 1024 * 1024;

/// Bounds of the engine's stack: below, nothing runs; above 16 MiB the engine would stop checking.
const MIN_STACK: usize = 64 * 1024;
const MAX_STACK: usize = 8 * 1024 * 1024;

/// Refuses a result that is too long, nests too deep or has the reserved key.
fn check_size(result: &str, limits: &Limits) -> Result<(), RunError> {
    if result.len() as u64 > limits.result_bytes {
        return Err(limit_errors::result_size(result.len(), limits.result_bytes));
    }
    weight(result).map(drop).map_err(|why| {
        RunError::runtime(names::RESULT_UNREADABLE, format!("the result cannot be read: {why}"))
    })
}

/// Runs until the script's promise settles, nothing can settle it any more, or the run must end.
fn drive<'js>(
    ctx: &Ctx<'js>,
    exports: &Object<'js>,
    state: &Rc<RunState>,
    code: &Bytecode,
    context: &str,
    settings: &RunSettings,
) -> Result<(), RunError> {
    let fail = |error: rquickjs::Error| engine_failure(ctx, state, &error);
    state.set_heap_limit(settings.limits.memory_bytes);
    // Before the global object is frozen: this makes the function and runs nothing of it.
    let main = raw::evaluate(ctx, code).map_err(fail)?;
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
        if let Some(answer) = receive(ctx, state, None).map_err(fail)? {
            deliver.call::<_, ()>((answer.id, answer.ok, answer.value)).map_err(fail)?;
        }
    }
}

/// Returns the error for an exception that reached the engine's own code.
fn engine_failure<'js>(ctx: &Ctx<'js>, state: &RunState, error: &rquickjs::Error) -> RunError {
    let Some(value) = realm::thrown(ctx, state, error) else {
        return RunError::runtime("InternalError", "the engine could not carry out the script");
    };
    let part = |name: &str| value.as_object().and_then(|object| object.get::<_, Text<'_>>(name).ok());
    let name = part("name").map_or_else(|| "Error".to_owned(), |name| name.name());
    let message = part("message").map_or_else(|| "the script failed".to_owned(), |message| message.message());
    RunError::runtime(&name, message)
}
