//! Collecting the pages of a tool's result in one call. `app` has what apps can do about it.

use std::sync::Arc;

use rmcp::model::JsonObject;

use crate::{AppFuture, InvokeError};

/// Decides on the pages of a call, and counts them against the limits of its caller.
pub trait PageGate: Send + Sync + 'static {
    /// Passes one page more, which is what a call with these arguments would return. Returns `false` if the caller may not make this call: the result
    /// is what was collected before. The first page is the call itself.
    ///
    /// # Errors
    /// The caller may have no more pages.
    fn pass(&self, arguments: JsonObject) -> AppFuture<'_, Result<bool, InvokeError>>;
}

/// Has the app collect the items of all pages of a call: an extension of the context of the call. The result is then
/// `{"items": […], "hasMore": …, "pages": …}` whatever the tool's output schema says.
#[derive(Clone)]
pub struct Paginate {
    /// Items to collect, at least 1.
    pub max: usize,
    /// Decides on the pages.
    pub gate: Arc<dyn PageGate>,
}

impl std::fmt::Debug for Paginate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Paginate").field("max", &self.max).finish_non_exhaustive()
    }
}
