//! Learning from answers of usual sizes, and writing the schema.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use gatewright_shape::{Digits, Shape, Witness, keep_digits};
use serde_json::{Value, json};

fn record(n: usize) -> Value {
    json!({"id": n, "title": "A title", "state": "open", "user": {"login": "ada", "id": 7, "site_admin": false},
        "labels": [{"id": 1, "name": "bug", "color": "f00"}], "created_at": "2026-11-22T10:00:00Z", "body": null})
}

fn learn(c: &mut Criterion) {
    let witness = Witness::new(7);
    for (name, value) in
        [("one record", record(0)), ("a list of 100 records", (0..100).map(record).collect::<Value>())]
    {
        let mut shape = Shape::default();
        c.bench_function(&format!("learn {name}"), |b| {
            b.iter(|| shape.learn(black_box(&value), witness, 256))
        });
        c.bench_function(&format!("schema of {name}"), |b| b.iter(|| black_box(&shape).schema(witness)));
        // As the gateway does it once a tool is known: one answer in 64.
        c.bench_function(&format!("64 answers of {name}, of which one is looked at"), |b| {
            let mut answers = 0_u32;
            b.iter(|| {
                for _ in 0..64 {
                    answers = answers.wrapping_add(1);
                    if black_box(answers).is_multiple_of(64) {
                        shape.learn(black_box(&value), witness, 256);
                    }
                }
            });
        });
        let text = value.to_string();
        c.bench_function(&format!("keep the digits of {name}"), |b| {
            b.iter(|| keep_digits(black_box(&text), Digits::All).len())
        });
    }
}

criterion_group!(benches, learn);
criterion_main!(benches);
