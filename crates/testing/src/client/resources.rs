//! `resources/*`.

use std::sync::Arc;

use serde_json::json;

use super::{engine::Engine, tools::list};
use crate::protocol::{ClientError, Resource, ResourceContent, ResourceTemplate};

/// The resources of a server. Returned by [`Mcp::resources`](super::Mcp::resources).
#[derive(Debug, Clone, Copy)]
pub struct Resources<'a> {
    pub(super) engine: &'a Arc<Engine>,
}

impl Resources<'_> {
    /// Lists all resources, across pages.
    ///
    /// # Errors
    /// The server fails, or an item is not a resource.
    pub async fn list(self) -> Result<Vec<Resource>, ClientError> {
        list(self.engine, "resources/list", "resources", Resource::read).await
    }

    /// Lists all resource templates, across pages.
    ///
    /// # Errors
    /// The server fails, or an item is not a resource template.
    pub async fn list_templates(self) -> Result<Vec<ResourceTemplate>, ClientError> {
        list(self.engine, "resources/templates/list", "resourceTemplates", ResourceTemplate::read).await
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// The resource does not exist, or the server fails.
    pub async fn read(self, uri: &str) -> Result<ResourceContent, ClientError> {
        let result = self.engine.call("resources/read", json!({"uri": uri})).await?;
        ResourceContent::read(uri, result.clone()).map_err(|problem| ClientError::Shape {
            method: "resources/read".into(),
            problem,
            answer: result.to_string(),
        })
    }

    /// Subscribes to a resource (up to 2025-11-25): changes are reported by `notifications/resources/updated`.
    ///
    /// # Errors
    /// The server fails or does not support subscriptions.
    pub async fn subscribe(self, uri: &str) -> Result<(), ClientError> {
        self.engine.call("resources/subscribe", json!({"uri": uri})).await.map(drop)
    }

    /// Unsubscribes from a resource.
    ///
    /// # Errors
    /// The server fails.
    pub async fn unsubscribe(self, uri: &str) -> Result<(), ClientError> {
        self.engine.call("resources/unsubscribe", json!({"uri": uri})).await.map(drop)
    }
}
