//! The compiler from text to bytecode. The realms that run scripts have none.
//!
//! Regular expressions compile with their script, and some need much memory or time for it. The compiler's heap has the limit of the run, and
//! from the run's deadline on it refuses every allocation.

use std::{ffi::CString, rc::Rc, time::Instant};

use rquickjs::{Context, Ctx, Result, Runtime, context::intrinsic};

use super::{
    limit_errors,
    places::location,
    raw::{self, Bytecode},
};
use crate::{
    limits::Limits,
    outcome::{Location, RunError},
    worker::heap::{Heap, HeapAllocator},
};

/// Stack of the compiler, in bytes. The validator bounds how deep a text may nest.
const STACK: usize = 8 * 1024 * 1024;

/// A runtime that compiles and never runs anything.
pub(crate) struct Compiler {
    context: Context,
    prelude: Bytecode,
    heap: Rc<Heap>,
}

impl Compiler {
    pub(crate) fn new() -> Result<Self> {
        let heap = Rc::new(Heap::new());
        let runtime = Runtime::new_with_alloc(HeapAllocator::new(Rc::clone(&heap)))?;
        runtime.set_max_stack_size(STACK);
        let context = Context::custom::<(intrinsic::Eval, intrinsic::RegExpCompiler)>(&runtime)?;
        let prelude = context.with(|ctx| compile(&ctx, include_str!("prelude.js"), "prelude", true))?;
        runtime.run_gc();
        heap.save();
        Ok(Self { context, prelude, heap })
    }

    /// The code every realm begins with.
    pub(super) fn prelude(&self) -> &Bytecode {
        &self.prelude
    }

    /// Compiles a script within the memory of `limits` and until `deadline`; positions call it `name`.
    ///
    /// # Errors
    /// The engine refuses the text, at its place in `text` or at 1:1, or compiling it spends a limit.
    pub(crate) fn script(
        &self,
        text: &str,
        name: &str,
        limits: &Limits,
        deadline: Option<Instant>,
    ) -> std::result::Result<Bytecode, RunError> {
        self.heap.set_limit(usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX));
        self.heap.set_deadline(deadline);
        let compiled = self.context.with(|ctx| {
            compile(&ctx, text, name, false).map_err(|_| {
                let thrown = ctx.catch();
                let thrown = thrown.as_exception();
                let message = thrown.and_then(rquickjs::Exception::message);
                let place = thrown.and_then(rquickjs::Exception::stack).and_then(|stack| location(&stack));
                let message = message.unwrap_or_else(|| "the engine cannot compile the script".to_owned());
                let location = place.unwrap_or(Location { line: 1, column: 1 });
                RunError::SyntaxError { message, location }
            })
        });
        let exhausted = self.heap.exhausted();
        if exhausted || self.heap.has_grown() {
            raw::restore(&self.heap);
        }
        // After a refused allocation the engine may have gone on without what it asked for.
        match deadline {
            Some(deadline) if exhausted && Instant::now() >= deadline => Err(limit_errors::timeout(limits)),
            _ if exhausted => Err(limit_errors::memory(limits)),
            _ => compiled,
        }
    }
}

fn compile(ctx: &Ctx<'_>, text: &str, name: &str, strip: bool) -> Result<Bytecode> {
    raw::compile(ctx, &CString::new(text)?, &CString::new(name)?, strip)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{engine::wrapped, outcome::WorkerError};

    const MIB: u64 = 1024 * 1024;

    fn limits(memory_bytes: u64) -> Limits {
        Limits { memory_bytes, ..Limits::default() }
    }

    fn is_out_of_memory(error: &RunError) -> bool {
        matches!(error, RunError::Worker(WorkerError::MemoryExceeded(_)))
    }

    /// Regular expressions that are short and grow when they are compiled, or are slow to compile.
    fn greedy() -> Vec<String> {
        let nested = (0..12).fold("ab".to_owned(), |inner, _| format!("(?:{inner}){{2,40}}{{3}}"));
        let counted = (0..40).fold("[a-z]".to_owned(), |inner, _| format!("(?:{inner}){{1,9}}"));
        let classes = format!("/[{}]/iu", "\\p{L}\\P{Lu}\\p{Script=Greek}".repeat(1_500));
        let many = "/\\p{L}+\\P{N}/iu,".repeat(3_500);
        let distinct: String = (0..3_000).map(|n| format!("/a{n}[^{n}\\p{{Lu}}]/iu,")).collect();
        [
            format!("/{}/", nested.replace("}{3}", "}")),
            format!("/{counted}/"),
            classes,
            format!("[{many}]"),
            format!("[{distinct}]"),
            format!("/{}/", "(?:a{0,65535}|b{65535}){0,65535}".repeat(1_000)),
            format!("/{}/u", "[\\u{0}-\\u{10ffff}]".repeat(3_000)),
        ]
        .map(|expression| wrapped(&format!("return {expression}")))
        .into()
    }

    #[test]
    fn no_regular_expression_compiles_with_more_memory_than_the_run_has() {
        let compiler = Compiler::new().unwrap();
        let mut refused = 0;
        for text in greedy() {
            let compiled = compiler.script(&text, "script", &limits(2 * MIB), None);
            refused += u32::from(compiled.is_err_and(|error| is_out_of_memory(&error)));
            assert!(compiler.heap.peak() as u64 <= 2 * MIB, "{text:.60}");
        }
        assert!(refused > 0, "none of them needs much");
        assert!(compiler.script("(1)", "script", &limits(2 * MIB), None).is_ok());
    }

    #[test]
    fn no_regular_expression_compiles_for_longer_than_the_run_may_take() {
        let compiler = Compiler::new().unwrap();
        let mut late = 0;
        for text in greedy() {
            let deadline = Instant::now().checked_add(Duration::from_millis(20));
            let started = Instant::now();
            let compiled = compiler.script(&text, "script", &limits(256 * MIB), deadline);
            late += u32::from(matches!(compiled, Err(RunError::Timeout { .. })));
            assert!(started.elapsed() < Duration::from_millis(520), "{:?}: {text:.60}", started.elapsed());
        }
        assert!(late > 0, "none of them is slow");
        assert!(compiler.script("(1)", "script", &limits(MIB), None).is_ok());
    }

    #[test]
    fn memory_that_runs_out_anywhere_while_compiling_is_reported_and_forgotten() {
        let compiler = Compiler::new().unwrap();
        let text = wrapped(
            "class A { #b = /(?<c>[^d-e]+)\\k<c>/u; get f() { return `${this.#b}` + 1n } }\nreturn [...new Set([new A().f])]",
        );
        let whole = compiler.heap.used() as u64;
        let mut refused = 0;
        for extra in (0..64 * 1024).step_by(97) {
            match compiler.script(&text, "script", &limits(whole + extra), None) {
                Ok(_) => {}
                Err(error) if is_out_of_memory(&error) => refused += 1,
                Err(_) => panic!("{extra} bytes: neither compiled nor out of memory"),
            }
        }
        assert!(refused > 10);
        assert!(compiler.script(&text, "script", &limits(MIB), None).is_ok());
    }

    #[test]
    fn a_text_that_the_engine_refuses_is_a_syntax_error_at_its_place() {
        let compiler = Compiler::new().unwrap();
        let failed = compiler.script(&wrapped("const a = 1;\nreturn a +;"), "script", &limits(MIB), None);
        let Err(RunError::SyntaxError { message, location }) = failed else { panic!("compiled") };
        assert_eq!(location.line, 2, "{message}");
        let failed = compiler.script(&wrapped("return /(/;"), "script", &limits(MIB), None);
        assert!(matches!(failed, Err(RunError::SyntaxError { .. })));
    }

    #[test]
    fn compiling_the_longest_and_deepest_scripts_takes_no_longer_than_their_length_allows() {
        let compiler = Compiler::new().unwrap();
        let time = |body: &str| {
            let script = crate::ScriptSource::new(body)
                .validate(&crate::ScriptPolicy::new(crate::Preset::Secure), &Limits::default())
                .unwrap_or_else(|error| panic!("{error:?}: {body:.60}"));
            let text = wrapped(script.text());
            let once = || {
                let started = Instant::now();
                assert!(compiler.script(&text, "script", &limits(64 * MIB), None).is_ok(), "{body:.60}");
                started.elapsed()
            };
            (0..3).map(|_| once()).min().unwrap().as_secs_f64() * 1e3
        };
        for (before, open, close) in [
            ("let a = 1; return ", "a?(a=a?(a=", "):1):1"),
            ("let a; return ", "(a=", ")"),
            ("let a = 1; return ", "a?async(a=", "):1"),
            ("return ", "[", "]"),
        ] {
            let nested = |depth: usize| {
                let levels = depth / open.matches(['(', '[']).count();
                format!("{before}{}1{}", open.repeat(levels), close.repeat(levels))
            };
            let (half, whole) = (time(&nested(90)), time(&nested(180)));
            println!("{open}: {half:.1} and {whole:.1} ms");
            assert!(whole < 100.0, "{open}: {whole} ms");
        }
        let names: Vec<String> = (0..4_000).map(|n| format!("a{n}")).collect();
        let all = time(&format!("const [{}]=[]", names.join(",")));
        println!("4,000 names: {all:.1} ms");
        assert!(all < 2_000.0, "{all} ms");
    }
}
