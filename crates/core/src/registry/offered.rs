//! The tools of an app as they are offered: without those that are held back, and as the operator shows the others.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use rmcp::model::{JsonObject, Tool};

use super::entry::AppEntry;
use crate::{
    Catalog, CatalogFinding, PinState, Pins, ToolMeta,
    hidden_text::clean_tool,
    listable::{Names, check_size, mend, note, object_schema, output_problem},
    reshape::{FixedArguments, Reshaped},
};

/// A tool of an app, before it gets its public name.
pub(super) struct Offered {
    /// The tool, under its name without that of the app.
    pub(super) tool: Tool,
    /// The app's own name for it.
    pub(super) upstream_name: Arc<str>,
    /// The input schema that whole arguments have to fit.
    pub(super) schema: Arc<JsonObject>,
    pub(super) arguments: FixedArguments,
    /// The settings of its author.
    pub(super) meta: ToolMeta,
    /// The app offers another definition than the approved one, which this is.
    pub(super) is_changed: bool,
}

impl Offered {
    /// Mends the tool as it is listed, and the schema that its arguments have to fit, which allows the same objects as before.
    fn mend(&mut self) -> Result<(), String> {
        mend(&mut self.tool)?;
        check_size("inputSchema", &self.schema)?;
        object_schema(&mut self.schema)
    }
}

/// The tools of `catalog`, a catalog of `entry`. Those that the operator renamed come first, so that no other takes their names; a tool under a
/// name that is given to one that is not there is left out, for callers take it for that one. Adds to `found` what clients could not read.
pub(super) fn offered(
    entry: &AppEntry,
    catalog: &Catalog,
    pins: &Pins,
    found: &mut Vec<CatalogFinding>,
) -> Vec<Offered> {
    let mut names = Names::default();
    let mut tools: Vec<Offered> = Vec::with_capacity(catalog.tools.len());
    for tool in &catalog.tools {
        let Some(offered) = offered_as(entry, tool, pins).transpose() else { continue };
        let mended = names.take(&tool.name).and(offered).and_then(|mut offered| {
            offered.mend()?;
            Ok(offered)
        });
        let offered = match mended {
            Ok(offered) => offered,
            Err(problem) => {
                note(found, CatalogFinding::left_out(&tool.name, problem));
                continue;
            }
        };
        if let Some(problem) = output_problem(&offered.tool) {
            note(found, CatalogFinding::mended(&tool.name, problem));
        }
        tools.push(offered);
    }
    let given =
        entry.options.tools.iter().filter_map(|(own, over)| Some((over.name.as_deref()?, own.as_str())));
    let given: HashMap<&str, &str> = given.collect();
    let is_there: HashSet<Arc<str>> = tools.iter().map(|offered| offered.upstream_name.clone()).collect();
    tools.retain(|offered| {
        let meant = given.get(&*offered.tool.name);
        meant.is_none_or(|meant| **meant == *offered.upstream_name || is_there.contains(*meant))
    });
    tools.sort_by_key(|offered| *offered.upstream_name == *offered.tool.name);
    tools
}

/// A tool as the operator shows it; `None` if it is not shown.
///
/// # Errors
/// The settings of its author cannot be read: the reason.
fn offered_as(entry: &AppEntry, tool: &Tool, pins: &Pins) -> Result<Option<Offered>, String> {
    let over = entry.options.tools.get(&*tool.name);
    if over.is_some_and(|over| over.disabled) {
        return Ok(None);
    }
    let (mut tool, is_changed) = match pins.state(&entry.id, &entry.options, tool) {
        None | Some(PinState::Approved) => (tool.clone(), false),
        Some(PinState::Changed(approved)) => (*approved, true),
        Some(PinState::New) => return Ok(None),
    };
    let meta = ToolMeta::of(&tool)?;
    clean_tool(&mut tool);
    let upstream_name: Arc<str> = tool.name.as_ref().into();
    let schema = tool.input_schema.clone();
    let reshaped = match over {
        Some(over) => Reshaped::of(tool, over),
        None => Some(Reshaped { tool, arguments: FixedArguments::default() }),
    };
    Ok(reshaped.map(|Reshaped { tool, arguments }| Offered {
        tool,
        upstream_name,
        schema,
        arguments,
        meta,
        is_changed,
    }))
}
