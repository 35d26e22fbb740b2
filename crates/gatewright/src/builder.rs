//! Puts apps, code mode and the gateway together.

use std::{collections::BTreeMap, sync::Arc};

use gatewright_agentscript::{PoolConfig, WorkerCommand, WorkerError, WorkerPool};
use gatewright_codecall::{CodeCall, CodeCallConfig, SavedPlans};
use gatewright_core::{
    App, AppOptions, ApprovalStore, EndpointConfig, Gateway, GatewayConfig, Invoker, Observer, Pins, Plugin,
    RateLimiter, Registry, SealKey, ToolNames,
};
use gatewright_executions::{Executions, ExecutionsConfig};
#[cfg(feature = "guard")]
use gatewright_operator::telemetry::Sending;
use gatewright_server::{HttpConfig, Server, ServerBuilder};

/// Longest wait for the last traces to be sent.
#[cfg(feature = "guard")]
const FLUSH: std::time::Duration = std::time::Duration::from_secs(5);

/// Puts a gateway together: its apps, code mode, limits and observers.
pub struct Builder {
    config: GatewayConfig,
    names: ToolNames,
    endpoints: BTreeMap<String, EndpointConfig>,
    apps: Vec<(String, Arc<dyn App>, AppOptions)>,
    plans: Vec<Arc<SavedPlans>>,
    code_mode: Option<CodeCallConfig>,
    worker: Option<WorkerCommand>,
    limiter: Option<Arc<dyn RateLimiter>>,
    seal_key: Option<SealKey>,
    executions: Option<Executions>,
    approvals: Option<Arc<ApprovalStore>>,
    pins: Arc<Pins>,
    observers: Vec<Arc<dyn Observer>>,
    has_journals: bool,
    /// A guard begins the runs in the background, once it knows who authenticates their owners.
    is_guarded: bool,
    #[cfg(feature = "guard")]
    sending: Option<Sending>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Builder {
    /// A gateway that introduces itself with this name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            config: GatewayConfig::new(name, version),
            names: ToolNames::default(),
            endpoints: BTreeMap::new(),
            apps: Vec::new(),
            plans: Vec::new(),
            code_mode: None,
            worker: None,
            limiter: None,
            seal_key: None,
            executions: None,
            approvals: None,
            pins: Arc::default(),
            observers: Vec::new(),
            has_journals: true,
            is_guarded: false,
            #[cfg(feature = "guard")]
            sending: None,
        }
    }

    /// Adds an app; its tools are called `<id>:<tool>`. A later app of the same id replaces the earlier one.
    #[must_use]
    pub fn app(self, id: impl Into<String>, app: Arc<dyn App>) -> Self {
        self.app_with(id, app, AppOptions::default())
    }

    /// Adds an app shown and called as `options` say.
    #[must_use]
    pub fn app_with(mut self, id: impl Into<String>, app: Arc<dyn App>, options: AppOptions) -> Self {
        self.apps.push((id.into(), app, options));
        self
    }

    /// Adds an app of saved plans. They need code mode, which runs them.
    #[must_use]
    pub fn plans(mut self, id: impl Into<String>, plans: Arc<SavedPlans>, options: AppOptions) -> Self {
        self.plans.push(plans.clone());
        self.app_with(id, plans, options)
    }

    /// Serves these endpoints beside the main one, each with a part of what the apps offer. Default: none.
    #[must_use]
    pub fn endpoints(mut self, endpoints: BTreeMap<String, EndpointConfig>) -> Self {
        self.endpoints = endpoints;
        self
    }

    /// Spelling of listed names. Default colon.
    #[must_use]
    pub fn tool_names(mut self, names: ToolNames) -> Self {
        self.names = names;
        self
    }

    /// Items on one page of a list. Default 500.
    #[must_use]
    pub fn page_size(mut self, size: usize) -> Self {
        self.config.page_size = size.max(1);
        self
    }

    /// Serves the four meta-tools in front of the apps. Without it every tool is listed and called directly.
    #[must_use]
    pub fn code_mode(mut self, config: CodeCallConfig) -> Self {
        self.code_mode = Some(config);
        self
    }

    /// The program that runs scripts. Default: this program with the argument `worker`, which must then call
    /// [`worker_main`](crate::worker_main) first thing in `main`.
    #[must_use]
    pub fn worker(mut self, command: WorkerCommand) -> Self {
        self.worker = Some(command);
        self
    }

    /// Counts every call.
    #[must_use]
    pub fn rate_limiter(mut self, limiter: Arc<dyn RateLimiter>) -> Self {
        self.limiter = Some(limiter);
        self
    }

    /// Seals ids of tasks and the state of requests with a key that several instances share. Default: one of this process.
    #[must_use]
    pub fn seal_key(mut self, key: SealKey) -> Self {
        self.seal_key = Some(key);
        self
    }

    /// Keeps the journals of scripts in `executions`. Default: in memory.
    #[must_use]
    pub fn executions(mut self, executions: Executions) -> Self {
        self.executions = Some(executions);
        self
    }

    /// Keeps approvals of calls in `store`. Default: in memory.
    #[must_use]
    pub fn approvals(mut self, store: Arc<ApprovalStore>) -> Self {
        self.approvals = Some(store);
        self
    }

    /// Definitions of tools that were approved, for apps with [`AppOptions::pin`]. Default: none, so that they are pinned as they are found.
    #[must_use]
    pub fn pins(mut self, pins: Arc<Pins>) -> Self {
        self.pins = pins;
        self
    }

    /// Reports every call to `observer`; may be called again.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Keeps no journals of scripts, which can then neither wait nor run in the background: to measure what journals cost.
    #[doc(hidden)]
    #[must_use]
    pub fn without_journals(self) -> Self {
        Self { has_journals: false, ..self }
    }

    /// Leaves it to a guard to begin the runs in the background.
    #[cfg(feature = "guard")]
    pub(crate) fn guarded(self) -> Self {
        Self { is_guarded: true, ..self }
    }

    /// Sends the last traces when the gateway stops.
    #[cfg(feature = "guard")]
    pub(crate) fn sending(mut self, sending: Sending) -> Self {
        self.sending = Some(sending);
        self
    }

    /// Starts the workers and puts everything together. Needs a Tokio runtime.
    ///
    /// # Errors
    /// A field of the code mode's configuration cannot be used, no worker can be started, or `worker.requireSandbox` is set and the kernel lacks what the sandbox needs.
    pub fn build(self) -> Result<Running, WorkerError> {
        let registry = Registry::new(self.names);
        registry.adopt_pins(&self.pins);
        registry.set_endpoints(&self.endpoints);
        for (id, app, options) in self.apps {
            registry.add(&id, app, options);
        }
        let mut invoker = Invoker::new(registry);
        if let Some(limiter) = self.limiter {
            invoker = invoker.rate_limiter(limiter);
        }
        if let Some(key) = &self.seal_key {
            invoker = invoker.seal_key(key);
        }
        if let Some(store) = self.approvals {
            invoker = invoker.approvals_in(store);
        }
        let invoker = Arc::new(invoker);
        let executions =
            self.executions.unwrap_or_else(|| Executions::in_memory(ExecutionsConfig::default()));
        let (mut plugins, mut code_mode): (Vec<Arc<dyn Plugin>>, _) = (Vec::new(), None);
        if let Some(config) = self.code_mode {
            if let Some(problem) = config.problems().first() {
                return Err(WorkerError::StartupFailed(format!("codecall.{problem}")));
            }
            let mut workers: PoolConfig = config.worker.pool();
            if let Some(command) = self.worker {
                workers = workers.command(command);
            }
            let pool = WorkerPool::new(workers)?;
            let plugin = CodeCall::new(config, invoker.clone(), pool.clone(), self.names);
            let plugin = plugin.kept_in(executions.clone());
            let plugin = Arc::new(if self.has_journals { plugin } else { plugin.without_journals() });
            if !self.is_guarded {
                plugin.run_in_background(None);
            }
            for plans in &self.plans {
                plugin.run_plans_of(plans);
            }
            plugins.push(plugin.clone());
            code_mode = Some((plugin, pool));
        }
        let gateway = Gateway::new(self.config, invoker, plugins).observed_by(self.observers);
        Ok(Running {
            gateway: Arc::new(gateway),
            code_mode,
            executions,
            #[cfg(feature = "guard")]
            sending: self.sending,
        })
    }
}

/// A gateway with its apps and workers running.
pub struct Running {
    gateway: Arc<Gateway>,
    code_mode: Option<(Arc<CodeCall>, Arc<WorkerPool>)>,
    executions: Executions,
    #[cfg(feature = "guard")]
    sending: Option<Sending>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("gateway", &self.gateway).finish_non_exhaustive()
    }
}

impl Running {
    /// The MCP server, for any transport.
    pub fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// Code mode, when it is on.
    pub fn code_call(&self) -> Option<&Arc<CodeCall>> {
        self.code_mode.as_ref().map(|(plugin, _)| plugin)
    }

    /// The workers that run scripts, when code mode is on.
    pub fn pool(&self) -> Option<&Arc<WorkerPool>> {
        self.code_mode.as_ref().map(|(_, pool)| pool)
    }

    /// The journals of scripts.
    pub fn executions(&self) -> &Executions {
        &self.executions
    }

    /// An HTTP server in front of it.
    pub fn http(&self, config: HttpConfig) -> ServerBuilder {
        Server::builder(self.gateway.clone(), config)
    }

    /// Stops apps and workers, and sends the last traces. Scripts under way get `POOL_DISPOSED`.
    pub async fn stop(self) {
        self.gateway.stop();
        if let Some((plugin, _)) = &self.code_mode {
            plugin.close().await;
        }
        self.gateway.registry().shutdown().await;
        if let Some((_, pool)) = self.code_mode {
            pool.shutdown().await;
        }
        self.executions.close().await;
        #[cfg(feature = "guard")]
        if let Some(sending) = self.sending
            && tokio::time::timeout(FLUSH, sending.finish()).await.is_err()
        {
            tracing::warn!("stopping without the last traces: the collector did not accept them in time");
        }
    }
}
