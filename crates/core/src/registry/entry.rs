//! One app of the registry, and the options under which it is listed and called.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::{
    App, AppHealth, Caller, Catalog, CatalogFinding, PerCaller, SchemaMode, ScopeRule, ToolOverride,
    UriPattern,
    access::{all_scopes, scopes_of_uri},
    listable::MOST_FINDINGS,
    names::{clipped, underscore},
};

/// Longest wait for the first connection of an app, from when it was added on. Later requests do not wait for it.
const FIRST_CONNECTION: Duration = Duration::from_secs(5);

/// Time after which the log names an app that is ending.
const SLOW_END: Duration = Duration::from_secs(1);

/// Options for showing and calling one app.
#[derive(Debug, Clone, PartialEq)]
pub struct AppOptions {
    /// `false` lists tools under their own names. Default true: `<app>:<tool>`.
    pub prefix: bool,
    /// Longest time of one call. Default 60 s.
    pub timeout: Duration,
    /// Longest wait for the caller's answer to a question of the app, in which `timeout` does not count. Default 10 min.
    pub question_timeout: Duration,
    /// Validation of arguments. Default strict.
    pub schema_mode: SchemaMode,
    /// `true` holds the definitions of its tools to the approved ones, and new tools back. Default false.
    pub pin: bool,
    /// Scopes a caller needs for anything of the app, all of them. Default none.
    pub scopes: Vec<String>,
    /// The operator's settings of single tools, by the app's own name for them.
    pub tools: BTreeMap<String, ToolOverride>,
    /// Scopes of resources and templates, by [`UriPattern`] of the app's own URIs. All patterns that match count.
    pub resources: BTreeMap<String, ScopeRule>,
    /// Scopes of prompts, by the app's own name for them.
    pub prompts: BTreeMap<String, ScopeRule>,
}

impl Default for AppOptions {
    fn default() -> Self {
        Self {
            prefix: true,
            timeout: Duration::from_secs(60),
            question_timeout: Duration::from_secs(600),
            schema_mode: SchemaMode::Strict,
            pin: false,
            scopes: Vec::new(),
            tools: BTreeMap::new(),
            resources: BTreeMap::new(),
            prompts: BTreeMap::new(),
        }
    }
}

impl AppOptions {
    /// Returns `true` if the definition of some tool is pinned.
    pub fn pins(&self) -> bool {
        self.pin || self.tools.values().any(|over| over.pin == Some(true))
    }
}

/// URIs, each with the id of another app that lists it.
type SharedUris = HashSet<(Arc<str>, String)>;

/// One app of the registry.
#[derive(Clone)]
pub struct AppEntry {
    /// The app's id.
    pub id: Arc<str>,
    /// The app. What it does for callers is reached with a permit only: see `Registry::view`.
    pub app: Arc<dyn App>,
    /// Options for showing and calling it.
    pub options: Arc<AppOptions>,
    rules: Arc<[(UriPattern, ScopeRule)]>,
    added: Instant,
    /// The log names a URI of the app that is left out.
    named_own_uri: Arc<AtomicBool>,
    /// Findings about its catalog that the log has.
    logged: Arc<Mutex<HashSet<CatalogFinding>>>,
    /// URIs of which the log says that another app lists them as well, with the id of that app.
    logged_shared: Arc<Mutex<SharedUris>>,
    /// Requests it is working on.
    pub(crate) open: TaskTracker,
}

impl AppEntry {
    pub(super) fn new(id: &str, app: Arc<dyn App>, options: AppOptions) -> Self {
        let rules = all_scopes(&options.resources).into();
        Self {
            id: id.into(),
            app,
            rules,
            added: Instant::now(),
            named_own_uri: Arc::default(),
            logged: Arc::default(),
            logged_shared: Arc::default(),
            options: Arc::new(options),
            open: TaskTracker::new(),
        }
    }

    pub(super) fn with_options(&self, options: AppOptions) -> Self {
        Self { rules: all_scopes(&options.resources).into(), options: Arc::new(options), ..self.clone() }
    }

    /// Longest wait for its first connection, while it is being made.
    pub(super) fn starting_until(&self) -> Option<Instant> {
        (self.app.health() == AppHealth::Starting).then(|| self.added + FIRST_CONNECTION)
    }

    /// The public name of one of its tools.
    pub(crate) fn public_name(&self, local: &str) -> String {
        if self.options.prefix { format!("{}:{local}", self.id) } else { local.to_owned() }
    }

    /// Returns `true` if a tool of this public name, in either spelling, would be one of the app's.
    pub(crate) fn may_own(&self, name: &str) -> bool {
        let rest = name.strip_prefix(&*self.id).or_else(|| name.strip_prefix(&underscore(&self.id)));
        !self.options.prefix || rest.is_some_and(|rest| rest.starts_with([':', '_']))
    }

    /// Scopes for a resource or template, by the app's own URI. `is_listed`: the app lists it in these words.
    pub(crate) fn scopes_of_uri(&self, local: &str, is_listed: bool) -> Vec<String> {
        let of_patterns = scopes_of_uri(&self.rules, local, is_listed).into_iter();
        self.options.scopes.iter().map(String::as_str).chain(of_patterns).map(str::to_owned).collect()
    }

    /// Logs, once, that a resource or template of the app is left out.
    pub(super) fn log_own_uri(&self, uri: &str) {
        if !self.named_own_uri.swap(true, Ordering::Relaxed) {
            let uri: String = uri.chars().take(200).collect();
            tracing::warn!(app.id = %self.id, uri,
                "an app lists a URI of the scheme `gatewright`, which is the gateway's own; such resources and templates are left out");
        }
    }

    /// Logs, once each, that the app `first`, which comes before this one in the configuration, lists the URI as well; at most a hundred of them.
    pub(super) fn log_shared_uri(&self, first: &Arc<str>, uri: &str) {
        const MOST_LOGGED: usize = 100;
        let mut logged = self.logged_shared.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() < MOST_LOGGED && logged.insert((first.clone(), uri.to_owned())) {
            tracing::warn!(uri = ?clipped(uri), app.id = %self.id, other = %first,
                "two apps list this URI; a client that reads it without the id of an app gets it from the first of the configuration, which is `other`");
        }
    }

    /// Logs, once each, what clients are not shown as the app offers it, and of many at once the number; at most a thousand findings of one app.
    pub(super) fn log_findings(&self, found: &[CatalogFinding]) {
        const MOST_LOGGED: usize = 1_000;
        const MOST_LINES: usize = 5;
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new = Vec::new();
        for finding in found {
            if logged.len() < MOST_LOGGED && logged.insert(finding.clone()) {
                new.push(finding);
            }
        }
        if let [CatalogFinding { item, problem, .. }, ..] = new.as_slice()
            && new.len() > MOST_LINES
        {
            let (count, left_out) = (new.len(), new.iter().filter(|finding| finding.is_left_out).count());
            let least = if found.len() < MOST_FINDINGS { "" } else { "at least " };
            tracing::warn!(app.id = %self.id, count, left_out, item = ?item, problem = ?problem,
                "an app offers {least}{count} items that clients do not get as they are, {left_out} of them not at all, such as `item`; \
                 `gatewright check --live` lists them");
            return;
        }
        for CatalogFinding { item, problem, is_left_out } in new {
            let message = match is_left_out {
                true => "an app offers an item that cannot be offered to clients; it is left out",
                false => {
                    "an app offers an item with a part that clients cannot read; it is offered without that part"
                }
            };
            tracing::warn!(app.id = %self.id, item = ?item, problem = ?problem, "{message}");
        }
    }

    /// The catalog for `caller`.
    pub(crate) fn catalog_for(&self, caller: &Caller) -> Arc<Catalog> {
        let own = self.app.per_caller().and_then(|own| own.catalog(&own.audience(caller)));
        own.unwrap_or_else(|| self.app.catalog())
    }

    /// Returns `true` if it makes tasks for calls.
    pub(crate) fn supports_tasks(&self) -> bool {
        self.app.catalog().capabilities.supports_tasks()
            || self.app.per_caller().is_some_and(PerCaller::supports_tasks)
    }

    /// Ends the app, and logs that it is waited for if that takes long.
    pub(super) async fn shut_down(&self) {
        let mut ending = self.app.shutdown();
        if tokio::time::timeout(SLOW_END, &mut ending).await.is_err() {
            tracing::info!(app.id = %self.id, "waiting for the app to end");
            ending.await;
        }
    }

    /// Ends the app once it has answered what it is working on, and at the latest when `now` is done. For an app that was
    /// taken out of the registry: nothing new reaches it.
    pub async fn retire(self, now: impl Future<Output = ()>) {
        self.open.close();
        tokio::select! {
            () = self.open.wait() => {}
            () = now => {}
        }
        self.shut_down().await;
    }
}

impl std::fmt::Debug for AppEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppEntry")
            .field("id", &self.id)
            .field("health", &self.app.health())
            .finish_non_exhaustive()
    }
}
