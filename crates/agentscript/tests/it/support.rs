//! A pool over the real worker program, and a host that answers from closures.

use std::sync::{Arc, Mutex, OnceLock};

use gatewright_agentscript::{
    Host, HostFuture, Limits, Outcome, PoolConfig, RunRequest, ToolAnswer, ToolCall, ToolFailure,
    WorkerCommand, WorkerPool,
};
use serde_json::{Value, json, value::RawValue};
use tokio_util::sync::CancellationToken;

/// Settings with this crate's own worker program.
pub(crate) fn config() -> PoolConfig {
    PoolConfig::default().workers(2).command(command(&[]))
}

/// The worker program with `args` in front.
pub(crate) fn command(args: &[&str]) -> WorkerCommand {
    WorkerCommand {
        program: env!("CARGO_BIN_EXE_agentscript-worker").into(),
        args: args.iter().map(Into::into).collect(),
    }
}

/// One pool for the tests of this process that need nothing special.
pub(crate) fn pool() -> Arc<WorkerPool> {
    static POOL: OnceLock<Arc<WorkerPool>> = OnceLock::new();
    Arc::clone(POOL.get_or_init(|| WorkerPool::new(config()).expect("the worker program starts")))
}

/// JSON text of `value`.
pub(crate) fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).expect("JSON")
}

/// A failure with `code`.
pub(crate) fn failure(code: &str, message: &str) -> ToolFailure {
    ToolFailure { code: code.to_owned(), message: message.to_owned(), ..ToolFailure::default() }
}

/// Tools of the tests: `echo` gives its input, `pages` gives its input and `paginate`, `fail` fails, `limited` says when to try again, `never` does not answer, `self` ends the run, `panic` panics,
/// `big` gives a text of `bytes`; anything else is not found.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    pub(crate) seen: Mutex<Vec<(String, Value)>>,
}

impl Host for Tools {
    fn call_tool(&self, call: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
        Box::pin(async move {
            let input: Value = serde_json::from_str(call.input.get()).expect("the pool passes JSON only");
            self.seen.lock().expect("no panic holds it").push((call.name.clone(), input.clone()));
            match call.name.as_str() {
                "echo" => Ok(raw(&input).into()),
                "pages" => Ok(raw(&json!({"input": input, "max": call.paginate})).into()),
                "lacks" => Err(failure("VALIDATION_ERROR", "id is required")),
                "fail" => Err(failure("NOT_FOUND", "no such user")),
                "limited" => Err(ToolFailure {
                    retry_after_seconds: Some(7),
                    required_scopes: vec!["crm".to_owned()],
                    ..failure("RATE_LIMIT", "slow down")
                }),
                "never" => std::future::pending().await,
                "self" => Err(ToolFailure {
                    ends_run: true,
                    ..failure("SELF_REFERENCE_BLOCKED", "not from a script")
                }),
                "panic" => panic!("a host function that panics"),
                "big" => Ok(raw(&json!("x".repeat(input["bytes"].as_u64().unwrap_or(0) as usize))).into()),
                "yield" => {
                    tokio::task::yield_now().await;
                    Ok(raw(&input).into())
                }
                _ => Err(failure("TOOL_NOT_FOUND", "there is no such tool")),
            }
        })
    }

    fn get_tool(&self, name: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
        Box::pin(async move {
            if name == "missing" {
                return Err(failure("TOOL_NOT_FOUND", "there is no such tool"));
            }
            Ok(raw(&json!({ "name": name, "description": "d", "inputSchema": {}, "outputSchema": null })))
        })
    }
}

/// Runs `source` on the shared pool with the default limits.
pub(crate) async fn run(source: &str) -> Outcome {
    run_with(RunRequest::new(source)).await
}

/// Runs `source` with limits changed by `change`.
pub(crate) async fn limited(source: &str, change: impl FnOnce(&mut Limits)) -> Outcome {
    let mut request = RunRequest::new(source);
    change(&mut request.limits);
    run_with(request).await
}

/// Runs `request` on the shared pool.
pub(crate) async fn run_with(request: RunRequest) -> Outcome {
    pool().run(request, Arc::new(Tools::default()), CancellationToken::new()).await
}

/// The value of a run that must have returned one.
pub(crate) fn value(outcome: &Outcome) -> Value {
    match &outcome.result {
        Ok(value) => serde_json::from_str(value.get()).expect("JSON"),
        other => panic!("expected a value, got {other:?}"),
    }
}
