//! The user for whom a server is called.

use std::sync::Arc;

use gatewright_core::{Principal, UserCredentials};

/// A user, and who keeps their tokens.
#[derive(Clone)]
pub(crate) struct User {
    pub(crate) principal: Arc<Principal>,
    pub(crate) credentials: Arc<dyn UserCredentials>,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User").field("principal", &self.principal).finish_non_exhaustive()
    }
}
