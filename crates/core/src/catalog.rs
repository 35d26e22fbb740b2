//! The catalog of one app, read whole from its server.

use rmcp::{
    RoleClient, ServiceError,
    model::{PaginatedRequestParams, Prompt, Resource, ResourceTemplate, ServerCapabilities, Tool},
    service::Peer,
};

/// Tools, resources and prompts of an app, under its own names, in its own order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    /// The capabilities of the app's server.
    pub capabilities: ServerCapabilities,
    /// The server's own words about itself: its description, title or instructions, at most 1 KiB.
    pub about: Option<String>,
    /// Tools.
    pub tools: Vec<Tool>,
    /// Resources.
    pub resources: Vec<Resource>,
    /// Resource templates.
    pub templates: Vec<ResourceTemplate>,
    /// Prompts.
    pub prompts: Vec<Prompt>,
}

/// A server that pages for ever is cut off here: 1,000 pages of one list.
const MAX_PAGES: usize = 1_000;

macro_rules! all_pages {
    ($peer:expr, $method:ident, $field:ident) => {{
        let mut items = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page =
                $peer.$method(Some(PaginatedRequestParams::default().with_cursor(cursor.take()))).await?;
            items.extend(page.$field);
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        items
    }};
}

impl Catalog {
    /// Reads all lists that the server says it has.
    pub async fn read(
        peer: &Peer<RoleClient>,
        capabilities: ServerCapabilities,
    ) -> Result<Self, ServiceError> {
        let mut catalog = Self { capabilities, about: about(peer), ..Self::default() };
        if catalog.capabilities.tools.is_some() {
            catalog.tools = all_pages!(peer, list_tools, tools);
        }
        if catalog.capabilities.resources.is_some() {
            catalog.resources = all_pages!(peer, list_resources, resources);
            // Servers without templates often leave the method out.
            catalog.templates = match Self::templates(peer).await {
                Err(ServiceError::McpError(_)) => Vec::new(),
                other => other?,
            };
        }
        if catalog.capabilities.prompts.is_some() {
            catalog.prompts = all_pages!(peer, list_prompts, prompts);
        }
        Ok(catalog)
    }

    async fn templates(peer: &Peer<RoleClient>) -> Result<Vec<ResourceTemplate>, ServiceError> {
        Ok(all_pages!(peer, list_resource_templates, resource_templates))
    }
}

fn about(peer: &Peer<RoleClient>) -> Option<String> {
    const LONGEST: usize = 1024;
    let info = peer.peer_info()?;
    let server = info.server_info.as_ref();
    let words = [
        server.and_then(|server| server.description.as_deref()),
        server.and_then(|server| server.title.as_deref()),
        info.instructions.as_deref(),
    ];
    let words = words.into_iter().flatten().map(str::trim).find(|words| !words.is_empty())?;
    Some(words[..words.floor_char_boundary(LONGEST)].to_owned())
}
