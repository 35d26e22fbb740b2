//! `prompts/*`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{engine::Core, tools::list};
use crate::{
    ClientError,
    records::{Prompt, PromptResult},
};

/// Prompts of the server. Made by [`Mcp::prompts`](super::Mcp::prompts).
#[derive(Clone, Copy)]
pub struct Prompts<'a> {
    pub(super) core: &'a Arc<Core>,
}

impl std::fmt::Debug for Prompts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Prompts")
    }
}

impl Prompts<'_> {
    /// All prompts, page by page.
    ///
    /// # Errors
    /// The server fails, or lists something that is no prompt.
    pub async fn list(self) -> Result<Vec<Prompt>, ClientError> {
        list(self.core, "prompts/list", "prompts", Prompt::read).await
    }

    /// Renders a prompt. `arguments` is an object of texts, or null.
    ///
    /// # Errors
    /// There is none of this name, an argument is wrong, or the server fails.
    pub async fn get(self, name: &str, arguments: Value) -> Result<PromptResult, ClientError> {
        let mut params = json!({"name": name});
        if !arguments.is_null() {
            params["arguments"] = arguments;
        }
        let result = self.core.call("prompts/get", params).await?;
        PromptResult::read(result.clone()).map_err(|problem| ClientError::Shape {
            method: "prompts/get".into(),
            problem,
            answer: result.to_string(),
        })
    }
}
