//! Waiting times of a model: a search, the description of ten tools, and calls with and without learning of shapes. Each row is a round trip
//! through a gateway in this process.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

#[expect(dead_code, reason = "the tests need more of it")]
#[path = "../tests/it/support.rs"]
mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use support::{Fixture, Served, text};
use tokio::runtime::Builder;

const NAMES: [&str; 10] = [
    "users_list",
    "users_get",
    "orders_list",
    "orders_get",
    "invoices_list",
    "invoices_get",
    "tickets_list",
    "tickets_get",
    "notes_list",
    "notes_get",
];

fn record(n: usize) -> Value {
    json!({"id": n, "title": "A title", "state": "open", "user": {"login": "ada", "id": 7}, "labels": [{"id": 1, "name": "bug"}]})
}

fn rows(c: &mut Criterion) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let answer: Value = (0..20).map(record).collect();
    let fixtures = || NAMES.map(|name| Fixture::new(name, [text(answer.to_string())]));
    for shapes in ["on", "off"] {
        let served = runtime.block_on(Served::new(json!({"shapes": shapes}), fixtures()));
        let client = runtime.block_on(served.client("ada"));
        c.bench_function(&format!("invoke, shapes {shapes}"), |b| {
            b.iter(|| runtime.block_on(client.invoke(NAMES[0], 0)));
        });
        for name in NAMES {
            runtime.block_on(client.invoke(name, 0));
        }
        let search = json!({"query": "list the users and get an order"});
        c.bench_function(&format!("search, shapes {shapes}"), |b| {
            b.iter(|| runtime.block_on(client.body("codecall:search", search.clone())));
        });
        for detail in ["types", "full"] {
            let names: Vec<String> = NAMES.iter().map(|name| format!("app:{name}")).collect();
            let describe = json!({"toolNames": names, "detail": detail});
            c.bench_function(&format!("describe ten tools, {detail}, shapes {shapes}"), |b| {
                b.iter(|| runtime.block_on(client.body("codecall:describe", describe.clone())));
            });
        }
    }
}

criterion_group!(benches, rows);
criterion_main!(benches);
