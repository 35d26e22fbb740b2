//! Groups of users, in claims of external providers.

use std::sync::Once;

use gatewright_core::Groups;
use serde_json::Value;

use crate::{config::ProviderConfig, keys::Claims};

/// Name of the claim where the configuration names none.
const DEFAULT_CLAIM: &str = "groups";

impl ProviderConfig {
    /// Returns the name of the claim that lists the groups of users.
    pub(crate) fn groups_claim_name(&self) -> &str {
        self.groups_claim.as_deref().unwrap_or(DEFAULT_CLAIM)
    }

    /// Returns the groups of the user whom `claims` are about. Without the claim there are none, nor with one that is not a list of strings within the
    /// bounds of [`Groups`]: part of such a list might hold other groups the next time.
    pub(crate) fn groups(&self, claims: &Claims) -> Groups {
        let name = self.groups_claim_name();
        let Some(value) = claims.get(name).filter(|value| !value.is_null()) else { return Groups::default() };
        let names: Option<Vec<&str>> =
            value.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
        names.and_then(Groups::new).unwrap_or_else(|| {
            log_once(name);
            Groups::default()
        })
    }
}

fn log_once(claim: &str) {
    static LOGGED: Once = Once::new();
    LOGGED.call_once(|| {
        tracing::warn!(
            claim,
            "groups of users are ignored: the claim of their provider is not a list of at most {} strings of 1 to {} bytes; further \
             ones are not logged",
            Groups::MOST,
            Groups::LONGEST
        );
    });
}
