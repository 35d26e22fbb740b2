//! The four lists: filtered for the caller, paged, in a fixed order, never cacheable by others.

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CacheScope, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams,
    },
    service::RequestContext,
};

use super::Gateway;
use crate::{AccessMode, Caller, DirectAccess, Era, Listed, ToolEntry, cursor, listable::for_sessions};

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
    pub(super) async fn tools(
        &self,
        page: Page<'_>,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if !self.shared.plugins.iter().any(|plugin| plugin.hides_apps(caller.mode())) {
            self.shared.registry.first_connections().await;
        }
        let view = self.shared.registry.ready_view(caller).await;
        let mode = caller.mode();
        let own: Vec<_> = self.shared.plugins.iter().map(|plugin| plugin.tools()).collect();
        let mut apps = view.tools();
        apps.retain(|tool| self.direct_access(tool, mode) == DirectAccess::Listed);
        // Plugins' tools come first on the first page; the apps' follow in the order of their names.
        let size = self.shared.config.page_size;
        let (part, next) = cursor::page("tools/list", &apps, |tool| &tool.name, page, size)?;
        let shows_own = page.is_none_or(|page| page.cursor.is_none()) && mode != Some(AccessMode::Direct);
        let own = own.iter().filter(|_| shows_own).flat_map(|tools| tools.iter());
        let mut items: Vec<_> = own.chain(part.iter().map(|tool| &tool.tool)).cloned().collect();
        if !Era::of(context).is_stateless() {
            items.iter_mut().for_each(for_sessions);
        }
        paged!(self, context, ListToolsResult, items, next)
    }

    pub(super) async fn resources(
        &self,
        page: Page<'_>,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.shared.registry.first_connections().await;
        let view = self.shared.registry.ready_view(caller).await;
        let (items, next) = self.part("resources/list", view.resources(), page)?;
        paged!(self, context, ListResourcesResult, items, next)
    }

    pub(super) async fn templates(
        &self,
        page: Page<'_>,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.shared.registry.first_connections().await;
        let view = self.shared.registry.ready_view(caller).await;
        let (items, next) = self.part("resources/templates/list", view.templates(), page)?;
        paged!(self, context, ListResourceTemplatesResult, items, next)
    }

    pub(super) async fn prompts(
        &self,
        page: Page<'_>,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.shared.registry.first_connections().await;
        let view = self.shared.registry.ready_view(caller).await;
        let (items, next) = self.part("prompts/list", view.prompts(), page)?;
        paged!(self, context, ListPromptsResult, items, next)
    }

    fn part<T: Clone>(
        &self,
        list: &str,
        items: Vec<Listed<'_, T>>,
        page: Page<'_>,
    ) -> Result<(Vec<T>, Option<String>), ErrorData> {
        let (part, next) = cursor::page(list, &items, |item| &item.key, page, self.shared.config.page_size)?;
        Ok((part.iter().map(|listed| listed.item.clone().into_owned()).collect(), next))
    }

    /// Returns how clients of this mode reach `tool` without a plugin's own tools: the strictest plugin decides.
    pub(super) fn direct_access(&self, tool: &ToolEntry, mode: Option<AccessMode>) -> DirectAccess {
        self.shared
            .plugins
            .iter()
            .map(|plugin| plugin.direct_access(tool, mode))
            .min()
            .unwrap_or(DirectAccess::Listed)
    }
}
