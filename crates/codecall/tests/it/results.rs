//! Big results, and content that is no text.

use gatewright_core::rmcp::model::{ContentBlock, ResourceContents};
use serde_json::{Value, json};

use super::support::{Fixture, Served, structured, text};

fn rows() -> Value {
    (0..2_000).map(|n| json!({"id": n, "name": "somebody with a name"})).collect()
}

#[tokio::test]
async fn a_big_result_is_shortened_by_structure_and_its_caller_alone_reads_the_whole() {
    let served = Served::new(
        json!({"result": {"maxBytes": 4096}}),
        [Fixture::new("list", [text(rows().to_string())])],
    )
    .await;
    let (ada, bob) = (served.client("ada").await, served.client("bob").await);
    let script = json!({"script": "return {rows: await callTool('app:list', {}), total: 2000}"});
    let invoke = json!({"tool": "app:list", "input": {}});
    for (tool, input, path) in [("codecall:execute", script, "/rows"), ("codecall:invoke", invoke, "")] {
        let answer = ada.call(tool, input).await;
        let body = answer.structured_content.unwrap();
        assert_eq!(body["status"], "ok");
        assert!(body["result"].to_string().len() <= 4_096);
        let kept = body["result"].pointer(path).unwrap().as_array().unwrap();
        assert_eq!(kept[..], rows().as_array().unwrap()[..kept.len()]);
        let truncated = &body["truncated"];
        assert_eq!(
            truncated["cut"],
            json!([{"path": path, "kept": kept.len(), "of": 2_000, "unit": "items"}])
        );
        assert!(truncated["hint"].as_str().unwrap().contains("codecall.result.maxBytes"));
        let uri = truncated["resource"].as_str().unwrap();
        let Some(ContentBlock::ResourceLink(link)) = answer.content.last() else {
            panic!("{:?}", answer.content)
        };
        assert_eq!(link.uri, uri);
        let read = ada.read(uri).await.unwrap();
        let [ResourceContents::TextResourceContents { text, .. }] = read.contents.as_slice() else {
            panic!()
        };
        assert_eq!(truncated["bytes"], json!(text.len()));
        let whole: Value = serde_json::from_str(text).unwrap();
        assert_eq!(whole.pointer(path), Some(&rows()));
        assert!(bob.read(uri).await.unwrap_err().to_string().contains("does not exist"));
    }
}

#[tokio::test]
async fn a_reply_tells_how_many_cuts_it_does_not_list() {
    let served = Served::new(json!({}), []).await;
    let ada = served.client("ada").await;
    for (lists, more) in [(20, None), (30, Some(10))] {
        let script = format!(
            "return Object.fromEntries(Array.from({{length: {lists}}}, (_, i) => ['team' + i, Array.from({{length: 600}}, (_, j) => 'member ' + j)]))"
        );
        let answer = ada.call("codecall:execute", json!({"script": script})).await;
        let truncated = answer.structured_content.unwrap()["truncated"].take();
        assert_eq!(truncated["cut"].as_array().unwrap().len(), 20);
        assert_eq!(truncated.get("more"), more.map(Value::from).as_ref());
    }
}

#[tokio::test]
async fn a_result_within_the_budget_or_without_one_stays_as_it_is() {
    for config in [json!({}), json!({"result": {"maxBytes": "off"}})] {
        let size = if config == json!({}) { 1_000 } else { 100_000 };
        let fixture = Fixture::new("get", [structured(json!({"text": "x".repeat(size)}))]);
        let served = Served::new(config, [fixture]).await;
        let body = served.client("ada").await.invoke("get", 0).await;
        assert!(body.get("truncated").is_none());
        assert_eq!(body["result"]["text"].as_str().unwrap().len(), size);
    }
}

fn screenshot() -> Value {
    json!({"content": [
        {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
        {"type": "text", "text": "a page"},
        {"type": "resource", "resource": {"uri": "file:///a.bin", "mimeType": "application/zip", "blob": "AAAA"}},
    ]})
}

#[tokio::test]
async fn images_and_resources_stay_content_blocks_of_an_invocation() {
    let beside = json!({"content": [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}], "structuredContent": {"w": 1}});
    let served = Served::new(json!({}), [Fixture::new("shot", [screenshot(), beside])]).await;
    let ada = served.client("ada").await;
    let answer = ada.call("codecall:invoke", json!({"tool": "app:shot", "input": {}})).await;
    let body = answer.structured_content.unwrap();
    assert_eq!(
        body["result"],
        json!([
            {"type": "image", "mimeType": "image/png", "size": 5, "block": 1},
            {"type": "text", "text": "a page"},
            {"type": "resource", "uri": "file:///a.bin", "mimeType": "application/zip", "size": 3, "block": 2},
        ])
    );
    assert_eq!(answer.content[1], ContentBlock::image("aGVsbG8=", "image/png"));
    assert!(matches!(answer.content[2], ContentBlock::Resource(_)));
    let beside = ada.call("codecall:invoke", json!({"tool": "app:shot", "input": {"n": 1}})).await;
    assert_eq!(beside.structured_content.unwrap()["result"], json!({"w": 1}));
    assert_eq!(beside.content[1], ContentBlock::image("aGVsbG8=", "image/png"));
}

#[tokio::test]
async fn a_script_has_handles_and_returns_blocks() {
    let served = Served::new(json!({}), [Fixture::new("shot", [screenshot()])]).await;
    let ada = served.client("ada").await;
    let seen = ada.run("const [image] = await callTool('app:shot', {}); return Object.keys(image)").await;
    assert_eq!(seen, json!(["type", "mimeType", "size", "handle"]));
    let script =
        "const [image] = await callTool('app:shot', {}); console.log(image.handle); return [image, 'done']";
    let answer = ada.call("codecall:execute", json!({"script": script})).await;
    let body = answer.structured_content.unwrap();
    assert_eq!(
        body["result"],
        json!([{"type": "image", "mimeType": "image/png", "size": 5, "block": 1}, "done"])
    );
    assert_eq!(answer.content.len(), 2);
    assert_eq!(answer.content[1], ContentBlock::image("aGVsbG8=", "image/png"));
    let script = "const [image] = await callTool('app:shot', {}); return [{...image, page: 3}, {type: 'login', handle: image.handle}]";
    let answer = ada.call("codecall:execute", json!({"script": script})).await;
    assert_eq!(
        answer.structured_content.unwrap()["result"],
        json!([
            {"type": "image", "mimeType": "image/png", "size": 5, "block": 1, "page": 3},
            {"type": "login", "block": 1},
        ])
    );
    // The handle means nothing in another run.
    let stolen = json!({"handle": body["logs"][0]});
    let script = format!("await callTool('app:shot', {{}}); return {stolen}");
    let answer = ada.call("codecall:execute", json!({"script": script})).await;
    assert_eq!(answer.structured_content.unwrap()["result"], stolen);
    assert_eq!(answer.content.len(), 1);
}
