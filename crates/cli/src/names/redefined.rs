//! Tools that the configuration shows in its own words, and whose servers have defined them anew since it was read.

use gatewright::Registry;
use gatewright_core::{AppHealth, Pins, contradictions, show_hidden};
use gatewright_findings::{Finding, escape, printable};
use serde_json::Value;

/// Differences named in a finding, and the characters of a value there.
const MOST_NAMED: usize = 3;
const LONGEST_VALUE: usize = 80;

/// Definitions at the first look, of tools that the configuration renames or describes.
#[derive(Default)]
pub struct FirstLook(Pins);

impl FirstLook {
    /// A finding for each tool that is defined otherwise than at the first look. Pinned tools, and those that contradict the configuration, have
    /// findings of their own.
    pub fn compare(&mut self, registry: &Registry) -> Vec<Finding> {
        let (snapshot, pins) = (registry.operator_snapshot(), registry.pins().borrow().clone());
        let mut found = Vec::new();
        for entry in snapshot.apps.iter().filter(|entry| entry.app.health() == AppHealth::Up) {
            for tool in &entry.app.catalog().tools {
                let over = entry.options.tools.get(&*tool.name);
                let Some(over) = over.filter(|over| over.reshapes() && !over.disabled) else { continue };
                if pins.state(&entry.id, &entry.options, tool).is_some() {
                    continue;
                }
                if !self.0.names(&entry.id).any(|known| known == tool.name) {
                    self.0.approve(&entry.id, tool);
                    continue;
                }
                let changes = self.0.changes(&entry.id, tool);
                if changes.first.is_empty() || !contradictions(tool, over).is_empty() {
                    continue;
                }
                let mut named: Vec<String> = changes
                    .first
                    .iter()
                    .take(MOST_NAMED)
                    .map(|change| {
                        let value = |value: &Option<Value>| {
                            value
                                .as_ref()
                                .map_or_else(|| "nothing".to_owned(), |value| short(&value.to_string()))
                        };
                        format!(
                            "`{}` was {} and is {}",
                            short(&change.pointer),
                            value(&change.before),
                            value(&change.after)
                        )
                    })
                    .collect();
                let rest = changes.first.len() + changes.more - named.len();
                named.extend((rest > 0).then(|| format!("{rest} more")));
                let problem = format!(
                    "the server changed this tool after the configuration was read, so its words here may no longer fit: {}. A reload takes it as it is",
                    named.join("; ")
                );
                let place = format!("/apps/{}/tools/{}", escape(&entry.id), escape(&tool.name));
                found.push(Finding::new(&place, problem));
            }
        }
        found
    }
}

/// A text of a server in one line, with what it hides written out.
fn short(text: &str) -> String {
    show_hidden(&printable(text, LONGEST_VALUE))
}
