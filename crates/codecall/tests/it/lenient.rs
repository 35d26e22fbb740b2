//! Inputs of the meta-tools that are written in another type than the schemas say.

use serde_json::json;

use super::{inputs::files, support::Served};

#[tokio::test]
async fn meta_tools_read_inputs_that_are_written_in_another_type_and_have_one_meaning() {
    let served = Served::over(json!({}), files()).await;
    let ada = served.client("ada").await;
    let run = json!({"script": "return codecallContext.n", "dryRun": false, "detach": "false",
        "context": "{\"n\": 1}", "resume": null});
    let run = ada.body("codecall:execute", run).await;
    assert_eq!((&run["status"], &run["result"], run.get("dryRun")), (&json!("ok"), &json!(1), None), "{run}");
    let found = ada.body("codecall:search", json!({"query": "echo", "topK": "1"})).await;
    assert_eq!(found["tools"].as_array().map(Vec::len), Some(1), "{found}");
    let described = ada.body("codecall:describe", json!({"toolNames": "app:echo", "detail": "full"})).await;
    assert_eq!(described["tools"][0]["name"], "app:echo", "{described}");
    let invoke = json!({"tool": "app:echo", "input": "{\"id\": \"a\", \"box\": {}}"});
    let invoked = ada.body("codecall:invoke", invoke).await;
    assert_eq!(invoked["result"], json!({"id": "a", "page": 1, "box": {"page": 1}}), "{invoked}");
    let denied =
        json!({"script": "return callTool('app:echo', {id: 'a', box: {}})", "allowedTools": "app:open"});
    let denied = ada.body("codecall:execute", denied).await;
    assert_eq!(denied["error"]["code"], "ACCESS_DENIED", "{denied}");
}
