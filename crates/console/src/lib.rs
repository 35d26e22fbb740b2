//! The operator's console: apps, tools, search, scripts and calls of a gateway in a browser.
//!
//! Pages are rendered on the server; a small script adds live updates, and everything else works without it. The console belongs on
//! the admin listener. It has no login of its own: anyone who reaches it can call every tool, unless the listener requires its token.
//! It serves only requests that name an address or a known host, and accepts forms only from its own pages. Its calls run as the
//! principal [`OPERATOR`].
#![forbid(unsafe_code)]

mod advice;
mod assets;
mod filter;
mod form;
mod guard;
mod health;
mod history;
mod hour;
mod instances;
mod live;
mod operator;
mod pages;
mod state;
mod text;

use std::sync::Arc;

use axum::{Router, extract::DefaultBodyLimit, middleware, response::Redirect, routing::get};
use gatewright_codecall::CodeCall;
use gatewright_core::Gateway;
pub use history::{Entry, ExecutionHistory, MAX_CALLS};
pub use instances::SharedConsole;
pub use operator::{CLIENT, OPERATOR};
pub use state::ConfigurationView;
pub(crate) use state::ConsoleState;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Largest form accepted, in bytes: four times the largest script of any preset.
const MAX_FORM: usize = 1 << 20;
/// Pages that may receive live updates at the same time.
const MAX_LIVE: usize = 32;

/// Options of the console.
#[derive(Clone)]
pub struct ConsoleOptions {
    /// Host names by which it can be reached besides addresses and `localhost`, without a port. Default none.
    pub allowed_hosts: Vec<String>,
    /// Ends live updates and background work when cancelled. Default: never.
    pub stop: CancellationToken,
    /// Reads the configuration that is in force, for its page. Default none.
    pub configuration: Option<Arc<dyn Fn() -> ConfigurationView + Send + Sync>>,
    /// The store through which the consoles of all instances know of each other. Default none.
    pub shared: Option<SharedConsole>,
    /// Shows scripts, arguments and answers that journals keep. Default true.
    pub contents: bool,
}

impl std::fmt::Debug for ConsoleOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsoleOptions").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl Default for ConsoleOptions {
    fn default() -> Self {
        Self {
            allowed_hosts: Vec::new(),
            stop: CancellationToken::new(),
            configuration: None,
            shared: None,
            contents: true,
        }
    }
}

/// The console of one gateway.
pub struct Console {
    state: Arc<ConsoleState>,
}

impl std::fmt::Debug for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Console").field("history", &self.state.history).finish_non_exhaustive()
    }
}

impl Console {
    /// A console for `gateway`. Without `code_call` it has no search and no script page. Needs a Tokio runtime.
    pub fn new(
        gateway: Arc<Gateway>,
        code_call: Option<Arc<CodeCall>>,
        history: Arc<ExecutionHistory>,
        options: ConsoleOptions,
    ) -> Self {
        let stop = options.stop;
        let own = instances::Own {
            version: gatewright_core::rmcp::ServerHandler::get_info(&*gateway).server_info.version,
            registry: gateway.registry().clone(),
            history: history.clone(),
        };
        let state = ConsoleState {
            health: health::HealthWatch::start(gateway.registry().clone(), stop.clone()),
            instances: instances::Instances::start(options.shared, own, stop.clone()),
            read_configuration: options.configuration,
            shows_contents: options.contents,
            operator: operator::OperatorClient::new(gateway),
            code_call,
            history,
            guard: Arc::new(guard::RequestGuard::new(options.allowed_hosts)),
            live: Arc::new(Semaphore::new(MAX_LIVE)),
            stop,
        };
        Self { state: Arc::new(state) }
    }

    /// The pages, all below `/console`.
    pub fn router(&self) -> Router {
        let guard = self.state.guard.clone();
        Router::new()
            .route("/console", get(pages::overview::show))
            .route("/console/", get(|| async { Redirect::permanent("/console") }))
            .route("/console/tools", get(pages::tools::show))
            .route("/console/tool", get(pages::tool::show).post(pages::tool::call))
            .route("/console/search", get(pages::search::show))
            .route("/console/script", get(pages::script::show).post(pages::script::run))
            .route("/console/pins", get(pages::pins::show))
            .route("/console/resources", get(pages::content::resources).post(pages::content::read))
            .route("/console/prompts", get(pages::content::prompts))
            .route("/console/script/suggestions", get(pages::suggestions::list))
            .route("/console/calls", get(pages::calls::list))
            .route("/console/calls/{id}", get(pages::call::show))
            .route("/console/executions", get(|| async { Redirect::permanent("/console/calls") }))
            .route("/console/runs", get(pages::runs::list))
            .route("/console/runs/{id}", get(pages::run::show))
            .route("/console/configuration", get(pages::configuration::show))
            .route("/console/approvals", get(pages::approvals::list).post(pages::approvals::decide))
            .route("/console/live", get(live::follow))
            .merge(assets::routes())
            .fallback(pages::not_found)
            .with_state(self.state.clone())
            .layer(DefaultBodyLimit::max(MAX_FORM))
            .layer(middleware::from_fn_with_state(guard, guard::enforce))
    }
}
