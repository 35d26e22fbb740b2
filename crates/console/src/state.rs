//! State of the request handlers.

use std::sync::Arc;

use gatewright_codecall::CodeCall;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{guard::RequestGuard, health::HealthWatch, history::ExecutionHistory, operator::OperatorClient};

/// The gateway, and what the pages share.
pub(crate) struct ConsoleState {
    pub(crate) operator: OperatorClient,
    pub(crate) code_call: Option<Arc<CodeCall>>,
    pub(crate) history: Arc<ExecutionHistory>,
    pub(crate) health: HealthWatch,
    pub(crate) guard: Arc<RequestGuard>,
    /// Places for pages that receive live updates.
    pub(crate) live: Arc<Semaphore>,
    /// Ends live updates and background work.
    pub(crate) stop: CancellationToken,
}
