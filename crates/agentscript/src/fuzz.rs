//! Bodies of the fuzz targets under `fuzz/`: ordinary functions that panic when something does not hold.
//!
//! They also run as tests, over the corpus and over random input. Not part of the public interface.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::{
    Host, HostFuture, Limits, Preset, Rejection, RunRequest, ScriptPolicy, ScriptSource, ToolCall,
    ToolFailure, Verdict, WorkerError, WorkerPool, protocol,
};

/// Any bytes as a script: no panic; what is allowed keeps its lines; a refusal says why, at a place inside the text.
///
/// Needs [`crate::VALIDATE_STACK`] bytes of stack.
pub fn validator(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.split(['\n', '\r']).count();
    for preset in [Preset::LockedDown, Preset::Secure] {
        let policy = ScriptPolicy::new(preset).reserved_tool_prefixes(["codecall:"]);
        match ScriptSource::new(&text).validate(&policy, &Limits::preset(preset)) {
            Ok(script) => {
                assert_eq!(script.text().split(['\n', '\r']).count(), lines, "lines moved: {text:?}");
            }
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
