//! `gatewright eval context`: recorded tasks, directly and as plans.

use std::{
    fs,
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::support::gatewright;

fn replay(tasks: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.yaml");
    fs::write(&file, tasks).unwrap();
    let mut command = Command::new(gatewright());
    command.args(["eval", "context", "--tasks"]).arg(file);
    command.args(arguments).output().unwrap()
}

fn rows(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

const TWO_TURNS: &str = r#"
tasks:
  - name: users and invoices
    setup: [{ tool: "crm:users_list", input: {} }]
    turns:
      - ask: Which users are there?
        calls: [{ tool: "crm:users_list", input: { limit: 3 } }]
      - ask: And their invoices?
        calls:
          - - { tool: "billing:invoices_list", input: { limit: 3 } }
            - { tool: "crm:users_list", input: { limit: 1 } }
        plan:
          search: []
          script: |
            const { items } = await callTool("crm:users_list", { limit: 3 });
            return items.length;
          expect: 3
"#;

#[test]
fn a_task_is_counted_as_direct_calls_and_as_plans() {
    let output = replay(TWO_TURNS, &["--json"]);
    assert!(output.status.success(), "{output:?}");
    let rows = rows(&output);
    let row = &rows[0];
    assert_eq!((rows.as_array().unwrap().len(), row["failures"].as_array()), (1, None), "{rows:#}");
    // Two requests of calls; a search that may declare the first tool, a description of what is new, and two plans.
    assert_eq!(
        (&row["direct"]["roundTrips"], &row["plans"]["roundTrips"]),
        (&json!(2), &json!(5)),
        "{rows:#}"
    );
    for way in ["direct", "plans"] {
        let [bytes, tokens] = ["bytes", "tokens"].map(|of| row[way][of].as_u64().unwrap());
        assert!(tokens > 200 && bytes > 2 * tokens && bytes < 8 * tokens, "{rows:#}");
    }
}

#[test]
fn a_plan_that_returns_something_else_and_a_call_that_fails_are_named() {
    let tasks = TWO_TURNS.replace("expect: 3", "expect: 4").replace("limit: 1 }", "limt: 1 }");
    let output = replay(&tasks, &["--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let failures = rows(&output)[0]["failures"].to_string();
    for part in ["plan: returned 3 instead of 4", "direct: `crm:users_list`", "limt"] {
        assert!(failures.contains(part), "{part}: {failures}");
    }
}

#[test]
fn plans_over_the_budget_fail_the_command() {
    let output = replay(TWO_TURNS, &["--budget", "0.01"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("more than --budget"), "{output:?}");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("users and invoices") && table.contains("round trips"), "{table}");
}

#[test]
fn a_file_that_holds_no_tasks_is_refused_with_the_place() {
    for (tasks, part) in [
        ("tasks: []", "holds no task"),
        ("tasks:\n  - name: x\n    turns:\n      - ask: y\n        calls: [7]\n", "a list of calls"),
        ("tasks:\n  - name: x\n    turn: []\n", "turn"),
    ] {
        let output = replay(tasks, &[]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(part) && error.contains("tasks.yaml"), "{part}: {error}");
    }
}
