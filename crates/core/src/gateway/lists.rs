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
use crate::{
    AccessMode, Caller, DirectAccess, Era, Listed, ToolEntry, View, cursor, listable::for_sessions,
    off_thread,
};

/// Items that are decided on without leaving the thread that serves requests.
const MANY: usize = 2_000;

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
        let (items, next) = self.part("resources/list", view, View::resources_after, page).await?;
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
        let (items, next) = self.part("resources/templates/list", view, View::templates_after, page).await?;
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
        let (items, next) = self.part("prompts/list", view, View::prompts_after, page).await?;
        paged!(self, context, ListPromptsResult, items, next)
    }

    /// Returns a page of `list`, and the cursor of the next one. Policies decide on what is on the page alone, unless they refuse it.
    async fn part<T: Clone + Send + 'static>(
        &self,
        list: &'static str,
        view: View,
        find: for<'v> fn(&'v View, Option<&str>, usize) -> Vec<Listed<'v, T>>,
        page: Page<'_>,
    ) -> Result<(Vec<T>, Option<String>), ErrorData> {
        let after = cursor::after(list, page)?;
        let size = self.shared.config.page_size;
        let work = if view.listed_size() > MANY { usize::MAX } else { 0 };
        let page = move || {
            let mut found = find(&view, after.as_deref(), size + 1);
            let has_more = found.len() > size;
            found.truncate(size);
            let next = found.last().filter(|_| has_more).map(|last| cursor::encode(list, &last.key));
            (found.into_iter().map(|listed| listed.item.into_owned()).collect(), next)
        };
        Ok(off_thread(work, page).await)
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
