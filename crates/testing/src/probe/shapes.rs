//! Shapes of everything that can be listed and read.

use serde_json::{Value, json};

use super::{
    context::Probe,
    report::{Area, Finding},
};
use crate::{client::Mcp, fuzz::Severity};

/// Resources that are read, and prompts that are got.
const MOST_READ: usize = 10;

pub(super) async fn check(probe: &Probe<'_>, mcp: &Mcp) {
    let unreadable = |what: &str, error: &dyn std::fmt::Display| {
        // A server of resources need not have templates.
        let severity = if what == "resources/templates/list" { Severity::Note } else { Severity::Error };
        Finding::new(Area::Shapes, severity, format!("`{what}` cannot be read: {error}"))
            .request(json!({"jsonrpc": "2.0", "id": 1, "method": what}))
    };
    macro_rules! listed {
        ($capability:literal, $method:literal, $list:expr) => {
            match mcp.has_capability($capability) {
                false => Vec::new(),
                true => match $list.await {
                    Ok(items) => {
                        probe.notes.check(Area::Shapes, None);
                        items
                    }
                    Err(error) => {
                        probe.notes.check(Area::Shapes, Some(unreadable($method, &error)));
                        Vec::new()
                    }
                },
            }
        };
    }
    let tools = listed!("tools", "tools/list", mcp.tools().list());
    let resources = listed!("resources", "resources/list", mcp.resources().list());
    let templates = listed!("resources", "resources/templates/list", mcp.resources().list_templates());
    let prompts = listed!("prompts", "prompts/list", mcp.prompts().list());
    for (key, count) in [
        ("tools", tools.len()),
        ("resources", resources.len()),
        ("templates", templates.len()),
        ("prompts", prompts.len()),
    ] {
        probe.notes.describe(key, count.into());
    }
    probe.keep_violations(mcp);
    for resource in resources.iter().take(MOST_READ) {
        let _ = mcp.resources().read(&resource.uri).await;
        probe.notes.check(Area::Shapes, None);
    }
    for prompt in prompts.iter().take(MOST_READ) {
        let arguments =
            prompt.arguments.iter().filter(|one| one.required).map(|one| (one.name.clone(), json!("1")));
        let _ = mcp.prompts().get(&prompt.name, Value::Object(arguments.collect())).await;
        probe.notes.check(Area::Shapes, None);
    }
    probe.keep_violations(mcp);
    mcp.forget();
}
