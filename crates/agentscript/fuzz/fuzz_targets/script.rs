//! Any bytes as a script to run, in a real worker process. `AGENTSCRIPT_WORKER` names the worker program when this is built.
#![no_main]

use std::sync::{Arc, OnceLock};

use gatewright_agentscript::{PoolConfig, WorkerCommand, WorkerPool, fuzz};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::Runtime;

fn pool() -> &'static (Runtime, Arc<WorkerPool>) {
    static POOL: OnceLock<(Runtime, Arc<WorkerPool>)> = OnceLock::new();
    POOL.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let command = WorkerCommand { program: env!("AGENTSCRIPT_WORKER").into(), args: Vec::new() };
        let pool = WorkerPool::new(PoolConfig::default().workers(1).command(command)).expect("a worker");
        (runtime, pool)
    })
}

fuzz_target!(|bytes: &[u8]| {
    let (runtime, pool) = pool();
    runtime.block_on(fuzz::script(bytes, pool));
});
