//! Visibility: the tools that a client lists and calls directly, and those that code mode reaches.

use gatewright_core::{AccessMode, DirectAccess, Principal, Scopes, ToolEntry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Visibility of tools in code mode and in direct access. Per tool, `enabledInCodeCall` and `visibleInListTools` win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// `tools/list` shows the meta-tools only, and everything is reached through them. The default.
    #[default]
    CodecallOnly,
    /// Every tool is listed; code mode reaches those that say `enabledInCodeCall: true`.
    CodecallOptIn,
    /// Every tool is listed and reached by code mode unless it says otherwise.
    MetadataDriven,
}

impl Mode {
    /// Returns `true` if code mode reaches `tool`.
    pub fn in_code(self, tool: &ToolEntry) -> bool {
        tool.meta.enabled_in_code_call.unwrap_or(self != Self::CodecallOptIn)
    }

    /// Direct access of clients to `tool`: what is not listed cannot be called directly. A client may choose the other way to a tool that
    /// it reaches anyhow, unless the tool says which it is.
    pub fn direct(self, tool: &ToolEntry, chosen: Option<AccessMode>) -> DirectAccess {
        let configured = self != Self::CodecallOnly;
        let by_default = match chosen {
            None => configured,
            Some(AccessMode::Direct) => configured || self.in_code(tool),
            Some(AccessMode::Code) => configured && !self.in_code(tool),
        };
        match tool.meta.visible_in_list_tools.unwrap_or(by_default) {
            true => DirectAccess::Listed,
            false => DirectAccess::Refused,
        }
    }
}

/// The access mode of some callers, whatever their clients ask for. It needs `client` or `scope`; with both, both must fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModeRule {
    /// OAuth client that the caller's token was issued to.
    #[serde(default)]
    pub client: Option<String>,
    /// Scope of the caller's token.
    #[serde(default)]
    pub scope: Option<String>,
    /// `direct`: the tools of apps, by their names. `code`: the meta-tools.
    pub mode: AccessMode,
}

impl ModeRule {
    /// Returns `true` if the rule is about `principal`. Without a login there are no clients and no scopes.
    pub(crate) fn fits(&self, principal: &Principal) -> bool {
        let is_client = |client: &String| principal.client_id.as_deref() == Some(client);
        let has_scope = |scope: &String| principal.scopes != Scopes::All && principal.scopes.allows(scope);
        self.client.as_ref().is_none_or(is_client) && self.scope.as_ref().is_none_or(has_scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_fits_the_clients_and_scopes_that_it_names() {
        let rule = |json: &str| serde_json::from_str::<ModeRule>(json).unwrap();
        let ann = Principal {
            subject: "ann".into(),
            client_id: Some("desk".into()),
            scopes: Scopes::parse("crm:*"),
            ..Principal::local()
        };
        assert!(rule(r#"{"client": "desk", "mode": "direct"}"#).fits(&ann));
        assert!(rule(r#"{"scope": "crm:read", "mode": "code"}"#).fits(&ann));
        assert!(!rule(r#"{"client": "desk", "scope": "erp", "mode": "code"}"#).fits(&ann));
        let anonymous = Principal::local();
        assert!(!rule(r#"{"scope": "crm:read", "mode": "code"}"#).fits(&anonymous));
        assert!(!rule(r#"{"client": "desk", "mode": "code"}"#).fits(&anonymous));
    }
}
