//! Progress of a call that is part of another one.

use std::sync::Arc;

use rmcp::model::ProgressNotificationParam;

use crate::AppFuture;

type Receive = dyn Fn(ProgressNotificationParam) -> AppFuture<'static, ()> + Send + Sync;

/// Receives the progress of a call in place of its client, whose token belongs to the call around it. An extension of the call's context.
#[derive(Clone)]
pub struct ProgressSink(Arc<Receive>);

impl ProgressSink {
    /// A sink that hands each notification to `receive`.
    pub fn new(
        receive: impl Fn(ProgressNotificationParam) -> AppFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(receive))
    }

    /// Hands on one notification. Its token means nothing.
    pub async fn receive(&self, progress: ProgressNotificationParam) {
        (self.0)(progress).await;
    }
}

impl std::fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProgressSink")
    }
}
