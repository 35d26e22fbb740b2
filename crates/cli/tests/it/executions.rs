//! `gatewright executions`, and the section `executions`, against a store in a file.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use gatewright_auth::{
    SystemClock,
    store::{SqliteStore, StoreRecords},
};
use gatewright_core::{Principal, Scopes, SealKey};
use gatewright_executions::{
    CallCounts, Ending, Executions, ExecutionsConfig, NewExecution, WaitKind, WaitingFor,
};
use serde_json::{Value, json};

use crate::support::gatewright;

const KEY: &str = "a secret of thirty-two characters";

/// A configuration whose store is a file, and the executions in it.
struct Place {
    _folder: tempfile::TempDir,
    config: PathBuf,
    executions: Executions,
}

fn write(folder: &Path, executions: Value, auth: Value) -> PathBuf {
    let file = folder.join("gatewright.json");
    let all = json!({"apps": {"crm": {"builtin": "crm"}}, "executions": executions, "auth": auth});
    std::fs::write(&file, all.to_string()).unwrap();
    file
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.db");
        let store = SqliteStore::open(&path, "gw:", Arc::new(SystemClock)).unwrap();
        let records = Arc::new(StoreRecords::new(Arc::new(store), "execution"));
        let key = SealKey::derived(KEY.as_bytes());
        let executions = Executions::shared(ExecutionsConfig::default(), records, &key, "test");
        let storage = json!({"type": "sqlite", "config": {"path": path}});
        let auth = json!({"encryptionKey": KEY, "tokenStorage": storage});
        let config = write(folder.path(), json!({}), auth);
        Self { _folder: folder, config, executions }
    }

    fn run(&self, arguments: &[&str]) -> (i32, String) {
        run(&self.config, arguments)
    }
}

fn run(config: &Path, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(gatewright())
        .arg("executions")
        .args(arguments)
        .arg("--config")
        .arg(config)
        .output()
        .unwrap();
    let printed = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    (output.status.code().unwrap(), String::from_utf8(printed).unwrap())
}

fn json_of((code, text): (i32, String)) -> Value {
    assert_eq!(code, 0, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn executions_are_listed_with_those_that_wait_first_and_shown_without_their_contents() {
    let place = Place::new();
    let ada = Principal {
        subject: "user:ada".into(),
        client_id: Some("desk".into()),
        scopes: Scopes::parse("crm:*"),
        ..Principal::local()
    };
    let about = |title: &str| NewExecution { title: Some(title.to_owned()), ..NewExecution::default() };
    let waits = place.executions.create(&ada, about("refund\u{1b}[31m"), b"secret contents").await.unwrap();
    let question = WaitingFor::new(WaitKind::Approval, "Refund 1,200?").tool("crm:refund");
    waits.wait(&[question], CallCounts { made: 2, failed: 1 }).await.unwrap();
    let runs = place.executions.create(&ada, about("export"), b"secret contents").await.unwrap();
    let mut draft = place.executions.draft(&ada, about("report"));
    draft.append(b"secret contents").unwrap();
    let ended = draft.id();
    draft.end(&Ending::new("tool_error").code("RATE_LIMIT"), CallCounts::default());
    place.executions.close().await;

    let all = json_of(place.run(&["list", "--json"]));
    let ids: Vec<&str> = all.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    let [waiting, running, over] = [waits.id(), runs.id(), ended].map(|id| id.to_string());
    assert_eq!(ids, [&waiting, &running, &over]);
    assert_eq!(all[1]["held"], json!(true));
    assert_eq!(
        json_of(place.run(&["list", "--state", "ended", "--json"]))[0]["ending"]["code"],
        "RATE_LIMIT"
    );
    let (code, table) = place.run(&["list"]);
    assert_eq!(code, 0);
    for part in [&waiting, "waiting", "Refund 1,200?", "tool_error (RATE_LIMIT): report", "user:ada"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert!(!table.contains('\u{1b}'), "{table:?}");
    let shown = json_of(place.run(&["show", &waiting, "--json"]));
    assert_eq!(
        (&shown["state"], &shown["entries"], &shown["owner"]["client"], &shown["calls"]["failed"]),
        (&json!("waiting"), &json!(1), &json!("desk"), &json!(1))
    );
    let (code, text) = place.run(&["show", &waiting]);
    assert!(code == 0 && text.contains("waits for an approval of crm:refund: Refund 1,200?"), "{text}");
    assert!(!text.contains("secret contents") && !table.contains("secret contents"));
    let (code, told) = place.run(&["cancel", &running]);
    assert!(code == 0 && told == format!("{running} has ended\n"), "{told}");
    let shown = json_of(place.run(&["show", &running, "--json"]));
    assert_eq!((&shown["state"], &shown["ending"]["code"]), (&json!("ended"), &json!("EXECUTION_ABORTED")));
    assert!(runs.append(b"more").await.is_err(), "its instance may not go on");
    let (code, told) = place.run(&["cancel", &running]);
    assert!(code == 2 && told.contains("the execution has ended"), "{told}");
    for id in ["exe_", "x", &format!("exe_{}", "A".repeat(22))] {
        let (code, told) = place.run(&["show", id]);
        assert!(code == 2 && told.contains("no such execution"), "{told}");
    }
}

#[test]
fn executions_in_memory_and_bad_settings_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = json!({"type": "sqlite", "config": {"path": folder.path().join("auth.db")}});
    for (executions, auth, part) in [
        (json!({}), json!({}), "in its memory"),
        (json!({"store": "memory"}), json!({"encryptionKey": KEY, "tokenStorage": sqlite}), "in its memory"),
        (json!({}), json!({"tokenStorage": sqlite}), "auth.encryptionKey"),
        (json!({"store": "sqlite"}), json!({"tokenStorage": sqlite}), "executions.store"),
        (
            json!({"store": "redis"}),
            json!({"encryptionKey": KEY, "tokenStorage": sqlite}),
            "auth.tokenStorage.type: redis",
        ),
        (json!({"retention": "1s"}), json!({}), "executions.retention"),
        (json!({"lease": 5}), json!({}), "executions.lease"),
        (json!({"maxExecution": 5}), json!({}), "maxExecutions"),
    ] {
        let config = write(folder.path(), executions.clone(), auth);
        let (code, told) = run(&config, &["list"]);
        assert!(code == 2 && told.contains(part), "{executions}: {told}");
    }
}
