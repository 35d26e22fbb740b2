//! Lists of code mode in front of an OpenAPI app.

use super::*;

/// A document with as many operations as that of GitHub, and descriptions of that length.
fn large(operations: usize) -> Value {
    let paths: serde_json::Map<String, Value> = (0..operations)
        .map(|at| {
            let parameters = json!([
                {"name": "owner", "in": "path", "required": true, "schema": {"type": "string"}},
                {"name": "state", "in": "query", "schema": {"type": "string", "enum": ["open", "closed"]}},
            ]);
            let operation = json!({
                "operationId": format!("area-{}/operation-{at}", at % 40), "summary": format!("List things of kind {at}"),
                "description": "Lists the things of an owner, the newest first. ".repeat(8),
                "parameters": parameters, "responses": {"200": {"description": "ok"}},
            });
            (format!("/owners/{{owner}}/things-{at}"), json!({"get": operation}))
        })
        .collect();
    json!({"openapi": "3.1.0", "info": {"title": "Large", "version": "1"}, "paths": paths})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_code_mode_stays_short_whatever_the_number_of_operations() {
    let folder = tempfile::tempdir().unwrap();
    let mut sizes = Vec::new();
    for operations in [1, 1_200] {
        let path = written(folder.path(), &large(operations).to_string());
        let app = json!({"openapi": path, "baseUrl": "https://large.example"});
        let served = Served::start(&config(&app, ""), &["--no-watch"]);
        let client = Client::of(&served).await;
        let found = client.body("codecall:search", json!({"query": "things of an owner"})).await;
        assert_eq!(found["totalIndexed"], operations, "{found:#}");
        let listed = client.running.peer().list_all_tools().await.unwrap();
        sizes.push(json!({"tools": listed}).to_string().len());
    }
    assert!(sizes[1] < 2_500 && sizes[0] == sizes[1], "{sizes:?}");
}
