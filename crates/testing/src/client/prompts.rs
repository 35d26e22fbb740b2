//! `prompts/*`.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use super::{engine::Engine, tools::list};
use crate::protocol::{ClientError, Prompt, PromptResult};

/// The prompts of a server. Returned by [`Mcp::prompts`](super::Mcp::prompts).
#[derive(Debug, Clone, Copy)]
pub struct Prompts<'a> {
    pub(super) engine: &'a Arc<Engine>,
}

impl Prompts<'_> {
    /// Lists all prompts, across pages.
    ///
    /// # Errors
    /// The server fails, or an item is not a prompt.
    pub async fn list(self) -> Result<Vec<Prompt>, ClientError> {
        list(self.engine, "prompts/list", "prompts", Prompt::read).await
    }

    /// Gets a prompt. Arguments are an object of strings, as anything that can be written as JSON, or `()` for none.
    ///
    /// # Errors
    /// The prompt does not exist, an argument is invalid, or the server fails.
    ///
    /// # Panics
    /// The arguments cannot be written as JSON, such as a map whose keys are no texts.
    pub async fn get(self, name: &str, arguments: impl Serialize) -> Result<PromptResult, ClientError> {
        let arguments = serde_json::to_value(arguments).expect("the arguments can be written as JSON");
        let mut params = json!({"name": name});
        if !arguments.is_null() {
            params["arguments"] = arguments;
        }
        let result = self.engine.call("prompts/get", params).await?;
        PromptResult::read(result.clone()).map_err(|problem| ClientError::Shape {
            method: "prompts/get".into(),
            problem,
            answer: result.to_string(),
        })
    }
}
