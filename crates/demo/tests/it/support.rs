use std::sync::Arc;

use gatewright_demo::{Dataset, apps};
use rmcp::{
    ServiceExt as _,
    model::CallToolRequestParams,
    service::{RoleClient, RunningService},
};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

/// A client of each app.
pub(crate) struct Demo {
    runtime: Runtime,
    clients: Vec<(&'static str, RunningService<RoleClient, ()>)>,
}

impl Demo {
    pub(crate) fn new() -> Self {
        Self::over(&Dataset::seeded())
    }

    pub(crate) fn over(data: &Arc<Dataset>) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let clients = runtime.block_on(async {
            let mut clients = Vec::new();
            for (name, app) in apps(data) {
                let (near, far) = tokio::io::duplex(1 << 16);
                tokio::spawn(async move {
                    if let Ok(server) = app.serve(far).await {
                        let _ = server.waiting().await;
                    }
                });
                clients.push((name, ().serve(near).await.unwrap()));
            }
            clients
        });
        Self { runtime, clients }
    }

    /// Calls `app:tool`; the result as JSON.
    pub(crate) fn result(&self, name: &str, arguments: Value) -> Value {
        let (app, tool) = name.split_once(':').unwrap();
        let client = &self.clients.iter().find(|(known, _)| *known == app).unwrap().1;
        let arguments = arguments.as_object().cloned().unwrap();
        let call = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        serde_json::to_value(self.runtime.block_on(client.call_tool(call)).unwrap()).unwrap()
    }

    /// Calls `app:tool`; the flag says whether it refused.
    pub(crate) fn call(&self, name: &str, arguments: Value) -> (bool, Value) {
        let result = self.result(name, arguments);
        let text = result["content"][0]["text"].as_str().unwrap();
        let value = result["structuredContent"].clone();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), value, "text and structure differ");
        (result["isError"].as_bool().unwrap(), value)
    }

    pub(crate) fn ok(&self, name: &str, arguments: Value) -> Value {
        let (refused, value) = self.call(name, arguments);
        assert!(!refused, "{name}: {value}");
        value
    }

    /// The message of a call that must fail with `code`.
    pub(crate) fn refusal(&self, name: &str, arguments: Value, code: &str) -> String {
        let (refused, value) = self.call(name, arguments);
        assert!(refused, "{name}: {value}");
        assert_eq!(value["code"], code, "{name}: {value}");
        value["message"].as_str().unwrap().to_owned()
    }

    /// Every row of a list tool, following cursors in pages of seven.
    pub(crate) fn all(&self, name: &str, filters: Value) -> Vec<Value> {
        let mut rows = Vec::new();
        let mut arguments = filters;
        arguments["limit"] = json!(7);
        loop {
            let page = self.ok(name, arguments.clone());
            rows.extend(page["items"].as_array().unwrap().iter().cloned());
            match page.get("nextCursor") {
                Some(cursor) => arguments["cursor"] = cursor.clone(),
                None => {
                    assert_eq!(page["total"], rows.len());
                    return rows;
                }
            }
        }
    }

    /// `app:tool` and the tool, for every tool.
    pub(crate) fn tools(&self) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        for (app, client) in &self.clients {
            for tool in self.runtime.block_on(client.list_all_tools()).unwrap() {
                all.push((format!("{app}:{}", tool.name), serde_json::to_value(tool).unwrap()));
            }
        }
        all
    }
}

/// Required arguments, from the examples and choices in the schema.
pub(crate) fn arguments(schema: &Value) -> Value {
    let mut made = Map::new();
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap();
        let rules = &schema["properties"][name];
        let value = rules.pointer("/examples/0").or_else(|| rules.pointer("/enum/0"));
        made.insert(name.to_owned(), value.unwrap_or_else(|| panic!("{name} has no example")).clone());
    }
    Value::Object(made)
}
