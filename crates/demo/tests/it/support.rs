use std::sync::Arc;

use gatewright_demo::{App, Dataset, apps};
use serde_json::{Map, Value, json};

pub(crate) struct Demo(Vec<(&'static str, App)>);

impl Demo {
    pub(crate) fn new() -> Self {
        Self::over(&Dataset::seeded())
    }

    pub(crate) fn over(data: &Arc<Dataset>) -> Self {
        Self(apps(data))
    }

    pub(crate) fn app(&self, name: &str) -> &App {
        &self.0.iter().find(|(known, _)| *known == name).unwrap().1
    }

    /// Calls `app:tool`; the flag says whether it refused.
    pub(crate) fn call(&self, name: &str, arguments: Value) -> (bool, Value) {
        let (app, tool) = name.split_once(':').unwrap();
        let arguments = arguments.as_object().cloned().unwrap();
        let result = self.app(app).call(tool, &arguments).unwrap();
        let text = &result.content[0].as_text().unwrap().text;
        let value = result.structured_content.unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), value, "text and structure differ");
        (result.is_error.unwrap(), value)
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
        let of = |(app, handler): &(&str, App)| {
            let app = (*app).to_owned();
            let tools = handler
                .tools()
                .map(move |tool| (format!("{app}:{}", tool.name), serde_json::to_value(tool).unwrap()));
            tools.collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of).collect()
    }
}

/// Required arguments, from the examples and choices in the schema.
pub(crate) fn arguments(schema: &Value) -> Value {
    let mut made = Map::new();
    for name in schema["required"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        let rules = &schema["properties"][name];
        let value = rules.pointer("/examples/0").or_else(|| rules.pointer("/enum/0"));
        made.insert(name.to_owned(), value.unwrap_or_else(|| panic!("{name} has no example")).clone());
    }
    Value::Object(made)
}
