//! Cost of a check: a tool that a rule covers, and one that none does.

use std::{hint::black_box, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use gatewright_core::{Principal, RateLimiter as _, Scopes};
use gatewright_operator::limits::{Limits, RateLimitRule};

fn check(c: &mut Criterion) {
    let rule = |tool: &str| RateLimitRule {
        tool: tool.to_owned(),
        limit: 1_000_000_000,
        window: Duration::from_secs(1),
    };
    let limits = Limits::new(vec![rule("codecall:execute"), rule("crm:*")]);
    let principal = Principal {
        subject: "user:ada".into(),
        client_id: Some("app".into()),
        scopes: Scopes::All,
        ..Principal::local()
    };
    let mut group = c.benchmark_group("rate limit");
    for (name, tool) in [("covered by a rule", "crm:users_list"), ("covered by none", "billing:orders_list")]
    {
        group.bench_function(name, |b| {
            b.iter(|| futures::executor::block_on(limits.check(black_box(tool), &principal, None)).is_ok());
        });
    }
    group.finish();
}

criterion_group!(benches, check);
criterion_main!(benches);
