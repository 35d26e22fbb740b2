//! One rule of `rateLimits`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Calls that a caller may make in a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RateLimitRule {
    /// A meta-tool (`codecall:execute`), a tool (`crm:users_list`), the tools of an app (`crm:*`), or every tool and meta-tool (`*`).
    pub tool: String,
    /// Calls in one window, 1 or more.
    #[schemars(range(min = 1))]
    pub limit: u32,
    /// Length of the window, such as `1s`, `1m` or `1h`.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub window: Duration,
}

impl RateLimitRule {
    /// Returns true if calls of `tool`, in the colon form, count.
    pub fn covers(&self, tool: &str) -> bool {
        match self.tool.strip_suffix('*') {
            Some(front) => tool.starts_with(front),
            None => tool == self.tool,
        }
    }

    /// Returns the first bad field and its problem.
    pub fn problem(&self) -> Option<(&'static str, &'static str)> {
        let star = self.tool.find('*');
        let whole = self.tool == "*" || self.tool.ends_with(":*");
        match () {
            () if self.tool.is_empty() => Some(("tool", "must name a tool, `<app>:*` or `*`")),
            () if star.is_some_and(|at| at + 1 != self.tool.len() || !whole) => {
                Some(("tool", "may hold `*` only for a whole app (`crm:*`) or alone"))
            }
            () if self.limit == 0 => Some(("limit", "must be 1 or more")),
            () if self.window < Duration::from_millis(1) => Some(("window", "must be 1 ms or more")),
            () if self.window > Duration::from_secs(86_400 * 31) => {
                Some(("window", "must be 31 days or less"))
            }
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(tool: &str) -> RateLimitRule {
        RateLimitRule { tool: tool.into(), limit: 1, window: Duration::from_secs(1) }
    }

    #[test]
    fn a_rule_covers_a_tool_an_app_or_everything() {
        assert!(rule("crm:users_list").covers("crm:users_list"));
        assert!(!rule("crm:users_list").covers("crm:users_list2"));
        assert!(rule("crm:*").covers("crm:users_list") && !rule("crm:*").covers("crmx:users_list"));
        assert!(rule("*").covers("codecall:execute"));
    }

    #[test]
    fn what_cannot_be_meant_is_told() {
        for bad in ["", "c*m:x", "crm*", "*:x"] {
            assert!(rule(bad).problem().is_some(), "{bad}");
        }
        assert!(RateLimitRule { limit: 0, ..rule("x:y") }.problem().is_some());
        assert!(RateLimitRule { window: Duration::ZERO, ..rule("x:y") }.problem().is_some());
        assert_eq!(rule("crm:*").problem(), None);
    }
}
