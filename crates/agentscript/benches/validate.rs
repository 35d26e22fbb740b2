//! Time to validate a script: `cargo bench --bench validate`. Targets: 1 KB below 40 µs, 50 KB below 2 ms.

use std::{hint::black_box, thread};

use criterion::{Criterion, Throughput};
use gatewright_agentscript::{Limits, Preset, ScriptPolicy, ScriptSource, VALIDATE_STACK};

/// A plan as models write them.
const PLAN: &str = r"const users = await callTool('crm:users_list', { limit: 50, active: true });
const byTeam = {};
for (const user of users.items) {
  const orders = await callTool('billing:orders_list', { userId: user.id, status: 'open' });
  const total = orders.items.reduce((sum, order) => sum + order.amount * (1 - (order.discount ?? 0)), 0);
  if (total > 1000 && !user.flags?.includes('vip')) {
    (byTeam[user.team] ??= []).push({ id: user.id, name: `${user.first} ${user.last}`, total });
  }
}
";

fn main() {
    let work = || {
        let mut criterion = Criterion::default().configure_from_args();
        let policy = ScriptPolicy::new(Preset::Secure).reserved_tool_prefixes(["codecall:", "codecall_"]);
        let limits = Limits::preset(Preset::Secure);
        let mut group = criterion.benchmark_group("validate");
        for (name, bytes) in [("1 KB", 1_000), ("10 KB", 10_000), ("50 KB", 50_000)] {
            let mut text = String::new();
            let mut nth = 0;
            while text.len() + PLAN.len() <= bytes || text.is_empty() {
                text.push_str(
                    &PLAN.replace("users", &format!("users{nth}")).replace("byTeam", &format!("byTeam{nth}")),
                );
                nth += 1;
            }
            while text.len() < bytes {
                text.push_str("// filler text\n");
            }
            let typed = text.replace("const total =", "const total: number =");
            group.throughput(Throughput::Bytes(text.len() as u64));
            for (kind, text) in [("", &text), (", typed", &typed)] {
                group.bench_function(format!("{name}{kind}"), |bench| {
                    bench.iter(|| ScriptSource::new(black_box(text)).validate(&policy, &limits));
                });
            }
        }
        group.finish();
        criterion.final_summary();
    };
    let thread = thread::Builder::new().stack_size(VALIDATE_STACK).spawn(work);
    if let Ok(Ok(())) = thread.map(thread::JoinHandle::join) {
        return;
    }
    eprintln!("the benchmark did not finish");
}
