//! Tools under a name, description and parameters that the operator gives them.
//!
//! A tool that contradicts its settings is left out: a server that renames a hidden parameter must not show it to callers.

use rmcp::model::{JsonObject, Tool};
use serde_json::Value;

use crate::{InputSchema, ToolOverride, names::nearest_name};

/// Problems of defaults that are looked for.
const MOST_PROBLEMS: usize = 100;

/// A setting of a tool that contradicts its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The setting: the keys below that of the tool, such as `["hide", "0"]`.
    pub place: [String; 2],
    /// The problem, with the nearest name.
    pub problem: String,
}

/// Arguments that the gateway adds to calls, and those that callers may not send.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FixedArguments {
    defaults: JsonObject,
    hidden: Vec<String>,
}

impl FixedArguments {
    /// Adds what `arguments` lack. Hidden ones are the operator's alone.
    pub(crate) fn fill(&self, arguments: &mut JsonObject) {
        self.hide(arguments);
        for (name, value) in &self.defaults {
            if !arguments.contains_key(name) {
                arguments.insert(name.clone(), value.clone());
            }
        }
    }

    /// Removes what callers neither see nor send.
    pub(crate) fn hide(&self, arguments: &mut JsonObject) {
        for name in &self.hidden {
            arguments.shift_remove(name);
        }
    }

    /// Returns `true` if a hidden parameter has another value than the operator gave it.
    pub(crate) fn differ_in(&self, arguments: &JsonObject) -> bool {
        self.hidden.iter().any(|name| arguments.get(name) != self.defaults.get(name))
    }

    /// The first hidden parameter that a caller sent.
    pub(crate) fn refused<'s>(&'s self, arguments: &JsonObject) -> Option<&'s str> {
        self.hidden.iter().map(String::as_str).find(|name| arguments.contains_key(*name))
    }
}

/// A tool as the operator shows it. Its arguments are checked against the schema of the server's own definition.
pub(crate) struct Reshaped {
    pub(crate) tool: Tool,
    pub(crate) arguments: FixedArguments,
}

impl Reshaped {
    /// The tool with the settings `over`; `None` if it contradicts them.
    pub(crate) fn of(tool: Tool, over: &ToolOverride) -> Option<Self> {
        if !over.reshapes() {
            return Some(Self { tool, arguments: FixedArguments::default() });
        }
        if !contradictions(&tool, over).is_empty() {
            return None;
        }
        let mut tool = tool;
        if let Some(name) = &over.name {
            tool.name = name.clone().into();
        }
        if over.title.is_some() {
            tool.title.clone_from(&over.title);
        }
        if let Some(description) = &over.description {
            tool.description = Some(description.clone().into());
        }
        if !over.defaults.is_empty() || !over.hide.is_empty() {
            tool.input_schema = shown_schema(&tool.input_schema, over).into();
        }
        let arguments = FixedArguments { defaults: over.defaults.clone(), hidden: over.hide.clone() };
        Some(Self { tool, arguments })
    }
}

/// The schema without the hidden parameters, whose other defaults are those of the operator.
fn shown_schema(schema: &JsonObject, over: &ToolOverride) -> JsonObject {
    let mut schema = schema.clone();
    let is_hidden = |name: &str| over.hide.iter().any(|hidden| hidden == name);
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, _| !is_hidden(name));
        for (name, value) in &over.defaults {
            if let Some(Value::Object(property)) = properties.get_mut(name) {
                property.insert("default".to_owned(), value.clone());
            }
        }
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        let is_left = |name: &str| !is_hidden(name) && !over.defaults.contains_key(name);
        required.retain(|name| name.as_str().is_none_or(is_left));
        if required.is_empty() {
            schema.shift_remove("required");
        }
    }
    if let Some(Value::Array(examples)) = schema.get_mut("examples") {
        for example in examples.iter_mut().filter_map(Value::as_object_mut) {
            example.retain(|name, _| !is_hidden(name));
        }
    }
    schema
}

/// Every setting of `over` that contradicts the definition of `tool`.
pub fn contradictions(tool: &Tool, over: &ToolOverride) -> Vec<Contradiction> {
    let none = JsonObject::new();
    let properties = tool.input_schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required = tool.input_schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(name)));
    let mut found = Vec::new();
    let mut add = |key: &str, below: String, problem: String| {
        found.push(Contradiction {
            place: [key.to_owned(), below],
            problem: format!("{problem}, so the tool is left out"),
        });
    };
    let no_parameter = |name: &str| {
        let meant = nearest_name(name, properties.keys().map(String::as_str));
        let meant = meant.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
        format!("`{name}` is no parameter of the tool{meant}")
    };
    for (at, name) in over.hide.iter().enumerate() {
        match properties.get(name) {
            None => add("hide", at.to_string(), no_parameter(name)),
            Some(property)
                if is_required(name)
                    && !over.defaults.contains_key(name)
                    && property.get("default").is_none() =>
            {
                let problem =
                    format!("the tool requires `{name}`, and nobody can send it: add it to `defaults`");
                add("hide", at.to_string(), problem);
            }
            Some(_) => {}
        }
    }
    for name in over.defaults.keys().filter(|name| !properties.contains_key(*name)) {
        add("defaults", name.clone(), no_parameter(name));
    }
    if !over.defaults.is_empty() {
        let schema = InputSchema::new(tool.input_schema.clone());
        let problems = schema.problems(&Value::Object(over.defaults.clone()), MOST_PROBLEMS);
        for problem in problems {
            let name =
                problem.path.split('/').nth(1).unwrap_or_default().replace("~1", "/").replace("~0", "~");
            if over.defaults.contains_key(&name) {
                add("defaults", name, format!("does not fit the tool's schema: {}", problem.message));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool() -> Tool {
        let schema = json!({
            "type": "object",
            "properties": {
                "tenant": {"type": "string"}, "limit": {"type": "integer"}, "query": {"type": "string"},
            },
            "required": ["tenant", "query"],
            "additionalProperties": false,
            "examples": [{"tenant": "t", "query": "q"}],
        });
        let schema = schema.as_object().unwrap().clone();
        Tool::new("find", "Finds.", std::sync::Arc::new(schema))
    }

    fn over(value: Value) -> ToolOverride {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn hidden_parameters_leave_the_schema_and_defaults_make_parameters_optional() {
        let over = over(json!({
            "as": "search", "title": "Search", "description": "Searches.",
            "hide": ["tenant"], "defaults": {"tenant": "acme", "query": "*", "limit": 5},
        }));
        let Reshaped { tool, arguments } = Reshaped::of(tool(), &over).unwrap();
        assert_eq!(
            (&*tool.name, tool.title.as_deref(), tool.description.as_deref()),
            ("search", Some("Search"), Some("Searches."))
        );
        let shown = json!({
            "type": "object",
            "properties": {
                "limit": {"type": "integer", "default": 5}, "query": {"type": "string", "default": "*"},
            },
            "additionalProperties": false,
            "examples": [{"query": "q"}],
        });
        assert_eq!(Value::Object((*tool.input_schema).clone()), shown);
        let mut sent = json!({"query": "x", "tenant": "other"}).as_object().unwrap().clone();
        assert_eq!(arguments.refused(&sent), Some("tenant"));
        arguments.fill(&mut sent);
        assert_eq!(Value::Object(sent), json!({"query": "x", "tenant": "acme", "limit": 5}));
    }

    #[test]
    fn a_tool_that_contradicts_its_settings_is_left_out_with_the_reason() {
        for (settings, place, word) in [
            (json!({"hide": ["tenat"]}), ["hide", "0"], "did you mean `tenant`?"),
            (json!({"hide": ["limit", "tenant"]}), ["hide", "1"], "add it to `defaults`"),
            (json!({"defaults": {"limits": 5}}), ["defaults", "limits"], "did you mean `limit`?"),
            (json!({"defaults": {"limit": "five"}}), ["defaults", "limit"], "does not fit"),
        ] {
            let over = over(settings.clone());
            let found = contradictions(&tool(), &over);
            assert_eq!(found.len(), 1, "{settings}: {found:?}");
            assert_eq!(found[0].place, place.map(str::to_owned), "{settings}");
            assert!(found[0].problem.contains(word), "{settings}: {found:?}");
            assert!(Reshaped::of(tool(), &over).is_none(), "{settings}");
        }
        for good in
            [json!({}), json!({"hide": ["limit"]}), json!({"defaults": {"query": "x"}}), json!({"as": "b"})]
        {
            assert_eq!(contradictions(&tool(), &over(good.clone())), [], "{good}");
        }
    }
}
