//! The operator's console: what the gateway serves and does, in a browser.
//!
//! Pages are rendered here; a small script adds live updates, and everything else works without it. The console belongs on
//! the admin listener: it asks nobody to log in, so whoever reaches it may call every tool, unless the listener
//! asks for its token. It answers to addresses and known names only, and takes forms from its own pages only. What it calls runs as the principal [`OPERATOR`].
#![forbid(unsafe_code)]

mod desk;
mod form;
mod guard;
mod health;
mod journal;
mod live;
mod observer;
mod pages;
mod text;

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::DefaultBodyLimit,
    middleware,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
pub use desk::{CLIENT, OPERATOR};
use gatewright_codecall::CodeCall;
use gatewright_core::Gateway;
use http::{HeaderValue, StatusCode, header};
pub use journal::{Call, Ending, Execution, Journal, MAX_CALLS};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Largest form taken, in bytes: the largest script of any preset, four times over.
const MAX_FORM: usize = 1 << 20;
/// Pages that may follow live at the same time.
const MAX_LIVE: usize = 32;

/// What the console shows, and to whom.
#[derive(Debug, Clone)]
pub struct ConsoleOptions {
    /// Names by which it may be reached besides addresses and `localhost`, without a port. Default none.
    pub allowed_hosts: Vec<String>,
    /// Ends live updates and background work when cancelled. Default: never.
    pub stop: CancellationToken,
}

impl Default for ConsoleOptions {
    fn default() -> Self {
        Self { allowed_hosts: Vec::new(), stop: CancellationToken::new() }
    }
}

/// The console of one gateway.
pub struct Console {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    desk: desk::Desk,
    code_call: Option<Arc<CodeCall>>,
    journal: Arc<Journal>,
    health: health::HealthWatch,
    guard: Arc<guard::Guard>,
    live: Arc<Semaphore>,
    stop: CancellationToken,
}

impl std::fmt::Debug for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Console").field("journal", &self.shared.journal).finish_non_exhaustive()
    }
}

impl Console {
    /// A console over `gateway`; without `code_call` it has no search and no script pad. Needs a Tokio runtime.
    pub fn new(
        gateway: Arc<Gateway>,
        code_call: Option<Arc<CodeCall>>,
        journal: Arc<Journal>,
        options: ConsoleOptions,
    ) -> Self {
        let stop = options.stop;
        let shared = Shared {
            health: health::HealthWatch::start(gateway.registry().clone(), stop.clone()),
            desk: desk::Desk::new(gateway),
            code_call,
            journal,
            guard: Arc::new(guard::Guard::new(options.allowed_hosts)),
            live: Arc::new(Semaphore::new(MAX_LIVE)),
            stop,
        };
        Self { shared: Arc::new(shared) }
    }

    /// The pages, all below `/console`.
    pub fn router(&self) -> Router {
        let guard = self.shared.guard.clone();
        Router::new()
            .route("/console", get(pages::overview::show))
            .route("/console/", get(|| async { Redirect::permanent("/console") }))
            .route("/console/tools", get(pages::tools::show))
            .route("/console/tool", get(pages::tool::show).post(pages::tool::call))
            .route("/console/search", get(pages::search::show))
            .route("/console/script", get(pages::script::show).post(pages::script::run))
            .route("/console/executions", get(pages::executions::list))
            .route("/console/executions/{id}", get(pages::executions::show))
            .route("/console/live", get(live::follow))
            .route(
                "/console/style.css",
                get(|| asset("text/css; charset=utf-8", include_str!("assets/console.css"))),
            )
            .route(
                "/console/script.js",
                get(|| asset("text/javascript; charset=utf-8", include_str!("assets/console.js"))),
            )
            .route("/console/icon.svg", get(|| asset("image/svg+xml", include_str!("assets/icon.svg"))))
            .fallback(pages::not_found)
            .with_state(self.shared.clone())
            .layer(DefaultBodyLimit::max(MAX_FORM))
            .layer(middleware::from_fn_with_state(guard, guard::watch))
    }
}

async fn asset(kind: &'static str, text: &'static str) -> Response {
    let mut response = (StatusCode::OK, Body::from(text)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
