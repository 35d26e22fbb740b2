//! `gatewright eval search`.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::support::gatewright;

fn write(path: &Path, lines: &[Value]) {
    fs::write(path, lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")).unwrap();
}

fn eval(corpus: &[Value], queries: &[Value], arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let (tools, asked) = (folder.path().join("tools.jsonl"), folder.path().join("queries.jsonl"));
    write(&tools, corpus);
    write(&asked, queries);
    let mut command = Command::new(gatewright());
    command.args(["eval", "search", "--corpus"]).arg(tools).arg("--queries").arg(asked);
    command.args(arguments).output().unwrap()
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "appId": "files", "description": description, "inputSchema": {"type": "object"}})
}

fn corpus() -> Vec<Value> {
    vec![
        tool("files:copy", "Copy a file to another folder"),
        tool("files:delete", "Delete a file for good"),
        tool("files:read", "Read the text of a file"),
    ]
}

#[test]
fn recall_and_queries_without_an_answer_are_measured() {
    let queries = [
        json!({"query": "remove a file", "relevant": ["files:delete"]}),
        json!({"query": "copy files", "relevant": ["files:copy"]}),
        json!({"query": "knit a purple pullover", "relevant": []}),
    ];
    let output = eval(&corpus(), &queries, &["--json"]);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["queries"], &report["recallAt1"]), (&json!(3), &json!(1.0)), "{report:#}");
    let wanted = json!({"queries": 1, "areaUnderRoc": 1.0, "leftEmpty": 1.0, "lost": 0.0});
    assert_eq!(report["unanswerable"], wanted);
    let table = eval(&corpus(), &queries, &[]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(
        table.contains("AUC               1.000") && table.contains("Recall@5         100.0%"),
        "{table}"
    );
}

#[test]
fn every_strategy_but_embedding_runs_without_a_model_and_bad_use_is_told() {
    let queries = [json!({"query": "copy files", "relevant": ["files:copy"]})];
    for strategy in ["tfidf", "bm25", "cosine"] {
        let output = eval(&corpus(), &queries, &["--json", "--strategy", strategy]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["recallAt5"], 1.0, "{strategy}: {report:#}");
        assert!(report.get("unanswerable").is_none(), "every query has an answer");
    }
    let told = |arguments: &[&str]| {
        let output = eval(&corpus(), &queries, arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(told(&["--model", "./none"]).contains("--strategy embedding"));
    let missing = told(&["--strategy", "embedding", "--model", "/nonexistent/model"]);
    assert!(missing.contains("/nonexistent/model/config.json"), "{missing}");
}
