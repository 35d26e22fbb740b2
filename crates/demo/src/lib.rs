//! Sample apps to try Gatewright on: a CRM, its billing and its support desk, over one seeded
//! data set, and [`Everything`], the fixture the MCP conformance suite calls.
//!
//! Each app is an ordinary `rmcp` server handler and knows nothing of Gatewright. What it wants
//! Gatewright to know about a tool stands in that tool's `_meta`, under the key `gatewright`:
//!
//! | key | meaning |
//! |---|---|
//! | `examples` | array of `{description, code}`; the code is AgentScript |
//! | `scopes` | what a caller must have been granted |
//! | `enabledInCodeCall` | whether scripts may call the tool |
//! | `visibleInListTools` | whether the tool is listed to clients directly |
//!
//! ```
//! let data = gatewright_demo::Dataset::seeded();
//! let apps = gatewright_demo::apps(&data);
//! let names: Vec<_> = apps.iter().map(|(name, _)| *name).collect();
//! assert_eq!(names, ["crm", "billing", "support"]);
//! ```
#![forbid(unsafe_code)]

mod answer;
mod app;
mod billing;
mod crm;
mod dataset;
mod everything;
mod support;

use std::sync::Arc;

pub use app::App;
pub use dataset::{Dataset, TODAY};
pub use everything::Everything;

/// The three demo apps over the same data, with the names they are meant to be mounted under:
/// `crm`, `billing`, `support`.
#[must_use]
pub fn apps(data: &Arc<Dataset>) -> Vec<(&'static str, App)> {
    vec![
        ("crm", App::crm(Arc::clone(data))),
        ("billing", App::billing(Arc::clone(data))),
        ("support", App::support(Arc::clone(data))),
    ]
}
