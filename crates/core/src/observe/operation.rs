//! A request of a client for anything but a tool.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use rmcp::{ErrorData, RoleServer, model::JsonObject, service::RequestContext};

use super::{Arrival, CallerAddress, Ending, Observers, arrival};
use crate::{Principal, TraceContext};

/// The object of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A prompt that is served, by its public name.
    Prompt(Arc<str>),
    /// A resource, by its URI as the client wrote it.
    Resource(Box<str>),
}

/// One request of a client for anything but `tools/call`.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The method, such as `resources/read`; `_OTHER` for one that is not served.
    pub method: &'static str,
    /// The object, where the method names one.
    pub subject: Option<Subject>,
    /// The caller's principal.
    pub principal: Principal,
    /// The caller's address, over HTTP.
    pub address: Option<IpAddr>,
    /// Start time.
    pub started: SystemTime,
    /// Duration.
    pub duration: Duration,
    /// Outcome.
    pub ending: Ending,
    /// Its place in a trace, when traces are wanted.
    pub trace: Option<TraceContext>,
    /// Transport details, if its trace is recorded.
    pub arrival: Arrival,
}

/// An operation under way. Dropped before its end, it is reported as cancelled.
pub(crate) struct OperationWatch {
    observers: Observers,
    began: Instant,
    operation: Option<Operation>,
}

impl OperationWatch {
    pub(crate) fn begin(
        observers: &Observers,
        method: &'static str,
        subject: Option<Subject>,
        principal: &Principal,
        context: &RequestContext<RoleServer>,
    ) -> Self {
        let trace = observers.place(|| arrival::place(context));
        let is_sampled = trace.as_ref().is_some_and(|trace| trace.sampled);
        let operation = Operation {
            method,
            subject,
            principal: principal.clone(),
            address: CallerAddress::of(context).map(|at| at.0),
            started: SystemTime::now(),
            duration: Duration::ZERO,
            ending: Ending::CANCELLED,
            trace,
            arrival: if is_sampled { Arrival::of(context) } else { Arrival::default() },
        };
        Self { observers: observers.clone(), began: Instant::now(), operation: Some(operation) }
    }

    /// Being dropped is how it ends, and no failure.
    pub(crate) fn ends_well(mut self) -> Self {
        if let Some(operation) = &mut self.operation {
            operation.ending = Ending::OK;
        }
        self
    }

    /// Tells the server that is asked of the trace.
    pub(crate) fn tell(&self, meta: &mut JsonObject) {
        if let Some(trace) = self.operation.as_ref().and_then(|operation| operation.trace.as_ref()) {
            trace.tell(meta);
        }
    }

    pub(crate) fn end<T>(mut self, answer: &Result<T, ErrorData>) {
        if let Some(operation) = &mut self.operation {
            operation.ending = answer.as_ref().err().map_or(Ending::OK, Ending::of_error);
        }
    }
}

impl Drop for OperationWatch {
    fn drop(&mut self) {
        let Some(mut operation) = self.operation.take() else { return };
        operation.duration = self.began.elapsed();
        for observer in self.observers.all.iter() {
            observer.operated(&operation);
        }
    }
}
