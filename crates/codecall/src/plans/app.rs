//! The app whose tools are saved plans.

#![expect(deprecated, reason = "the older era still has logging, which SEP-2577 marks as deprecated")]

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use gatewright_agentscript::VALIDATE_STACK;
use gatewright_core::{
    App, AppEvent, AppFuture, AppHealth, CallContext, Catalog, CatalogLink, Change, Permit,
    rmcp::{
        ErrorData,
        model::{
            CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
            GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, LoggingLevel,
            ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, UpdateTaskParams,
        },
    },
};
use gatewright_findings::Finding;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::Instrument as _;

use super::{header::at_line, plan::Plan, safety, sources::PlanSources};
use crate::{
    CodeCall, CodeCallConfig,
    code_call::PlanTexts,
    nesting::{Nesting, PlanName},
    settings::Settings,
};

/// Stack beside that of the validator, in bytes.
const MORE_STACK: usize = 1024 * 1024;
/// The app's words about itself, for lists of apps.
const ABOUT: &str = "Saved plans: scripts of this server, each of which calls several tools";

/// An app whose tools are scripts in files. They run once [`CodeCall::run_plans_of`] was called.
pub struct SavedPlans {
    id: Arc<str>,
    sources: PlanSources,
    plans: Mutex<Plans>,
    link: CatalogLink,
    code_call: OnceLock<Weak<CodeCall>>,
    stop: CancellationToken,
}

/// Plans by their files, which decide between two of one name.
type Plans = BTreeMap<PathBuf, Arc<Plan>>;

/// The outcome of reading plans again: names of plans, and problems of files whose last good version stays.
#[derive(Debug, Default)]
pub struct PlanChanges {
    /// Plans that are new.
    pub added: Vec<String>,
    /// Plans whose files differ.
    pub changed: Vec<String>,
    /// Plans that are gone.
    pub removed: Vec<String>,
    /// Problems, with their files.
    pub findings: Vec<Finding>,
}

impl PlanChanges {
    /// Returns true if the plans differ from those before.
    pub fn any(&self) -> bool {
        !(self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty())
    }
}

/// All problems of the plans of an app.
#[derive(Debug, Default)]
pub struct PlanReport {
    /// Reasons why a plan is not served.
    pub findings: Vec<Finding>,
    /// Likely mistakes of plans that are.
    pub warnings: Vec<Finding>,
    /// Names of the plans that are served.
    pub plans: Vec<String>,
}

impl std::fmt::Debug for SavedPlans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SavedPlans")
            .field("id", &self.id)
            .field("sources", &self.sources)
            .finish_non_exhaustive()
    }
}

impl SavedPlans {
    /// The app `id` of the plans in `sources`. Files with problems are left out, and their problems returned. Blocks while files are read.
    ///
    /// # Errors
    /// A path does not exist.
    pub fn open(
        id: &str,
        sources: PlanSources,
        config: &CodeCallConfig,
    ) -> Result<(Arc<Self>, Vec<Finding>), String> {
        let app = Self {
            id: id.into(),
            sources,
            plans: Mutex::default(),
            link: CatalogLink::default(),
            code_call: OnceLock::new(),
            stop: CancellationToken::new(),
        };
        let changes = app.reload(config)?;
        Ok((Arc::new(app), changes.findings))
    }

    /// The files and folders of the plans.
    pub fn sources(&self) -> &PlanSources {
        &self.sources
    }

    /// Checks the plans in `sources` for an app `id`. Blocks while files are read.
    ///
    /// # Errors
    /// A path does not exist.
    pub fn check(id: &str, sources: &PlanSources, config: &CodeCallConfig) -> Result<PlanReport, String> {
        let (plans, findings) = read(id, sources, config, &Plans::new())?;
        let mut report = PlanReport { findings, ..PlanReport::default() };
        for (path, plan) in plans {
            report.warnings.extend(plan.warnings.iter().cloned().map(|warning| warning.in_file(&path)));
            report.plans.push(plan.name.to_string());
        }
        Ok(report)
    }

    /// Reads all files again. A file with a problem keeps its last good version.
    ///
    /// # Errors
    /// A path does not exist; nothing has changed then.
    pub fn reload(&self, config: &CodeCallConfig) -> Result<PlanChanges, String> {
        let before = self.plans().clone();
        let (after, findings) = read(&self.id, &self.sources, config, &before)?;
        let mut changes = PlanChanges { findings, ..PlanChanges::default() };
        let (old, new) = (by_name(&before), by_name(&after));
        for (name, plan) in &new {
            match old.get(name) {
                None => changes.added.push(name.to_string()),
                Some(same) if same.source != plan.source => changes.changed.push(name.to_string()),
                Some(_) => {}
            }
        }
        changes.removed =
            old.keys().filter(|name| !new.contains_key(*name)).map(ToString::to_string).collect();
        for names in [&mut changes.added, &mut changes.changed, &mut changes.removed] {
            names.sort_unstable();
        }
        *self.plans() = after;
        self.list();
        Ok(changes)
    }

    /// Runs plans with `code_call` from now on, and follows the tools that they call. Needs a Tokio runtime.
    pub(crate) fn attach(self: &Arc<Self>, code_call: &Arc<CodeCall>) {
        if self.code_call.set(Arc::downgrade(code_call)).is_err() {
            return;
        }
        let own: Arc<dyn App> = self.clone();
        code_call.plan_apps.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&own));
        let texts: Arc<dyn PlanTexts> = self.clone();
        code_call.plan_texts.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&texts));
        let mut changes = code_call.invoker.registry().changes();
        self.list();
        let (app, stop) = (Arc::downgrade(self), self.stop.clone());
        tokio::spawn(async move {
            loop {
                let notice = tokio::select! {
                    notice = changes.recv() => notice,
                    () = stop.cancelled() => return,
                };
                match notice {
                    Ok(notice) if notice.change != Change::Tools => continue,
                    Err(RecvError::Closed) => return,
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                }
                let Some(app) = app.upgrade() else { return };
                app.list();
            }
        });
    }

    /// Lists the plans with what the tools that they call make of them.
    fn list(&self) {
        let code_call = self.code_call();
        let registry = code_call.as_ref().map(|code_call| &**code_call.invoker.registry());
        let plans = self.plans();
        let mut tools: Vec<_> = by_name(&plans)
            .into_values()
            .map(|plan| plan.tool.clone().with_annotations(safety::annotations(&plan, registry)))
            .collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        self.link.up(Catalog { capabilities, about: Some(ABOUT.to_owned()), tools, ..Catalog::default() });
    }

    fn code_call(&self) -> Option<Arc<CodeCall>> {
        self.code_call.get().and_then(Weak::upgrade)
    }

    fn plans(&self) -> std::sync::MutexGuard<'_, Plans> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plan(&self, name: &str) -> Option<Arc<Plan>> {
        self.plans().values().find(|plan| &*plan.name == name).cloned()
    }
}

impl PlanTexts for SavedPlans {
    fn app(&self) -> &str {
        &self.id
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.plans().values().map(|plan| plan.name.to_string()).collect();
        names.sort_unstable();
        names
    }

    fn text(&self, name: &str) -> Option<String> {
        self.plan(name).map(|plan| plan.source.clone())
    }
}

impl CodeCall {
    /// Runs the plans of `app` from now on. Needs a Tokio runtime.
    pub fn run_plans_of(self: &Arc<Self>, app: &Arc<SavedPlans>) {
        app.attach(self);
    }
}

/// The plans in `sources`, with the problems of the others. A file that cannot be used has the plan that it had `before`.
fn read(
    id: &str,
    sources: &PlanSources,
    config: &CodeCallConfig,
    before: &Plans,
) -> Result<(Plans, Vec<Finding>), String> {
    let (files, settings) = (sources.files()?, Settings::of(config.clone()));
    let read = || {
        let (mut plans, mut findings) = (Plans::new(), Vec::new());
        for path in files {
            let plan = match Plan::read(&path, id, &settings) {
                Ok(plan) => Some(Arc::new(plan)),
                Err(problems) => {
                    findings.extend(problems.into_iter().map(|problem| problem.in_file(&path)));
                    before.get(&path).cloned()
                }
            };
            let Some(plan) = plan else { continue };
            match plans.values().find(|other: &&Arc<Plan>| other.name == plan.name) {
                Some(_) => {
                    let problem =
                        format!("`{}` is the name of another plan; the first file keeps it", plan.name);
                    findings.push(at_line(1, problem).in_file(&path));
                }
                None => drop(plans.insert(path, plan)),
            }
        }
        (plans, findings)
    };
    // The validator needs more stack than threads have.
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("plans".to_owned()).stack_size(VALIDATE_STACK + MORE_STACK);
        let reading =
            thread.spawn_scoped(scope, read).map_err(|error| format!("no thread to read plans: {error}"))?;
        reading.join().map_err(|_| "reading the plans failed".to_owned())
    })
}

fn by_name(plans: &Plans) -> HashMap<Arc<str>, Arc<Plan>> {
    plans.values().map(|plan| (plan.name.clone(), plan.clone())).collect()
}

fn nothing<T>() -> AppFuture<'static, Result<T, ErrorData>> {
    Box::pin(async { Err(ErrorData::invalid_request("saved plans are tools and nothing else", None)) })
}

macro_rules! answers_nothing {
    ($($method:ident($params:ty) -> $answer:ty;)*) => {
        $(fn $method(&self, _: $params, _: CallContext) -> AppFuture<'_, Result<$answer, ErrorData>> {
            nothing()
        })*
    };
}

impl App for SavedPlans {
    fn catalog(&self) -> Arc<Catalog> {
        self.link.catalog()
    }

    fn health(&self) -> AppHealth {
        self.link.health()
    }

    fn events(&self) -> broadcast::Receiver<AppEvent> {
        self.link.events()
    }

    fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<CallToolResponse, ErrorData>> {
        Box::pin(async move {
            let plan = self.plan(&params.name);
            let plan = plan.ok_or_else(|| ErrorData::invalid_params("there is no such plan", None))?;
            let code_call = self.code_call();
            let code_call =
                code_call.ok_or_else(|| ErrorData::internal_error("plans need code mode", None))?;
            let name = PlanName { app: self.id.clone(), tool: plan.name.clone() };
            let is_nested = context.request().extensions.get::<Nesting>().is_some();
            let running = async move { code_call.run_plan(&plan, name, params, context).await };
            if !is_nested {
                return Ok(running.await);
            }
            // A task of its own: otherwise all runs that wait for each other would be polled on one stack. Dropped, it ends the run.
            let running = AbortOnDropHandle::new(tokio::spawn(running.in_current_span()));
            running.await.map_err(|error| ErrorData::internal_error(format!("the plan ended: {error}"), None))
        })
    }

    answers_nothing! {
        read_resource(ReadResourceRequestParams) -> ReadResourceResponse;
        get_prompt(GetPromptRequestParams) -> GetPromptResponse;
        complete(CompleteRequestParams) -> CompleteResult;
        get_task(GetTaskParams) -> GetTaskResult;
        update_task(UpdateTaskParams) -> ();
        cancel_task(CancelTaskParams) -> ();
    }

    fn subscribe<'a>(&'a self, _: String, _: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>> {
        nothing()
    }

    fn unsubscribe<'a>(&'a self, _: String, _: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>> {
        nothing()
    }

    fn set_level<'a>(&'a self, _: LoggingLevel, _: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>> {
        nothing()
    }

    fn shutdown(&self) -> AppFuture<'_, ()> {
        self.stop.cancel();
        Box::pin(async {})
    }
}
