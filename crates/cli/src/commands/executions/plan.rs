//! A saved plan of a run: its script behind a header.

use gatewright_agentscript::HostFunction;
use gatewright_codecall::RecordedRun;
use gatewright_core::check_tool_name;
use serde_json::{Map, Value, json};

use crate::exit::BadConfig;

/// Tools that a description names.
const MOST_NAMED: usize = 8;

/// The text of the plan. A run of a saved plan gives that plan.
///
/// # Errors
/// `name` is no name of a tool.
pub fn of(run: &RecordedRun, name: Option<&str>, description: Option<&str>) -> anyhow::Result<String> {
    if run.is_saved_plan() {
        return Ok(run.script().to_owned());
    }
    let id = run.head().id.to_string();
    let made = format!("plan_{}", &id[4..12]);
    let name = name.unwrap_or(&made);
    check_tool_name(name).map_err(|problem| {
        BadConfig(format!("`{name}` is no name of a plan: {problem}; give it another with --name"))
    })?;
    let described = description.map_or_else(|| about(run), str::to_owned);
    let input = schema(&run.context().unwrap_or_else(|| json!({})));
    Ok(format!(
        "/* plan\n# Made of {id}. Say what the plan is for: agents find it by its description.\nname: {}\ndescription: {}\ninput: {}\n*/\n{}\n",
        inside_comment(&json!(name)),
        inside_comment(&json!(described)),
        inside_comment(&input),
        run.script().trim_matches('\n')
    ))
}

/// JSON, which is YAML, without the end of a comment in it.
fn inside_comment(value: &Value) -> String {
    value.to_string().replace("*/", "*\\/")
}

/// The tools that the run called.
fn about(run: &RecordedRun) -> String {
    let mut names: Vec<&str> = Vec::new();
    let is_call = |function| matches!(function, HostFunction::CallTool | HostFunction::CallPages);
    for call in run.calls().into_iter().filter(|call| is_call(call.function)) {
        if !names.contains(&call.name) {
            names.push(call.name);
        }
    }
    let more = names.len().saturating_sub(MOST_NAMED);
    names.truncate(MOST_NAMED);
    match (names.join(", "), more) {
        (named, _) if named.is_empty() => "Computes a value from its input.".to_owned(),
        (named, 0) => format!("Calls {named}."),
        (named, more) => format!("Calls {named} and {more} more."),
    }
}

/// The JSON Schema of values like this one.
fn schema(example: &Value) -> Value {
    match example {
        Value::Null => json!({}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(number) if number.is_f64() => json!({"type": "number"}),
        Value::Number(_) => json!({"type": "integer"}),
        Value::String(_) => json!({"type": "string"}),
        Value::Array(items) => {
            let mut schemas: Vec<Value> = items.iter().map(schema).collect();
            schemas.dedup();
            match <[Value; 1]>::try_from(schemas) {
                Ok([items]) => json!({"type": "array", "items": items}),
                Err(_) => json!({"type": "array"}),
            }
        }
        Value::Object(members) => {
            let properties: Map<String, Value> =
                members.iter().map(|(name, value)| (name.clone(), schema(value))).collect();
            let required: Vec<&String> = members.keys().collect();
            json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
        }
    }
}
