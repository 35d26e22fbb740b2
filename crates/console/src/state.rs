//! State of the request handlers.

use std::sync::Arc;

use gatewright_codecall::CodeCall;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{
    guard::RequestGuard, health::HealthWatch, history::ExecutionHistory, instances::Instances,
    operator::OperatorClient,
};

/// The configuration that a server runs with, for people: no secrets are in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigurationView {
    /// 1 for the configuration at the start; one more for each that was applied.
    pub generation: u64,
    /// The file as it is now has errors; the last good one stays in force.
    pub refused: bool,
    /// Number of names in it of things that do not exist, and of other points at which it and the apps do not agree.
    pub unknown_names: usize,
    /// The first of these, each in a sentence.
    pub notes: Vec<String>,
    /// Keys whose values in the file wait for a restart, sorted.
    pub restart: Vec<String>,
    /// Keys of the file with their values, sorted.
    pub values: Vec<(String, String)>,
}

/// Reads the configuration that is in force.
pub(crate) type ReadConfiguration = Arc<dyn Fn() -> ConfigurationView + Send + Sync>;

/// The gateway, and what the pages share.
pub(crate) struct ConsoleState {
    pub(crate) operator: OperatorClient,
    pub(crate) code_call: Option<Arc<CodeCall>>,
    pub(crate) history: Arc<ExecutionHistory>,
    pub(crate) health: HealthWatch,
    pub(crate) instances: Instances,
    pub(crate) read_configuration: Option<ReadConfiguration>,
    /// Shows scripts, arguments and answers of journals.
    pub(crate) shows_contents: bool,
    pub(crate) guard: Arc<RequestGuard>,
    /// Places for pages that receive live updates.
    pub(crate) live: Arc<Semaphore>,
    /// Ends live updates and background work.
    pub(crate) stop: CancellationToken,
}

impl ConsoleState {
    /// The configuration in force; none where no file is served.
    pub(crate) fn configuration(&self) -> Option<ConfigurationView> {
        self.read_configuration.as_ref().map(|read| read())
    }
}
