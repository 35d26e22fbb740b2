//! Approvals of the configuration: the short forms for the common wishes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Decision, PolicyTool};

/// The approval that calls of a tool need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// A call needs an approval, unless one that was given for longer still stands.
    Ask,
    /// Each call needs an approval of its own.
    Always,
    /// None.
    Never,
}

/// Approvals by what tools may do. A tool's own setting comes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Approvals {
    /// Calls of tools that may destroy data: all that do not say otherwise in `readOnlyHint` or `destructiveHint`.
    pub destructive: Option<Approval>,
    /// Calls of tools that may change something: all that do not say otherwise in `readOnlyHint`.
    pub writes: Option<Approval>,
}

impl Approvals {
    /// The decision on a call of `tool`.
    pub(crate) fn decide(&self, tool: &PolicyTool<'_>) -> Decision {
        let effects = tool.effects;
        let destructive = self.destructive.filter(|_| effects.destructive);
        let writes = self.writes.filter(|_| !effects.read_only);
        let (approval, policy, reason): (_, Arc<str>, Arc<str>) = match (tool.approval, destructive, writes) {
            (Some(own), ..) => {
                let path = format!("apps.{}.tools.{}.approval", tool.app, tool.local);
                (own, path.into(), "the tool needs an approval".into())
            }
            (None, Some(of_all), _) => {
                (of_all, "approvals.destructive".into(), "the tool may destroy data".into())
            }
            (None, None, Some(of_all)) => {
                (of_all, "approvals.writes".into(), "the tool may change something".into())
            }
            (None, None, None) => return Decision::Permit,
        };
        match approval {
            Approval::Ask => Decision::Ask { policy, reason, standing: true },
            Approval::Always => Decision::Ask { policy, reason, standing: false },
            Approval::Never => Decision::Permit,
        }
    }
}
