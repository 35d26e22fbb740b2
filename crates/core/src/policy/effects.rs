//! Effects of tools, by their annotations.

use rmcp::model::Tool;

/// Effects that a tool may have, by its annotations: hints of its server. Where they say nothing, the defaults of MCP count: it may change and
/// destroy data, in more ways the more often it is called, and reaches an open world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Effects {
    /// It changes nothing (`readOnlyHint`).
    pub read_only: bool,
    /// It may destroy data (`destructiveHint`); `false` for a tool that changes nothing.
    pub destructive: bool,
    /// A second call with the same arguments changes nothing more (`idempotentHint`); `true` for a tool that changes nothing.
    pub idempotent: bool,
    /// It reaches things outside of its app (`openWorldHint`).
    pub open_world: bool,
}

impl Effects {
    /// Reads the annotations of `tool`.
    pub fn of(tool: &Tool) -> Self {
        let hints = tool.annotations.as_ref();
        let read_only = hints.and_then(|hints| hints.read_only_hint).unwrap_or(false);
        Self {
            read_only,
            destructive: !read_only && hints.and_then(|hints| hints.destructive_hint).unwrap_or(true),
            idempotent: read_only || hints.and_then(|hints| hints.idempotent_hint).unwrap_or(false),
            open_world: hints.and_then(|hints| hints.open_world_hint).unwrap_or(true),
        }
    }
}
