//! Progress of a plan: the calls that are done, and the progress of those that are not.

use std::sync::{Arc, Mutex, PoisonError};

use gatewright_agentscript::excerpt;
use gatewright_core::{
    ProgressSink,
    rmcp::{
        RoleServer,
        model::{NumberOrString, ProgressNotificationParam, ProgressToken},
        service::{Peer, RequestContext},
    },
};

/// Part of the way to the next whole number that the progress of an open call goes, so that the value always grows and a whole number is
/// always a call that is done.
const PART: f64 = 1.0 / 64.0;

/// The progress of one script or plan, for the client or the script that asked for it.
pub(crate) struct PlanProgress {
    listener: Listener,
    value: Mutex<f64>,
}

/// The receiver of progress.
enum Listener {
    Client(Peer<RoleServer>, ProgressToken),
    /// The call of a plan is part of another run.
    Run(ProgressSink),
}

impl PlanProgress {
    /// Of the script or plan of `context`, if somebody wants to hear of progress.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        let listener = match context.extensions.get::<ProgressSink>() {
            Some(run) => Listener::Run(run.clone()),
            None => Listener::Client(context.peer.clone(), context.meta.get_progress_token()?),
        };
        Some(Self { listener, value: Mutex::new(0.0) })
    }

    /// Tells of a step that is done.
    pub(crate) async fn step(&self, message: String) {
        let value = self.advance(|value| value.floor() + 1.0);
        self.send(value, message).await;
    }

    /// Receives the progress of a call of `name`.
    pub(crate) fn sink(self: &Arc<Self>, name: &str) -> ProgressSink {
        let (progress, name): (_, Arc<str>) = (self.clone(), name.into());
        ProgressSink::new(move |inner| {
            let (progress, name) = (progress.clone(), name.clone());
            Box::pin(async move { progress.part(&name, inner).await })
        })
    }

    async fn part(&self, name: &str, inner: ProgressNotificationParam) {
        let state = match (inner.message, inner.total) {
            (Some(message), _) => excerpt::name(&message).into_owned(),
            (None, Some(total)) => format!("{} of {total}", inner.progress),
            (None, None) => inner.progress.to_string(),
        };
        let value = self.advance(|value| value + (value.floor() + 1.0 - value) * PART);
        self.send(value, format!("{}: {state}", excerpt::name(name))).await;
    }

    /// The next value; none when it would not be a larger one.
    fn advance(&self, next: impl FnOnce(f64) -> f64) -> Option<f64> {
        let mut value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        let next = next(*value);
        let grows = next > *value && (next.fract() == 0.0 || next < value.floor() + 1.0);
        *value = if grows { next } else { *value };
        grows.then_some(next)
    }

    async fn send(&self, value: Option<f64>, message: String) {
        let Some(value) = value else { return };
        let params = |token| ProgressNotificationParam::new(token, value).with_message(message);
        match &self.listener {
            // A client that is gone needs no progress.
            Listener::Client(peer, token) => drop(peer.notify_progress(params(token.clone())).await),
            Listener::Run(run) => run.receive(params(ProgressToken(NumberOrString::Number(0)))).await,
        }
    }
}
