//! Any bytes as a script to run. The engine is in this process, so that its coverage counts.
#![no_main]

use std::sync::{Arc, OnceLock};

use gatewright_agentscript::{Adapter, PoolConfig, WorkerPool, fuzz};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::Runtime;

fn pool() -> &'static (Runtime, Arc<WorkerPool>) {
    static POOL: OnceLock<(Runtime, Arc<WorkerPool>)> = OnceLock::new();
    POOL.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let config = PoolConfig::default().workers(1).adapter(Adapter::InProcess);
        (runtime, WorkerPool::new(config).expect("a worker"))
    })
}

fuzz_target!(|bytes: &[u8]| {
    let (runtime, pool) = pool();
    runtime.block_on(fuzz::script(bytes, pool));
});
