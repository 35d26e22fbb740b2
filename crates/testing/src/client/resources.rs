//! `resources/*`.

use std::sync::Arc;

use serde_json::json;

use super::{engine::Core, tools::list};
use crate::{
    ClientError,
    records::{Resource, ResourceContent, ResourceTemplate},
};

/// Resources of the server. Made by [`Mcp::resources`](super::Mcp::resources).
#[derive(Clone, Copy)]
pub struct Resources<'a> {
    pub(super) core: &'a Arc<Core>,
}

impl std::fmt::Debug for Resources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Resources")
    }
}

impl Resources<'_> {
    /// All resources, page by page.
    ///
    /// # Errors
    /// The server fails, or lists something that is no resource.
    pub async fn list(self) -> Result<Vec<Resource>, ClientError> {
        list(self.core, "resources/list", "resources", Resource::read).await
    }

    /// All resource templates, page by page.
    ///
    /// # Errors
    /// The server fails, or lists something that is no template.
    pub async fn list_templates(self) -> Result<Vec<ResourceTemplate>, ClientError> {
        list(self.core, "resources/templates/list", "resourceTemplates", ResourceTemplate::read).await
    }

    /// What a resource holds.
    ///
    /// # Errors
    /// There is none of this URI, or the server fails.
    pub async fn read(self, uri: &str) -> Result<ResourceContent, ClientError> {
        let result = self.core.call("resources/read", json!({"uri": uri})).await?;
        ResourceContent::read(uri, result.clone()).map_err(|problem| ClientError::Shape {
            method: "resources/read".into(),
            problem,
            answer: result.to_string(),
        })
    }

    /// Follows a resource (up to 2025-11-25): `notifications/resources/updated` tells of changes.
    ///
    /// # Errors
    /// The server fails or has no subscriptions.
    pub async fn subscribe(self, uri: &str) -> Result<(), ClientError> {
        self.core.call("resources/subscribe", json!({"uri": uri})).await.map(drop)
    }

    /// Follows a resource no longer.
    ///
    /// # Errors
    /// The server fails.
    pub async fn unsubscribe(self, uri: &str) -> Result<(), ClientError> {
        self.core.call("resources/unsubscribe", json!({"uri": uri})).await.map(drop)
    }
}
