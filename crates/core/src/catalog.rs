//! The catalog of one app, read whole from its server.

use futures::future::BoxFuture;
use gatewright_json::{Unreadable, measure};
use rmcp::{
    ErrorData, RoleClient, ServiceError,
    model::{
        ClientRequest, CustomResult, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
        ListToolsRequest, PaginatedRequestParams, Prompt, Resource, ResourceTemplate, ServerCapabilities,
        ServerResult, Tool,
    },
    service::Peer,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{CatalogFinding, bulk::off_thread, hidden_text::clean, listable::parse_each};

/// Tools, resources and prompts of an app, under its own names, in its own order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    /// The capabilities of the app's server.
    pub capabilities: ServerCapabilities,
    /// The server's own words about itself: its description, title or instructions, at most 1 KiB, without hidden text.
    pub about: Option<String>,
    /// Tools.
    pub tools: Vec<Tool>,
    /// Resources.
    pub resources: Vec<Resource>,
    /// Resource templates.
    pub templates: Vec<ResourceTemplate>,
    /// Prompts.
    pub prompts: Vec<Prompt>,
    /// Items that could not be read, at most 100.
    pub unread: Vec<CatalogFinding>,
    /// Bytes that the values of all lists take in memory, where they were limited.
    pub bytes: u64,
}

/// Pages of one list.
const MOST_PAGES: usize = 1_000;
/// Tools, resources, templates and prompts of one server together.
const MOST_ITEMS: usize = 100_000;
/// Bytes of the limit for each key or value of the lists.
const BYTES_PER_VALUE: usize = 32;
/// Keys and values that the lists may have, however low the limit is.
const LEAST_VALUES: usize = 10_000;

/// Limit on the lists of one server: all pages of all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogLimit(usize);

impl CatalogLimit {
    /// No limit, for servers in this process.
    pub const NONE: Self = Self(usize::MAX);

    /// At most `bytes` bytes of JSON, with one key or value for each 32 of them, and at most 100,000 items.
    pub const fn of_bytes(bytes: usize) -> Self {
        Self(bytes)
    }
}

/// Why a catalog was not read.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// A request failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The lists are over the limit, or a list has no end.
    #[error("{0}")]
    TooLarge(String),
}

/// Counts what is read of one server.
struct Meter {
    limit: CatalogLimit,
    bytes: usize,
    /// Bytes in memory.
    memory: u64,
    values: usize,
    items: usize,
    /// Items that could not be read.
    unread: Vec<CatalogFinding>,
}

/// A list, and the member by which its items are known.
type Named = (&'static str, &'static str);

impl Meter {
    /// Reads a page again whose items do not all parse, and keeps those that do.
    async fn page_of_some<T: DeserializeOwned + Send + 'static>(
        &mut self,
        peer: &Peer<RoleClient>,
        request: ClientRequest,
        named @ (list, _): Named,
    ) -> Result<(Vec<T>, Option<String>), CatalogError> {
        let ServerResult::CustomResult(CustomResult(Value::Object(mut page))) =
            peer.send_request(request).await?
        else {
            return Err(ServiceError::UnexpectedResponse.into());
        };
        let next = match page.get("nextCursor") {
            None | Some(Value::Null) => None,
            Some(Value::String(cursor)) => Some(cursor.clone()),
            Some(Value::Number(cursor)) => Some(cursor.to_string()),
            // The rest of the list would be missing without a word.
            Some(_) => return Err(ServiceError::UnexpectedResponse.into()),
        };
        let Some(Value::Array(items)) = page.shift_remove(list) else {
            return Err(ServiceError::UnexpectedResponse.into());
        };
        let items = self.count(list, items).await?;
        let mut unread = std::mem::take(&mut self.unread);
        let (items, unread) = off_thread(usize::MAX, move || {
            let items = parse_each(named, items, &mut unread);
            (items, unread)
        })
        .await;
        self.unread = unread;
        Ok((items, next))
    }

    /// Counts one more page of `list`.
    async fn count<T: Serialize + Send + 'static>(
        &mut self,
        list: &str,
        items: Vec<T>,
    ) -> Result<Vec<T>, CatalogError> {
        let CatalogLimit(most) = self.limit;
        if self.limit == CatalogLimit::NONE {
            return Ok(items);
        }
        self.items += items.len();
        if self.items > MOST_ITEMS {
            return Err(too_large(list, format!("its lists have more than {MOST_ITEMS} items in all")));
        }
        let most_values = (most / BYTES_PER_VALUE).max(LEAST_VALUES);
        let left = most_values.saturating_sub(self.values);
        let (items, bytes, measured) = off_thread(usize::MAX, move || {
            let json = serde_json::to_vec(&items).unwrap_or_default();
            let measured = measure(&json, left);
            (items, json.len(), measured)
        })
        .await;
        self.bytes += bytes;
        if self.bytes > most {
            return Err(too_large(list, format!("its lists have more than {most} bytes in all")));
        }
        let measured = measured.map_err(|why| match why {
            Unreadable::TooMany => {
                too_large(list, format!("its lists have more than {most_values} keys and values in all"))
            }
            why => too_large(list, why.to_string()),
        })?;
        self.values += measured.values;
        self.memory += measured.bytes;
        Ok(items)
    }
}

fn too_large(list: &str, what: String) -> CatalogError {
    CatalogError::TooLarge(format!("{what}, counted up to its list of {list}"))
}

macro_rules! all_pages {
    ($peer:expr, $meter:expr, $method:ident, $request:ident, $field:ident, $list:literal, $named:expr) => {{
        let mut items = Vec::new();
        let (mut cursor, mut pages) = (None, 0);
        loop {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let next = match $peer.$method(Some(params.clone())).await {
                Ok(page) => {
                    items.extend($meter.count($list, page.$field).await?);
                    page.next_cursor
                }
                // Some of its items are not as MCP says.
                Err(ServiceError::UnexpectedResponse) => {
                    let request = $request {
                        method: Default::default(),
                        params: Some(params),
                        extensions: Default::default(),
                    };
                    let (some, next) = $meter.page_of_some($peer, request.into(), $named).await?;
                    items.extend(some);
                    next
                }
                Err(error) => return Err(error.into()),
            };
            pages += 1;
            match next {
                Some(_) if pages == MOST_PAGES => {
                    return Err(too_large($list, format!("a list has more than {MOST_PAGES} pages")));
                }
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        items
    }};
}

impl Catalog {
    /// Reads all lists that a server in this process says it has.
    ///
    /// # Errors
    /// A request fails, or a list has more than 1,000 pages.
    pub async fn read(
        peer: &Peer<RoleClient>,
        capabilities: ServerCapabilities,
    ) -> Result<Self, ServiceError> {
        Self::read_within(peer, capabilities, CatalogLimit::NONE).await.map_err(|error| match error {
            CatalogError::Service(error) => error,
            CatalogError::TooLarge(why) => ServiceError::McpError(ErrorData::internal_error(why, None)),
        })
    }

    /// Reads all lists that the server says it has, up to `limit`.
    ///
    /// # Errors
    /// A request fails, the lists are over the limit, or one has more than 1,000 pages.
    pub fn read_within(
        peer: &Peer<RoleClient>,
        capabilities: ServerCapabilities,
        limit: CatalogLimit,
    ) -> BoxFuture<'_, Result<Self, CatalogError>> {
        Box::pin(async move {
            let mut catalog = Self { capabilities, about: about(peer), ..Self::default() };
            let mut meter = Meter { limit, bytes: 0, memory: 0, values: 0, items: 0, unread: Vec::new() };
            if catalog.capabilities.tools.is_some() {
                catalog.tools =
                    all_pages!(peer, meter, list_tools, ListToolsRequest, tools, "tools", ("tools", "name"));
            }
            if catalog.capabilities.resources.is_some() {
                catalog.resources = all_pages!(
                    peer,
                    meter,
                    list_resources,
                    ListResourcesRequest,
                    resources,
                    "resources",
                    ("resources", "uri")
                );
                // Servers without templates often leave the method out.
                catalog.templates = match Self::templates(peer, &mut meter).await {
                    Err(CatalogError::Service(ServiceError::McpError(_))) => Vec::new(),
                    other => other?,
                };
            }
            if catalog.capabilities.prompts.is_some() {
                catalog.prompts = all_pages!(
                    peer,
                    meter,
                    list_prompts,
                    ListPromptsRequest,
                    prompts,
                    "prompts",
                    ("prompts", "name")
                );
            }
            catalog.bytes = meter.memory;
            catalog.unread = meter.unread;
            Ok(catalog)
        })
    }

    async fn templates(
        peer: &Peer<RoleClient>,
        meter: &mut Meter,
    ) -> Result<Vec<ResourceTemplate>, CatalogError> {
        Ok(all_pages!(
            peer,
            meter,
            list_resource_templates,
            ListResourceTemplatesRequest,
            resource_templates,
            "templates",
            ("resourceTemplates", "uriTemplate")
        ))
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
    let mut words = words[..words.floor_char_boundary(LONGEST)].to_owned();
    clean(&mut words);
    Some(words)
}
