//! What a script can do: call tools, see its context, return values.

use serde_json::json;

use super::support::{run, value};

#[tokio::test]
async fn a_tool_call_crosses_to_the_host_and_back() {
    let outcome = run("return await callTool('echo', { id: 7 })").await;
    assert_eq!(value(&outcome), json!({ "id": 7 }));
    assert_eq!(outcome.calls.len(), 1);
}
