//! The host's verdict on a plan: before any call, whatever the worker does.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use gatewright_agentscript::{
    Host, HostFuture, Location, Outcome, PlanFacts, PlanRefusal, PlanVerdict, PlanWarning, PoolConfig,
    RunError, RunRequest, ToolAnswer, ToolCall, ToolFailure, WorkerPool,
};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::support::{config, pool, value};

/// Refuses plans that name the tool `wrong` and warns of the tool `odd`, after `delay`.
#[derive(Default)]
struct Strict {
    delay: Option<Duration>,
    called: Mutex<Vec<String>>,
}

impl Host for Strict {
    fn call_tool(&self, call: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
        self.called.lock().unwrap().push(call.name);
        Box::pin(async { Ok(RawValue::NULL.to_owned().into()) })
    }

    fn get_tool(&self, name: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
        self.called.lock().unwrap().push(name);
        Box::pin(async { Ok(RawValue::NULL.to_owned()) })
    }

    fn check_plan(&self, facts: PlanFacts) -> HostFuture<'_, PlanVerdict> {
        Box::pin(async move {
            if let Some(delay) = self.delay {
                tokio::time::sleep(delay).await;
            }
            let named = |name: &str| facts.calls.iter().find(|call| call.name == name);
            assert!(named("panic").is_none(), "a host that panics");
            PlanVerdict {
                warnings: named("odd")
                    .map(|call| PlanWarning { at: call.at, message: "odd".to_owned() })
                    .into_iter()
                    .collect(),
                refusal: named("wrong").map(|call| PlanRefusal {
                    at: call.at,
                    tool_name: call.name.clone(),
                    code: "TOOL_NOT_FOUND".to_owned(),
                    message: "no such tool".to_owned(),
                }),
            }
        })
    }
}

async fn run_on(pool: &WorkerPool, host: &Arc<Strict>, script: &str) -> Outcome {
    pool.run(RunRequest::new(script), host.clone(), CancellationToken::new()).await
}

const REFUSED: &str = "await callTool('first', {});\n  await callTool('wrong', {});\nreturn 1";

fn assert_refused(outcome: &Outcome, host: &Strict) {
    let Err(RunError::ToolError { tool_name, code, message, location }) = &outcome.result else {
        panic!("not refused: {:?}", outcome.result);
    };
    assert_eq!(
        (tool_name.as_str(), code.as_str(), message.as_str()),
        ("wrong", "TOOL_NOT_FOUND", "no such tool")
    );
    assert_eq!(*location, Some(Location { line: 2, column: 18 }));
    assert!(outcome.calls.is_empty() && outcome.logs.is_empty(), "{outcome:?}");
    assert!(host.called.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_refused_plan_calls_nothing_and_the_worker_serves_the_next_run() {
    let pool = WorkerPool::new(config().workers(1).max_workers(1)).unwrap();
    let host = Arc::new(Strict::default());
    let pids = pool.idle_pids();
    for script in [
        REFUSED.to_owned(),
        format!("console.log('x'); {REFUSED}"),
        REFUSED.replace("await callTool('first', {})", "getTool('first')"),
        REFUSED.replace("await callTool('first', {})", "try { null.x } catch { callTool('first', {}) }"),
    ] {
        assert_refused(&run_on(&pool, &host, &script).await, &host);
    }
    let next = run_on(&pool, &host, "return await callTool('fine', {})").await;
    assert_eq!(value(&next), serde_json::Value::Null);
    assert_eq!(pool.idle_pids(), pids, "no worker was replaced");
}

#[tokio::test]
async fn a_verdict_that_takes_time_comes_before_the_first_call_and_before_the_result() {
    let host = Arc::new(Strict { delay: Some(Duration::from_millis(20)), ..Strict::default() });
    assert_refused(&run_on(&pool(), &host, REFUSED).await, &host);
    // This one is at its end before the verdict is there.
    let unreached = "if (codecallContext.never)\n  await callTool('wrong', {});\nreturn 1";
    assert_refused(&run_on(&pool(), &host, unreached).await, &host);
    let fine = run_on(&pool(), &host, "return await callTool('fine', {})").await;
    assert_eq!(value(&fine), serde_json::Value::Null);
    assert_eq!(*host.called.lock().unwrap(), ["fine"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_return_is_a_warning_of_a_result_that_is_null() {
    let host = Arc::new(Strict::default());
    let warned = async |script: &str| {
        let outcome = run_on(&pool(), &host, script).await;
        outcome.warnings.into_iter().map(|it| it.message).collect::<Vec<_>>()
    };
    let returned_nothing = |name: &str| [format!("the script returned nothing; end it with `return {name}`")];
    assert_eq!(warned("const users = await callTool('a:b', {})").await, returned_nothing("users"));
    assert_eq!(warned("const r = await callTool('a:b', {}); { total: r; }").await, returned_nothing("value"));
    assert!(returned_nothing("value")[0].len() <= 90);
    // The result is another branch's, an error, or what the script says.
    let branches = "try { const r = await callTool('a:b', {}); r.items } catch (e) { ({ error: e.name }) }";
    for script in [
        branches,
        "const users = (await callTool('a:b', {})).items",
        "const r = await callTool('wrong', {})",
        "await callTool('a:b', {}); 5",
        "const f = async () => { await callTool('a:b', {}); return null }; f()",
    ] {
        assert_eq!(warned(script).await, Vec::<String>::new(), "{script}");
    }
    assert_eq!(
        warned("try { const r = await callTool('a:b', {}) } catch (e) { ({ error: e.name }) }").await,
        returned_nothing("r")
    );
}

#[tokio::test]
async fn warnings_come_with_the_result_and_with_errors_each_with_its_place() {
    let host = Arc::new(Strict::default());
    let outcome = run_on(
        &pool(),
        &host,
        "const é = 1;\ncallTool('odd', {});\nawait callTool('fine', {});\nthrow new Error('x')",
    )
    .await;
    assert!(outcome.result.is_err());
    let warnings: Vec<_> =
        outcome.warnings.iter().map(|it| (it.message.split(':').next().unwrap(), it.location.line)).collect();
    assert_eq!(warnings, [("this tool call is not awaited", 2), ("odd", 2)]);
    assert_eq!(outcome.warnings[1].location.column, 10);
}

#[tokio::test]
async fn a_host_that_panics_over_a_plan_ends_the_run() {
    let outcome = run_on(&pool(), &Arc::new(Strict::default()), "await callTool('panic', {})").await;
    assert!(
        matches!(&outcome.result, Err(RunError::RuntimeError { name, .. }) if name == "HostError"),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_refused_script_that_never_ends_is_refused_all_the_same() {
    let pool =
        WorkerPool::new(PoolConfig::watchdog_extra(config().workers(1), Duration::from_millis(100))).unwrap();
    let host = Arc::new(Strict::default());
    let mut request = RunRequest::new("callTool('wrong', {}).then(() => {}); while (true) {}");
    request.limits.timeout = Duration::from_millis(100);
    request.limits.max_iterations = u64::MAX;
    let outcome = pool.run(request, host.clone(), CancellationToken::new()).await;
    assert!(matches!(outcome.result, Err(RunError::ToolError { .. })), "{outcome:?}");
    assert!(host.called.lock().unwrap().is_empty());
}
