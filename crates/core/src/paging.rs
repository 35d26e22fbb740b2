//! Collecting the pages of a tool's result in one call. `app` has what apps can do about it.

use std::sync::Arc;

use crate::{AppFuture, InvokeError};

/// Counts the pages of a call against the limits of its caller.
pub trait PageGate: Send + Sync + 'static {
    /// Counts one page more. The first page is the call itself.
    ///
    /// # Errors
    /// The caller may have no more pages.
    fn pass(&self) -> AppFuture<'_, Result<(), InvokeError>>;
}

/// Has the app collect the items of all pages of a call: an extension of the context of the call. The result is then
/// `{"items": […], "hasMore": …, "pages": …}` whatever the tool's output schema says.
#[derive(Clone)]
pub struct Paginate {
    /// Items to collect, at least 1.
    pub max: usize,
    /// Counts the pages.
    pub gate: Arc<dyn PageGate>,
}

impl std::fmt::Debug for Paginate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Paginate").field("max", &self.max).finish_non_exhaustive()
    }
}
