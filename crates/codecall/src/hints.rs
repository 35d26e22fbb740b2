//! A tool's annotations, and what follows from them.

use gatewright_core::ToolEntry;
use serde_json::{Map, Value, json};

use crate::examples;

/// The hints that the tool's author gave.
pub(crate) fn annotations(tool: &ToolEntry) -> Map<String, Value> {
    let Some(hints) = &tool.tool.annotations else { return Map::new() };
    let hints = [
        ("destructiveHint", hints.destructive_hint),
        ("idempotentHint", hints.idempotent_hint),
        ("openWorldHint", hints.open_world_hint),
        ("readOnlyHint", hints.read_only_hint),
    ];
    hints.into_iter().filter_map(|(name, hint)| Some((name.to_owned(), json!(hint?)))).collect()
}

/// Returns `true` for a tool whose author says that it destroys, or whose name does where the author says nothing.
pub(crate) fn is_destructive(tool: &ToolEntry) -> bool {
    let hints = tool.tool.annotations.as_ref();
    let said = hints.and_then(|hints| match (hints.read_only_hint, hints.destructive_hint) {
        (Some(true), _) => Some(false),
        (_, destructive) => destructive,
    });
    said.unwrap_or_else(|| examples::deletes(tool))
}
