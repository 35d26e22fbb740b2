//! The instruments, and what they are fed.

use gatewright_core::{AppHealth, CallRecord, Ending, Execution, Observer, Operation, Registry, Subject};
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry as Instruments,
};

use super::{
    labels::{Labels, SuccessSeries},
    text::render,
};

const TOOLS_CALL: &str = "tools/call";

/// Bounds of durations in seconds: those the conventions advise for `mcp.server.operation.duration`.
const SECONDS: [f64; 13] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// Bounds of sizes in bytes.
const BYTES: [f64; 6] = [256.0, 1024.0, 4096.0, 16384.0, 65536.0, 1_048_576.0];

/// Workers and runs of scripts by state.
#[derive(Debug, Clone, Copy, Default)]
pub struct WorkerCounts {
    /// Workers that wait for a run.
    pub idle: usize,
    /// Runs that wait for a worker.
    pub waiting: usize,
    /// Runs under way.
    pub running: usize,
    /// Workers ended and replaced so far.
    pub replaced: u64,
}

/// The counts of one process.
#[derive(Debug)]
pub struct Metrics {
    all: Instruments,
    labels: Labels,
    operations: HistogramVec,
    calls: HistogramVec,
    script_bytes: Histogram,
    answer_bytes: Histogram,
    limited: IntCounterVec,
    app_up: IntGaugeVec,
    tools: IntGauge,
    idle: IntGauge,
    waiting: IntGauge,
    running: IntGauge,
    replaced: IntCounter,
}

impl Metrics {
    /// Nothing counted yet.
    ///
    /// # Errors
    /// Never in practice: a name or label that Prometheus does not allow.
    pub fn new() -> Result<Self, prometheus::Error> {
        let all = Instruments::new();
        let seconds = |name: &str, help: &str, labels: &[&str]| {
            HistogramVec::new(HistogramOpts::new(name, help).buckets(SECONDS.to_vec()), labels)
        };
        let bytes = |name: &str, help: &str| {
            Histogram::with_opts(HistogramOpts::new(name, help).buckets(BYTES.to_vec()))
        };
        let metrics = Self {
            operations: seconds(
                "mcp_server_operation_duration_seconds",
                "Duration of requests of clients, by method and tool or prompt; error_type is empty for what went well",
                &["mcp_method_name", "gen_ai_tool_name", "gen_ai_prompt_name", "error_type"],
            )?,
            calls: seconds(
                "gatewright_tool_call_duration_seconds",
                "Duration of calls of apps' tools, direct or by code mode",
                &["gen_ai_tool_name", "error_type"],
            )?,
            script_bytes: bytes("gatewright_script_size_bytes", "Length of scripts")?,
            answer_bytes: bytes("gatewright_answer_size_bytes", "Text in answers to clients")?,
            limited: IntCounterVec::new(
                Opts::new("gatewright_rate_limited_total", "Calls refused by a rate limit"),
                &["gen_ai_tool_name"],
            )?,
            app_up: IntGaugeVec::new(
                Opts::new("gatewright_app_up", "1 when the app answers, 0 when it is down or starting"),
                &["app"],
            )?,
            tools: IntGauge::new("gatewright_tools", "Tools that are served")?,
            idle: IntGauge::new("gatewright_workers_idle", "Workers that wait for a script")?,
            waiting: IntGauge::new("gatewright_scripts_waiting", "Scripts that wait for a worker")?,
            running: IntGauge::new("gatewright_scripts_running", "Scripts under way")?,
            replaced: IntCounter::new("gatewright_workers_replaced_total", "Workers ended and replaced")?,
            labels: Labels::default(),
            all,
        };
        metrics.all.register(Box::new(metrics.operations.clone()))?;
        metrics.all.register(Box::new(metrics.calls.clone()))?;
        metrics.all.register(Box::new(metrics.script_bytes.clone()))?;
        metrics.all.register(Box::new(metrics.answer_bytes.clone()))?;
        metrics.all.register(Box::new(metrics.limited.clone()))?;
        metrics.all.register(Box::new(metrics.app_up.clone()))?;
        for gauge in [&metrics.tools, &metrics.idle, &metrics.waiting, &metrics.running] {
            metrics.all.register(Box::new(gauge.clone()))?;
        }
        metrics.all.register(Box::new(metrics.replaced.clone()))?;
        Ok(metrics)
    }

    /// The counts in Prometheus' text format, version 0.0.4. The state of apps and workers is looked at now.
    pub fn render(&self, registry: &Registry, workers: Option<WorkerCounts>) -> String {
        let snapshot = registry.operator_snapshot();
        self.tools.set(size(snapshot.tools.len()));
        // Apps that were taken out have no series any more.
        self.app_up.reset();
        for app in &snapshot.apps {
            let up = matches!(app.app.health(), AppHealth::Up);
            self.app_up.with_label_values(&[&*app.id]).set(i64::from(up));
        }
        if let Some(workers) = workers {
            self.idle.set(size(workers.idle));
            self.waiting.set(size(workers.waiting));
            self.running.set(size(workers.running));
            self.replaced.inc_by(workers.replaced.saturating_sub(self.replaced.get()));
        }
        render(&self.all)
    }
}

fn size(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Metrics {
    fn asked(&self, method: &str, tool: &str, prompt: &str, error: &str) -> Histogram {
        self.operations.with_label_values(&[method, tool, prompt, error])
    }

    fn tool_asked(&self, tool: &str, is_known: bool, ending: &Ending, seconds: f64) {
        let fresh = || self.asked(TOOLS_CALL, tool, "", "");
        let observe = |series: &SuccessSeries| series.asked.get_or_init(fresh).observe(seconds);
        if is_known && ending.is_ok() && self.labels.success(tool, observe).is_some() {
            return;
        }
        let tool = self.labels.tool(tool, is_known);
        self.asked(TOOLS_CALL, tool, "", self.labels.error_type(&[tool], ending)).observe(seconds);
        self.limited(tool, ending);
    }

    fn tool_called(&self, call: &CallRecord, is_counted: bool) {
        let seconds = call.duration.as_secs_f64();
        let fresh = || self.calls.with_label_values(&[&*call.tool, ""]);
        let observe = |series: &SuccessSeries| series.called.get_or_init(fresh).observe(seconds);
        if call.ending.is_ok() && self.labels.success(&call.tool, observe).is_some() {
            return;
        }
        let tool = self.labels.tool(&call.tool, !call.app.is_empty());
        let error = self.labels.error_type(&[tool], &call.ending);
        self.calls.with_label_values(&[tool, error]).observe(seconds);
        if is_counted {
            self.limited(tool, &call.ending);
        }
    }

    fn limited(&self, tool: &str, ending: &Ending) {
        if ending.status() == gatewright_core::codes::RATE_LIMIT {
            self.limited.with_label_values(&[tool]).inc();
        }
    }
}

impl Observer for Metrics {
    fn finished(&self, execution: &Execution) {
        for call in &execution.calls {
            // The refusal of a direct call is counted below.
            self.tool_called(call, execution.is_meta);
        }
        if execution.plan.is_some() {
            // The request that began it was counted.
            return;
        }
        let seconds = execution.duration.as_secs_f64();
        self.tool_asked(&execution.tool, execution.is_known, &execution.ending, seconds);
        if let Some(script) = execution.script {
            self.script_bytes.observe(script.bytes as f64);
        }
        if let Some(bytes) = execution.bytes {
            self.answer_bytes.observe(bytes as f64);
        }
    }

    fn operated(&self, operation: &Operation) {
        let prompt = match &operation.subject {
            Some(Subject::Prompt(prompt)) => self.labels.prompt(prompt),
            _ => "",
        };
        let error = self.labels.error_type(&[operation.method, prompt], &operation.ending);
        self.asked(operation.method, "", prompt, error).observe(operation.duration.as_secs_f64());
    }
}
