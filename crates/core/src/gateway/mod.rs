//! The MCP server in front of the registry, for every transport and both protocol eras.
//!
//! The methods of MCP are in `handler`. Lists are in `lists`, calls in `calls`, resources, prompts and tasks in `content`, change notifications in `changes`, subscriptions at apps that were replaced in `renewal`, log levels in `log_levels`, the
//! bound of what a client says of itself in `client`, scopes
//! that are asked for before a request is dispatched in `challenge`; notifying observers of everything but calls in `operate`.

mod calls;
mod challenge;
mod changes;
mod client;
mod content;
mod followed;
mod handler;
mod lists;
mod log_levels;
mod operate;
mod renewal;
mod session_level;
mod stamp;
mod subscriptions;
mod unknown;

pub use client::shed_unused;
pub use log_levels::SessionLogLevel;
pub use unknown::METHODS;

use std::sync::{Arc, Mutex, OnceLock, atomic::AtomicU8};

use rmcp::{
    ErrorData, RoleServer,
    model::{Implementation, ServerCapabilities},
    service::RequestContext,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    AccessMode, AppEntry, Caller, Claimant, Endpoint, Invoker, KnownSince, Observer, Plugin, Principal,
    Registry, SessionRef,
};
use log_levels::LogLevels;
use subscriptions::{Followed, SubscriptionTable};

/// Name, version and page size of the gateway.
#[derive(Debug, Clone)]
pub struct GatewayConfig {
    /// `info.name` and `info.version` of the configuration.
    pub info: Implementation,
    /// Items on one page of a list. Default 500.
    pub page_size: usize,
    /// Time for which clients may keep lists, in milliseconds. Default 0: ask again.
    pub list_ttl_ms: u64,
    /// Text for a model that connects, in front of what plugins add.
    pub instructions: Option<String>,
}

impl GatewayConfig {
    /// A gateway of this name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            info: Implementation::new(name.into(), version.into()),
            page_size: 500,
            list_ttl_ms: 0,
            instructions: None,
        }
    }
}

struct GatewayCore {
    config: GatewayConfig,
    registry: Arc<Registry>,
    invoker: Arc<Invoker>,
    plugins: Vec<Arc<dyn Plugin>>,
    subscriptions: Arc<SubscriptionTable>,
    log_levels: LogLevels,
    /// Turns to look where followed resources are offered.
    looking: followed::Looking,
    stop: CancellationToken,
}

/// The MCP server. [`Gateway::session`] makes one value for each connection; they share everything but their own state.
pub struct Gateway {
    shared: Arc<GatewayCore>,
    session: Session,
}

/// State of one connection.
struct Session {
    /// Rank of the least severe log level wanted.
    log_level: AtomicU8,
    followed: Arc<Mutex<Followed>>,
    /// The principal of all its requests, for a connection that belongs to one.
    principal: Option<Arc<Principal>>,
    /// The caller of `initialize`, whose access mode the session keeps.
    opened_by: OnceLock<Caller>,
    this: SessionRef,
    _guard: DropGuard,
}

impl Session {
    fn new(principal: Option<Arc<Principal>>) -> Self {
        let ended = CancellationToken::new();
        Self {
            log_level: AtomicU8::new(0),
            followed: Default::default(),
            principal,
            opened_by: OnceLock::new(),
            _guard: ended.clone().drop_guard(),
            this: SessionRef::new(ended),
        }
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("registry", &self.shared.registry).finish_non_exhaustive()
    }
}

impl Gateway {
    /// A gateway over what `invoker` reaches.
    pub fn new(config: GatewayConfig, invoker: Arc<Invoker>, plugins: Vec<Arc<dyn Plugin>>) -> Self {
        let registry = invoker.registry().clone();
        Self {
            shared: Arc::new(GatewayCore {
                config,
                subscriptions: Arc::default(),
                log_levels: LogLevels::default(),
                looking: followed::Looking::default(),
                registry,
                invoker,
                plugins,
                stop: CancellationToken::new(),
            }),
            session: Session::new(None),
        }
    }

    /// Tells `observers` of every request. To be called before the first session.
    #[must_use]
    pub fn observed_by(self, observers: Vec<Arc<dyn Observer>>) -> Self {
        self.shared.invoker.observe(observers);
        self
    }

    /// A server for one more connection, whose transport puts a [`Principal`] on each request: among the extensions of the
    /// request, or of its [`http::request::Parts`]. A request without one is refused.
    #[must_use]
    pub fn session(&self) -> Self {
        Self { shared: self.shared.clone(), session: Session::new(None) }
    }

    /// A server for one more connection, whose requests `principal` makes.
    #[must_use]
    pub fn session_of(&self, principal: Principal) -> Self {
        Self { shared: self.shared.clone(), session: Session::new(Some(Arc::new(principal))) }
    }

    /// The apps behind it.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.shared.registry
    }

    /// The path to the tools.
    pub fn invoker(&self) -> &Arc<Invoker> {
        &self.shared.invoker
    }

    /// Has plugins begin nothing more without a client, and waits for what of it is under way.
    pub async fn drain(&self) {
        futures::future::join_all(self.shared.plugins.iter().map(|plugin| plugin.drain())).await;
    }

    /// Ends open `subscriptions/listen` streams gracefully.
    pub fn stop(&self) {
        self.shared.stop.cancel();
    }

    fn capabilities(&self) -> ServerCapabilities {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_completions()
            .enable_logging()
            .build();
        let of_plugins = self.shared.plugins.iter().any(|plugin| plugin.tasks().is_some());
        if of_plugins || self.shared.registry.operator_snapshot().apps.iter().any(AppEntry::supports_tasks) {
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.insert(rmcp::model::TASKS_EXTENSION_ID.to_owned(), Default::default());
        }
        capabilities
    }

    /// The text for a model that connects in this mode: to the main endpoint, or to `endpoint`.
    fn instructions(&self, mode: Option<AccessMode>, endpoint: Option<&Endpoint>) -> Option<String> {
        let own = endpoint.map_or(&self.shared.config.instructions, |at| &at.config.instructions).clone();
        let plugins = self.shared.plugins.iter().filter(|_| mode != Some(AccessMode::Direct));
        let parts: Vec<String> =
            own.into_iter().chain(plugins.filter_map(|plugin| plugin.instructions())).collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }

    /// The name of the server at `endpoint`, and the text for a model that connects there in the mode of `caller`.
    fn introduction(&self, caller: &Caller) -> (Implementation, Option<String>) {
        let endpoint = self.shared.registry.endpoints().of(caller.principal());
        let mut info = self.shared.config.info.clone();
        if let Some(endpoint) = &endpoint {
            info.title = endpoint.config.title.clone().or(info.title);
            info.description = endpoint.config.description.clone().or(info.description);
        }
        (info, self.instructions(caller.mode(), endpoint.as_deref()))
    }

    /// The access mode of a client of `principal` that asks for `asked`: the one that the configuration sets comes first, and that of the
    /// endpoint before all others.
    fn mode(&self, principal: &Principal, asked: Option<AccessMode>) -> Option<AccessMode> {
        let endpoint = self.shared.registry.endpoints().of(principal);
        if let Some(mode) = endpoint.and_then(|endpoint| endpoint.config.mode) {
            return Some(mode);
        }
        self.shared.plugins.iter().find_map(|plugin| plugin.mode_of(principal)).or(asked)
    }

    /// The caller of a request: the principal on it, else that of the connection.
    ///
    /// # Errors
    /// An internal error when there is neither: a transport that does not say who calls must not grant anything.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        let of_request = Principal::of(context).cloned().map(Arc::new);
        let Some(principal) = of_request.or_else(|| self.session.principal.clone()) else {
            tracing::error!(
                "a request came without a principal and is refused: its transport has to name one"
            );
            return Err(ErrorData::internal_error("the request names no caller", None));
        };
        let mode = match self.session.opened_by.get() {
            Some(opened_by) => opened_by.mode(),
            None => self.mode(&principal, AccessMode::of(context)),
        };
        let of_http = context.extensions.get::<http::request::Parts>();
        let claimant = of_http.and_then(|parts| parts.extensions.get::<Arc<Claimant>>()).cloned();
        let since = of_http.and_then(|parts| parts.extensions.get::<KnownSince>()).copied();
        let caller = Caller::new(principal).known_since(since).in_mode(mode).claiming(claimant);
        // A connection that belongs to one principal is a session, too, for clients of the era without them.
        let in_session = self.session.principal.is_some() || self.session.opened_by.get().is_some();
        Ok(if in_session { caller.in_session(self.session.this.clone()) } else { caller })
    }
}
