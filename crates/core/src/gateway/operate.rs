//! Tells observers of every request but `tools/call`.

use std::pin::Pin;

use rmcp::{ErrorData, RoleServer, service::RequestContext};
use tokio_util::sync::CancellationToken;

use super::Gateway;
use crate::{Caller, REQUEST_CANCELLED, Subject, names::LONGEST_URI, observe::OperationWatch};

/// The object of a request.
#[derive(Debug, Clone)]
pub(super) enum About {
    Nothing,
    Resource(String),
    Prompt(String),
}

impl About {
    /// A resource, by as much of its URI as is ever looked at.
    pub(super) fn resource(uri: &str) -> Self {
        Self::Resource(uri[..uri.floor_char_boundary(LONGEST_URI)].to_owned())
    }
}

/// The end of a request that its client cancels, or that it does not wait for any more.
struct Ends {
    method: &'static str,
    client_left: CancellationToken,
}

impl Ends {
    /// Does `work` until the client is gone; dropping it cancels it at the app.
    async fn before<T>(&self, work: impl Future<Output = Result<T, ErrorData>>) -> Result<T, ErrorData> {
        // Answers to a task and its cancellation are for the task: they count although nobody waits for the response.
        if self.method.starts_with("tasks/") {
            return work.await;
        }
        tokio::select! {
            biased;
            answer = work => answer,
            () = self.client_left.cancelled() => {
                Err(ErrorData::new(REQUEST_CANCELLED, format!("{} was cancelled", self.method), None))
            }
        }
    }
}

impl Gateway {
    /// Does `work` for the caller of a request of `method`, and tells how it went. Servers that are asked for it hear of the trace.
    /// A request without a principal is refused, and one that its client cancels ends.
    pub(super) fn operate<T>(
        &self,
        method: &'static str,
        about: About,
        mut context: RequestContext<RoleServer>,
        work: impl AsyncFnOnce(Caller, RequestContext<RoleServer>) -> Result<T, ErrorData>,
    ) -> Pin<Box<impl Future<Output = Result<T, ErrorData>>>> {
        Box::pin(async move {
            let caller = self.caller(&context)?;
            self.note_level(&mut context);
            let ends = Ends { method, client_left: context.ct.clone() };
            let observers = self.shared.invoker.observers();
            if observers.is_empty() {
                return ends.before(work(caller, context)).await;
            }
            let subject = self.subject(about, &caller);
            let watch = OperationWatch::begin(observers, method, subject, caller.principal(), &context);
            watch.tell(&mut context.meta.0);
            let answer = ends.before(work(caller, context)).await;
            watch.end(&answer);
            answer
        })
    }

    /// The object of a request, made only if there are observers.
    pub(super) fn about(&self, about: impl FnOnce() -> About) -> About {
        if self.shared.invoker.observers().is_empty() { About::Nothing } else { about() }
    }

    /// As [`Gateway::operate`], for a stream that its client ends by going away.
    pub(super) fn watch_stream(
        &self,
        method: &'static str,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Option<OperationWatch> {
        let observers = self.shared.invoker.observers();
        let begin = || OperationWatch::begin(observers, method, None, caller.principal(), context);
        (!observers.is_empty()).then(|| begin().ends_well())
    }

    /// A prompt is named if it is served: clients could make any number of names.
    fn subject(&self, about: About, caller: &Caller) -> Option<Subject> {
        match about {
            About::Nothing => None,
            About::Resource(uri) => Some(Subject::Resource(uri.into())),
            About::Prompt(name) => {
                let view = self.shared.registry.view(caller);
                view.known_prompt(&name).map(|prompt| Subject::Prompt(prompt.into()))
            }
        }
    }
}
