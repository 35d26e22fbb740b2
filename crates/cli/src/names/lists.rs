//! The names that apps offer.

use std::sync::Arc;

use gatewright::Registry;
use gatewright_core::{AppEntry, AppHealth, rmcp::model::Tool};

/// The lists of an app, under its own names, as far as they are known.
pub struct Lists {
    pub id: Arc<str>,
    pub tools: Option<Vec<Arc<str>>>,
    /// The tools under the names that the operator gave them.
    pub shown: Vec<Arc<str>>,
    /// Those of everybody; none for an app with lists for single callers.
    pub shared: Option<Shared>,
}

pub struct Shared {
    pub prompts: Vec<String>,
    pub resources: Vec<String>,
    pub templates: Vec<String>,
}

/// The lists of the apps that are up.
pub fn known(registry: &Registry) -> Vec<Lists> {
    let snapshot = registry.operator_snapshot();
    let up = snapshot.apps.iter().filter(|entry| entry.app.health() == AppHealth::Up);
    up.map(|entry| if entry.app.per_caller().is_some() { personal(registry, entry) } else { shared(entry) })
        .collect()
}

/// Tools, resources and prompts that callers were offered so far: for an app whose lists differ from caller to caller.
fn personal(registry: &Registry, entry: &AppEntry) -> Lists {
    let all: Vec<_> = registry.all_tools().into_iter().filter(|tool| tool.app_id == entry.id).collect();
    let tools: Vec<Arc<str>> = all.iter().map(|tool| tool.upstream_name.clone()).collect();
    let shown = all.iter().map(|tool| tool.local_name.clone()).collect();
    let shared = entry.app.catalog().tools.len();
    Lists { id: entry.id.clone(), tools: (tools.len() > shared).then_some(tools), shown, shared: None }
}

fn shared(entry: &AppEntry) -> Lists {
    let catalog = entry.app.catalog();
    let resources = catalog.resources.iter().map(|resource| resource.uri.clone()).collect();
    let name = |tool: &Tool| {
        let over = entry.options.tools.get(&*tool.name);
        over.and_then(|over| over.name.as_deref()).unwrap_or(&tool.name).into()
    };
    Lists {
        id: entry.id.clone(),
        shown: catalog.tools.iter().map(name).collect(),
        tools: Some(catalog.tools.iter().map(|tool| tool.name.as_ref().into()).collect()),
        shared: Some(Shared {
            prompts: catalog.prompts.iter().map(|prompt| prompt.name.clone()).collect(),
            resources,
            templates: catalog.templates.iter().map(|template| template.uri_template.clone()).collect(),
        }),
    }
}
