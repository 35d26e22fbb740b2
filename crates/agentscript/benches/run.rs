//! Cost of a run: isolated in a worker process, against the same engine in this process on a realm that is reused.

use std::{sync::Arc, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use gatewright_agentscript::{
    Adapter, Host, HostFuture, PoolConfig, RunRequest, ToolAnswer, ToolCall, ToolFailure, WorkerCommand,
    WorkerPool,
};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

struct Echo;

impl Host for Echo {
    fn call_tool(&self, call: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
        Box::pin(async move {
            if call.name == "never" {
                std::future::pending::<()>().await;
            }
            Ok(call.input.into())
        })
    }

    fn get_tool(&self, _: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
        Box::pin(async { Ok(RawValue::NULL.to_owned()) })
    }
}

const ONE: &str = "return await callTool('crm:get', { id: 7 })";
const TWENTY: &str =
    "let n = 0; for (let i = 0; i < 20; i++) n += (await callTool('crm:get', { id: i })).id; return n";
const HUNDRED: &str =
    "const fns = Array.from({ length: 100 }, (_, i) => () => callTool('crm:get', { id: i }));
    return (await __safe_parallel(fns, { maxConcurrency: 20 })).length";

fn worker() -> WorkerCommand {
    WorkerCommand { program: env!("CARGO_BIN_EXE_agentscript-worker").into(), args: Vec::new() }
}

/// A realm that is built once, without limits, isolation or validation: the lowest possible cost of a run.
#[expect(clippy::disallowed_methods, reason = "not a realm of the engine module")]
fn reused_realm(c: &mut Criterion) {
    let runtime = rquickjs::Runtime::new().expect("an engine");
    let context = rquickjs::Context::full(&runtime).expect("a realm");
    c.bench_function("reused realm in this process, one call", |b| {
        b.iter(|| {
            context.with(|ctx| {
                let call = rquickjs::Function::new(ctx.clone(), |name: String, input: String| {
                    assert!(!name.is_empty());
                    input
                })
                .expect("a function");
                ctx.globals().set("raw", call).expect("set");
                let source = format!(
                    "(async function () {{ const callTool = async (n, i) => JSON.parse(raw(n, JSON.stringify(i))); {ONE} }})()"
                );
                let promise: rquickjs::Promise<'_> = ctx.eval(source).expect("runs");
                promise.finish::<rquickjs::Object<'_>>().expect("settles").get::<_, i32>("id").expect("7")
            })
        });
    });
}

/// A fresh engine and realm, with nothing frozen and nothing run: the part of a run that isolation needs.
fn fresh_realm(c: &mut Criterion) {
    c.bench_function("fresh engine and realm in this process, bare", |b| {
        b.iter(|| {
            let runtime = rquickjs::Runtime::new().expect("an engine");
            rquickjs::Context::full(&runtime).expect("a realm").with(|ctx| ctx.globals().len())
        });
    });
}

fn runs(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let pools = [
        ("process", WorkerPool::new(PoolConfig::default().command(worker())).expect("workers")),
        ("in process", WorkerPool::new(PoolConfig::default().adapter(Adapter::InProcess)).expect("workers")),
    ];
    for (adapter, pool) in &pools {
        for (what, source) in
            [("one call", ONE), ("20 calls in a row", TWENTY), ("100 calls in parallel", HUNDRED)]
        {
            c.bench_function(&format!("{adapter}, {what}"), |b| {
                b.iter_custom(|n| {
                    let pool = Arc::clone(pool);
                    // As in a server: on the thread that also waits for the sockets.
                    let task = runtime.spawn(async move {
                        let started = std::time::Instant::now();
                        for _ in 0..n {
                            let request = RunRequest::new(source);
                            let outcome = pool.run(request, Arc::new(Echo), CancellationToken::new()).await;
                            assert!(outcome.result.is_ok(), "{:?}", outcome.result);
                        }
                        started.elapsed()
                    });
                    runtime.block_on(task).expect("runs")
                });
            });
        }
    }
}

fn start(c: &mut Criterion) {
    c.bench_function("cold start of a worker", |b| {
        b.iter_custom(|n| {
            (0..n)
                .map(|_| {
                    let started = std::time::Instant::now();
                    let pool = WorkerPool::new(PoolConfig::default().workers(1).command(worker()))
                        .expect("a worker");
                    let took = started.elapsed();
                    drop(pool);
                    took
                })
                .sum()
        });
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let pool = WorkerPool::new(PoolConfig::default().workers(1).command(worker())).expect("a worker");
    let run = |source: &'static str| {
        runtime.block_on(pool.run(RunRequest::new(source), Arc::new(Echo), CancellationToken::new()))
    };
    c.bench_function("a killed worker is replaced and serves", |b| {
        b.iter_custom(|n| {
            (0..n)
                .map(|_| {
                    let killed = runtime.block_on(async {
                        let busy = pool.run(
                            RunRequest::new("await callTool('never', {})"),
                            Arc::new(Echo),
                            CancellationToken::new(),
                        );
                        tokio::time::timeout(Duration::from_millis(2), busy).await
                    });
                    assert!(killed.is_err());
                    let started = std::time::Instant::now();
                    assert!(run(ONE).result.is_ok());
                    started.elapsed()
                })
                .sum()
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50).measurement_time(Duration::from_secs(4)).warm_up_time(Duration::from_secs(1));
    targets = reused_realm, fresh_realm, runs, start
}
criterion_main!(benches);
