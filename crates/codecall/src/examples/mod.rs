//! Usage examples of a tool: the author's first, then ones made from its schema and what it does.

mod arguments;
mod caption;
mod intent;
mod placeholders;
mod templates;
#[cfg(test)]
mod tests;

use gatewright_core::{ToolEntry, UsageExample};

/// Contract: `usageExamples` holds up to 5 per tool.
const MOST: usize = 5;

/// Up to five examples. Generated ones are left out when no arguments can be made that the schema accepts.
pub(crate) fn of(tool: &ToolEntry) -> Vec<UsageExample> {
    let mut examples: Vec<UsageExample> = tool.meta.examples.iter().take(MOST).cloned().collect();
    if examples.len() < MOST
        && let Some(arguments) = arguments::fitting(tool)
    {
        let caption = caption::of(tool);
        let generated = templates::of(intent::of(tool), &tool.tool.name, &caption, &arguments);
        examples.extend(generated.into_iter().take(MOST - examples.len()));
    }
    examples
}
