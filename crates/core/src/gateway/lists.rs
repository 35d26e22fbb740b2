//! The four lists: filtered for the caller, paged, in a fixed order, never cacheable by others.

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CacheScope, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, Tool,
    },
    service::RequestContext,
};

use super::Gateway;
use crate::{DirectAccess, Owned, Principal, ToolEntry, cursor};

type Page<'a> = Option<&'a PaginatedRequestParams>;

macro_rules! paged {
    ($self:expr, $context:expr, $result:ident, $items:expr, $next:expr) => {{
        let mut result = $result::with_all_items($items)
            .with_ttl_ms($self.shared.config.list_ttl_ms)
            .with_cache_scope(CacheScope::Private);
        result.next_cursor = $next;
        $self.stamp($context, &mut result.meta);
        Ok(result)
    }};
}

impl Gateway {
    pub(super) fn tools(
        &self,
        page: Page<'_>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let principal = Principal::of(context);
        let snapshot = self.shared.registry.snapshot();
        let own = self.shared.plugins.iter().flat_map(|plugin| plugin.tools());
        let shown = |tool: &&std::sync::Arc<ToolEntry>| {
            self.direct_access(tool) == DirectAccess::Listed && tool.is_granted_to(&principal)
        };
        // Plugins' tools come first on the first page; the apps' follow in the order of their names.
        let apps: Vec<&Tool> = snapshot.tools.iter().filter(shown).map(|entry| &entry.tool).collect();
        let size = self.shared.config.page_size;
        let (part, next) = cursor::page("tools/list", &apps, |tool| tool.name.as_ref(), page, size)?;
        let first = page.is_none_or(|page| page.cursor.is_none());
        let items = own.filter(|_| first).chain(part.iter().copied()).cloned().collect();
        paged!(self, context, ListToolsResult, items, next)
    }

    pub(super) fn resources(
        &self,
        page: Page<'_>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let snapshot = self.shared.registry.snapshot();
        let (items, next) = self.part("resources/list", &snapshot.resources, page)?;
        paged!(self, context, ListResourcesResult, items, next)
    }

    pub(super) fn templates(
        &self,
        page: Page<'_>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let snapshot = self.shared.registry.snapshot();
        let (items, next) = self.part("resources/templates/list", &snapshot.templates, page)?;
        paged!(self, context, ListResourceTemplatesResult, items, next)
    }

    pub(super) fn prompts(
        &self,
        page: Page<'_>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let snapshot = self.shared.registry.snapshot();
        let (items, next) = self.part("prompts/list", &snapshot.prompts, page)?;
        paged!(self, context, ListPromptsResult, items, next)
    }

    fn part<T: Clone>(
        &self,
        list: &str,
        items: &[Owned<T>],
        page: Page<'_>,
    ) -> Result<(Vec<T>, Option<String>), ErrorData> {
        let (part, next) = cursor::page(list, items, |item| &item.key, page, self.shared.config.page_size)?;
        Ok((part.iter().map(|owned| owned.item.clone()).collect(), next))
    }

    /// How a client reaches `tool` without a plugin's own tools: the strictest plugin decides.
    pub(super) fn direct_access(&self, tool: &ToolEntry) -> DirectAccess {
        self.shared
            .plugins
            .iter()
            .map(|plugin| plugin.direct_access(tool))
            .min()
            .unwrap_or(DirectAccess::Listed)
    }
}
