//! An execution from its beginning to its end.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResponse, JsonObject},
    service::RequestContext,
};
use sha2::{Digest as _, Sha256};

use super::{
    Arrival, Ending, Execution, Observers, ScriptFacts, Trail, arrival,
    ending::{ended, text_bytes},
};
use crate::{Principal, names::clipped};

/// An execution under way. Dropped before its end, it is reported as cancelled.
pub(crate) struct ExecutionWatch {
    observers: Observers,
    trail: Trail,
    execution: Option<Execution>,
}

/// An execution at its start.
pub(crate) struct Begun<'a> {
    pub(crate) tool: Arc<str>,
    pub(crate) is_meta: bool,
    pub(crate) is_known: bool,
    pub(crate) principal: &'a Principal,
    pub(crate) arguments: Option<&'a JsonObject>,
    /// None for a request that is refused before it has one.
    pub(crate) context: Option<&'a RequestContext<RoleServer>>,
    pub(crate) address: Option<IpAddr>,
    /// `true` for a request of a client.
    pub(crate) by_client: bool,
    /// The id of a plan that goes on without a client.
    pub(crate) plan: Option<Arc<str>>,
}

impl ExecutionWatch {
    /// To be called when there are observers.
    pub(crate) fn begin(observers: &Observers, begun: Begun<'_>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let context = begun.context;
        let script = begun.arguments.filter(|_| begun.is_meta).and_then(|all| all.get("script")?.as_str());
        let trace = context.and_then(|context| observers.place(|| arrival::place(context)));
        let has_arrival = begun.by_client && trace.as_ref().is_some_and(|trace| trace.sampled);
        let execution = Execution {
            id: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            tool: if begun.is_known { begun.tool } else { clipped(&begun.tool).into() },
            is_meta: begun.is_meta,
            is_known: begun.is_known,
            principal: begun.principal.clone(),
            address: begun.address,
            plan: begun.plan,
            started: SystemTime::now(),
            duration: Duration::ZERO,
            ending: Ending::CANCELLED,
            bytes: None,
            script: script.map(|text| ScriptFacts { sha256: Sha256::digest(text).into(), bytes: text.len() }),
            arguments: begun.arguments.filter(|_| observers.arguments).cloned(),
            calls: Vec::new(),
            more_calls: 0,
            exchanges: Vec::new(),
            trace: trace.clone(),
            arrival: context.filter(|_| has_arrival).map(Arrival::of).unwrap_or_default(),
        };
        Self { observers: observers.clone(), trail: Trail::new(trace), execution: Some(execution) }
    }

    pub(crate) fn trail(&self) -> Trail {
        self.trail.clone()
    }

    /// It was refused with `code`.
    pub(crate) fn end_refused(mut self, code: &'static str) {
        if let Some(execution) = &mut self.execution {
            execution.ending = Ending::new(code);
        }
    }

    /// As [`ExecutionWatch::end`], for a call that no client asked for.
    pub(crate) fn end_invoked(mut self, answer: &Result<CallToolResponse, crate::InvokeError>) {
        if let Some(execution) = &mut self.execution {
            (execution.ending, execution.bytes) = ended(answer);
        }
    }

    pub(crate) fn end(mut self, answer: &Result<CallToolResponse, ErrorData>) {
        if let Some(execution) = &mut self.execution {
            execution.ending = Ending::of(answer);
            execution.bytes = answer.as_ref().ok().and_then(text_bytes);
        }
    }
}

/// A plan that goes on without a client.
#[derive(Debug)]
pub struct PlanFacts<'a> {
    /// The id of its execution.
    pub id: &'a str,
    /// The meta-tool that began it.
    pub tool: &'a str,
    /// Its script.
    pub script: &'a str,
    /// Calls that an instance made which is gone, and their status: it may have told no observer of them.
    pub earlier: Vec<(String, String)>,
    /// Address of whoever began it.
    pub address: Option<IpAddr>,
}

/// Watches a plan that goes on without a client. Dropped before the end of [`PlanWatch::end`], it is reported as cancelled.
#[must_use]
pub struct PlanWatch(Option<ExecutionWatch>);

impl PlanWatch {
    /// Watches `plan` of `principal`. Its calls are made with `context`.
    pub(crate) fn begin(
        observers: &Observers,
        plan: PlanFacts<'_>,
        principal: &Principal,
        context: &mut RequestContext<RoleServer>,
    ) -> Self {
        if observers.is_empty() {
            return Self(None);
        }
        let arguments = JsonObject::from_iter([("script".to_owned(), plan.script.into())]);
        let watch = ExecutionWatch::begin(
            observers,
            Begun {
                tool: plan.tool.into(),
                is_meta: true,
                is_known: true,
                principal,
                arguments: Some(&arguments),
                context: Some(context),
                address: plan.address,
                by_client: false,
                plan: Some(plan.id.into()),
            },
        );
        for (tool, status) in plan.earlier {
            watch.trail.note_earlier(&tool, status);
        }
        context.extensions.insert(watch.trail());
        Self(Some(watch))
    }

    /// It ended, waits, or is left to others, with this answer.
    pub fn end(self, answer: CallToolResponse) {
        if let Some(watch) = self.0 {
            watch.end(&Ok(answer));
        }
    }
}

impl Drop for ExecutionWatch {
    fn drop(&mut self) {
        let Some(mut execution) = self.execution.take() else { return };
        execution.duration = self.trail.elapsed();
        (execution.calls, execution.more_calls) = self.trail.end();
        execution.exchanges = self.trail.take_exchanges();
        for observer in self.observers.all.iter() {
            observer.finished(&execution);
        }
    }
}
