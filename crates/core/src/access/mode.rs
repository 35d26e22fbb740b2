//! Access modes: a client's choice between the tools of apps and plugins' tools that reach them.

use rmcp::{RoleServer, service::RequestContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tools that a client sees. It chooses among what the configuration lets it reach either way, and gets no rights with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AccessMode {
    /// The tools of apps, each called by its name.
    Direct,
    /// The tools of plugins that stand for them: code mode's meta-tools.
    Code,
}

impl AccessMode {
    /// Every mode.
    pub const ALL: [Self; 2] = [Self::Direct, Self::Code];

    /// The name of the mode in requests and in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Code => "code",
        }
    }

    /// The mode of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }

    /// The mode that a transport put on the request.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        context.extensions.get::<http::request::Parts>()?.extensions.get::<Self>().copied()
    }
}
