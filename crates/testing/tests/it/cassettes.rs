use gatewright_testing::{Auth, Mcp, RecordMode, RecordOptions, TokenOptions, http_mock};
use serde_json::json;

use crate::support::Everything;

#[tokio::test]
async fn a_session_is_recorded_once_and_replayed_without_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("session.json");
    let session = |mcp: Mcp| async move {
        let tools = mcp.tools().list().await.unwrap().len();
        let work = mcp.tools().call("work", json!({})).progress("p").await.unwrap();
        (tools, work.text(), work.progress())
    };
    let recorded = session(Mcp::in_memory(Everything).record(&file).connect().await.unwrap()).await;
    assert_eq!(recorded, (6, "{\"done\": true}".to_owned(), vec![1.0, 2.0]));
    while !file.exists() {
        tokio::task::yield_now().await;
    }
    let nowhere = || Mcp::http("http://127.0.0.1:1/mcp").record(&file).connect();
    assert_eq!(session(nowhere().await.unwrap()).await, recorded);
    let mcp = nowhere().await.unwrap();
    let error = mcp.prompts().list().await.unwrap_err().to_string();
    assert!(error.contains("no answer (left) to `prompts/list`"), "{error}");
}

#[tokio::test]
async fn a_recorded_session_contains_no_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("session.json");
    let token = Auth::default().create_token(&TokenOptions::new("ada"));
    let text = format!("the token is {token}");
    let mcp = Mcp::in_memory(Everything).record(&file).connect().await.unwrap();
    let arguments = json!({"text": text, "password": "hunter2", "apiKey": "k-123"});
    assert_eq!(mcp.tools().call("echo", arguments).await.unwrap().text(), text, "the test itself sees them");
    mcp.disconnect().await;
    let written = std::fs::read_to_string(&file).unwrap();
    for secret in [token.as_str(), "hunter2", "k-123"] {
        assert!(!written.contains(secret), "{written}");
    }
    assert!(written.contains("the token is [redacted]"), "{written}");
}

#[tokio::test]
async fn a_session_is_replayed_whatever_its_secrets_and_only_they() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("session.json");
    let arguments = |password: &str, n: u32| json!({"text": format!("{{\"password\": \"{password}\", \"total_tokens\": {n}}}"), "password": password});
    let mcp =
        Mcp::in_memory(Everything).record(&file).token("bearer-token-of-the-test").connect().await.unwrap();
    mcp.tools().call("echo", arguments("pass-word-1", 5)).await.unwrap();
    mcp.tools().call("echo", json!({"text": "my token is bearer-token-of-the-test"})).await.unwrap();
    mcp.disconnect().await;
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(!written.contains("pass-word-1") && !written.contains("bearer-token-of-the-test"), "{written}");
    assert!(written.contains("total_tokens"), "{written}");
    let replay = async || Mcp::http("http://127.0.0.1:1/mcp").record(&file).connect().await.unwrap();
    let mcp = replay().await;
    assert!(mcp.tools().call("echo", arguments("pass-word-2", 6)).await.is_err(), "another number");
    let text = mcp.tools().call("echo", arguments("pass-word-2", 5)).await.unwrap().text();
    assert_eq!(text, "{\"password\": \"[redacted]\", \"total_tokens\": 5}");
    let again = replay().await.tools().call("echo", json!({"text": "my token is another"})).await.unwrap();
    assert_eq!(again.text(), "my token is [redacted]");
}

#[tokio::test]
async fn a_missing_cassette_fails_where_only_replays_are_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let options = RecordOptions { mode: RecordMode::None, ..RecordOptions::default() };
    let client = Mcp::in_memory(Everything).record_with(dir.path().join("no.json"), options);
    let error = client.connect().await.unwrap_err().to_string();
    assert!(error.contains("no.json cannot be used: it does not exist"), "{error}");
}

#[tokio::test]
async fn an_invalid_cassette_is_rejected_with_advice() {
    let dir = tempfile::tempdir().unwrap();
    for (text, part) in [
        ("{oops", "key must be a string"),
        ("{}", "missing field `version`"),
        (r#"{"version": 9, "kind": "mcp", "entries": []}"#, "it has version 9, this crate reads 1"),
        (r#"{"version": 1, "kind": "http", "entries": []}"#, "it holds Http messages, not Mcp"),
    ] {
        let file = dir.path().join("bad.json");
        std::fs::write(&file, text).unwrap();
        let error = Mcp::in_memory(Everything).record(&file).connect().await.unwrap_err().to_string();
        for part in [part, "bad.json", "delete it to record a new one"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "it is left as it was");
    }
    let file = dir.path().join("bad.json");
    let error = http_mock::interceptor().unwrap().record(&file).err().map(|error| error.to_string());
    assert_eq!(error, None, "this one holds HTTP calls");
}
