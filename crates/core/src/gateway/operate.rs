//! Tells observers of every request but `tools/call`.

use std::pin::Pin;

use rmcp::{ErrorData, RoleServer, service::RequestContext};

use super::Gateway;
use crate::{Subject, observe::OperationWatch};

impl Gateway {
    /// Does `work` for a request of `method`, and tells how it went. Servers that are asked for it hear of the trace.
    pub(super) fn operate<T>(
        &self,
        method: &'static str,
        subject: Option<Subject>,
        mut context: RequestContext<RoleServer>,
        work: impl AsyncFnOnce(RequestContext<RoleServer>) -> Result<T, ErrorData>,
    ) -> Pin<Box<impl Future<Output = Result<T, ErrorData>>>> {
        Box::pin(async move {
            let observers = &self.shared.observers;
            if observers.is_empty() {
                return work(context).await;
            }
            let watch = OperationWatch::begin(observers, method, subject, &context);
            watch.tell(&mut context.meta.0);
            let answer = work(context).await;
            watch.end(&answer);
            answer
        })
    }

    /// As [`Gateway::operate`], for a stream that its client ends by going away.
    pub(super) fn watch_stream(
        &self,
        method: &'static str,
        context: &RequestContext<RoleServer>,
    ) -> Option<OperationWatch> {
        let observers = &self.shared.observers;
        (!observers.is_empty()).then(|| OperationWatch::begin(observers, method, None, context).ends_well())
    }

    /// What a request is about, made only where somebody is told.
    pub(super) fn observed(&self, subject: impl FnOnce() -> Option<Subject>) -> Option<Subject> {
        if self.shared.observers.is_empty() { None } else { subject() }
    }

    /// A prompt that is served: clients could make any number of names.
    pub(super) fn known_prompt(&self, name: &str) -> Option<Subject> {
        let snapshot = self.shared.registry.snapshot();
        snapshot.prompt(name).map(|prompt| Subject::Prompt(prompt.key.as_str().into()))
    }
}
