//! Recording runs in memory, as every script does.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use gatewright_core::Principal;
use gatewright_executions::{CallCounts, Ending, Executions, ExecutionsConfig, NewExecution};

fn record(c: &mut Criterion) {
    let executions = Executions::in_memory(ExecutionsConfig::default());
    let (owner, ending) = (Principal::local(), Ending::new("ok"));
    let chunk = [7; 256];
    for calls in [0, 5, 20] {
        c.bench_function(&format!("a run of {calls} calls, two chunks each"), |b| {
            b.iter(|| {
                let mut draft = executions.draft(&owner, NewExecution::default());
                for _ in 0..=2 * calls {
                    draft.append(black_box(&chunk)).expect("a small chunk fits");
                }
                draft.end(&ending, CallCounts { made: calls, failed: 0 });
            });
        });
    }
}

criterion_group!(benches, record);
criterion_main!(benches);
