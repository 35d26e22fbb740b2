//! Small scripts against Node: `tests/ecmascript/expected.jsonl` has each with its value or error there.

use std::{fs, path::PathBuf};

use gatewright_agentscript::RunError;
use serde_json::Value;

use crate::support;

#[tokio::test]
async fn small_scripts_end_as_they_do_in_node() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/ecmascript/expected.jsonl");
    let text = fs::read_to_string(path).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.len() > 600, "the table is there");
    let mut wrong = Vec::new();
    for row in rows {
        let result = support::run(row["script"].as_str().unwrap()).await.result;
        let same = match &result {
            Ok(value) => row.get("value") == Some(&serde_json::from_str::<Value>(value.get()).unwrap()),
            Err(RunError::RuntimeError { name, .. }) => row["throws"] == **name,
            _ => false,
        };
        if !same {
            wrong.push(format!("{row}\n  here {result:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{} wrong", wrong.join("\n"), wrong.len());
}
