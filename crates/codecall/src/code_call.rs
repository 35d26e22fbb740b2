//! [`CodeCall`]: code mode with its settings, index and workers.
//!
//! Each meta-tool has a file of its own; `plugin` is what the gateway sees.

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
    time::Duration,
};

use arc_swap::ArcSwap;
use gatewright_agentscript::{Limits, WorkerPool};
use gatewright_core::{
    App, Caller, Change, InputSchema, InvalidField, Invoker, OwnPaths, SharedRecords, ToolNames,
    rmcp::model::Tool,
};
use gatewright_embedding::{EmbeddingError, SemanticSearch};
use gatewright_executions::{Executions, ExecutionsConfig};
use serde_json::Value;

use crate::{
    CodeCallConfig, ShapeLearning, Strategy,
    live_index::LiveIndex,
    meta_tools,
    results::{Finish, KeptResults},
    rounds::Rounds,
    runs::Background,
    semantic::Semantic,
    settings::Settings,
    shapes::{Shapes, SharedShapes},
    usage::{SearchUsage, SharedUsage},
};

/// Code mode over the tools that `invoker` reaches.
pub struct CodeCall {
    settings: ArcSwap<Settings>,
    pub(crate) invoker: Arc<Invoker>,
    pub(crate) index: LiveIndex,
    pub(crate) semantic: Semantic,
    pub(crate) pool: Arc<WorkerPool>,
    names: ToolNames,
    /// The meta-tools: their texts follow the limits.
    tools: ArcSwap<Arc<[Tool]>>,
    pub(crate) schemas: Arc<[InputSchema]>,
    pub(crate) shapes: Arc<Shapes>,
    shapes_sharing: Rounds,
    pub(crate) usage: Arc<SearchUsage>,
    usage_sharing: Rounds,
    pub(crate) kept: Arc<KeptResults>,
    own_paths: OnceLock<Arc<OwnPaths>>,
    pub(crate) executions: Executions,
    pub(crate) has_journals: bool,
    pub(crate) background: Background,
    /// Itself, once runs in the background are allowed.
    pub(crate) this: OnceLock<Weak<CodeCall>>,
    /// Apps whose tools it runs itself.
    pub(crate) plan_apps: Mutex<Vec<Weak<dyn App>>>,
    /// The texts of their tools.
    pub(crate) plan_texts: Mutex<Vec<Weak<dyn PlanTexts>>>,
}

/// The scripts of an app with saved plans.
pub(crate) trait PlanTexts: Send + Sync {
    /// Id of the app.
    fn app(&self) -> &str;
    /// The app's own names of the plans, sorted.
    fn names(&self) -> Vec<String>;
    /// The text of a plan with its header.
    fn text(&self, name: &str) -> Option<String>;
}

impl std::fmt::Debug for CodeCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeCall").field("config", &self.settings().config).finish_non_exhaustive()
    }
}

impl CodeCall {
    /// Code mode with scripts run by `pool`. Follows the registry from now on, so it needs a Tokio runtime. With the
    /// strategy `embedding`, search is lexical until [`CodeCall::use_semantic`] or [`CodeCall::load_semantic`].
    pub fn new(
        config: CodeCallConfig,
        invoker: Arc<Invoker>,
        pool: Arc<WorkerPool>,
        names: ToolNames,
    ) -> Self {
        let settings = Settings::of(config);
        let tools = meta_tools::definitions(names, &settings.limits);
        let semantic = Semantic::new(settings.config.embedding.strategy == Strategy::Embedding);
        let shapes = Arc::new(Shapes::new(settings.config.shapes == ShapeLearning::On));
        invoker.notify(shapes.clone());
        Self {
            shapes,
            shapes_sharing: Rounds::default(),
            usage: Arc::new(SearchUsage::new(settings.config.search.usage)),
            usage_sharing: Rounds::default(),
            kept: Arc::default(),
            background: Background::default(),
            this: OnceLock::new(),
            plan_apps: Mutex::default(),
            plan_texts: Mutex::default(),
            executions: Executions::in_memory(ExecutionsConfig::default()),
            has_journals: true,
            own_paths: OnceLock::new(),
            index: LiveIndex::follow(
                invoker.registry().clone(),
                semantic.clone(),
                settings.config.search.meaning,
            ),
            semantic,
            invoker,
            pool,
            names,
            schemas: meta_tools::schemas().into(),
            tools: ArcSwap::from_pointee(tools),
            settings: ArcSwap::from_pointee(settings),
        }
    }

    /// Keeps the journals of runs in `executions`. Default: in memory, with the default limits.
    #[must_use]
    pub fn kept_in(mut self, executions: Executions) -> Self {
        self.executions = executions;
        self
    }

    /// Keeps no journals of runs, which can then neither wait nor run in the background: to measure what journals cost.
    #[doc(hidden)]
    #[must_use]
    pub fn without_journals(self) -> Self {
        Self { has_journals: false, ..self }
    }

    /// Gives the worker of a run in the background to others once the run has only waited for its calls for this long. Default 5 s.
    #[must_use]
    pub fn park_after(mut self, time: Duration) -> Self {
        self.background.park_after = time;
        self
    }

    /// The executions of its runs.
    pub fn executions(&self) -> &Executions {
        &self.executions
    }

    /// Keeps `paths` out of errors whatever folders a client names as its roots. Only the first call counts.
    pub fn hide_paths(&self, paths: OwnPaths) {
        let _ = self.own_paths.set(Arc::new(paths));
    }

    pub(crate) fn own_paths(&self) -> Arc<OwnPaths> {
        self.own_paths.get().cloned().unwrap_or_default()
    }

    /// The meta-tools with the current limits in their texts.
    pub(crate) fn meta_tools(&self) -> Arc<[Tool]> {
        Arc::clone(&self.tools.load())
    }

    /// The apps with saved plans that there are.
    pub(crate) fn plan_apps(&self) -> Vec<Arc<dyn App>> {
        let mut apps = self.plan_apps.lock().unwrap_or_else(PoisonError::into_inner);
        apps.retain(|app| app.strong_count() > 0);
        apps.iter().filter_map(Weak::upgrade).collect()
    }

    /// The saved plans: id of the app, and its own name for the plan.
    pub fn saved_plans(&self) -> Vec<(String, String)> {
        let apps = self.plan_texts();
        let plans = |app: &Arc<dyn PlanTexts>| {
            let names = app.names().into_iter();
            names.map(|name| (app.app().to_owned(), name)).collect::<Vec<_>>()
        };
        apps.iter().flat_map(plans).collect()
    }

    /// The text of a saved plan with its header, by the id of its app and the app's own name for it.
    pub fn saved_plan(&self, app: &str, name: &str) -> Option<String> {
        self.plan_texts().iter().find(|texts| texts.app() == app)?.text(name)
    }

    fn plan_texts(&self) -> Vec<Arc<dyn PlanTexts>> {
        let mut texts = self.plan_texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.retain(|app| app.strong_count() > 0);
        texts.iter().filter_map(Weak::upgrade).collect()
    }

    /// The current settings.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// Takes over `mode`, `modes`, `vm`, `sanitization`, `shapes`, `result` and `embedding.similarityThreshold` of `config` from the next request on; runs
    /// under way keep what they began with. The rest of the section needs a restart.
    ///
    /// # Errors
    /// The first field that is out of range; nothing has changed then.
    pub fn reconfigure(&self, config: &CodeCallConfig) -> Result<(), InvalidField> {
        if let Some(problem) = config.problems().into_iter().next() {
            return Err(problem);
        }
        let old = self.settings();
        let new = old.changed(config);
        let lists_differ = old.config.mode != new.config.mode
            || old.config.modes != new.config.modes
            || old.limits != new.limits;
        self.tools.store(Arc::new(meta_tools::definitions(self.names, &new.limits)));
        self.settings.store(Arc::new(new));
        self.shapes.turn(config.shapes == ShapeLearning::On);
        if lists_differ {
            self.invoker.registry().announce(Change::Tools);
        }
        Ok(())
    }

    /// Makes replies to `caller`.
    pub(crate) fn finish(&self, caller: &Caller) -> Finish {
        let most_bytes = self.settings().config.result.max_bytes.limit();
        Finish::new(most_bytes, self.kept.clone(), caller)
    }

    /// The settings of the `codecall` section that hold now.
    pub fn config(&self) -> CodeCallConfig {
        self.settings().config.clone()
    }

    /// The current limits of one script.
    pub fn limits(&self) -> Limits {
        self.settings().limits.clone()
    }

    /// Ranks with `search` from now on. Until every tool has its vector, answers are lexical and say so in
    /// `indexStatus`.
    pub fn use_semantic(&self, search: SemanticSearch) {
        self.semantic.stop_loading();
        self.semantic.set(search);
    }

    /// Opens a semantic search in the background and ranks with it when it is there. A failure that may pass (a
    /// store or hub that does not answer) is tried again after 1 s, 2 s and so on up to a minute; other failures
    /// leave the search lexical. Must be called within a Tokio runtime.
    pub fn load_semantic<O, F>(&self, open: O)
    where
        O: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = Result<SemanticSearch, EmbeddingError>> + Send + 'static,
    {
        self.semantic.start_loading(open);
    }

    /// Why `codecall:search` answers lexically at the moment although the strategy is `embedding`: the same object
    /// that its body has as `indexStatus`. `None` when it does not, or the strategy is another.
    pub fn index_status(&self) -> Option<Value> {
        let status = self.semantic.search().map(|search| search.status());
        self.semantic.status(status.as_ref())
    }

    /// Shares the shapes that are learned with other instances through `store`. Must be called within a Tokio runtime.
    pub fn share_shapes(&self, store: Arc<dyn SharedRecords>) {
        let registry = self.invoker.registry().clone();
        self.shapes_sharing.start(SharedShapes::new(self.shapes.clone(), registry, store));
    }

    /// Returns `true` if calls that follow searches are counted.
    pub fn counts_usage(&self) -> bool {
        self.usage.is_on()
    }

    /// Shares the counts of calls that follow searches with other instances through `store`, and keeps them there. Must be called within a Tokio
    /// runtime.
    pub fn share_usage(&self, store: Arc<dyn SharedRecords>) {
        self.usage_sharing.start(SharedUsage::new(self.usage.clone(), store));
    }

    /// Ends background work and waits for it.
    pub async fn close(&self) {
        self.close_background().await;
        self.shapes_sharing.close().await;
        self.usage_sharing.close().await;
        self.semantic.close().await;
    }
}
