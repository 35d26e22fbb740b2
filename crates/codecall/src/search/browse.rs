//! The catalogue without a query: the apps, or the tools of some apps, by name and paged.

use std::{collections::BTreeMap, sync::Arc};

use gatewright_core::{ToolEntry, View, cursor};
use serde_json::{Value, json};

use super::hit;
use crate::declare::sentence;

/// Items on a page unless `topK` says otherwise.
const PAGE: usize = 25;
/// Characters of an app's line.
const LONGEST_LINE: usize = 120;
/// Tools that are named where an app says nothing of itself.
const NAMED: usize = 5;

/// A part of a list.
pub(super) struct Page {
    list: &'static str,
    size: usize,
    /// The name at which the page before ended.
    after: Option<String>,
}

impl Page {
    /// The page of `list` that `cursor` names; without one the first.
    ///
    /// # Errors
    /// A sentence, when the cursor is none of this list.
    pub(super) fn new(list: &'static str, size: Option<usize>, cursor: Option<&str>) -> Result<Self, String> {
        let key = |cursor| {
            cursor::decode(list, cursor).ok_or_else(|| {
                format!(
                    "/cursor: this is no `nextCursor` of the list of {list}; pass that of the page before, with the same filter, or leave `cursor` \
                     out to begin again"
                )
            })
        };
        Ok(Self { list, size: size.unwrap_or(PAGE), after: cursor.map(key).transpose()? })
    }

    /// The items of the page, which are in the order of their names, and the cursor of the next one.
    fn of<'i, T>(&self, items: &'i [T], name: impl Fn(&T) -> &str) -> (&'i [T], Option<String>) {
        let after = self.after.as_deref();
        let start = after.map_or(0, |after| items.partition_point(|item| name(item) <= after));
        let end = items.len().min(start + self.size);
        let part = &items[start..end];
        (part, part.last().filter(|_| end < items.len()).map(|last| cursor::encode(self.list, name(last))))
    }
}

/// The apps that have tools for the caller: id, one line, number of tools.
pub(super) fn apps(view: &View, in_code: impl Fn(&ToolEntry) -> bool, page: &Page) -> Value {
    let mut apps: BTreeMap<&str, Vec<&ToolEntry>> = BTreeMap::new();
    let tools = view.tools().into_iter().filter(|tool| in_code(tool));
    tools.for_each(|tool| apps.entry(&tool.app_id).or_default().push(tool));
    let total: usize = apps.values().map(Vec::len).sum();
    let apps: Vec<_> = apps.into_iter().collect();
    let (part, next) = page.of(&apps, |(id, _)| id);
    let apps: Vec<Value> = part
        .iter()
        .map(|(id, tools)| json!({"appId": id, "description": line(tools), "tools": tools.len()}))
        .collect();
    body(json!({"apps": apps, "tools": []}), total, next)
}

/// The tools of `apps`, in the order of their names.
pub(super) fn tools(
    view: &View,
    in_code: impl Fn(&ToolEntry) -> bool,
    apps: &[String],
    page: &Page,
) -> Value {
    let tools: Vec<&Arc<ToolEntry>> = view.tools().into_iter().filter(|tool| in_code(tool)).collect();
    let total = tools.len();
    let of_apps = |tool: &&Arc<ToolEntry>| apps.iter().any(|app| **app == *tool.app_id);
    let tools: Vec<&Arc<ToolEntry>> = tools.into_iter().filter(of_apps).collect();
    let (part, next) = page.of(&tools, |tool| &tool.name);
    let tools: Vec<Value> = part.iter().map(|tool| hit::listed(tool)).collect();
    body(json!({"tools": tools}), total, next)
}

fn body(mut body: Value, total: usize, next: Option<String>) -> Value {
    body["totalIndexed"] = total.into();
    if let Some(next) = next {
        body["nextCursor"] = next.into();
    }
    body
}

/// An app in one line: its server's own words, else the names of some tools.
fn line(tools: &[&ToolEntry]) -> String {
    let about = tools.first().and_then(|tool| tool.about_app()).unwrap_or_default();
    let own = sentence(&about, LONGEST_LINE);
    if !own.is_empty() {
        return own;
    }
    let names: Vec<&str> = tools.iter().take(NAMED).map(|tool| &*tool.local_name).collect();
    sentence(&names.join(", "), LONGEST_LINE)
}
