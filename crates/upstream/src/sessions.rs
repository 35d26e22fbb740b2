//! Notices that a Streamable HTTP connection goes on in another session.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::Notify;

/// The sessions of one connection. `rmcp` opens another one by itself when the server does not know the first any more.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sessions(Arc<(AtomicBool, Notify)>);

impl Sessions {
    /// Notes a session that began.
    pub(crate) fn began(&self) {
        let (has_begun, renewed) = &*self.0;
        if has_begun.swap(true, Ordering::SeqCst) {
            renewed.notify_one();
        }
    }

    /// Waits until another session took the place of one.
    pub(crate) async fn renewed(&self) {
        self.0.1.notified().await;
    }
}
