//! The run: tool by tool, each with its share of the time.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{
    cases::{Cases, Fit},
    choose,
    finding::{Finding, FuzzReport, LIST, Promise, ToolReport},
    judge::{Broken, judge, of_violation},
    shrink::smaller,
    suite_text,
    target::Target,
    watch::Shown,
};
use crate::{
    base::text::shorten,
    client::Mcp,
    protocol::{ClientError, Tool, ToolResult},
    shapes::Violation,
};

/// Options of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FuzzOptions {
    /// The seed of random inputs. Default 1.
    pub seed: u64,
    /// Time of the run, shared among the tools. Default 30 s. The run may take the time of one call longer.
    pub time: Duration,
    /// Time within which a call is answered. Default 5 s.
    pub call_timeout: Duration,
    /// Calls of each tool at most. Default: as many as the time allows.
    pub max_calls: Option<usize>,
    /// Tools to call, also such that may destroy something. Empty: all that cannot.
    pub tools: Vec<String>,
    /// Calls tools that may destroy something, too. Default false.
    pub destructive: bool,
}

impl Default for FuzzOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            time: Duration::from_secs(30),
            call_timeout: Duration::from_secs(5),
            max_calls: None,
            tools: Vec::new(),
            destructive: false,
        }
    }
}

/// Calls that shrink one finding.
const MOST_SHRINKING: usize = 30;
/// Calls without an answer, or that end the server, after which a tool is left.
const MOST_FATAL: usize = 3;
/// Findings of one run.
const MOST_FINDINGS: usize = 200;

/// Calls the tools of a server with valid, boundary and invalid inputs, and reports the promises that they break.
///
/// # Errors
/// The server cannot be reached, or does not list its tools.
pub fn fuzz<'a>(
    target: &'a Target,
    options: &'a FuzzOptions,
) -> BoxFuture<'a, Result<FuzzReport, ClientError>> {
    Box::pin(async move {
        let started = Instant::now();
        let mcp = target.connect(options.call_timeout).await?;
        let tools = match mcp.has_capability("tools") {
            true => mcp.tools().list().await?,
            false => Vec::new(),
        };
        if let Some(unknown) = options.tools.iter().find(|name| !tools.iter().any(|tool| tool.name == **name))
        {
            return Err(ClientError::Shape {
                method: "tools/list".into(),
                problem: gatewright_findings::unknown(
                    &format!("tool `{unknown}`"),
                    unknown,
                    tools.iter().map(|tool| tool.name.as_str()),
                ),
                answer: String::new(),
            });
        }
        let listed = mcp.take_violations();
        let mut run = Run {
            target,
            options,
            mcp,
            report: FuzzReport { seed: options.seed, ..FuzzReport::default() },
            known: HashMap::new(),
        };
        let reasons: Vec<_> = tools.iter().map(|tool| options.reason_to_leave_out(tool)).collect();
        let mut left = reasons.iter().filter(|reason| reason.is_none()).count();
        for (tool, reason) in tools.iter().zip(reasons) {
            let mut report = ToolReport { name: tool.name.clone(), valid: 0, invalid: 0, left_out: reason };
            if report.left_out.is_none() && run.report.stopped.is_none() {
                let rest = options.time.saturating_sub(started.elapsed());
                let share = rest / u32::try_from(left.max(1)).unwrap_or(1);
                left -= 1;
                match share.is_zero() {
                    true => report.left_out = Some("no time was left for it".into()),
                    false => run.tool(tool, &mut report, Instant::now() + share).await,
                }
            }
            run.report.tools.push(report);
        }
        run.mcp.disconnect().await;
        let mut report = run.report;
        report.findings.extend(listed.iter().map(|one| {
            let broken = of_violation(one);
            Finding {
                promise: broken.promise,
                severity: broken.severity,
                tool: LIST.to_owned(),
                arguments: Value::Null,
                problem: broken.problem,
                answer: broken.answer,
                times: 1,
            }
        }));
        report
            .findings
            .sort_by(|one, other| other.severity.cmp(&one.severity).then(one.promise.cmp(&other.promise)));
        if !report.findings.is_empty() {
            report.suite = suite_text::of(
                target.section().as_ref(),
                options.seed,
                &report.findings,
                options.call_timeout,
            );
        }
        Ok(report)
    })
}

impl FuzzOptions {
    fn reason_to_leave_out(&self, tool: &Tool) -> Option<String> {
        match (self.tools.is_empty(), self.tools.contains(&tool.name)) {
            (false, true) => None,
            (false, false) => Some("it was not asked for".into()),
            (true, _) if self.destructive => None,
            (true, _) => choose::reason_to_leave_out(tool),
        }
    }
}

struct Run<'a> {
    target: &'a Target,
    options: &'a FuzzOptions,
    mcp: Mcp,
    report: FuzzReport,
    /// Findings by tool, promise and kind.
    known: HashMap<(String, Promise, String), usize>,
}

impl Run<'_> {
    async fn tool(&mut self, tool: &Tool, report: &mut ToolReport, until: Instant) {
        let mut cases = match Cases::new(&tool.name, &tool.input_schema, self.options.seed) {
            Ok(cases) => cases,
            Err(reason) => return report.left_out = Some(reason),
        };
        let before = if choose::is_read_only(tool) { self.steady().await } else { None };
        let (mut fatal, mut last) = (0, json!({}));
        let most = self.options.max_calls.unwrap_or(usize::MAX);
        while report.valid + report.invalid < most && fatal < MOST_FATAL && Instant::now() < until {
            if self.report.stopped.is_some() {
                return;
            }
            let arguments = cases.next();
            let fit = cases.fit(&arguments);
            match fit {
                Fit::Unjudged => continue,
                Fit::Valid => report.valid += 1,
                Fit::Invalid(_) | Fit::Extra => report.invalid += 1,
            }
            let broken = self.call(tool, &cases, fit, &arguments).await;
            for one in broken {
                fatal += usize::from(matches!(one.promise, Promise::Alive | Promise::Answers));
                self.found(tool, &cases, fit, &arguments, one, until).await;
            }
            last = arguments;
            // A schema without properties has few different inputs.
            if cases.is_random()
                && tool.input_schema["properties"].as_object().is_none_or(serde_json::Map::is_empty)
            {
                break;
            }
        }
        if let Some(before) = before
            && let Some(after) = self.steady().await
            && let Some(difference) = before.difference(&after)
        {
            let problem =
                format!("the tool says that it only reads, and {difference} is another after its calls");
            let broken = Broken::new(Promise::ReadOnly, "state", problem, "");
            self.found(tool, &cases, Fit::Valid, &last, broken, Instant::now()).await;
        }
    }

    /// The state of the server, if two looks at it are the same.
    async fn steady(&self) -> Option<Shown> {
        let timeout = self.options.call_timeout;
        let shown = Shown::read(&self.mcp, timeout).await;
        (shown == Shown::read(&self.mcp, timeout).await).then_some(shown)
    }

    /// Calls a tool and returns the promises that it breaks. Connects again after a call that ends the server.
    async fn call(&mut self, tool: &Tool, cases: &Cases, fit: Fit, arguments: &Value) -> Vec<Broken> {
        let outcome: Result<ToolResult, ClientError> =
            self.mcp.tools().call(&tool.name, arguments.clone()).await;
        let problem = if fit == Fit::Valid { String::new() } else { cases.problem(arguments) };
        let mut broken = judge(fit, arguments, &outcome, &problem, self.target.canary());
        // The handshake and the list are reported for themselves.
        let of_call = |one: &&Violation| !matches!(one.method.as_str(), "initialize" | "tools/list");
        broken.extend(self.mcp.take_violations().iter().filter(of_call).map(of_violation));
        if choose::is_read_only(tool)
            && let Some(change) = self.change()
        {
            // Servers tell of changes of their own, too, such as at their start.
            self.mcp.forget();
            let _ = self.mcp.tools().call(&tool.name, arguments.clone()).await;
            if self.change().as_ref() == Some(&change) {
                let problem = format!("the tool says that it only reads, and the server sent `{change}`");
                broken.push(Broken::new(Promise::ReadOnly, &change, problem, ""));
            }
        }
        match outcome {
            Err(ClientError::TimedOut { after, .. }) => {
                let problem = format!("the call was not answered within {after:?}");
                broken.push(Broken::new(Promise::Answers, "", problem, ""));
                if !self.is_answering().await {
                    let problem = "after this call the server answers nothing any more, not even `ping`";
                    broken.push(Broken::new(Promise::Alive, "blocked", problem, ""));
                    self.reconnect().await;
                }
            }
            Err(ClientError::Closed(reason)) => {
                let problem = format!("the call ended the server: {}", shorten(&reason, 600));
                broken.push(Broken::new(Promise::Alive, "ended", problem, ""));
                self.reconnect().await;
            }
            Err(ClientError::Refused { status, .. }) => {
                self.report.stopped =
                    Some(format!("the server refused a call with HTTP {status}; it may need a token"));
            }
            _ => {}
        }
        self.mcp.forget();
        broken
    }

    /// The method of a notification that a list has changed.
    fn change(&self) -> Option<String> {
        let all = self.mcp.notifications().all().into_iter();
        all.map(|one| one.method).find(|method| method.ends_with("/list_changed"))
    }

    async fn is_answering(&self) -> bool {
        let ping = self.mcp.raw().request(crate::protocol::RpcRequest::new("ping", json!({})).id("ping"));
        !matches!(ping.await, Err(ClientError::TimedOut { .. } | ClientError::Closed(_)))
    }

    async fn reconnect(&mut self) {
        self.mcp.disconnect().await;
        let connected = async {
            match self.target.connect(self.options.call_timeout).await {
                // A server that restarts may need a moment.
                Err(_) => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    self.target.connect(self.options.call_timeout).await
                }
                connected => connected,
            }
        };
        match connected.await {
            Ok(mcp) => self.mcp = mcp,
            Err(error) => {
                self.report.stopped =
                    Some(format!("the server does not come back: {}", shorten(&error.to_string(), 600)));
            }
        }
    }

    /// Keeps a finding, or counts it if there is one of its kind. A new one is shrunk.
    async fn found(
        &mut self,
        tool: &Tool,
        cases: &Cases,
        fit: Fit,
        arguments: &Value,
        broken: Broken,
        until: Instant,
    ) {
        let key = (tool.name.clone(), broken.promise, broken.kind.clone());
        if let Some(at) = self.known.get(&key) {
            self.report.findings[*at].times += 1;
            return;
        }
        if self.report.findings.len() >= MOST_FINDINGS {
            return;
        }
        let (arguments, broken) = self.shrunk(tool, cases, fit, arguments.clone(), broken, until).await;
        self.known.insert(key, self.report.findings.len());
        self.report.findings.push(Finding {
            promise: broken.promise,
            severity: broken.severity,
            tool: tool.name.clone(),
            arguments,
            problem: broken.problem,
            answer: broken.answer,
            times: 1,
        });
    }

    /// The smallest input that was found to break the same promise in the same way.
    async fn shrunk(
        &mut self,
        tool: &Tool,
        cases: &Cases,
        fit: Fit,
        mut arguments: Value,
        mut broken: Broken,
        until: Instant,
    ) -> (Value, Broken) {
        let mut calls = match broken.promise {
            Promise::ReadOnly | Promise::Answers => 0,
            // Each starts the server again.
            Promise::Alive => MOST_SHRINKING / 3,
            _ => MOST_SHRINKING,
        };
        'smaller: loop {
            for candidate in smaller(&arguments) {
                if calls == 0 || Instant::now() >= until || self.report.stopped.is_some() {
                    break 'smaller;
                }
                if cases.fit(&candidate) != fit {
                    continue;
                }
                calls -= 1;
                let again = self.call(tool, cases, fit, &candidate).await;
                let same =
                    again.into_iter().find(|one| one.promise == broken.promise && one.kind == broken.kind);
                if let Some(same) = same {
                    (arguments, broken) = (candidate, same);
                    continue 'smaller;
                }
            }
            break;
        }
        (arguments, broken)
    }
}
