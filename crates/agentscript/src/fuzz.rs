//! Bodies of the fuzz targets under `fuzz/`: ordinary functions that panic when something does not hold.
//!
//! They also run as tests, over the corpus and over random input. Not part of the public interface.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::{
    Host, HostFuture, Limits, Preset, Rejection, RunRequest, Script, ScriptPolicy, ScriptSource, ToolCall,
    ToolFailure, Verdict, WorkerError, WorkerPool,
    engine::{Compiler, Uncompilable, wrapped},
    protocol, validate,
};

/// Any bytes as a script: no panic; a refusal says why, at a place inside the text; what is allowed runs as it was checked (see
/// [`printed`]).
///
/// Needs [`crate::VALIDATE_STACK`] bytes of stack.
pub fn validator(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.split(['\n', '\r']).count();
    for preset in [Preset::LockedDown, Preset::Secure] {
        let policy = ScriptPolicy::new(preset).reserved_tool_prefixes(["codecall:"]);
        match ScriptSource::new(&text).validate(&policy, &Limits::preset(preset)) {
            Ok(script) => printed(&text, &script),
            Err(
                Rejection::Illegal { message, location, .. } | Rejection::SyntaxError { message, location },
            ) => {
                assert!(!message.is_empty(), "no reason: {text:?}");
                let inside = location.column >= 1 && (1..=lines + 1).contains(&(location.line as usize));
                assert!(inside, "{location:?} of {text:?}");
                assert!(!message.contains("could not read the script"), "the parser panicked on {text:?}");
            }
        }
    }
}

/// The text that runs: reading and printing it again changes nothing, it uses the names that were checked and no other, nothing of it is
/// a comment to any reader, and the engine compiles it.
fn printed(source: &str, script: &Script) {
    let text = script.text();
    let told = || format!("{source:?}\nwas printed as {text:?}");
    let checked = validate::read(source).unwrap_or_else(|error| panic!("{error}: {}", told()));
    match validate::read(text) {
        Ok(again) => {
            assert_eq!(again.printed, text, "read as another program: {}", told());
            let own = |name: &String| !name.starts_with("__ag_");
            let names: BTreeSet<String> = again.free_names.into_iter().filter(own).collect();
            assert_eq!(names, checked.free_names, "{}", told());
        }
        // The calls that were added nest too.
        Err(error) if error.to_string().contains("levels") => return,
        Err(error) => panic!("{error}: {}", told()),
    }
    thread_local! {
        static COMPILER: Compiler = Compiler::new().expect("an engine");
    }
    let compiled = COMPILER.with(|compiler| compiler.script(&wrapped(text), "script", 64 << 20, None));
    if let Err(Uncompilable::Syntax(message, _)) = compiled {
        // The parser leaves regular expressions to the engine.
        let known = text.contains('/') || message.contains("stack overflow");
        assert!(known, "the engine refuses it, {message}: {}", told());
    }
}

/// Any bytes as messages of a worker: decoding neither panics nor reads past them, and encoding gives the same bytes again.
pub fn messages(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some(len)) = protocol::frame_len(rest, 1 << 20)
        && let Some(frame) = rest.get(..len)
        && let Ok(frame) = protocol::parse(frame)
    {
        assert!(frame.head.len() + frame.body.len() <= len, "longer than its frame");
        let mut again = Vec::new();
        protocol::put(&mut again, frame.kind, frame.run, frame.id, frame.head, &[frame.body]);
        assert_eq!(again, rest[..len], "decoding lost something");
        rest = &rest[len..];
    }
}

/// Any bytes as a script that is run in `pool`: it ends within its limit and a second, and its worker survives.
pub async fn script(bytes: &[u8], pool: &WorkerPool) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut took = Duration::MAX;
    // A machine that others keep busy makes one run late, not five in a row.
    for _ in 0..5 {
        let mut request = RunRequest::new(text.clone());
        request.limits.timeout = Duration::from_millis(100);
        let started = Instant::now();
        let outcome = pool.run(request, Arc::new(Echo), CancellationToken::new()).await;
        took = started.elapsed();
        let broken = matches!(
            outcome.verdict,
            Verdict::Worker(
                WorkerError::Crashed(_) | WorkerError::MessageInvalid | WorkerError::StartupFailed(_)
            )
        );
        assert!(!broken, "{text:?} broke its worker: {:?}", outcome.verdict);
        if took < LATE {
            break;
        }
    }
    assert!(took < LATE, "{text:?} took {took:?}");
}

/// A run of [`script`] that takes longer did not end at its limit.
const LATE: Duration = Duration::from_millis(1_100);

/// Answers every call with its input; `never` is not answered.
struct Echo;

impl Host for Echo {
    fn call_tool(&self, call: ToolCall) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
        Box::pin(async move {
            if call.name == "never" {
                std::future::pending::<()>().await;
            }
            Ok(call.input)
        })
    }

    fn get_tool(&self, _: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
        Box::pin(async { Ok(RawValue::NULL.to_owned()) })
    }
}
