//! `callTool` with `paginate` over an OpenAPI app, with the real binary.

use gatewright::rmcp::{
    ServiceExt as _, model::CallToolRequestParams, transport::StreamableHttpClientTransport,
};
use gatewright::server::axum::{
    Json, Router,
    extract::{Query, State},
    response::{IntoResponse as _, Response},
    routing::get,
};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::net::TcpListener;

use crate::{recorded::Place, served::Served};

/// An API with seven things, two on a page.
struct Things {
    app: String,
    asked: Arc<AtomicUsize>,
    _folder: tempfile::TempDir,
}

impl Things {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<AtomicUsize> = Arc::default();
        let router = Router::new().route("/v1/things", get(things).post(things)).with_state(asked.clone());
        tokio::spawn(async move { gatewright::server::axum::serve(listener, router).await });
        let folder = tempfile::tempdir().unwrap();
        let list = json!({"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}});
        let response = json!({"200": {"description": "ok", "headers": {"Link": {"schema": {"type": "string"}}},
            "content": {"application/json": {"schema": list}}}});
        let page = json!([{"name": "page", "in": "query", "schema": {"type": "integer"}}]);
        let document = json!({
            "openapi": "3.1.0", "info": {"title": "Things", "version": "1"},
            "paths": {"/things": {
                "get": {"operationId": "list", "summary": "List the things", "parameters": page, "responses": response},
                "post": {"operationId": "add", "summary": "Add a thing", "responses": {"204": {"description": "ok"}}},
            }},
        });
        let path = folder.path().join("things.json");
        std::fs::write(&path, document.to_string()).unwrap();
        let app = json!({"openapi": path, "baseUrl": format!("{url}/v1"), "allowPrivate": true});
        Self { app: format!("  things: {app}\n"), asked, _folder: folder }
    }
}

async fn things(
    State(asked): State<Arc<AtomicUsize>>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    asked.fetch_add(1, Ordering::SeqCst);
    let page: u64 = query.get("page").map_or(1, |page| page.parse().unwrap());
    let items: Vec<Value> = (page * 2 - 1..=7).take(2).map(|id| json!({"id": id})).collect();
    let link = match page < 4 {
        true => format!("</v1/things?page={}>; rel=\"next\"", page + 1),
        false => "</v1/things?page=1>; rel=\"first\"".to_owned(),
    };
    ([("link", link)], Json(items)).into_response()
}

async fn run(config: &str, tool: &str, input: Value) -> Value {
    let served = Served::start(config, &["--no-watch"]);
    let transport = StreamableHttpClientTransport::from_uri(format!("http://{}/mcp", served.address));
    let client = ().serve(transport).await.unwrap();
    let params =
        CallToolRequestParams::new(tool.to_owned()).with_arguments(input.as_object().unwrap().clone());
    client.peer().call_tool(params).await.unwrap().structured_content.unwrap()
}

fn config(things: &Things, more: &str) -> String {
    format!("apps:\n  crm: {{ builtin: crm }}\n{}{more}", things.app)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_collects_all_pages_with_one_call_and_its_replay_asks_for_none() {
    let (things, place) = (Things::start().await, Place::new());
    let script = "const all = await callTool('things:list', {}, { paginate: { max: 500 } });
        const some = await callTool('things:list', { page: 2 }, { paginate: { max: 3 }, throwOnError: false });
        return { ids: all.items.map((item) => item.id), more: all.hasMore, pages: all.pages, some };";
    let (id, reply) = place.ran_with(&things.app, script, json!({})).await;
    let some = json!({"success": true, "error": null, "data": {"items": [{"id": 3}, {"id": 4}, {"id": 5}], "hasMore": true, "pages": 2}});
    let expected = json!({"ids": [1, 2, 3, 4, 5, 6, 7], "more": false, "pages": 4, "some": some});
    assert_eq!((&reply["status"], &reply["result"]), (&json!("ok"), &expected), "{reply:#}");
    assert!(reply.get("warnings").is_none(), "{reply:#}");
    assert_eq!(things.asked.load(Ordering::SeqCst), 6);
    let (code, told) = place.command(&["executions", "replay", &id]);
    assert_eq!((code, things.asked.load(Ordering::SeqCst)), (0, 6), "{told}");
    assert!(told.contains("identical"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_decide_on_each_page_as_on_the_call_that_would_return_it() {
    let things = Things::start().await;
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.cedar");
    let all = "permit (principal, action, resource);\n";
    let script = "return await callTool('things:list', {}, { paginate: { max: 500 } })";
    let third = "context.arguments has page && context.arguments.page > 2";
    for (condition, pages) in [(third, 2), ("context.calls > 2", 3), ("false", 4)] {
        let rule = format!("{all}forbid (principal, action, resource) when {{ {condition} }};\n");
        std::fs::write(&rules, rule).unwrap();
        let config = config(&things, &format!("policies: [{}]\n", rules.display()));
        let reply = run(&config, "codecall:execute", json!({"script": script})).await;
        assert_eq!(reply["result"]["pages"], pages, "{condition}: {reply:#}");
        assert_eq!(reply["result"]["hasMore"], pages < 4, "{condition}: {reply:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_end_where_the_next_one_needs_another_value_of_a_hidden_parameter() {
    let mut things = Things::start().await;
    let hidden = ", \"tools\": {\"list\": {\"defaults\": {\"page\": 1}, \"hide\": [\"page\"]}}}\n";
    things.app = things.app.trim_end().strip_suffix('}').unwrap().to_owned() + hidden;
    let script = "return await callTool('things:list', {}, { paginate: { max: 500 } })";
    let reply = run(&config(&things, ""), "codecall:execute", json!({"script": script})).await;
    let expected = json!({"items": [{"id": 1}, {"id": 2}], "hasMore": true, "pages": 1});
    assert_eq!(reply["result"], expected, "{reply:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_page_counts_as_a_call_of_the_script() {
    let things = Things::start().await;
    let script = "try { return await callTool('things:list', {}, { paginate: { max: 500 } }) } catch (error) { return error.code }";
    let limited = config(&things, "codecall: { vm: { maxToolCalls: 3 } }\n");
    let reply = run(&limited, "codecall:execute", json!({"script": script})).await;
    assert_eq!(reply["status"], "runtime_error", "{reply:#}");
    assert!(reply["error"]["message"].as_str().unwrap().contains("tool call limit"), "{reply:#}");
    assert_eq!(things.asked.load(Ordering::SeqCst), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_that_paginate_where_there_are_no_pages_are_refused_before_they_run() {
    let things = Things::start().await;
    for tool in ["crm:users_list", "things:add"] {
        let script = format!(
            "await callTool('things:list', {{}});\nreturn await callTool('{tool}', {{}}, {{ paginate: {{ max: 5 }} }})"
        );
        let reply = run(&config(&things, ""), "codecall:execute", json!({"script": script})).await;
        assert_eq!(
            (&reply["status"], &reply["error"]["code"]),
            (&json!("tool_error"), &json!("VALIDATION_ERROR"))
        );
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("has no pages to collect") && message.contains("no tool was called"),
            "{message}"
        );
        let dynamic =
            "const tool = codecallContext.tool;\nreturn await callTool(tool, {}, { paginate: { max: 5 } })";
        let input = json!({"script": dynamic, "context": {"tool": tool}});
        let reply = run(&config(&things, ""), "codecall:execute", input).await;
        assert!(reply["error"]["message"].as_str().unwrap().contains("has no pages to collect"), "{reply:#}");
    }
    assert_eq!(things.asked.load(Ordering::SeqCst), 0);
    let script = "const all = await callTool('things:list', {}, { paginate: { max: 5 } }); return all.map((one) => one.id)";
    let reply = run(&config(&things, ""), "codecall:execute", json!({"script": script})).await;
    let warning = reply["warnings"][0]["message"].as_str().unwrap_or_default().to_owned();
    assert!(warning.contains("has no `map`") && warning.contains("items.map"), "{reply:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_in_the_declaration_and_in_rehearsals() {
    let things = Things::start().await;
    let input = json!({"toolNames": ["things:list", "things:add"], "detail": "types"});
    let types =
        run(&config(&things, ""), "codecall:describe", input).await["types"].as_str().unwrap().to_owned();
    assert_eq!(types.matches("{paginate: {max: 500}}").count(), 1, "{types}");
    let script = "return (await callTool('things:list', {}, { paginate: { max: 5 } })).items.length";
    for (dry_run, asked) in [(json!("offline"), 0), (json!(true), 3)] {
        let input = json!({"script": script, "dryRun": dry_run});
        let reply = run(&config(&things, ""), "codecall:execute", input).await;
        assert_eq!(
            (&reply["status"], things.asked.load(Ordering::SeqCst)),
            (&json!("ok"), asked),
            "{reply:#}"
        );
        assert!(reply["result"].as_u64().is_some_and(|items| items > 0), "{reply:#}");
    }
}
