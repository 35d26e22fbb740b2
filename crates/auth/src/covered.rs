//! Which apps and tools a grant reaches: told to the user on the consent page.
//!
//! What tools there are is asked of whoever serves them; this crate knows none.

use std::collections::BTreeSet;

use gatewright_core::Scopes;

/// A tool that a token of this server may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoveredTool {
    /// Id of its app.
    pub app: String,
    /// Its name.
    pub name: String,
    /// Scopes that a caller needs, all of them.
    pub scopes: Vec<String>,
    /// Whether it says that it may delete or overwrite something (`destructiveHint`).
    pub destructive: bool,
}

/// Knows the tools there are at the moment.
pub trait CoveredTools: Send + Sync {
    /// Every tool, in any order.
    fn tools(&self) -> Vec<CoveredTool>;
}

impl<F: Fn() -> Vec<CoveredTool> + Send + Sync> CoveredTools for F {
    fn tools(&self) -> Vec<CoveredTool> {
        self()
    }
}

/// Apps named on the page, and tools of each; of more, the number is told.
pub(crate) const MOST: (usize, usize) = (20, 25);

/// An app, as far as a grant reaches it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CoveredApp {
    pub(crate) app: String,
    /// How many tools it has.
    pub(crate) all: usize,
    /// Those within reach, by name.
    pub(crate) tools: Vec<CoveredTool>,
}

/// The apps with a tool that `scopes` reach, by name.
pub(crate) fn covered_by(scopes: &[String], mut tools: Vec<CoveredTool>) -> Vec<CoveredApp> {
    let granted = Scopes::parse(&scopes.join(" "));
    tools.sort_by(|a, b| (&a.app, &a.name).cmp(&(&b.app, &b.name)));
    let mut apps: Vec<CoveredApp> = Vec::new();
    for mut tool in tools {
        let mut named = BTreeSet::new();
        tool.scopes.retain(|scope| named.insert(scope.clone()));
        if apps.last().is_none_or(|last| last.app != tool.app) {
            apps.push(CoveredApp { app: tool.app.clone(), all: 0, tools: Vec::new() });
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
