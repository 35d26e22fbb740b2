//! The audit file of the real binary, and `gatewright audit verify`.

use std::{fs, path::Path, process::Command};

use gatewright::rmcp::{
    ServiceExt as _, model::CallToolRequestParams, transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};

use crate::{served::Served, support::gatewright};

async fn run(server: &Served, script: &str) {
    let url = format!("http://{}/mcp", server.address);
    let client = ().serve(StreamableHttpClientTransport::from_uri(url)).await.unwrap();
    let input = json!({"script": script}).as_object().unwrap().clone();
    let params = CallToolRequestParams::new("codecall:execute").with_arguments(input);
    client.peer().call_tool(params).await.unwrap();
}

fn verify(file: &Path) -> (i32, Value) {
    verify_all(&[file])
}

fn verify_all(files: &[&Path]) -> (i32, Value) {
    let output = Command::new(gatewright()).args(["audit", "verify", "--json"]).args(files).output().unwrap();
    let body = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code().unwrap(), body)
}

fn config(file: &Path, more: &str) -> String {
    format!("apps:\n  crm: {{ builtin: crm }}\naudit: {{ file: \"{}\"{more} }}\n", file.display())
}

#[tokio::test]
async fn each_execution_is_a_line_without_script_text_that_outlives_a_kill_and_shows_changes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let mut server = Served::start(&config(&file, ""), &[]);
    run(
        &server,
        "const marker = 'the text of a script'; await callTool('crm:users_list', {limit: 1}); return 1;",
    )
    .await;
    run(&server, "throw new Error('no');").await;
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains("the text of a script"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (lines[0]["tool"].as_str(), lines[0]["status"].as_str()),
        (Some("codecall:execute"), Some("ok"))
    );
    assert_eq!(lines[0]["calls"][0]["tool"], "crm:users_list");
    assert_eq!(lines[0]["script"]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(lines[1]["status"], "runtime_error");
    assert_eq!((lines[0]["actor"].as_str(), lines[0]["ip"].as_str()), (Some("anonymous"), Some("127.0.0.1")));
    let (code, body) = verify(&file);
    assert_eq!((code, &body["lines"]), (0, &json!(2)));

    let server = Served::start(&config(&file, ", includeScripts: true"), &[]);
    run(&server, "return 'kept';").await;
    drop(server);
    let (code, body) = verify(&file);
    assert_eq!((code, &body["lines"]), (0, &json!(3)));
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.lines().last().unwrap().contains("return 'kept';"));

    fs::write(&file, text.replacen("runtime_error", "ok", 1)).unwrap();
    let (code, body) = verify(&file);
    assert_eq!((code, body["ok"].as_bool()), (1, Some(false)));
    assert!(body["problem"].as_str().unwrap().contains("line 2"), "{body}");
}

#[tokio::test]
async fn events_of_the_authorization_server_are_in_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let auth = "auth:\n  mode: orchestrated\n  scopes: { \"crm:read\": Read }\n  clients:\n    - { clientId: svc, clientSecret: a-secret-of-the-service-1234, grantTypes: [client_credentials] }\n";
    let server = Served::start(&format!("{}{auth}", config(&file, "")), &[]);
    let form = "grant_type=client_credentials&scope=crm:read";
    let answer = reqwest::Client::new()
        .post(format!("http://{}/oauth/token", server.address))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("authorization", "Basic c3ZjOmEtc2VjcmV0LW9mLXRoZS1zZXJ2aWNlLTEyMzQ=")
        .body(form)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    let text = fs::read_to_string(&file).unwrap();
    let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((line["event"].as_str(), line["client"].as_str()), (Some("token.issued"), Some("svc")));
    assert_eq!(verify(&file).0, 0);
}

#[test]
fn what_is_no_regular_file_is_not_verified() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for file in [pipe.as_path(), Path::new("/dev/zero")] {
        let output = Command::new(gatewright()).args(["audit", "verify"]).arg(file).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains("not a regular file"), "{output:?}");
    }
}

#[test]
fn an_audit_file_that_cannot_be_used_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    fs::write(&file, "dear diary\n").unwrap();
    let written = folder.path().join("gatewright.yaml");
    fs::write(&written, config(&file, "")).unwrap();
    let output =
        Command::new(gatewright()).args(["serve", "--port", "0", "--config"]).arg(&written).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("audit.file") && said.contains("name a new file"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "dear diary\n");
}

#[tokio::test]
async fn a_file_that_log_rotation_moves_away_is_followed_on_sighup() {
    let folder = tempfile::tempdir().unwrap();
    let (file, moved) = (folder.path().join("audit.jsonl"), folder.path().join("audit.jsonl.1"));
    let server = Served::start(&config(&file, ""), &["--no-watch"]);
    run(&server, "return 1;").await;
    fs::rename(&file, &moved).unwrap();
    run(&server, "return 2;").await;
    server.hang_up();
    server.says("the audit continues in a new file");
    run(&server, "return 3;").await;
    let (code, body) = verify_all(&[&moved, &file]);
    assert_eq!((code, &body["lines"]), (0, &json!(4)), "{body}");
    let (code, body) = verify_all(&[&file, &moved]);
    assert_eq!(code, 1);
    assert!(body["problem"].as_str().unwrap().contains("does not continue"), "{body}");
    // A file that lost its end no longer fits the next one.
    let text = fs::read_to_string(&moved).unwrap();
    fs::write(&moved, format!("{}\n", text.lines().next().unwrap())).unwrap();
    assert_eq!(verify_all(&[&moved, &file]).0, 1);
}

#[tokio::test]
async fn a_full_disk_stops_no_call_and_what_is_missing_is_counted_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    // Stands for a disk of 2 KiB: writes beyond end in an error, in the middle of a line.
    let mut small = Command::new("bash");
    small.args(["-c", "trap '' XFSZ; ulimit -S -f 2; exec \"$0\" \"$@\""]).arg(gatewright());
    let server = Served::by(small, &config(&file, ""), &["--no-watch"]);
    for _ in 0..12 {
        run(&server, "return 1;").await;
    }
    server.says("audit events cannot be written and are lost");
    let kept = fs::read_to_string(&file).unwrap();
    let (code, body) = verify(&file);
    assert!(
        kept.len() <= 2048 && (code == 0 || body["problem"].as_str().unwrap().contains("cut off")),
        "{body}"
    );
    let id = server.child.id().to_string();
    let larger = Command::new("prlimit").args(["--pid", &id, "--fsize=unlimited"]).status().unwrap();
    assert!(larger.success());
    run(&server, "return 2;").await;
    let (code, body) = verify(&file);
    let (lines, lost) = (body["lines"].as_u64().unwrap(), body["lost"].as_u64().unwrap());
    assert_eq!(code, 0, "{body}");
    let text = fs::read_to_string(&file).unwrap();
    let notes = text.lines().filter(|line| line.contains("audit.lost")).count() as u64;
    assert_eq!(lines - notes + lost, 13, "{body}");
    assert!(lost > 0, "{body}");
}

#[tokio::test]
async fn on_a_full_disk_a_server_starts_behind_a_line_that_a_crash_cut_and_notes_it_once_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let server = Served::start(&config(&file, ""), &[]);
    for _ in 0..3 {
        run(&server, "return 1;").await;
    }
    drop(server);
    // Two whole lines, and a part of the third; the disk has room for these bytes and no more.
    let mut text = fs::read(&file).unwrap();
    let second = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(1).unwrap().0;
    text.truncate(second + 60);
    fs::write(&file, &text).unwrap();
    let mut small = Command::new("bash");
    small.args(["-c", "trap '' XFSZ; exec prlimit \"--fsize=$0:unlimited\" \"$@\""]);
    small.arg(text.len().to_string()).arg(gatewright());
    let server = Served::by(small, &config(&file, ""), &["--no-watch"]);
    run(&server, "return 1;").await;
    server.says("audit events cannot be written and are lost");
    let id = server.child.id().to_string();
    assert!(Command::new("prlimit").args(["--pid", &id, "--fsize=unlimited"]).status().unwrap().success());
    run(&server, "return 2;").await;
    let (code, body) = verify(&file);
    assert_eq!((code, &body["torn"], &body["lost"]), (0, &json!(1), &json!(1)), "{body}");
    // The whole lines, the cut one, the notes of both, and the event that found room.
    assert_eq!(body["lines"], 6, "{body}");
    assert!(fs::read(&file).unwrap().starts_with(&text), "what was there stays");
}

#[tokio::test]
async fn a_tool_name_of_a_megabyte_costs_neither_seconds_nor_a_line_of_a_megabyte() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let mut server = Served::start(&config(&file, ""), &["--log-format", "json"]);
    let url = format!("http://{}/mcp", server.address);
    let client = ().serve(StreamableHttpClientTransport::from_uri(url)).await.unwrap();
    let name = format!("crm:{}", "é".repeat(500_000));
    let began = std::time::Instant::now();
    for _ in 0..4 {
        let error = client.peer().call_tool(CallToolRequestParams::new(name.clone())).await.unwrap_err();
        assert!(error.to_string().len() < 1_000, "{error}");
    }
    // Comparing the name with every tool's takes 12 seconds each.
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    drop(client);
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 4);
    assert!(text.lines().all(|line| line.len() < 1_000 && line.contains("crm:éé")), "{}", text.len());
    assert_eq!(verify(&file).0, 0);
    for line in server.terminate() {
        assert!(line.len() < 20_000, "{}", line.len());
        serde_json::from_str::<Value>(&line).unwrap();
    }
}

#[tokio::test]
async fn a_second_process_on_one_file_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let _first = Served::start(&config(&file, ""), &[]);
    let written = folder.path().join("gatewright.yaml");
    fs::write(&written, config(&file, "")).unwrap();
    let second =
        Command::new(gatewright()).args(["serve", "--port", "0", "--config"]).arg(&written).output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(2), "{said}");
    assert!(said.contains("give each instance a file of its own"), "{said}");
}
