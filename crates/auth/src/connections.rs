//! Servers behind the gateway that a user connected to their account.

use async_trait::async_trait;

use crate::store::StoreError;

/// A server at which the gateway can act for a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Connection {
    /// Id of the app.
    pub(crate) app: String,
    /// Host of the server.
    pub(crate) host: String,
}

/// Connections of users to servers behind the gateway.
#[async_trait]
pub(crate) trait Connections: Send + Sync {
    /// Returns the connections of a user, by app; `None` where no app has any.
    async fn of(&self, sub: &str) -> Result<Option<Vec<Connection>>, StoreError>;

    /// Forgets the user's tokens for an app. Returns whether there were any.
    async fn disconnect(&self, sub: &str, app: &str) -> Result<bool, StoreError>;
}
