//! Approvals of the configuration: the short forms for the common wishes.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::{Decision, PolicyTool};
use crate::{InvalidField, tool_settings::is_scope};

/// The approval that calls of a tool need, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// None.
    Never,
    /// A call needs an approval, unless one that was given for longer still stands.
    Ask,
    /// Each call needs an approval of its own.
    Always,
}

/// Approvals by what tools may do, and how they are given. A tool's own setting comes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Approvals {
    /// Calls of tools that may destroy data: all that do not say otherwise in `readOnlyHint` or `destructiveHint`.
    pub destructive: Option<Approval>,
    /// Calls of tools that may change something: all that do not say otherwise in `readOnlyHint`.
    pub writes: Option<Approval>,
    /// The scope whose holders approve calls of others; their own are approved by somebody else. Default none: callers approve their own
    /// calls. `@approvers("scope")` of a policy comes first.
    pub approvers: Option<String>,
    /// Time after which an approval expires that nobody gave, or that was given and not used. Default 1 h.
    #[serde(with = "humantime_serde")]
    pub expires_in: Duration,
    /// Approvals of one principal that wait at the same time. Default 20.
    pub max_per_principal: u32,
}

impl Default for Approvals {
    fn default() -> Self {
        Self {
            destructive: None,
            writes: None,
            approvers: None,
            expires_in: Duration::from_secs(3_600),
            max_per_principal: 20,
        }
    }
}

impl Approvals {
    /// Every field that is out of range.
    pub fn problems(&self) -> Vec<InvalidField> {
        let mut problems = Vec::new();
        let mut check = |path: &'static str, fits: bool, problem: &str| {
            if !fits {
                problems.push(InvalidField::new(path, problem));
            }
        };
        let days = Duration::from_secs(7 * 24 * 3_600);
        check(
            "expiresIn",
            (Duration::from_secs(60)..=days).contains(&self.expires_in),
            "must be from 1m to 7d",
        );
        check("maxPerPrincipal", (1..=100).contains(&self.max_per_principal), "must be 1 to 100");
        check("approvers", self.approvers.as_deref().is_none_or(is_scope), "must be one scope, without `*`");
        problems
    }

    /// The decision on a call of `tool`.
    pub(crate) fn decide(&self, tool: &PolicyTool<'_>) -> Decision {
        let effects = tool.effects;
        let destructive = self.destructive.filter(|_| effects.destructive);
        let writes = self.writes.filter(|_| !effects.read_only);
        // A tool that may destroy data may change something as well.
        let strictest = destructive.max(writes);
        let (approval, policy, reason): (_, Arc<str>, Arc<str>) = match (tool.approval, strictest) {
            (Some(own), _) => {
                let path = format!("apps.{}.tools.{}.approval", tool.app, tool.local);
                (own, path.into(), "the tool needs an approval".into())
            }
            (None, Some(of_all)) if strictest == destructive => {
                (of_all, "approvals.destructive".into(), "the tool may destroy data".into())
            }
            (None, Some(of_all)) => {
                (of_all, "approvals.writes".into(), "the tool may change something".into())
            }
            (None, None) => return Decision::Permit,
        };
        match approval {
            Approval::Ask | Approval::Always => Decision::Ask {
                policy,
                reason,
                may_stand: approval == Approval::Ask,
                approvers: self.approvers.as_deref().map(Into::into),
            },
            Approval::Never => Decision::Permit,
        }
    }
}
