//! Usage examples of a tool: the author's first, then ones made from its schema and what it does.

mod arguments;
mod caption;
mod intent;
mod placeholders;
mod templates;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod told;

use gatewright_core::{ToolEntry, UsageExample, rmcp::model::JsonObject};
use serde_json::Value;

/// Contract: `usageExamples` holds up to 5 per tool.
const MOST: usize = 5;

/// Up to five examples. Generated ones are left out when no arguments can be made that the schema accepts. `observed` is the input schema with the types of
/// inputs that the tool accepted where the author leaves them open.
pub(crate) fn of(tool: &ToolEntry, observed: Option<&JsonObject>) -> Vec<UsageExample> {
    let mut examples: Vec<UsageExample> = tool.meta.examples.iter().take(MOST).cloned().collect();
    if examples.len() < MOST
        && let Some(arguments) = arguments::fitting(tool, observed)
    {
        let caption = caption::of(tool);
        let generated = templates::of(intent::of(tool), &tool.tool.name, &caption, &arguments);
        examples.extend(generated.into_iter().take(MOST - examples.len()));
    }
    examples
}

/// A value like the results of `tool`, which `schema` describes.
pub(crate) fn result(tool: &ToolEntry, schema: &JsonObject) -> Option<Value> {
    arguments::whole(tool, schema)
}

/// Returns `true` for a tool that deletes, by its name.
pub(crate) fn deletes(tool: &ToolEntry) -> bool {
    intent::of(tool) == intent::Intent::Delete
}

/// A call of the tool on one line, where its types leave the reader guessing: the author's first example, else one with nested arguments.
/// `observed` is as in [`of`].
pub(crate) fn call_worth_showing(tool: &ToolEntry, observed: Option<&JsonObject>) -> Option<String> {
    if let Some(own) = tool.meta.examples.first() {
        // A comment would go on to the end of the one line.
        let is_plain = !own.code.contains("//");
        return is_plain.then(|| own.code.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    let schema = observed.unwrap_or(tool.input_schema());
    let required = schema.get("required")?.as_array()?.iter().filter_map(Value::as_str);
    let properties = schema.get("properties")?.as_object()?;
    let mut kinds = required.filter_map(|name| properties.get(name)).map(|property| property.get("type"));
    let is_nested =
        observed.is_some() || kinds.any(|kind| kind.is_none_or(|kind| kind == "array" || kind == "object"));
    let arguments = is_nested.then(|| arguments::fitting(tool, observed)).flatten()?;
    Some(format!("callTool({}, {arguments})", Value::from(&*tool.tool.name)))
}
