//! Settings of a tool by its author and by the operator.

use rmcp::model::{JsonObject, Tool};
use serde::{Deserialize, Serialize};

use crate::Approval;

/// An AgentScript example of a tool's use (contract: `usageExamples`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageExample {
    /// Description of the example.
    pub description: String,
    /// AgentScript code.
    pub code: String,
}

/// Settings by a tool's author, under `_meta.gatewright`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolMeta {
    /// Examples, best first. At most 5 of up to 16 KiB each are used.
    pub examples: Vec<UsageExample>,
    /// Scopes a caller needs, all of them: at most 32, of 200 bytes each, without spaces and `*`.
    pub scopes: Vec<String>,
    /// `true` lets code mode reach the tool. Default: as the visibility mode says.
    pub enabled_in_code_call: Option<bool>,
    /// `true` shows the tool in `tools/list`. Default: as the visibility mode says.
    pub visible_in_list_tools: Option<bool>,
}

/// Settings by the operator; they win over the author's. Scopes are added, never removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ToolOverride {
    /// Scopes a caller needs besides the author's.
    pub scopes: Vec<String>,
    /// `true` lets code mode reach the tool.
    pub enabled_in_code_call: Option<bool>,
    /// `true` shows the tool in `tools/list`.
    pub visible_in_list_tools: Option<bool>,
    /// The approval that calls of the tool need. Default: as `approvals` says.
    pub approval: Option<Approval>,
    /// `true` removes the tool altogether. Default false.
    pub disabled: bool,
    /// The name under which it is offered in place of its own.
    #[serde(rename = "as")]
    pub name: Option<String>,
    /// The title in place of its own.
    pub title: Option<String>,
    /// The description in place of its own.
    pub description: Option<String>,
    /// Arguments of calls that leave them out, by parameter.
    pub defaults: JsonObject,
    /// Parameters that callers neither see nor send.
    pub hide: Vec<String>,
    /// `true` holds the definition to the approved one. Default: as the app says.
    pub pin: Option<bool>,
}

impl ToolOverride {
    /// Returns `true` if the tool is shown other than its server defines it.
    pub fn reshapes(&self) -> bool {
        self.name.is_some()
            || self.title.is_some()
            || self.description.is_some()
            || !self.defaults.is_empty()
            || !self.hide.is_empty()
    }
}

/// Most scopes that an author may name, and the longest one in bytes: each call of the tool compares them.
const MOST_SCOPES: usize = 32;
const LONGEST_SCOPE: usize = 200;
/// Most examples of an author that are kept, and the longest one in bytes.
const MOST_EXAMPLES: usize = 5;
const LONGEST_EXAMPLE: usize = 16 << 10;

/// Returns `true` if a text of an author or an operator can be one scope that is needed.
pub(crate) fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST_SCOPE && !text.contains([' ', '*'])
}

pub(crate) const META_KEY: &str = "gatewright";

impl ToolMeta {
    /// Reads `_meta.gatewright`.
    ///
    /// # Errors
    /// It does not parse: the reason. Such a tool must not be offered, for the scopes that it needs are not known.
    pub fn of(tool: &Tool) -> Result<Self, String> {
        let Some(value) = tool.meta.as_ref().and_then(|meta| meta.0.get(META_KEY)) else {
            return Ok(Self::default());
        };
        // Serde reads a list as well, by position.
        if !value.is_object() {
            return Err(
                "its `_meta.gatewright` is no object, so that the scopes it needs are not known".to_owned()
            );
        }
        let mut settings = Self::deserialize(value).map_err(|error| {
            format!(
                "its `_meta.gatewright` does not parse, so that the scopes it needs are not known: {error}"
            )
        })?;
        if settings.scopes.len() > MOST_SCOPES || !settings.scopes.iter().all(|scope| is_scope(scope)) {
            return Err(format!(
                "its `_meta.gatewright` needs more than {MOST_SCOPES} scopes, or one that is none: a scope has {LONGEST_SCOPE} bytes at \
                 most, without spaces and `*`"
            ));
        }
        settings.examples.retain(|it| it.description.len() + it.code.len() <= LONGEST_EXAMPLE);
        settings.examples.truncate(MOST_EXAMPLES);
        Ok(settings)
    }

    /// The author's word with the operator's on top.
    #[must_use]
    pub fn with(mut self, over: &ToolOverride) -> Self {
        self.scopes.extend(over.scopes.iter().cloned());
        // Examples of the author use the author's names.
        if over.name.is_some() || !over.hide.is_empty() {
            self.examples.clear();
        }
        self.enabled_in_code_call = over.enabled_in_code_call.or(self.enabled_in_code_call);
        self.visible_in_list_tools = over.visible_in_list_tools.or(self.visible_in_list_tools);
        self
    }
}

/// `tool` under its public name, without what only the gateway reads.
pub(crate) fn listed(mut tool: Tool, public_name: String) -> Tool {
    tool.name = public_name.into();
    if let Some(meta) = tool.meta.as_mut() {
        meta.0.shift_remove(META_KEY);
        if meta.0.is_empty() {
            tool.meta = None;
        }
    }
    tool
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(settings: Value) -> Result<ToolMeta, String> {
        let tool = json!({"name": "t", "inputSchema": {}, "_meta": {"gatewright": settings}});
        ToolMeta::of(&serde_json::from_value(tool).unwrap())
    }

    #[test]
    fn settings_that_cannot_be_read_are_an_error_and_never_the_default() {
        for bad in [
            json!({"scopes": "admin"}),
            json!({"scopes": ["admin", 5]}),
            json!({"scopes": {"admin": true}}),
            json!({"scopes": null}),
            json!({"scopes": vec!["admin"; 33]}),
            json!({"scopes": [":".repeat(201)]}),
            json!({"scopes": ["crm:*"]}),
            json!({"scopes": ["a b"]}),
            json!({"scopes": [""]}),
            json!({"scopes": ["admin"], "enabledInCodeCall": 5}),
            json!({"scopes": ["admin"], "visibleInListTools": "yes"}),
            json!({"scopes": ["admin"], "examples": [{"code": "x"}]}),
            json!([[], ["admin"]]),
            json!([]),
            json!("admin"),
            json!(null),
        ] {
            let problem = read(bad.clone()).unwrap_err();
            assert!(problem.starts_with("its `_meta.gatewright` "), "{bad}: {problem}");
        }
    }

    #[test]
    fn scopes_within_the_limits_are_needed_and_examples_beyond_them_left_out() {
        let scopes: Vec<String> = (0..32).map(|n| format!("{n:0200}")).collect();
        let example = |code: usize| json!({"description": "d", "code": "c".repeat(code)});
        let examples: Vec<Value> = [20_000, 1, 2, 3, 4, 5, 6].map(example).into();
        let read = read(json!({"scopes": scopes, "examples": examples})).unwrap();
        assert_eq!(read.scopes, scopes);
        let lengths: Vec<usize> = read.examples.iter().map(|example| example.code.len()).collect();
        assert_eq!(lengths, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn settings_that_parse_are_read_and_unknown_members_ignored() {
        let read = read(json!({"scopes": ["admin"], "enabledInCodeCall": null, "later": 7})).unwrap();
        assert_eq!(read, ToolMeta { scopes: vec!["admin".to_owned()], ..ToolMeta::default() });
        let bare: Tool = serde_json::from_value(json!({"name": "t", "inputSchema": {}})).unwrap();
        assert_eq!(ToolMeta::of(&bare), Ok(ToolMeta::default()));
    }
}
