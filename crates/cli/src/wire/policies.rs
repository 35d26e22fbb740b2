//! The policies of a configuration.

use std::sync::Arc;

use gatewright_core::{Approvals, Policies, PolicyEngine};

use crate::config::Config;

/// The policies of a configuration; none if it has neither policy files nor approvals.
pub fn of(config: &Config) -> Option<Policies> {
    let engine = config.policy_files.engine.clone().map(|engine| engine as Arc<dyn PolicyEngine>);
    let approvals = config.approvals.clone();
    (engine.is_some() || approvals != Approvals::default()).then_some(Policies { engine, approvals })
}
