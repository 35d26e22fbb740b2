//! The apps and tools that a grant reaches, for the consent page. This crate knows no tools: a program provides them.

use std::collections::BTreeSet;

use gatewright_core::Scopes;

/// A tool that a token of this server may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsentTool {
    /// Identifier of its app.
    pub app: String,
    /// Name.
    pub name: String,
    /// Scopes that a caller needs, all of them.
    pub scopes: Vec<String>,
    /// It may delete or overwrite something (`destructiveHint`).
    pub destructive: bool,
}

/// A source of the tools of a server.
pub trait ConsentTools: Send + Sync {
    /// Returns all current tools, in any order.
    fn tools(&self) -> Vec<ConsentTool>;
}

impl<F: Fn() -> Vec<ConsentTool> + Send + Sync> ConsentTools for F {
    fn tools(&self) -> Vec<ConsentTool> {
        self()
    }
}

/// Apps on the page, and tools of each. The rest is counted.
pub(crate) const MAX_LISTED: (usize, usize) = (20, 25);

/// An app that a grant reaches.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConsentApp {
    pub(crate) app: String,
    /// Number of its tools.
    pub(crate) all: usize,
    /// Tools within reach, by name.
    pub(crate) tools: Vec<ConsentTool>,
}

/// Returns the apps with a tool that `scopes` reach, by name.
pub(crate) fn apps_in_reach(scopes: &[String], mut tools: Vec<ConsentTool>) -> Vec<ConsentApp> {
    let granted = Scopes::parse(&scopes.join(" "));
    tools.sort_by(|a, b| (&a.app, &a.name).cmp(&(&b.app, &b.name)));
    let mut apps: Vec<ConsentApp> = Vec::new();
    for mut tool in tools {
        let mut named = BTreeSet::new();
        tool.scopes.retain(|scope| named.insert(scope.clone()));
        if apps.last().is_none_or(|last| last.app != tool.app) {
            apps.push(ConsentApp { app: tool.app.clone(), all: 0, tools: Vec::new() });
        }
        let Some(app) = apps.last_mut() else { continue };
        app.all += 1;
        if tool.scopes.iter().all(|scope| granted.allows(scope)) {
            app.tools.push(tool);
        }
    }
    apps.retain(|app| !app.tools.is_empty());
    apps
}
