//! Building, updating and querying an index of made-up tools.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

use std::{hint::black_box, sync::Arc};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use gatewright_search::{Change, Document, Index, Query};
use serde_json::json;

const VERBS: [&str; 10] =
    ["create", "list", "get", "update", "delete", "search", "send", "archive", "export", "share"];
const THINGS: [&str; 20] = [
    "ticket",
    "invoice",
    "customer",
    "message",
    "file",
    "folder",
    "event",
    "calendar",
    "report",
    "deployment",
    "branch",
    "issue",
    "page",
    "comment",
    "user",
    "team",
    "order",
    "product",
    "payment",
    "webhook",
];

fn tools(count: usize) -> Vec<Document> {
    let tool = |number: usize| {
        let (verb, thing) = (VERBS[number % 10], THINGS[number / 10 % 20]);
        let app = format!("app{}", number / 200);
        Document {
            name: format!("{app}:{verb}_{thing}"),
            app_id: app,
            description: format!(
                "{verb} a {thing} in workspace number {number}, with its {}",
                THINGS[number % 20]
            ),
            input_schema: serde_json::from_value(json!({"type": "object", "properties": {
                format!("{thing}_id"): {"type": "string", "description": format!("Which {thing}")},
                "limit": {"type": "integer"}}}))
            .map(Arc::new)
            .unwrap(),
        }
    };
    (0..count).map(tool).collect()
}

fn search(c: &mut Criterion) {
    for count in [10_000, 100_000] {
        let index = Index::build(tools(count));
        c.bench_function(&format!("query/{count}"), |b| {
            b.iter(|| index.search(&Query::new(black_box("please send the invoice report to a customer"))));
        });
        c.bench_function(&format!("typo/{count}"), |b| {
            b.iter(|| index.search(&Query::new(black_box("delte the fodler"))));
        });
        let app: Vec<Document> = tools(20);
        c.bench_function(&format!("replace one app/{count}"), |b| {
            b.iter_batched(
                || Change::ReplaceApp { app_id: "app0".to_owned(), documents: app.clone() },
                |change| index.updated([change]),
                BatchSize::SmallInput,
            );
        });
    }
    let mut group = c.benchmark_group("build");
    group.sample_size(10);
    group.bench_function("10000", |b| b.iter_batched(|| tools(10_000), Index::build, BatchSize::LargeInput));
    group.finish();
}

criterion_group!(benches, search);
criterion_main!(benches);
