//! Locale functions against Node: `tests/locale/expected.jsonl` has expressions and their values there.

use std::{fs, path::PathBuf, time::Duration};

use serde_json::Value;

use crate::support;

#[tokio::test]
async fn texts_for_people_are_those_of_node() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/locale/expected.jsonl");
    let text = fs::read_to_string(path).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.len() > 1_500, "the table is there");
    let mut wrong = Vec::new();
    for chunk in rows.chunks(100) {
        // One that throws here and not there is a difference like any other.
        let caught = |script: &str| {
            format!("(() => {{ try {{ return {script} }} catch (error) {{ return 'throws ' + error }} }})()")
        };
        let parts: Vec<String> = chunk.iter().filter_map(|row| row["script"].as_str().map(caught)).collect();
        let outcome = support::limited(&format!("return [{}]", parts.join(",\n")), |limits| {
            limits.script_bytes = 4 << 20;
            limits.max_iterations = 10_000_000;
            limits.timeout = Duration::from_secs(60);
        })
        .await;
        let Value::Array(values) = support::value(&outcome) else { panic!("a list is returned") };
        assert_eq!(values.len(), chunk.len());
        for (row, value) in chunk.iter().zip(values) {
            if value != row["value"] {
                wrong.push(difference(row, &value));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{} wrong", wrong.join("\n"), wrong.len());
}

/// The script, and the first place where its value differs.
fn difference(row: &Value, value: &Value) -> String {
    let script = row["script"].as_str().unwrap_or_default();
    if let (Some(ours), Some(theirs)) = (value.as_array(), row["value"].as_array())
        && let Some(at) = (0..ours.len()).find(|at| ours.get(*at) != theirs.get(*at))
    {
        let around = |list: &[Value]| format!("{:?}", &list[at.saturating_sub(1)..list.len().min(at + 3)]);
        return format!(
            "{}\n  at {at} is {}\n  Node {}",
            script.chars().skip(script.chars().count().saturating_sub(120)).collect::<String>(),
            around(ours),
            around(theirs)
        );
    }
    format!("{script}\n  is   {value}\n  Node {}", row["value"])
}
