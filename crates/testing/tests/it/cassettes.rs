use gatewright_testing::Mcp;
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
